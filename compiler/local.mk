include compiler/codegen/local.mk
include compiler/lower/local.mk
include compiler/memory/local.mk
include compiler/ir/local.mk
include compiler/passes/local.mk
include compiler/ops/local.mk
include compiler/worker/local.mk
