# liblathe, its header and its pkg-config file. The shared library is made by a rule of its own: it is one file, so
# libtool would be the larger part of it.
include_HEADERS += %D%/lathe.h
lib_LIBRARIES += %D%/liblathe.a
%C%_liblathe_a_SOURCES = %D%/liblathe.c
%C%_liblathe_a_CFLAGS = -std=c17 $(LTH_WARN) -fPIC -fvisibility=hidden
sharedlib_DATA += %D%/liblathe.so.0
CLEANFILES += %D%/liblathe.so.0
%D%/liblathe.so.0: %D%/liblathe.a
	$(AM_V_CCLD)$(CC) -shared -Wl,-soname,liblathe.so.0 -Wl,-z,relro -o $@ \
		-Wl,--whole-archive %D%/liblathe.a -Wl,--no-whole-archive -ldl
install-data-hook: install-liblathe-link
install-liblathe-link:
	cd '$(DESTDIR)$(sharedlibdir)' && rm -f liblathe.so && $(LN_S) liblathe.so.0 liblathe.so
uninstall-hook: uninstall-liblathe-link
uninstall-liblathe-link:
	rm -f '$(DESTDIR)$(sharedlibdir)/liblathe.so'
.PHONY: install-liblathe-link uninstall-liblathe-link
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = %D%/lathe.pc
CLEANFILES += %D%/lathe.pc
EXTRA_DIST += %D%/lathe.pc.in
%D%/lathe.pc: %D%/lathe.pc.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SED) -e 's|[@]prefix@|$(prefix)|; s|[@]exec_prefix@|$(exec_prefix)|' \
		-e 's|[@]libdir@|$(libdir)|; s|[@]includedir@|$(includedir)|' \
		-e 's|[@]PACKAGE_VERSION@|$(PACKAGE_VERSION)|' $(srcdir)/%D%/lathe.pc.in > $@
