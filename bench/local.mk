include bench/plan/local.mk
