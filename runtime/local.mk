include runtime/base/local.mk
