# liblathe-media: regular expressions and image codecs, a shared library that executables open by name when they need it
# (media.h); libmedia.a is the same for tests. rt-media.o finds it: what the compiler links beside the runtime then.
media_sources = \
	%D%/bmp.c \
	%D%/image.c %D%/image.h \
	%D%/jp2.c \
	%D%/jpeg.c \
	%D%/media.c %D%/media.h \
	%D%/png.c \
	%D%/pnm.c \
	%D%/regex.c %D%/regex.h \
	%D%/tiff.c \
	%D%/webp.c
media_cflags = $(PCRE2_CFLAGS) $(JPEG_CFLAGS) $(PNG_CFLAGS) $(TIFF_CFLAGS) $(WEBP_CFLAGS) $(OPENJP2_CFLAGS)
media_libs = $(PCRE2_LIBS) $(JPEG_LIBS) $(PNG_LIBS) $(TIFF_LIBS) $(WEBP_LIBS) $(OPENJP2_LIBS)
noinst_LIBRARIES += %D%/libmedia.a %D%/libmediaimage.a %D%/libload.a
%C%_libmedia_a_SOURCES = $(media_sources)
%C%_libmedia_a_CFLAGS = $(AM_CFLAGS) $(media_cflags)
%C%_libmediaimage_a_SOURCES = $(media_sources)
%C%_libmediaimage_a_CFLAGS = $(runtime_image_cflags) $(media_cflags)
sharedlib_DATA += %D%/liblathe-media.so.0
CLEANFILES += %D%/liblathe-media.so.0
%D%/liblathe-media.so.0: %D%/libmediaimage.a
	$(AM_V_CCLD)$(CC) -shared -Wl,-soname,liblathe-media.so.0 -Wl,-z,relro -Wl,-z,defs -o $@ \
		-Wl,--whole-archive %D%/libmediaimage.a -Wl,--no-whole-archive $(media_libs)
noinst_LIBRARIES += %D%/liblocate.a
%C%_liblocate_a_SOURCES = %D%/locate.c
%C%_libload_a_SOURCES = %D%/load.c
%C%_libload_a_CFLAGS = $(runtime_image_cflags)
rt_DATA += %D%/rt-media.o
CLEANFILES += %D%/rt-media.o
%D%/rt-media.o: %D%/libload.a
	$(AM_V_GEN)$(LTH_LD) -r -S -o $@ --whole-archive %D%/libload.a
