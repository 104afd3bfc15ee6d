# libemit: from objects, constants and a program to native files.
noinst_LIBRARIES += %D%/libemit.a
%C%_libemit_a_SOURCES = \
	%D%/archive.c \
	%D%/attach.c \
	%D%/blob.c \
	%D%/constants.c \
	%D%/elf_write.h \
	%D%/emit.c %D%/emit.h \
	%D%/link.c
%C%_libemit_a_CPPFLAGS = $(AM_CPPFLAGS) -DLTH_LD='"$(LTH_LD)"' -DLTH_LIBEXEC='"$(libexecdir)/lathe"'
