# Tests of the daemon with real curl against a live one, and a worker double that misbehaves on request.
check_PROGRAMS += %D%/lathe-worker-double
%C%_lathe_worker_double_SOURCES = %D%/double.c
%C%_lathe_worker_double_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
%C%_lathe_worker_double_LDADD = compiler/worker/libworker.a runtime/base/libsha256.a runtime/base/libbase.a \
	$(JANSSON_LIBS) $(CRYPTO_LIBS) $(SECCOMP_LIBS)
check_PROGRAMS += %D%/filtered
%C%_filtered_SOURCES = %D%/filtered.c
%C%_filtered_CFLAGS = $(AM_CFLAGS) $(SECCOMP_CFLAGS)
%C%_filtered_LDADD = $(SECCOMP_LIBS)
check_PROGRAMS += %D%/bad-clients
%C%_bad_clients_SOURCES = %D%/bad-clients.c
check_DATA += %D%/held-disk.so
CLEANFILES += %D%/held-disk.so
EXTRA_DIST += %D%/held-disk.c
%D%/held-disk.so: %D%/held-disk.c
	$(AM_V_CCLD)$(MKDIR_P) %D% && $(CC) $(DEFS) $(AM_CPPFLAGS) $(CPPFLAGS) $(AM_CFLAGS) $(CFLAGS) -fPIC -shared -o $@ $(srcdir)/%D%/held-disk.c
http_tests = \
	%D%/acknowledgements \
	%D%/answer-forms \
	%D%/async-jobs \
	%D%/chaos \
	%D%/compile-and-cache \
	%D%/connection-limit \
	%D%/credentials \
	%D%/damaged-blobs \
	%D%/deadlines \
	%D%/disk-full \
	%D%/early-requests \
	%D%/eviction \
	%D%/fairness \
	%D%/job-events \
	%D%/jobs-survive \
	%D%/joined-requests \
	%D%/json-bodies \
	%D%/life \
	%D%/job-threads \
	%D%/measure-limits \
	%D%/nginx-front \
	%D%/openapi-matches-routes \
	%D%/openapi-statuses \
	%D%/option-errors \
	%D%/plan-refusals \
	%D%/quarantine \
	%D%/queue-limits \
	%D%/real-worker \
	%D%/recycled-workers \
	%D%/refusals \
	%D%/resumed-uploads \
	%D%/retention \
	%D%/sandbox \
	%D%/slow-and-leaving-clients \
	%D%/start-errors \
	%D%/store-survives \
	%D%/systemd-unit \
	%D%/tables-and-health \
	%D%/timeline \
	%D%/tls \
	%D%/unbounded \
	%D%/unix-socket \
	%D%/worker-crashes \
	%D%/worker-killed \
	%D%/worker-memory
TESTS += $(http_tests)
EXTRA_DIST += $(http_tests) %D%/harness.sh
if SANITIZED
AM_TESTS_ENVIRONMENT += SANITIZED=1; export SANITIZED;
endif
