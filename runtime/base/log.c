/* Structured log. See log.h. */
#include "runtime/base/log.h"
#include "runtime/base/buf.h"

#include <stdarg.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void lth_log_event(const struct lth_log *log, enum lth_log_level level, const char *job, const char *event, ...)
{
	static const char *const names[] = {"debug", "info", "warn", "error", "none"};
	if (level < log->threshold)
		return;
	struct lth_buf line = {0};
	struct timespec now;
	struct tm parts;
	char stamp[32];
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &parts);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &parts);
	lth_buf_printf(&line, "%s.%03ldZ %s %s %s", stamp, now.tv_nsec / 1000000, names[level], job ? job : "-", event);
	va_list args;
	va_start(args, event);
	for (const char *key; (key = va_arg(args, const char *)) != NULL;) {
		const char *value = va_arg(args, const char *);
		lth_buf_printf(&line, " %s=", key);
		if (value[strcspn(value, " \"\n\t\\=")] || !*value)
			lth_buf_quote(&line, value);
		else
			lth_buf_puts(&line, value);
	}
	va_end(args);
	lth_buf_putc(&line, '\n');
	if (lth_buf_ok(&line)) {
		ssize_t ignored = write(STDERR_FILENO, line.data, line.size);
		(void)ignored;
	}
	lth_buf_free(&line);
}
