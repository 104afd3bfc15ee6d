EXTRA_DIST += %D%/graph.schema.json %D%/openapi.yaml %D%/request.schema.json %D%/result.schema.json
include api/lib.mk
include api/client.mk
include api/cli/local.mk
