# liblathe-client: requests to a daemon, for C programs. The archive carries what it needs of libbase.
include_HEADERS += %D%/lathe_client.h
lib_LIBRARIES += %D%/liblathe-client.a
%C%_liblathe_client_a_SOURCES = \
	%D%/client.c %D%/client.h \
	%D%/client_compile.c \
	%D%/lathe_client.h \
	runtime/base/buf.c \
	runtime/base/diag.c \
	runtime/base/io.c \
	runtime/base/sha256.c \
	runtime/base/status.c
%C%_liblathe_client_a_CFLAGS = $(AM_CFLAGS) -fPIC $(CURL_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
