/* Packed weights and the writing of constants. What pack.h says of panels, element by element, against what is written;
 * parts follow one another and depend on nothing; a file holds the same bytes however many threads wrote it. */
#include "compiler/emit/elf_write.h"
#include "compiler/lower/templates/pack.h"
#include "tests/unit/run_suite.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNTOUCHED = 0x5a };

static void *numbers(size_t count)
{
	float *data = malloc(count * sizeof(*data));
	ck_assert_ptr_nonnull(data);
	for (size_t i = 0; i < count; i++)
		data[i] = (float)i + 1;
	return data;
}

static int64_t bytes_of(const struct lth_pack *pack)
{
	int64_t bytes;
	ck_assert(lth_pack_bytes(pack, &bytes));
	return bytes;
}

/* The element that the next place of a packing holds, by the words of pack.h: one k axis. */
static float expected(const struct lth_pack *pack, const float *source, int64_t g, int64_t first, int64_t k,
		      int64_t width, int64_t c)
{
	int64_t units = width / pack->gates, column = first + c % units;
	if (column >= pack->columns)
		return 0;
	return source[g * pack->group_stride + c / units * pack->gate_stride + k * pack->k[0].stride +
		      column * pack->column_stride];
}

static void check_panels(const struct lth_pack *pack)
{
	int64_t units = pack->panel / pack->gates, depth = pack->k[0].extent;
	float *source = numbers((size_t)(pack->groups * pack->gates * pack->columns * depth));
	float *packed = malloc((size_t)bytes_of(pack)), *at = packed;
	ck_assert_ptr_nonnull(packed);
	lth_pack_run(pack, source, packed);
	for (int64_t g = 0; g < pack->groups; g++)
		for (int64_t first = 0; first < pack->columns; first += units) {
			int64_t width = first + units <= pack->columns ? pack->panel : pack->tail;
			for (int64_t k = 0; k < depth; k++)
				for (int64_t c = 0; c < width; c++, at++)
					ck_assert(*at == expected(pack, source, g, first, k, width, c));
		}
	ck_assert_int_eq((char *)at - (char *)packed, bytes_of(pack));
	free(source);
	free(packed);
}

/* [groups][gates][columns][depth] of floats; a part holds some panels, the last one fewer. */
static struct lth_pack panels(int64_t groups, int64_t gates, int64_t columns, int64_t depth, int64_t tail)
{
	return (struct lth_pack){.kind = LTH_PACK_PANELS,
				 .dtype = LTH_DTYPE_F32,
				 .groups = groups,
				 .group_stride = gates * columns * depth,
				 .columns = columns,
				 .column_stride = depth,
				 .gates = gates,
				 .gate_stride = columns * depth,
				 .num_k = 1,
				 .k = {{depth, 1}},
				 .panel = 64,
				 .tail = tail};
}

START_TEST(panels_hold_what_is_said)
{
	const struct lth_pack packs[] = {panels(1, 1, 300, 100, 48), panels(3, 1, 64, 700, 0),
					 panels(5, 4, 18, 9, 16),    panels(700, 1, 3, 5, 16),
					 panels(1, 1, 128, 0, 0),    panels(1, 1, 0, 10, 0)};
	for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++)
		check_panels(&packs[i]);
}
END_TEST

static struct lth_pack quads(void)
{
	struct lth_pack pack = panels(9, 1, 150, 37, 32);
	pack.kind = LTH_PACK_QUADS;
	pack.dtype = LTH_DTYPE_I32;
	pack.source = LTH_DTYPE_U8;
	pack.wide = true;
	return pack;
}

static struct lth_pack winograd(void)
{
	struct lth_pack pack = panels(36, 1, 40, 20, 40); /* groups: the products */
	pack.kind = LTH_PACK_WINOGRAD;
	pack.num_k = 3;
	pack.column_stride = 180;
	pack.k[0].extent = pack.k[1].extent = 3;
	pack.k[0].stride = 3;
	pack.k[1].stride = 1;
	pack.k[2].extent = 20;
	pack.k[2].stride = 9;
	return pack;
}

START_TEST(parts_follow_one_another)
{
	const struct lth_pack packs[] = {panels(1, 1, 300, 100, 48), panels(700, 1, 3, 5, 16), quads(), winograd()};
	for (size_t i = 0; i < sizeof(packs) / sizeof(packs[0]); i++) {
		const struct lth_pack *pack = &packs[i];
		int64_t bytes = bytes_of(pack), next = 0, parts = lth_pack_num_parts(pack);
		void *source = numbers(60000);
		char *whole = malloc((size_t)bytes), *part = malloc((size_t)bytes + 1);
		ck_assert(whole && part);
		lth_pack_run(pack, source, whole);
		ck_assert(i == 3 ? parts == 1 : parts > 1);
		for (int64_t number = 0; number < parts; number++) {
			int64_t offset, size;
			lth_pack_part_place(pack, number, &offset, &size);
			ck_assert_int_eq(offset, next);
			memset(part, UNTOUCHED, (size_t)bytes + 1);
			lth_pack_part(pack, source, number, part);
			ck_assert_mem_eq(part, whole + offset, (size_t)size);
			ck_assert_int_eq(part[size], UNTOUCHED);
			next = offset + size;
		}
		ck_assert_int_eq(next, bytes);
		free(source);
		free(whole);
		free(part);
	}
}
END_TEST

/* Small pieces with gaps, one packed in parts, one larger than what is written at once, an empty one. */
START_TEST(a_file_holds_the_same_bytes_as_memory)
{
	enum { LARGE = 3 << 19, BASE = 4096 };
	struct lth_pack pack = panels(1, 1, 300, 100, 48);
	size_t packed = (size_t)bytes_of(&pack), size = 1024 + packed + LARGE + 100;
	void *data = numbers(LARGE / sizeof(float) + 1);
	const struct lth_emit_piece pieces[] = {{.data = data, .size = 7},
						{.data = data, .offset = 64, .size = 0},
						{.data = data, .offset = 128, .size = 33},
						{.data = data, .pack = &pack, .offset = 1024, .size = packed},
						{.data = data, .offset = 1024 + packed, .size = LARGE},
						{.data = data, .offset = 1024 + packed + LARGE + 64, .size = 36}};
	struct lth_emit_input input = {.constants = pieces,
				       .num_constants = sizeof(pieces) / sizeof(pieces[0]),
				       .constants_size = size};
	char *memory = calloc(1, size), *read_back = malloc(size);
	ck_assert(memory && read_back);
	lth_place_constants(&input, memory);
	for (input.threads = 1; input.threads <= 3; input.threads++) {
		char path[] = "constants.XXXXXX";
		int fd = mkstemp(path);
		ck_assert_int_ge(fd, 0);
		unlink(path);
		ck_assert_int_eq(ftruncate(fd, (off_t)(BASE + size)), 0);
		ck_assert_int_eq(lth_write_constants(&input, fd, BASE), 0);
		ck_assert_int_eq(pread(fd, read_back, size, BASE), (ssize_t)size);
		ck_assert_mem_eq(read_back, memory, size);
		close(fd);
	}
	ck_assert_int_ne(lth_write_constants(&input, -1, 0), 0);
	free(data);
	free(memory);
	free(read_back);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("pack");
	TCase *tests = tcase_create("pack");
	tcase_add_test(tests, panels_hold_what_is_said);
	tcase_add_test(tests, parts_follow_one_another);
	tcase_add_test(tests, a_file_holds_the_same_bytes_as_memory);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
