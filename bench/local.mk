include bench/plan/local.mk
include bench/codegen/local.mk
include bench/kernels/local.mk
include bench/memory/local.mk
include bench/http/local.mk
include bench/ops/local.mk
EXTRA_DIST += bench/README.md bench/models/run bench/models/against_onnxruntime.py
