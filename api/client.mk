# liblathe-client: requests to a daemon, for C programs. The archive carries what it needs of libbase.
include_HEADERS += %D%/lathe_client.h
pkgconfig_DATA += %D%/lathe-client.pc
CLEANFILES += %D%/lathe-client.pc
EXTRA_DIST += %D%/lathe-client.pc.in
%D%/lathe-client.pc: %D%/lathe-client.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SED) -e 's|[@]prefix@|$(prefix)|; s|[@]exec_prefix@|$(exec_prefix)|' \
		-e 's|[@]libdir@|$(libdir)|; s|[@]includedir@|$(includedir)|' \
		-e 's|[@]PACKAGE_VERSION@|$(PACKAGE_VERSION)|' $(srcdir)/%D%/lathe-client.pc.in > $@
lib_LIBRARIES += %D%/liblathe-client.a
%C%_liblathe_client_a_SOURCES = \
	%D%/client.c %D%/client.h \
	%D%/client_compile.c \
	%D%/lathe_client.h \
	runtime/base/arena.c \
	runtime/base/buf.c \
	runtime/base/diag.c \
	runtime/base/io.c \
	runtime/base/sha256.c \
	runtime/base/status.c
%C%_liblathe_client_a_CFLAGS = $(AM_CFLAGS) -fPIC $(CURL_CFLAGS) $(JANSSON_CFLAGS) $(CRYPTO_CFLAGS)
