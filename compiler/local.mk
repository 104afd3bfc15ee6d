include compiler/passes/local.mk
