/* Unit tests of the daemon's pure parts, and of the messages between it and its workers. */
#include "daemon/answers.h"
#include "daemon/negotiate.h"
#include "daemon/auth.h"
#include "daemon/options.h"
#include "daemon/systemd.h"
#include "runtime/base/wire.h"
#include "tests/unit/run_suite.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* --- negotiation */
START_TEST(accept_picks_the_best)
{
	ck_assert_int_eq(lth_accept(NULL), LTH_MEDIA_JSON);
	ck_assert_int_eq(lth_accept("*/*"), LTH_MEDIA_JSON);
	ck_assert_int_eq(lth_accept("text/plain"), LTH_MEDIA_TEXT);
	ck_assert_int_eq(lth_accept("text/*"), LTH_MEDIA_TEXT);
	ck_assert_int_eq(lth_accept("application/octet-stream"), LTH_MEDIA_BYTES);
	ck_assert_int_eq(lth_accept("application/*"), LTH_MEDIA_JSON);
	ck_assert_int_eq(lth_accept("text/plain;q=0.4, application/octet-stream ; q=0.5"), LTH_MEDIA_BYTES);
	ck_assert_int_eq(lth_accept("text/plain;q=11111110.5, application/json;q=nan"), LTH_MEDIA_TEXT);
	ck_assert_int_eq(lth_accept("application/json;q=0.1, */*;q=0.9"), LTH_MEDIA_BYTES);
	ck_assert_int_eq(lth_accept("text/html"), LTH_MEDIA_JSON);
	ck_assert_int_eq(lth_accept(",,;q=,"), LTH_MEDIA_JSON);
	ck_assert_int_eq(lth_accept("TEXT/PLAIN"), LTH_MEDIA_TEXT);
}
END_TEST

START_TEST(content_types)
{
	ck_assert_int_eq(lth_content_type(NULL), LTH_CONTENT_RAW);
	ck_assert_int_eq(lth_content_type("application/x-www-form-urlencoded"), LTH_CONTENT_RAW);
	ck_assert_int_eq(lth_content_type("Application/JSON; charset=utf-8"), LTH_CONTENT_JSON);
	ck_assert_int_eq(lth_content_type("text/csv"), LTH_CONTENT_CSV);
	ck_assert_int_eq(lth_content_type("multipart/form-data; boundary=x"), LTH_CONTENT_OTHER);
}
END_TEST

static void check_range(const char *text, enum lth_range kind, uint64_t first, uint64_t last)
{
	uint64_t got_first = 0, got_last = 0;
	ck_assert_msg(lth_range_parse(text, 10, &got_first, &got_last) == kind, "%s", text);
	ck_assert_uint_eq(got_first, first);
	ck_assert_uint_eq(got_last, last);
}

START_TEST(ranges)
{
	check_range("bytes=0-0", LTH_RANGE_PART, 0, 0);
	check_range("bytes=3-", LTH_RANGE_PART, 3, 9);
	check_range("bytes=3-99", LTH_RANGE_PART, 3, 9);
	check_range("bytes=-4", LTH_RANGE_PART, 6, 9);
	check_range("bytes=-99", LTH_RANGE_PART, 0, 9);
	check_range("bytes=10-", LTH_RANGE_OUTSIDE, 0, 0);
	check_range("bytes=-0", LTH_RANGE_OUTSIDE, 0, 0);
	check_range("bytes=5-2", LTH_RANGE_WHOLE, 0, 0);
	check_range("bytes=0-1,4-5", LTH_RANGE_WHOLE, 0, 0);
	check_range("bytes=-", LTH_RANGE_WHOLE, 0, 0);
	check_range("bytes=1", LTH_RANGE_WHOLE, 0, 0);
	check_range("lines=1-2", LTH_RANGE_WHOLE, 0, 0);
	check_range("bytes=99999999999999999999-", LTH_RANGE_WHOLE, 0, 0);
}
END_TEST

START_TEST(content_ranges)
{
	static const char *const bad[] = {"",		    "bytes",	       "bytes 1-2",	   "bytes 2-1/9",
					  "bytes 0-9/9",    "bytes */9",       "bytes 0-1/*",	   "bytes -1/9",
					  "bytes 0 -1/9",   "lines 0-1/9",     "bytes 0-1/9 ",	   "bytes 0x0-1/9",
					  "bytes 0-1/9999999999999999999", "bytes 00000000000000000000-1/9"};
	uint64_t first = 7, last = 7, total = 7;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		ck_assert_msg(!lth_content_range_parse(bad[i], &first, &last, &total), "%s", bad[i]);
	ck_assert_uint_eq(first, 7);
	ck_assert(lth_content_range_parse("bytes 10-19/20", &first, &last, &total));
	ck_assert_uint_eq(first, 10);
	ck_assert_uint_eq(last, 19);
	ck_assert_uint_eq(total, 20);
}
END_TEST

START_TEST(etags)
{
	ck_assert(lth_etag_listed("\"a\"", "\"a\""));
	ck_assert(lth_etag_listed("\"b\", W/\"a\"", "\"a\""));
	ck_assert(lth_etag_listed("*", "\"a\""));
	ck_assert(!lth_etag_listed("\"ab\"", "\"a\""));
	ck_assert(!lth_etag_listed(NULL, "\"a\""));
}
END_TEST

START_TEST(origins)
{
	ck_assert(lth_origin_allowed(NULL, "x", true));
	ck_assert(lth_origin_allowed("http://localhost:8117", "localhost:8117", true));
	ck_assert(lth_origin_allowed("http://[::1]:8117", "[::1]:8117", true));
	ck_assert(!lth_origin_allowed("http://evil.example", "evil.example", true));
	ck_assert(!lth_origin_allowed("http://localhost.evil.example", "localhost.evil.example", true));
	ck_assert(!lth_origin_allowed("http://localhost:8117", "localhost:80", true));
	ck_assert(!lth_origin_allowed("null", "localhost", true));
	ck_assert(!lth_origin_allowed("http://localhost", NULL, true));
	ck_assert(lth_origin_allowed("https://farm.example", "farm.example", false));
	ck_assert(!lth_origin_allowed("https://evil.example", "farm.example", false));
}
END_TEST

START_TEST(preferences)
{
	struct lth_prefer prefer = lth_prefer_parse("respond-async, wait=10");
	ck_assert(prefer.respond_async);
	ck_assert_int_eq(prefer.wait_seconds, 10);
	prefer = lth_prefer_parse("handling=lenient; x, wait=999999");
	ck_assert(!prefer.respond_async);
	ck_assert_int_eq(prefer.wait_seconds, 3600);
	prefer = lth_prefer_parse(NULL);
	ck_assert_int_eq(prefer.wait_seconds, -1);
}
END_TEST

/* --- options and action keys */
static const char table[] =
	"{\"build\":\"b\",\"passes\":[{\"name\":\"FoldConstant\"},{\"name\":\"MemoryPlan\"}],\"options\":["
	"{\"path\":\"opt_level\",\"type\":\"int\",\"min\":0,\"max\":3,\"default\":2},"
	"{\"path\":\"disabled_passes\",\"type\":\"list\",\"singular\":\"disabled_pass\",\"values_from\":\"passes\","
	"\"set\":true,\"default\":[]},"
	"{\"path\":\"dims\",\"type\":\"dims\",\"singular\":\"dim\"},"
	"{\"path\":\"memory.seed\",\"type\":\"int\"},"
	"{\"path\":\"ratio\",\"type\":\"number\"},"
	"{\"path\":\"timeout_ms\",\"type\":\"int\",\"key\":false}]}";

static struct lth_description description;

static void load_table(void)
{
	struct lth_diag diag = {0};
	ck_assert_int_eq(lth_description_load(&description, table, sizeof(table) - 1, &diag), LTH_OK);
}

static void free_table(void)
{
	lth_description_free(&description);
}

static void key_of(const char *text, char out_key[LTH_DIGEST_TEXT])
{
	struct lth_diag diag = {0};
	json_t *options = json_loads(text, 0, NULL);
	ck_assert_ptr_nonnull(options);
	ck_assert_msg(lth_options_check(&description, options, &diag) == LTH_OK, "%s: %s", text, diag.found);
	ck_assert_int_eq(lth_options_key(&description, "sha256:m", NULL, options, "", out_key, &diag), LTH_OK);
	json_decref(options);
}

static bool same_key(const char *a, const char *b)
{
	char key_a[LTH_DIGEST_TEXT], key_b[LTH_DIGEST_TEXT];
	key_of(a, key_a);
	key_of(b, key_b);
	return strcmp(key_a, key_b) == 0;
}

START_TEST(keys_hash_the_meaning)
{
	ck_assert(same_key("{}", "{\"opt_level\":2}"));
	ck_assert(same_key("{\"opt_level\":3}", "{\"opt_level\":3.0}"));
	ck_assert(!same_key("{}", "{\"opt_level\":3}"));
	ck_assert(same_key("{\"ratio\":0.5,\"opt_level\":1}", "{\"opt_level\":1,\"ratio\":5e-1}"));
	ck_assert(!same_key("{\"ratio\":0.5}", "{\"ratio\":0.50000001}"));
	ck_assert(same_key("{\"disabled_passes\":[\"MemoryPlan\",\"FoldConstant\"]}",
			   "{\"disabled_passes\":[\"FoldConstant\",\"MemoryPlan\",\"FoldConstant\"]}"));
	ck_assert(same_key("{}", "{\"timeout_ms\":5}"));
	ck_assert(same_key("{\"dims\":{\"a\":{\"min\":1,\"max\":2},\"b\":{\"min\":3}}}",
			   "{\"dims\":{\"b\":{\"min\":3},\"a\":{\"max\":2,\"min\":1}}}"));
	ck_assert(!same_key("{\"dims\":{\"a\":{\"min\":1}}}", "{\"dims\":{\"a\":{\"max\":1}}}"));
	ck_assert(same_key("{}", "{\"memory\":{}}"));
	ck_assert(same_key("{}", "{\"memory\":{\"seed\":null}}"));
}
END_TEST

START_TEST(keys_differ_by_model_files_and_salt)
{
	struct lth_diag diag = {0};
	char keys[4][LTH_DIGEST_TEXT];
	json_t *options = json_object(), *files = json_pack("{s:s}", "w", "sha256:w");
	ck_assert_int_eq(lth_options_key(&description, "sha256:m", NULL, options, "", keys[0], &diag), LTH_OK);
	ck_assert_int_eq(lth_options_key(&description, "sha256:n", NULL, options, "", keys[1], &diag), LTH_OK);
	ck_assert_int_eq(lth_options_key(&description, "sha256:m", files, options, "", keys[2], &diag), LTH_OK);
	ck_assert_int_eq(lth_options_key(&description, "sha256:m", NULL, options, "s", keys[3], &diag), LTH_OK);
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(keys[i], keys[j]);
	json_decref(options);
	json_decref(files);
}
END_TEST

START_TEST(query_and_json_agree)
{
	static const char *const pairs[][2] = {
		{"dim", "batch=1:64:8:x2"}, {"memory.seed", "7"}, {"disabled_pass", "MemoryPlan"}, {"ratio", "0.25"}};
	struct lth_diag diag = {0};
	json_t *options = json_object();
	json_t *wanted = json_loads("{\"dims\":{\"batch\":{\"min\":1,\"max\":64,\"hint\":8,\"multiple\":2}},"
				    "\"memory\":{\"seed\":7},\"disabled_passes\":[\"MemoryPlan\"],\"ratio\":0.25}",
				    0, NULL);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
		ck_assert_int_eq(lth_options_add(&description, options, pairs[i][0], pairs[i][1], &diag), LTH_OK);
	ck_assert(json_equal(options, wanted));
	json_decref(options);
	json_decref(wanted);
}
END_TEST

START_TEST(a_bad_description_leaves_the_old_one)
{
	static const char *const bad[] = {"", "[]", "{}", "{\"build\":7}", "{\"build\":\"c\",\"options\":[{}]}"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct lth_diag diag = {0};
		ck_assert_int_ne(lth_description_load(&description, bad[i], strlen(bad[i]), &diag), LTH_OK);
		ck_assert_str_eq(description.build, "b");
		ck_assert_ptr_nonnull(lth_description_option(&description, "memory.seed"));
	}
}
END_TEST

/* --- answers */
START_TEST(answers_are_spliced)
{
	size_t size;
	char *document = strdup(
		"{\"schema\":\"lathe.result/1\",\"action_key\":\"k\",\"artifacts\":[],\"timing\":{\"queue_ms\":1}}");
	struct lth_answer *answer = lth_answer_create(document, strlen(document), "sha256:00");
	ck_assert_ptr_nonnull(answer);
	char *text = lth_answer_text(answer, "hit", &size);
	json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	ck_assert_str_eq(json_string_value(json_object_get(root, "cache")), "hit");
	ck_assert_str_eq(json_string_value(json_object_get(root, "id")), "00");
	ck_assert_str_eq(json_string_value(json_object_get(root, "action_key")), "k");
	json_decref(root);
	free(text);
	lth_answer_release(&answer);
	char *other = strdup("{\"schema\":\"lathe.result/2\"}");
	ck_assert_ptr_null(lth_answer_create(other, strlen(other), "sha256:00"));
}
END_TEST

/* --- credentials */
START_TEST(tokens_are_found_and_checked)
{
	static const char text[] = "# farm\n0123456789abcdef0 submit ci\n\nfedcba9876543210f read\n";
	char path[] = "test_daemon.XXXXXX";
	struct lth_tokens tokens = {0};
	struct lth_diag diag = {0};
	int fd = mkstemp(path);
	ck_assert_int_eq(write(fd, text, sizeof(text) - 1), (int)sizeof(text) - 1);
	ck_assert_int_eq(lth_tokens_load(&tokens, path, &diag), LTH_OK);
	ck_assert_uint_eq(tokens.count, 2);
	ck_assert_str_eq(lth_tokens_find(&tokens, "Bearer 0123456789abcdef0")->name, "ci");
	ck_assert_int_eq(lth_tokens_find(&tokens, "bearer fedcba9876543210f")->role, LTH_ROLE_READ);
	ck_assert_ptr_null(lth_tokens_find(&tokens, "Bearer 0123456789abcdef"));
	ck_assert_ptr_null(lth_tokens_find(&tokens, "Basic 0123456789abcdef0"));
	ck_assert_ptr_null(lth_tokens_find(&tokens, NULL));
	ck_assert_int_eq(fchmod(fd, 0644), 0);
	ck_assert_int_eq(lth_tokens_load(&tokens, path, &diag), LTH_INVALID_OPTION);
	ck_assert_int_eq(fchmod(fd, 0600), 0);
	ck_assert_int_eq(pwrite(fd, "short ", 6, 0), 6);
	diag = (struct lth_diag){0};
	ck_assert_int_eq(lth_tokens_load(&tokens, path, &diag), LTH_INVALID_OPTION);
	ck_assert_uint_eq(tokens.count, 2); /* what it had */
	ck_assert_ptr_null(strstr(diag.found, "short"));
	lth_tokens_free(&tokens);
	close(fd);
	unlink(path);
}
END_TEST

/* --- the service manager */
START_TEST(notifications_arrive)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	char buffer[32] = "", pid[24];
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "test_daemon.notify.%ld", (long)getpid());
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	lth_systemd_notify("READY=1"); /* nobody to tell */
	char path[PATH_MAX + 64], folder[PATH_MAX];
	snprintf(path, sizeof(path), "%s/%s", getcwd(folder, sizeof(folder)), address.sun_path);
	setenv("NOTIFY_SOCKET", path, 1);
	if (strlen(path) < sizeof(address.sun_path)) {
		lth_systemd_notify("READY=1");
		ck_assert_int_eq(recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT), 7);
		ck_assert_str_eq(buffer, "READY=1");
	}
	unlink(address.sun_path);
	close(fd);
	ck_assert_int_eq(lth_systemd_socket(), -1);
	setenv("LISTEN_FDS", "1", 1);
	setenv("LISTEN_PID", "1", 1);
	ck_assert_int_eq(lth_systemd_socket(), -1); /* meant for another process */
	snprintf(pid, sizeof(pid), "%ld", (long)getpid());
	setenv("LISTEN_PID", pid, 1);
	ck_assert_int_eq(lth_systemd_socket(), 3);
	ck_assert_uint_eq(lth_systemd_watchdog_ms(), 0);
	setenv("WATCHDOG_USEC", "3000000", 1);
	ck_assert_uint_eq(lth_systemd_watchdog_ms(), 1500);
}
END_TEST

/* --- messages */
START_TEST(messages_carry_descriptors)
{
	static struct lth_wire_message message;
	struct lth_wire_view view;
	int ends[2], memfd = lth_wire_memfd("test", "hello", 5);
	ck_assert(lth_wire_pair(ends));
	ck_assert_int_ge(memfd, 0);
	ck_assert_int_eq(write(memfd, "x", 1), -1); /* sealed */
	ck_assert(lth_wire_send(ends[0], "{}", 2, &memfd, 1));
	ck_assert(lth_wire_send(ends[0], "[]", 2, NULL, 0));
	close(memfd);
	ck_assert_int_eq(lth_wire_receive(ends[1], &message), LTH_WIRE_MESSAGE);
	ck_assert_str_eq(message.text, "{}");
	ck_assert_uint_eq(message.num_fds, 1);
	ck_assert(lth_wire_map(message.fds[0], 0, &view));
	ck_assert_uint_eq(view.size, 5);
	ck_assert_int_eq(memcmp(view.data, "hello", 5), 0);
	lth_wire_unmap(&view);
	ck_assert(!lth_wire_map(message.fds[0], 4, &view));
	ck_assert_int_eq(errno, EFBIG);
	lth_wire_close(&message);
	ck_assert_int_eq(lth_wire_receive(ends[1], &message), LTH_WIRE_MESSAGE);
	ck_assert_uint_eq(message.num_fds, 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	ck_assert_int_eq(lth_wire_receive(ends[1], &message), LTH_WIRE_AGAIN);
	close(ends[0]);
	ck_assert_int_eq(lth_wire_receive(ends[1], &message), LTH_WIRE_CLOSED);
	ck_assert(!lth_wire_send(ends[1], "{}", 2, NULL, 0)); /* no SIGPIPE */
	close(ends[1]);
}
END_TEST

START_TEST(messages_have_limits)
{
	static char large[LTH_WIRE_TEXT_MAX + 1];
	static struct lth_wire_message message;
	int ends[2];
	ck_assert(lth_wire_pair(ends));
	memset(large, 'x', sizeof(large));
	ck_assert(!lth_wire_send(ends[0], large, sizeof(large), NULL, 0));
	ck_assert_int_eq(errno, EMSGSIZE);
	ck_assert(!lth_wire_send(ends[0], "", 0, NULL, 0));
	ck_assert(lth_wire_send(ends[0], large, LTH_WIRE_TEXT_MAX, NULL, 0));
	ck_assert_int_eq(lth_wire_receive(ends[1], &message), LTH_WIRE_MESSAGE);
	ck_assert_uint_eq(message.size, LTH_WIRE_TEXT_MAX);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("daemon");
	TCase *pure = tcase_create("pure"), *options = tcase_create("options");
	suite_add_tcase(suite, pure);
	suite_add_tcase(suite, options);
	tcase_add_test(pure, accept_picks_the_best);
	tcase_add_test(pure, content_types);
	tcase_add_test(pure, ranges);
	tcase_add_test(pure, content_ranges);
	tcase_add_test(pure, etags);
	tcase_add_test(pure, origins);
	tcase_add_test(pure, preferences);
	tcase_add_test(pure, answers_are_spliced);
	tcase_add_test(pure, tokens_are_found_and_checked);
	tcase_add_test(pure, notifications_arrive);
	tcase_add_test(pure, messages_carry_descriptors);
	tcase_add_test(pure, messages_have_limits);
	tcase_add_checked_fixture(options, load_table, free_table);
	tcase_add_test(options, keys_hash_the_meaning);
	tcase_add_test(options, keys_differ_by_model_files_and_salt);
	tcase_add_test(options, query_and_json_agree);
	tcase_add_test(options, a_bad_description_leaves_the_old_one);
	return run_suite(suite);
}
