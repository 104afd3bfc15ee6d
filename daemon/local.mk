# lathed: HTTP, jobs, workers, store. Stands on runtime/base alone; never links the compiler or LLVM.
noinst_LIBRARIES += %D%/libdaemon.a
%C%_libdaemon_a_SOURCES = \
	%D%/acked.c %D%/acked.h \
	%D%/answers.c %D%/answers.h \
	%D%/auth.c %D%/auth.h \
	%D%/config.c %D%/config.def %D%/config.h %D%/config_text.c \
	%D%/connection.c \
	%D%/deliver.c \
	%D%/description.c %D%/description.h \
	%D%/embedded.h \
	%D%/evict.c \
	%D%/handles.c \
	%D%/http.h \
	%D%/jobs.c %D%/jobs.h %D%/jobs_internal.h \
	%D%/listen.c \
	%D%/metrics.c %D%/metrics.def %D%/metrics.h \
	%D%/negotiate.c %D%/negotiate.h \
	%D%/options.c %D%/options.h \
	%D%/partial.c \
	%D%/pool.c %D%/pool.h %D%/pool_internal.h \
	%D%/problem.c %D%/problem.h \
	%D%/publish.c %D%/publish.h \
	%D%/quarantine.c %D%/quarantine.h \
	%D%/reply.c \
	%D%/request.c \
	%D%/route_compile.c \
	%D%/route_info.c \
	%D%/route_jobs.c \
	%D%/route_plan.c \
	%D%/route_store.c \
	%D%/routes.c %D%/routes.def \
	%D%/run.c \
	%D%/schedule.c \
	%D%/server.c %D%/server.h \
	%D%/shortcut.c %D%/shortcut.h \
	%D%/spool.c \
	%D%/store.c %D%/store.h \
	%D%/store_files.c %D%/store_files.h \
	%D%/store_put.c \
	%D%/systemd.c %D%/systemd.h \
	%D%/tls.c \
	%D%/waiting.c \
	%D%/worker_messages.c \
	%D%/worker_process.c
nodist_%C%_libdaemon_a_SOURCES = %D%/web_page.c %D%/openapi_text.c
%C%_libdaemon_a_CPPFLAGS = $(AM_CPPFLAGS) -DLATHE_SBINDIR='"$(sbindir)"' \
	-DLATHE_LIBEXECDIR='"$(libexecdir)"' \
	-DLATHE_SYSCONFDIR='"$(sysconfdir)"'
%C%_libdaemon_a_CFLAGS = $(AM_CFLAGS) $(MHD_CFLAGS) $(UV_CFLAGS) $(JANSSON_CFLAGS) $(GNUTLS_CFLAGS)

sbin_PROGRAMS += %D%/lathed
%C%_lathed_SOURCES = %D%/main.c
%C%_lathed_CFLAGS = $(AM_CFLAGS) $(UV_CFLAGS) $(JANSSON_CFLAGS)
%C%_lathed_LDADD = %D%/libdaemon.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(MHD_LIBS) $(GNUTLS_LIBS) $(UV_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS) -lm

EXTRA_DIST += %D%/web/index.html
CLEANFILES += %D%/web_page.c %D%/openapi_text.c
# A text file as an array of bytes with a NUL behind it (a literal would be longer than C17 promises).
lth_embed = $(MKDIR_P) %D% && { \
	echo '/* generated; do not edit */'; \
	printf '\043include "daemon/embedded.h"\n'; \
	echo "const char $$name[] = {"; \
	od -An -v -td1 "$$text" | $(SED) -e 's/[0-9]\{1,\}/&,/g'; \
	echo '0};'; } > $@.tmp && mv $@.tmp $@
%D%/web_page.c: %D%/web/index.html
	$(AM_V_GEN)name=lth_web_page; text=$(srcdir)/%D%/web/index.html; $(lth_embed)
%D%/openapi_text.c: api/openapi.yaml
	$(AM_V_GEN)name=lth_openapi_text; text=$(srcdir)/api/openapi.yaml; $(lth_embed)
