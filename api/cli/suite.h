/* lathe suite: cases of the ONNX backend's layout. suite.c finds and distributes them, suite_case.c runs one.
 * Thread rule: a process runs one case at a time. */
#ifndef LTH_CLI_SUITE_H
#define LTH_CLI_SUITE_H

#include "api/cli/cli.h"
#include "api/cli/verify.h"

/* What became of a case. Travels through a pipe in one piece, so it stays below PIPE_BUF. */
struct lth_cli_verdict {
	uint32_t index; /* of the case */
	bool passed;
	bool by_property; /* values are random: compared by distribution, and with those of a second run */
	uint32_t data_sets;
	double compile_ms, total_ms;
	char kind[32]; /* of the failure: a problem's word, or wrong, crashed, timeout, no-data */
	char reason[1024];
	char operators[1024]; /* that the model uses, a space between two; only where they are asked for */
	char box[512]; /* dims that the data needs and the compile did not allow, as query text; "": none */
};

struct lth_cli_suite {
	struct lth_cli *cli;
	char **cases; /* folders, sorted */
	size_t num_cases;
	const char *query;
	struct lth_cli_tolerance tolerance;
	int64_t seconds; /* a run may take */
};

/* Compiles the model of a folder and runs its data sets in a child process. `client` is the calling process's own. */
void lth_cli_suite_case(const struct lth_cli_suite *suite, struct lathe_client *client, const char *folder,
			struct lth_cli_verdict *out_verdict);

#endif
