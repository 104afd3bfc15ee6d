# liboptions: the options table; jansson.
noinst_LIBRARIES += %D%/liboptions.a
%C%_liboptions_a_SOURCES = %D%/options.c %D%/options.def %D%/options.h
%C%_liboptions_a_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
