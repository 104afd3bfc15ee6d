/* lathe-worker: the process of the daemon's pool. The loop is in compiler/worker/, the work in compiler/compile.c. */
#include "compiler/compile.h"
#include "compiler/memory/plan/plan_json.h"
#include "compiler/worker/worker.h"
#include "runtime/media/media.h"

int main(int argc, char **argv)
{
	static const struct lth_worker_functions functions = {
		.describe = lth_describe,
		.compile = lth_compile,
		.free_result = lth_compile_result_free,
		.plan = lth_plan_job,
		.plan_check = lth_plan_check_job,
	};
	lth_media_locate();
	return lth_worker_main(argc, argv, &functions);
}
