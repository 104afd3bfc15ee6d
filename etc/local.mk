# What an installation of the daemon needs around it. lathed.conf and lathed(8) are made from the
# table of settings.
systemdunitdir = $(prefix)/lib/systemd/system
nodist_systemdunit_DATA = %D%/lathed.service
dist_systemdunit_DATA = %D%/lathed.socket
nodist_doc_DATA += %D%/lathed.conf
dist_doc_DATA += %D%/nginx.conf
man8_MANS = %D%/lathed.8
EXTRA_DIST += %D%/lathed.service.in
CLEANFILES += %D%/lathed.service %D%/lathed.conf $(man8_MANS)
%D%/lathed.service: %D%/lathed.service.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && $(SED) -e 's|[@]sbindir[@]|$(sbindir)|' $(srcdir)/%D%/lathed.service.in > $@.tmp && mv $@.tmp $@
%D%/lathed.conf: daemon/lathed$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D% && daemon/lathed --print-config > $@.tmp && mv $@.tmp $@
%D%/lathed.8: daemon/lathed$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) %D% && daemon/lathed --print-manual > $@.tmp && mv $@.tmp $@
