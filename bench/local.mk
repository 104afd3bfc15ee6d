include bench/plan/local.mk
include bench/codegen/local.mk
