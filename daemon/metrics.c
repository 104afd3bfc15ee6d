/* Metrics in Prometheus' text format, version 0.0.4. See metrics.h. */
#include "daemon/metrics.h"

static const struct {
	const char *kind, *name, *help;
} rows[] = {
#define COUNTER "counter"
#define GAUGE "gauge"
#define LTH_METRIC(name, kind, text, help) {kind, text, help},
#include "daemon/metrics.def"
#undef LTH_METRIC
};

static const struct {
	const char *name, *help;
} histograms[LTH_NUM_HISTOGRAM] = {
	[LTH_HISTOGRAM_REQUEST] = {"http_request_seconds", "time from a request's header to the end of its answer"},
	[LTH_HISTOGRAM_QUEUE] = {"job_queue_seconds", "time a job waited for a worker"},
	[LTH_HISTOGRAM_JOB] = {"job_seconds", "time a job spent in workers and in publishing"},
};

static const uint64_t bounds_us[LTH_HISTOGRAM_BUCKETS] = {250,     1000,     2500,     10000,    25000,
							  100000,  250000,   500000,   1000000,  2500000,
							  5000000, 10000000, 60000000, 600000000};

void lth_metrics_time(struct lth_metrics *metrics, enum lth_histogram histogram, uint64_t ns)
{
	int bucket = 0;
	while (bucket < LTH_HISTOGRAM_BUCKETS && ns > bounds_us[bucket] * 1000)
		bucket++;
	metrics->histograms[histogram].buckets[bucket]++;
	metrics->histograms[histogram].count++;
	metrics->histograms[histogram].sum_ns += ns;
}

void lth_metrics_answer(struct lth_metrics *metrics, unsigned route, unsigned status)
{
	if (route >= LTH_METRIC_ROUTES)
		return;
	for (int i = 0; i < LTH_METRIC_STATUSES; i++) {
		if (metrics->answers[route][i].count && metrics->answers[route][i].status != status)
			continue;
		metrics->answers[route][i].status = status;
		metrics->answers[route][i].count++;
		return;
	}
}

static void print_histogram(const struct lth_metrics *metrics, int which, struct lth_buf *out)
{
	const char *name = histograms[which].name;
	uint64_t total = 0;
	lth_buf_printf(out, "# HELP lathe_%s %s\n# TYPE lathe_%s histogram\n", name, histograms[which].help, name);
	for (int i = 0; i < LTH_HISTOGRAM_BUCKETS; i++) {
		total += metrics->histograms[which].buckets[i];
		lth_buf_printf(out, "lathe_%s_bucket{le=\"%g\"} %llu\n", name, (double)bounds_us[i] * 1e-6,
			       (unsigned long long)total);
	}
	lth_buf_printf(out, "lathe_%s_bucket{le=\"+Inf\"} %llu\nlathe_%s_sum %.9g\nlathe_%s_count %llu\n", name,
		       (unsigned long long)metrics->histograms[which].count, name,
		       (double)metrics->histograms[which].sum_ns * 1e-9, name,
		       (unsigned long long)metrics->histograms[which].count);
}

void lth_metrics_print(const struct lth_metrics *metrics, const char *(*route_name)(unsigned), struct lth_buf *out)
{
	for (int i = 0; i < LTH_NUM_METRIC; i++)
		lth_buf_printf(out, "# HELP lathe_%s %s\n# TYPE lathe_%s %s\nlathe_%s %llu\n", rows[i].name,
			       rows[i].help, rows[i].name, rows[i].kind, rows[i].name,
			       (unsigned long long)metrics->values[i]);
	for (int i = 0; i < LTH_NUM_HISTOGRAM; i++)
		print_histogram(metrics, i, out);
	lth_buf_puts(out, "# HELP lathe_http_requests_total answers by route and status\n"
			  "# TYPE lathe_http_requests_total counter\n");
	for (unsigned route = 0; route < LTH_METRIC_ROUTES; route++)
		for (int i = 0; i < LTH_METRIC_STATUSES && metrics->answers[route][i].count; i++)
			lth_buf_printf(out, "lathe_http_requests_total{route=\"%s\",status=\"%u\"} %llu\n",
				       route_name(route), metrics->answers[route][i].status,
				       (unsigned long long)metrics->answers[route][i].count);
}
