/* Unit tests of functions in child processes: what comes back when they end well, crash, hang, end early, say much. */
#include "compiler/driver/child.h"
#include "tests/unit/run_suite.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char *say_much(void *context)
{
	size_t size = *(const size_t *)context;
	char *text = malloc(size + 1);
	if (text) {
		memset(text, 'a', size);
		text[size] = 0;
	}
	return text;
}

static char *die(void *context)
{
	raise(*(const int *)context);
	return NULL;
}

static char *hang(void *context)
{
	(void)context;
	volatile bool forever = true;
	while (forever)
		;
	return NULL;
}

static char *leave(void *context)
{
	int status = *(const int *)context;
	if (status)
		_exit(status);
	return NULL;
}

/* Which descriptors from 4 on are open, and whether a handler of ours is still there. */
static char *look_around(void *context)
{
	struct sigaction action;
	int open = 0;
	(void)context;
	for (int fd = 4; fd < 256; fd++)
		open += fcntl(fd, F_GETFD) >= 0;
	sigaction(SIGSEGV, NULL, &action);
	return open == 0 && action.sa_handler == SIG_DFL ? strdup("clean") : strdup("not clean");
}

static enum lth_code run(lth_child_fn function, void *context, uint64_t limit_ms, struct lth_buf *text,
			 struct lth_diag *diag)
{
	int64_t rss;
	*text = (struct lth_buf){0};
	*diag = (struct lth_diag){0};
	return lth_child_run("measure", function, context, limit_ms, text, &rss, diag);
}

START_TEST(a_long_answer_comes_back)
{
	size_t size = 300000;
	struct lth_buf text;
	struct lth_diag diag;
	ck_assert_int_eq(run(say_much, &size, 0, &text, &diag), LTH_OK);
	ck_assert_uint_eq(text.size, size);
	lth_buf_free(&text);
}
END_TEST

START_TEST(a_crash_names_its_signal)
{
	int number = SIGSEGV;
	struct lth_buf text;
	struct lth_diag diag;
	ck_assert_int_eq(run(die, &number, 0, &text, &diag), LTH_RUNTIME_ERROR);
	ck_assert_str_eq(diag.place, "measure");
	ck_assert_ptr_nonnull(strstr(diag.found, "signal 11"));
	number = SIGKILL;
	ck_assert_int_eq(run(die, &number, 0, &text, &diag), LTH_OUT_OF_MEMORY);
	number = SIGXCPU;
	ck_assert_int_eq(run(die, &number, 0, &text, &diag), LTH_DEADLINE);
}
END_TEST

START_TEST(a_hang_is_cut_at_its_limit)
{
	struct lth_buf text;
	struct lth_diag diag;
	ck_assert_int_eq(run(hang, NULL, 100, &text, &diag), LTH_DEADLINE);
	ck_assert_str_eq(diag.place, "measure");
	ck_assert_ptr_nonnull(strstr(diag.found, "100 ms"));
}
END_TEST

START_TEST(an_early_end_is_an_error)
{
	int status = 7;
	struct lth_buf text;
	struct lth_diag diag;
	ck_assert_int_eq(run(leave, &status, 0, &text, &diag), LTH_RUNTIME_ERROR);
	ck_assert_ptr_nonnull(strstr(diag.found, "status 7"));
}
END_TEST

static void on_crash(int number)
{
	_exit(number);
}

START_TEST(nothing_of_the_parent_is_left)
{
	struct lth_buf text;
	struct lth_diag diag;
	int extra = open("/dev/null", O_RDONLY);
	signal(SIGSEGV, on_crash);
	ck_assert_int_eq(run(look_around, NULL, 0, &text, &diag), LTH_OK);
	ck_assert_str_eq(lth_buf_text(&text), "clean");
	lth_buf_free(&text);
	signal(SIGSEGV, SIG_DFL);
	close(extra);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("child");
	TCase *tests = tcase_create("child");
	tcase_add_test(tests, a_long_answer_comes_back);
	tcase_add_test(tests, a_crash_names_its_signal);
	tcase_add_test(tests, a_hang_is_cut_at_its_limit);
	tcase_add_test(tests, an_early_end_is_an_error);
	tcase_add_test(tests, nothing_of_the_parent_is_left);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
