include runtime/base/local.mk
include runtime/program/local.mk
include runtime/tensor/local.mk
include runtime/exec/local.mk
include runtime/media/local.mk
dist_doc_DATA += docs/EXECUTABLE.md docs/PROGRAM.md
include runtime/exe/local.mk
