/* The end of each test program's main. */
#ifndef LTH_TEST_RUN_SUITE_H
#define LTH_TEST_RUN_SUITE_H

#include <check.h>

/* Runs and frees the suite; the environment says how much is printed (CK_VERBOSITY). Returns the program's status, 0 when
 * nothing failed. */
static inline int run_suite(Suite *suite)
{
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed != 0;
}

#endif
