include compiler/memory/plan/local.mk
