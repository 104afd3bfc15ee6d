# libbase: what every program stands on; libc only. sha256 needs libcrypto and is a library of its own.
noinst_LIBRARIES += %D%/libbase.a %D%/libsha256.a
%C%_libbase_a_SOURCES = \
	%D%/arena.c %D%/arena.h \
	%D%/buf.c %D%/buf.h \
	%D%/checked.h \
	%D%/diag.c %D%/diag.h \
	%D%/hash.c %D%/hash.h \
	%D%/id_table.c %D%/id_table.h \
	%D%/io.c %D%/io.h \
	%D%/log.c %D%/log.h \
	%D%/machine.c %D%/machine.h \
	%D%/place.c %D%/place.h \
	%D%/status.c %D%/status.def %D%/status.h \
	%D%/team.c %D%/team.h \
	%D%/wire.c %D%/wire.h
%C%_libsha256_a_SOURCES = %D%/sha256.c %D%/sha256.h
%C%_libsha256_a_CFLAGS = $(AM_CFLAGS) $(CRYPTO_CFLAGS)
