include runtime/base/local.mk
include runtime/program/local.mk
include runtime/tensor/local.mk
include runtime/exec/local.mk
