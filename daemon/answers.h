/* Finished results. An answer is the stored result document with what is needed to reply from it at once; a small cache
 * keeps the hot ones in memory by action key. The stored document begins with its schema and action key; what differs
 * from answer to answer (id, status, cache) is spliced in when it is sent. The id of a result is the hex digest of its
 * stored document. Thread rule: answers are immutable once made; counts and cache belong to the loop thread. */
#ifndef LTH_DAEMON_ANSWERS_H
#define LTH_DAEMON_ANSWERS_H

#include "daemon/store.h"

struct lth_answer_artifact {
	char kind[16], digest[LTH_DIGEST_TEXT];
	uint64_t bytes;
};

struct lth_answer {
	unsigned references;
	char *document; /* JSON text */
	size_t size;
	char digest[LTH_DIGEST_TEXT];      /* of the document; empty for a plan, which is not stored */
	char plan_digest[LTH_DIGEST_TEXT]; /* of a plan that was stored, for a job that may outlive the daemon */
	struct lth_answer_artifact *artifacts;
	size_t num_artifacts;
	char *server_timing; /* header value; "" when there are no phases */
	char *summary;       /* for people */
	bool cacheable;
	uint64_t peak_bytes; /* compile.peak_rss_bytes, 0 when not told */
	/* The whole reply to a hit, made when it is first wanted, and how to free it: the HTTP layer's. */
	void *reply;
	void (*free_reply)(void *reply);
};

/* Takes `document` (malloc'ed). NULL when it is not a result document or memory is out. */
struct lth_answer *lth_answer_create(char *document, size_t size, const char *digest);
/* An answer that is only a document: a plan. Takes `document`. */
struct lth_answer *lth_answer_plain(char *document, size_t size);
struct lth_answer *lth_answer_share(struct lth_answer *answer);
void lth_answer_release(struct lth_answer **answer);
/* True when every blob that the answer names exists. */
bool lth_answer_complete(const struct lth_answer *answer, const struct lth_store *store);
/* The document as it is sent, malloc'ed; NULL when out of memory. `cache` is "miss", "hit" or "joined". */
char *lth_answer_text(const struct lth_answer *answer, const char *cache, size_t *out_size);

enum { LTH_ANSWERS_SLOTS = 512, LTH_ANSWERS_BYTES = 8 << 20 };
struct lth_answers {
	struct {
		char key[LTH_DIGEST_TEXT];
		struct lth_answer *answer;
		uint64_t used;
		uint64_t checked_ns, removed; /* when its blobs were last seen, and the store's count of removals then */
	} slots[LTH_ANSWERS_SLOTS]; /* four-way associative by the key's first bytes */
	uint64_t clock;
	size_t bytes;
};

/* From memory or from the store; NULL when there is none or a blob of it is missing: the blobs of an answer in memory
 * are looked for when the store has removed any, and else once a second, should someone else have. The caller releases
 * it. */
struct lth_answer *lth_answers_find(struct lth_answers *answers, struct lth_store *store, const char *key);
void lth_answers_keep(struct lth_answers *answers, const char *key, struct lth_answer *answer);
void lth_answers_clear(struct lth_answers *answers);
/* A stored plan. The caller releases it. */
struct lth_answer *lth_answers_plan(struct lth_store *store, const char *digest);
/* The stored result with this hex id; NULL when there is none. The caller releases it. */
struct lth_answer *lth_answers_by_id(struct lth_store *store, const char *id);

#endif
