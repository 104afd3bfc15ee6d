# What goes wrong in a year, in seconds: short by default; LATHE_FAULT_SECONDS makes them long. And models made to hurt.
fault_tests = \
	%D%/cancel-races \
	%D%/chaos-real-worker \
	%D%/hostile-models \
	%D%/job-folders \
	%D%/overload \
	%D%/soak \
	%D%/worker-killed \
	%D%/worker-runs-out
TESTS += $(fault_tests)
EXTRA_DIST += $(fault_tests) %D%/harness.sh
