/* Status codes of every Lathe program, made from status.def. Thread rule: pure functions. */
#ifndef LTH_BASE_STATUS_H
#define LTH_BASE_STATUS_H

enum lth_code {
#define LTH_STATUS(name, http, exit, slug, text) LTH_##name,
#include "runtime/base/status.def"
#undef LTH_STATUS
	LTH_NUM_CODES
};

#define LTH_MUST_CHECK __attribute__((warn_unused_result))
#define LTH_PRINTF(format_arg, first_arg) __attribute__((format(printf, format_arg, first_arg)))

const char *lth_code_text(enum lth_code code); /* title for people */
const char *lth_code_slug(enum lth_code code); /* stable word for programs */
int lth_code_http(enum lth_code code);
int lth_code_exit(enum lth_code code);
/* The code with this slug, or LTH_NUM_CODES. */
enum lth_code lth_code_by_slug(const char *slug);

#endif
