# lathe: the command line.
dist_doc_DATA += docs/CLI.md
bin_PROGRAMS += api/lathe
api_lathe_SOURCES = \
	%D%/cli.h %D%/commands.def %D%/options.def \
	%D%/bisect.c \
	%D%/compare.c \
	%D%/compile.c \
	%D%/completion.c \
	%D%/executable.h \
	%D%/help.c \
	%D%/inspect.c \
	%D%/local.c \
	%D%/main.c \
	%D%/memory.c \
	%D%/model.c \
	%D%/onnx_cut.c %D%/onnx_cut.h \
	%D%/parse.c \
	%D%/plan.c \
	%D%/program.c \
	%D%/request.c \
	%D%/run.c \
	%D%/show.c \
	%D%/store.c \
	%D%/suite.c %D%/suite.h %D%/suite_ops.def \
	%D%/suite_case.c \
	%D%/tables.c \
	%D%/text.c \
	%D%/timeline.c \
	%D%/top.c \
	%D%/verify.c %D%/verify.h
api_lathe_CPPFLAGS = $(AM_CPPFLAGS) -DLATHE_BINDIR='"$(bindir)"' -DLATHE_SBINDIR='"$(sbindir)"'
api_lathe_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
api_lathe_LDADD = api/liblathe-client.a runtime/exe/libexe.a runtime/media/liblocate.a runtime/tensor/libtensor.a runtime/program/libprogram.a \
	runtime/base/libsha256.a runtime/base/libbase.a $(CURL_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -ldl -lm

# The manual page and the completions come out of the program's own tables.
man1_MANS = %D%/lathe.1
bashcompletiondir = $(datadir)/bash-completion/completions
bashcompletion_DATA = %D%/completion/lathe
zshcompletiondir = $(datadir)/zsh/site-functions
zshcompletion_DATA = %D%/completion/_lathe
fishcompletiondir = $(datadir)/fish/vendor_completions.d
fishcompletion_DATA = %D%/completion/lathe.fish
CLEANFILES += $(man1_MANS) $(bashcompletion_DATA) $(zshcompletion_DATA) $(fishcompletion_DATA)
%D%/lathe.1: api/lathe$(EXEEXT)
	$(AM_V_GEN)api/lathe man >$@.tmp && mv $@.tmp $@
%D%/completion/lathe: api/lathe$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completion && api/lathe completion bash >$@.tmp && mv $@.tmp $@
%D%/completion/_lathe: api/lathe$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completion && api/lathe completion zsh >$@.tmp && mv $@.tmp $@
%D%/completion/lathe.fish: api/lathe$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D%/completion && api/lathe completion fish >$@.tmp && mv $@.tmp $@
