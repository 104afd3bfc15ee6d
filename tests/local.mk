include tests/unit/local.mk
include tests/http/local.mk
