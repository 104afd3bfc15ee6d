include runtime/base/local.mk
include runtime/program/local.mk
