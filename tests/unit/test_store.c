/* The store's files: what a worker made is taken over without a copy only when nobody else can write it; bodies
 * that arrive, in memory or in a file; what a shortcut remembers. */
#include "daemon/shortcut.h"
#include "daemon/store.h"
#include "tests/unit/run_suite.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct lth_store store;
static char root[] = "/tmp/lathe-store.XXXXXX", result[64];
static struct lth_diag diag;

static void open_store(void)
{
	strcpy(root + sizeof(root) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	diag = (struct lth_diag){0};
	ck_assert_int_eq((int)lth_store_open(&store, root, &diag), LTH_OK);
	snprintf(result, sizeof(result), "%s/work/artifact-0", root);
}

static void close_store(void)
{
	lth_store_close(&store);
	lth_store_remove_tree(root);
}

static int make_result(const char *text)
{
	int fd = open(result, O_RDWR | O_CREAT | O_TRUNC, 0700);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int)write(fd, text, strlen(text)), (int)strlen(text));
	return fd;
}

/* Takes it; gives the blob's inode. */
static ino_t take(const char *text)
{
	char digest[LTH_DIGEST_TEXT], expected[LTH_DIGEST_TEXT];
	uint64_t size, blob_size;
	struct stat info;
	ck_assert_int_eq((int)lth_store_take_file(&store, result, digest, &size, &diag), LTH_OK);
	lth_sha256_text(text, strlen(text), expected);
	ck_assert_str_eq(digest, expected);
	ck_assert_uint_eq(size, strlen(text));
	ck_assert_int_ne(access(result, F_OK), 0);
	int fd = lth_store_open_blob(&store, digest, &blob_size);
	ck_assert_int_ge(fd, 0);
	ck_assert_uint_eq(blob_size, strlen(text));
	ck_assert_int_eq(fstat(fd, &info), 0);
	ck_assert_uint_eq(info.st_mode & 0777, 0600);
	close(fd);
	return info.st_ino;
}

static ino_t inode_of(int fd)
{
	struct stat info;
	ck_assert_int_eq(fstat(fd, &info), 0);
	return info.st_ino;
}

START_TEST(a_closed_file_is_taken_as_it_is)
{
	int fd = make_result("closed");
	ino_t inode = inode_of(fd);
	close(fd);
	ck_assert_uint_eq(take("closed"), inode);
}
END_TEST

START_TEST(a_file_with_a_writer_is_copied)
{
	char digest[LTH_DIGEST_TEXT], *data;
	size_t size;
	int fd = make_result("written");
	ck_assert_uint_ne(take("written"), inode_of(fd));
	ck_assert_int_eq((int)pwrite(fd, "X", 1, 0), 1); /* too late */
	close(fd);
	lth_sha256_text("written", 7, digest);
	ck_assert_int_eq((int)lth_store_read(&store, digest, 100, &data, &size, &diag), LTH_OK);
	free(data);
}
END_TEST

START_TEST(a_file_with_two_names_is_copied)
{
	char other[80];
	int fd = make_result("linked");
	snprintf(other, sizeof(other), "%s/work/other", root);
	ck_assert_int_eq(link(result, other), 0);
	ino_t inode = inode_of(fd);
	close(fd);
	ck_assert_uint_ne(take("linked"), inode);
}
END_TEST

START_TEST(what_is_no_file_is_refused)
{
	char digest[LTH_DIGEST_TEXT];
	uint64_t size;
	ck_assert_int_eq(symlink("/etc/passwd", result), 0);
	ck_assert_int_eq((int)lth_store_take_file(&store, result, digest, &size, &diag), LTH_IO_ERROR);
	ck_assert_int_eq(mkfifo(result, 0600), 0);
	ck_assert_int_eq((int)lth_store_take_file(&store, result, digest, &size, &diag), LTH_IO_ERROR);
	ck_assert_int_eq((int)lth_store_take_file(&store, result, digest, &size, &diag), LTH_IO_ERROR); /* nothing there */
	snprintf(result, sizeof(result), "%s/tmp", root);
	ck_assert_int_eq(rmdir(result), 0); /* nothing was left in it */
}
END_TEST

START_TEST(a_kernel_that_differs_is_removed)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/kernels/k.o", root);
	ck_assert_int_eq((int)lth_store_put_kernel(&store, "k", "good", 4, &diag), LTH_OK);
	ck_assert_int_eq((int)lth_store_put_kernel(&store, "k", "good", 4, &diag), LTH_OK);
	ck_assert_int_eq(access(path, F_OK), 0);
	ck_assert_uint_eq(atomic_load(&store.bytes), 4);
	ck_assert_int_eq((int)lth_store_put_kernel(&store, "k", "other", 5, &diag), LTH_OK);
	ck_assert_int_ne(access(path, F_OK), 0);
	ck_assert_uint_eq(atomic_load(&store.bytes), 0);
	ck_assert_int_eq((int)lth_store_put_kernel(&store, "../k", "good", 4, &diag), LTH_INTERNAL);
}
END_TEST

/* A body of so many bytes in pieces of all sizes up to 100 KB. */
static struct lth_spool spooled(size_t size, char **out_bytes)
{
	struct lth_spool spool;
	char *bytes = malloc(size + 1);
	ck_assert_ptr_nonnull(bytes);
	for (size_t i = 0; i < size; i++)
		bytes[i] = (char)(i * 2654435761u >> 13);
	ck_assert_int_eq((int)lth_spool_begin(&store, &spool, &diag), LTH_OK);
	for (size_t at = 0, piece = 1; at < size; at += piece, piece = piece * 7 % 100003) {
		piece = size - at < piece ? size - at : piece;
		ck_assert_int_eq((int)lth_spool_append(&spool, bytes + at, piece, &diag), LTH_OK);
	}
	*out_bytes = bytes;
	return spool;
}

START_TEST(bodies_of_all_sizes_are_hashed)
{
	static const size_t sizes[] = {0, 1, LTH_SPOOL_MEMORY - 1, LTH_SPOOL_MEMORY, LTH_SPOOL_MEMORY + 1,
				       1 << 20, (1 << 20) + 1, 9000000};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char digest[LTH_DIGEST_TEXT], expected[LTH_DIGEST_TEXT], *bytes;
		struct lth_spool spool = spooled(sizes[i], &bytes);
		lth_sha256_text(bytes, sizes[i], expected);
		lth_spool_digest(&spool, digest);
		ck_assert_str_eq(digest, expected);
		ck_assert_int_eq(spool.fd >= 0, sizes[i] > LTH_SPOOL_MEMORY);
		ck_assert_int_eq((int)lth_spool_publish(&store, &spool, digest, &diag), LTH_OK);
		ck_assert(lth_store_has(&store, digest));
		ck_assert_int_eq(spool.fd, -1); /* ended */
		free(bytes);
	}
}
END_TEST

START_TEST(a_body_that_is_there_stays_the_callers)
{
	char digest[LTH_DIGEST_TEXT], *bytes;
	for (int turn = 0; turn < 2; turn++) {
		struct lth_spool spool = spooled(200000, &bytes);
		lth_spool_digest(&spool, digest);
		ck_assert_int_eq((int)lth_spool_publish(&store, &spool, digest, &diag), LTH_OK);
		ck_assert_int_eq(spool.fd >= 0, turn == 1);
		lth_spool_discard(&spool);
		free(bytes);
	}
	ck_assert_uint_eq(atomic_load(&store.bytes), 200000);
}
END_TEST

START_TEST(a_body_is_dropped_on_its_way)
{
	char *bytes;
	struct lth_spool spool = spooled(3000000, &bytes), none = {.fd = -1};
	char *path = strdup(spool.path);
	lth_spool_discard(&spool);
	ck_assert_int_ne(access(path, F_OK), 0);
	lth_spool_discard(&spool);
	lth_spool_discard(&none);
	free(path);
	free(bytes);
}
END_TEST

START_TEST(shortcuts_compare_all_that_was_asked)
{
	static struct lth_shortcuts shortcuts;
	struct lth_shortcut asked = {.model = "sha256:1", .arguments = "opt_level\0" "2", .size = 12};
	ck_assert_ptr_null(lth_shortcut_find(&shortcuts, &asked));
	lth_shortcut_keep(&shortcuts, &asked, "sha256:key                                                              ");
	ck_assert_int_eq(strncmp(lth_shortcut_find(&shortcuts, &asked), "sha256:key", 10), 0);
	struct lth_shortcut other = asked;
	other.arguments[10] = '3';
	ck_assert_ptr_null(lth_shortcut_find(&shortcuts, &other));
	other = asked;
	other.size = 11;
	ck_assert_ptr_null(lth_shortcut_find(&shortcuts, &other));
	other = asked;
	strcpy(other.model, "sha256:2");
	ck_assert_ptr_null(lth_shortcut_find(&shortcuts, &other));
	lth_shortcut_clear(&shortcuts);
	ck_assert_ptr_null(lth_shortcut_find(&shortcuts, &asked));
	struct lth_shortcut nothing = {.size = 0};
	ck_assert_ptr_null(lth_shortcut_find(&shortcuts, &nothing)); /* an empty slot is none */
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("store");
	TCase *files = tcase_create("files"), *pure = tcase_create("pure");
	suite_add_tcase(suite, files);
	suite_add_tcase(suite, pure);
	tcase_add_checked_fixture(files, open_store, close_store);
	tcase_add_test(files, a_closed_file_is_taken_as_it_is);
	tcase_add_test(files, a_file_with_a_writer_is_copied);
	tcase_add_test(files, a_file_with_two_names_is_copied);
	tcase_add_test(files, what_is_no_file_is_refused);
	tcase_add_test(files, a_kernel_that_differs_is_removed);
	tcase_add_test(files, bodies_of_all_sizes_are_hashed);
	tcase_add_test(files, a_body_that_is_there_stays_the_callers);
	tcase_add_test(files, a_body_is_dropped_on_its_way);
	tcase_add_test(pure, shortcuts_compare_all_that_was_asked);
	return run_suite(suite);
}
