# Tests of the command line and the client library, with a real daemon and its real workers.
cli_tests = \
	%D%/bisect-values \
	%D%/client-library-from-c \
	%D%/compare-variants \
	%D%/compile-run-inspect \
	%D%/completions \
	%D%/daemon-tables \
	%D%/exit-codes \
	%D%/external-data \
	%D%/help-from-tables \
	%D%/interrupted-upload \
	%D%/jobs-and-blobs \
	%D%/manual-pages \
	%D%/media-library \
	%D%/moved-installation \
	%D%/plan-buffers \
	%D%/retry-busy \
	%D%/run-objects \
	%D%/show-tensors \
	%D%/suite-cases \
	%D%/suite-libonnx
TESTS += $(cli_tests)
EXTRA_DIST += $(cli_tests) %D%/harness.sh
check_PROGRAMS += %D%/client-library
%C%_client_library_SOURCES = %D%/client-library.c
%C%_client_library_CFLAGS = $(AM_CFLAGS)
%C%_client_library_LDADD = api/liblathe-client.a $(CURL_LIBS) $(JANSSON_LIBS) $(CRYPTO_LIBS)
check_PROGRAMS += %D%/cutting-proxy
%C%_cutting_proxy_SOURCES = %D%/cutting-proxy.c
