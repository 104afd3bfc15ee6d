# libprogram: programs and element types, shared by the compiler and the runtime, and what their memory looks like
# (runtime/memory), which executables do without; stands on libbase, needs libm.
noinst_LIBRARIES += %D%/libprogram.a
runtime_program_sources = \
	%D%/exprs.def %D%/instrs.def %D%/kernel_abi.h \
	%D%/program.c %D%/program.h \
	%D%/program_binary.c \
	%D%/program_eval.c \
	%D%/program_expr_text.c \
	%D%/program_lex.c %D%/program_lex.h \
	%D%/program_parse.c %D%/program_parse.h \
	%D%/program_parse_instr.c \
	%D%/program_parse_words.c \
	%D%/program_print.c %D%/program_text.h \
	%D%/program_verify.c %D%/program_verify.h \
	%D%/program_verify_flow.c \
	runtime/kernels/builtin.h runtime/kernels/builtin_names.c runtime/kernels/builtins.def \
	runtime/tensor/value_type.c runtime/tensor/value_type.h \
	runtime/tensor/dtype.c runtime/tensor/dtype.h runtime/tensor/dtypes.def
%C%_libprogram_a_SOURCES = $(runtime_program_sources) \
	runtime/memory/figures.c runtime/memory/figures.h \
	runtime/memory/ledger.c runtime/memory/ledger.h \
	runtime/memory/lists.c \
	runtime/memory/timeline.c \
	runtime/memory/views.c runtime/memory/views.def runtime/memory/views.h
