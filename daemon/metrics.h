/* Counters and gauges of the daemon, and the histograms of its times. Thread rule: loop thread. */
#ifndef LTH_DAEMON_METRICS_H
#define LTH_DAEMON_METRICS_H

#include "runtime/base/buf.h"

#include <stdint.h>

enum lth_metric {
#define LTH_METRIC(name, kind, text, help) LTH_METRIC_##name,
#include "daemon/metrics.def"
#undef LTH_METRIC
	LTH_NUM_METRIC
};

enum lth_histogram { LTH_HISTOGRAM_REQUEST, LTH_HISTOGRAM_QUEUE, LTH_HISTOGRAM_JOB, LTH_NUM_HISTOGRAM };
enum { LTH_HISTOGRAM_BUCKETS = 14, LTH_METRIC_ROUTES = 40, LTH_METRIC_STATUSES = 32 };

struct lth_metrics {
	uint64_t values[LTH_NUM_METRIC];
	struct {
		uint64_t buckets[LTH_HISTOGRAM_BUCKETS + 1], count, sum_ns;
	} histograms[LTH_NUM_HISTOGRAM];
	struct {
		unsigned status;
		uint64_t count;
	} answers[LTH_METRIC_ROUTES][LTH_METRIC_STATUSES]; /* by route number and status, statuses as they come */
};

void lth_metrics_time(struct lth_metrics *metrics, enum lth_histogram histogram, uint64_t ns);
void lth_metrics_answer(struct lth_metrics *metrics, unsigned route, unsigned status);
/* `route_name` gives the label of a route number. */
void lth_metrics_print(const struct lth_metrics *metrics, const char *(*route_name)(unsigned), struct lth_buf *out);

#endif
