# Load on the daemon, for bench/http/cached-hits and tests/fault.
check_PROGRAMS += %D%/http_load %D%/constant
%C%_http_load_SOURCES = %D%/http_load.c
%C%_constant_SOURCES = %D%/constant.c
%C%_constant_CFLAGS = $(AM_CFLAGS) $(MHD_CFLAGS)
%C%_constant_LDADD = $(MHD_LIBS)
EXTRA_DIST += %D%/cached-hits
