/* Structured log: one event a line on stderr, `time level job event key=value ...`. Values with blanks are quoted.
 * Thread rule: a line is one write(2); any thread. */
#ifndef LTH_BASE_LOG_H
#define LTH_BASE_LOG_H

enum lth_log_level { LTH_LOG_DEBUG, LTH_LOG_INFO, LTH_LOG_WARN, LTH_LOG_ERROR, LTH_LOG_NONE };

struct lth_log {
	enum lth_log_level threshold; /* events below it are dropped */
};

/* `job` may be NULL. The arguments after `event` are pairs of strings, key and value, ended by NULL. */
void lth_log_event(const struct lth_log *log, enum lth_log_level level, const char *job, const char *event, ...)
	__attribute__((sentinel));

#endif
