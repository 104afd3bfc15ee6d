/* What a request's headers ask for. Pure functions over header text, which may be NULL. Thread rule: any. */
#ifndef LTH_DAEMON_NEGOTIATE_H
#define LTH_DAEMON_NEGOTIATE_H

#include <stdbool.h>
#include <stdint.h>

enum lth_media { LTH_MEDIA_JSON, LTH_MEDIA_BYTES, LTH_MEDIA_TEXT, LTH_NUM_MEDIA };
/* The best of what we offer for an Accept header (RFC 9110, 12.5.1): highest q, then the more specific, then JSON
 * first. Nothing acceptable gives JSON. */
enum lth_media lth_accept(const char *accept);

enum lth_content { LTH_CONTENT_RAW, LTH_CONTENT_JSON, LTH_CONTENT_CSV, LTH_CONTENT_OTHER };
/* The kind of a body by Content-Type; absent, octet-stream, onnx and curl's default form type are raw. */
enum lth_content lth_content_type(const char *type);

enum lth_range { LTH_RANGE_WHOLE, LTH_RANGE_PART, LTH_RANGE_OUTSIDE };
/* One byte range (RFC 9110, 14); several, or another unit, are answered whole. */
enum lth_range lth_range_parse(const char *range, uint64_t size, uint64_t *out_first, uint64_t *out_last);

/* Content-Range of a part that is sent: "bytes FIRST-LAST/TOTAL". False unless first <= last < total. */
bool lth_content_range_parse(const char *text, uint64_t *out_first, uint64_t *out_last, uint64_t *out_total);

/* If-None-Match: a list of tags, or `*`. */
bool lth_etag_listed(const char *list, const char *etag);

/* True when a request with this Origin may be served: none, or the daemon's own page. With `loopback` the host must be
 * a loopback name too, or a name that an attacker points at us would do. */
bool lth_origin_allowed(const char *origin, const char *host, bool loopback);

/* Prefer (RFC 7240): respond-async, wait=SECONDS. */
struct lth_prefer {
	bool respond_async;
	int64_t wait_seconds; /* -1 when absent */
};
struct lth_prefer lth_prefer_parse(const char *prefer);

#endif
