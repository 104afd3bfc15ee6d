/* TLS: the server's files, and what a client's certificate says. libmicrohttpd asks for the certificate when it is
 * given an authority, but does not verify it: that is done here, for every request. The server's own certificate is
 * handed out by a function, handshake by handshake, so that a reload can bring a renewed one. */
#include "daemon/http.h"
#include "runtime/base/io.h"

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

enum { PEM_LIMIT = 1 << 20 };

static gnutls_datum_t pem_datum(char *text)
{
	return (gnutls_datum_t){.data = (unsigned char *)text, .size = (unsigned)strlen(text)};
}

static enum lth_code read_pem(const char *path, char **out_text, struct lth_diag *diag)
{
	size_t size;
	return path[0] ? lth_read_file(path, PEM_LIMIT, out_text, &size, diag) : LTH_OK;
}

/* Would a handshake with them work? */
static enum lth_code check_pair(const struct lth_tls *tls, const char *path, struct lth_diag *diag)
{
	gnutls_certificate_credentials_t credentials;
	const gnutls_datum_t cert = pem_datum(tls->cert), key = pem_datum(tls->key);
	int error = gnutls_certificate_allocate_credentials(&credentials);
	if (error == 0) {
		error = gnutls_certificate_set_x509_key_mem(credentials, &cert, &key, GNUTLS_X509_FMT_PEM);
		gnutls_certificate_free_credentials(credentials);
	}
	if (error >= 0)
		return LTH_OK;
	return lth_diag_fail(diag, LTH_INVALID_OPTION, path, "a certificate chain (PEM), and the key of its first",
			     NULL, "%s", gnutls_strerror(error));
}

enum lth_code lth_tls_load(const struct lth_config *config, struct lth_tls *out_tls, struct lth_diag *diag)
{
	struct lth_tls tls = {0};
	enum lth_code code = LTH_OK;
	if (!config->tls_cert[0] != !config->tls_key[0] || (config->tls_client_ca[0] && !config->tls_cert[0]))
		return lth_diag_fail(diag, LTH_INVALID_OPTION, "tls",
				     "tls-cert and tls-key together, tls-client-ca only with them", NULL,
				     "one without the other");
	if (config->tls_cert[0] && MHD_is_feature_supported(MHD_FEATURE_TLS) != MHD_YES)
		return lth_diag_fail(diag, LTH_UNSUPPORTED, "tls", NULL, NULL, "a libmicrohttpd without TLS");
	code = read_pem(config->tls_cert, &tls.cert, diag);
	if (code == LTH_OK)
		code = read_pem(config->tls_key, &tls.key, diag);
	if (code == LTH_OK)
		code = read_pem(config->tls_client_ca, &tls.client_ca, diag);
	if (code == LTH_OK && tls.cert)
		code = check_pair(&tls, config->tls_cert, diag);
	if (code == LTH_OK)
		*out_tls = tls;
	else
		lth_tls_free(&tls);
	return code;
}

void lth_tls_free(struct lth_tls *tls)
{
	if (tls->key)
		explicit_bzero(tls->key, strlen(tls->key));
	free(tls->cert);
	free(tls->key);
	free(tls->client_ca);
	*tls = (struct lth_tls){0};
}

/* The one mutable global of the daemon: the function below bears no context. */
static const struct lth_tls *served;

void lth_tls_serve(const struct lth_tls *tls)
{
	served = tls;
}

int lth_tls_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info, gnutls_pcert_st **out_chain,
			unsigned *out_length, gnutls_ocsp_data_st **out_ocsp, unsigned *out_ocsp_length,
			gnutls_privkey_t *out_key, unsigned *out_flags)
{
	enum { LONGEST_CHAIN = 16 };
	const gnutls_datum_t cert = pem_datum(served->cert), key = pem_datum(served->key);
	unsigned length = LONGEST_CHAIN;
	gnutls_pcert_st *chain = gnutls_malloc(sizeof(*chain) * LONGEST_CHAIN);
	(void)session;
	(void)info;
	*out_key = NULL;
	if (!chain || gnutls_pcert_list_import_x509_raw(chain, &length, &cert, GNUTLS_X509_FMT_PEM, 0) != 0) {
		gnutls_free(chain);
		return -1;
	}
	*out_chain = chain;
	*out_length = length;
	*out_ocsp = NULL;
	*out_ocsp_length = 0;
	*out_flags = GNUTLS_CERT_RETR_DEINIT_ALL; /* copies: a reload in mid-handshake takes nothing away */
	if (gnutls_privkey_init(out_key) == 0 &&
	    gnutls_privkey_import_x509_raw(*out_key, &key, GNUTLS_X509_FMT_PEM, NULL, 0) == 0)
		return 0;
	while (length)
		gnutls_pcert_deinit(&chain[--length]);
	gnutls_free(chain);
	gnutls_privkey_deinit(*out_key);
	return -1;
}

void lth_tls_renew(struct lth_tls *tls, struct lth_tls *fresh)
{
	const struct lth_tls old = *tls;
	tls->cert = fresh->cert;
	tls->key = fresh->key;
	fresh->cert = old.cert;
	fresh->key = old.key;
}

static bool common_name(gnutls_session_t session, char *out_name, size_t size)
{
	unsigned count = 0;
	gnutls_x509_crt_t certificate;
	const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
	if (!chain || !count || gnutls_x509_crt_init(&certificate) != 0)
		return false;
	size_t length = size;
	bool ok = gnutls_x509_crt_import(certificate, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
		  gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, out_name, &length) == 0;
	gnutls_x509_crt_deinit(certificate);
	if (!ok)
		snprintf(out_name, size, "certificate");
	return true;
}

bool lth_tls_client(const struct lth_request *request, char *out_name, size_t size)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	unsigned status = 0;
	if (!request->server->tls.client_ca || !info || !info->tls_session)
		return false;
	gnutls_session_t session = info->tls_session;
	if (gnutls_certificate_verify_peers2(session, &status) != 0 || status != 0)
		return false;
	return common_name(session, out_name, size);
}
