/* lathe show: tensors from files, for people. */
#include "api/cli/cli.h"
#include "runtime/tensor/element.h"

#include <stdlib.h>
#include <string.h>

enum { EDGE = 4, WHOLE = 12, TOP = 5, FEWEST_SCORES = 3, MOST_ROWS = 8 };

/* One row along an axis; long ones lose their middle. `at` is the first element's index, `stride` elements apart. */
static void print_axis(const struct lth_host_tensor *t, uint32_t axis, int64_t at, int64_t stride, int indent,
		       struct lth_buf *out)
{
	if (axis == t->rank) {
		lth_host_element_print(t, at, out);
		return;
	}
	int64_t extent = t->dims[axis], inner = extent ? stride / extent : 0;
	bool last = axis + 1 == t->rank;
	lth_buf_putc(out, '[');
	for (int64_t i = 0; i < extent; i++) {
		if (extent > WHOLE && i == EDGE) {
			lth_buf_puts(out, last ? ", ..." : ",");
			if (!last)
				lth_buf_printf(out, "\n%*s...", indent + 1, "");
			i = extent - EDGE;
		}
		if (i > 0)
			lth_buf_puts(out, last ? ", " : ",");
		if (i > 0 && !last)
			lth_buf_printf(out, "\n%*s", indent + 1, "");
		print_axis(t, axis + 1, at + i * inner, inner, indent + 1, out);
	}
	lth_buf_putc(out, ']');
}

/* Scores: a vector of several floats, or a few rows of them. */
static bool is_scores(const struct lth_host_tensor *t, int64_t count)
{
	int64_t row = t->rank ? t->dims[t->rank - 1] : 0;
	bool flat = t->rank == 1 || t->rank == 2 || (row > 0 && count == row);
	return flat && row >= FEWEST_SCORES && count / row <= MOST_ROWS && lth_dtype_class(t->dtype) == LTH_CLASS_FLOAT;
}

static void print_top(const struct lth_host_tensor *t, int64_t begin, int64_t end, struct lth_buf *out)
{
	int64_t best[TOP];
	int found = 0;
	for (int64_t i = begin; i < end; i++) {
		double value = lth_host_element(t, i);
		int place = found;
		while (place > 0 && value > lth_host_element(t, best[place - 1]))
			place--;
		if (place == TOP || value != value)
			continue;
		if (found < TOP)
			found++;
		memmove(best + place + 1, best + place, (size_t)(found - 1 - place) * sizeof(*best));
		best[place] = i;
	}
	for (int i = 0; i < found; i++) {
		lth_buf_printf(out, "%s [%lld] ", i ? "," : "", (long long)(best[i] - begin));
		lth_host_element_print(t, best[i], out);
	}
	lth_buf_putc(out, '\n');
}

/* The largest values of each row, for people who look at a classifier. */
static void print_scores(const struct lth_host_tensor *t, int64_t count, struct lth_buf *out)
{
	int64_t row = t->dims[t->rank - 1];
	for (int64_t i = 0; i < count / row; i++) {
		lth_buf_printf(out, count > row ? "row %lld:" : "largest:", (long long)i);
		print_top(t, i * row, (i + 1) * row, out);
	}
}

/* Least, largest, mean, and what is no number. */
static void print_range(const struct lth_host_tensor *t, int64_t count, struct lth_buf *out)
{
	double least = 0, most = 0, sum = 0;
	int64_t numbers = 0;
	for (int64_t i = 0; i < count; i++) {
		double value = lth_host_element(t, i);
		if (value != value)
			continue;
		least = numbers == 0 || value < least ? value : least;
		most = numbers == 0 || value > most ? value : most;
		sum += value;
		numbers++;
	}
	if (numbers)
		lth_buf_printf(out, "least %.7g, largest %.7g, mean %.7g", least, most, sum / (double)numbers);
	if (numbers < count)
		lth_buf_printf(out, "%s%lld NaN", numbers ? ", " : "", (long long)(count - numbers));
	lth_buf_putc(out, '\n');
}

static void print_text(const char *path, const struct lth_host_tensor *t, struct lth_buf *out)
{
	int64_t count = 0;
	lth_buf_printf(out, "%s: %s%s%s[", path, t->name && *t->name ? t->name : "", t->name && *t->name ? ": " : "",
		       lth_dtype_text(t->dtype));
	for (uint32_t axis = 0; axis < t->rank; axis++)
		lth_buf_printf(out, "%s%lld", axis ? ", " : "", (long long)t->dims[axis]);
	lth_buf_puts(out, "]\n");
	if (!lth_host_count(t->rank, t->dims, &count))
		return;
	if (is_scores(t, count))
		print_scores(t, count, out);
	print_axis(t, 0, 0, count, 0, out);
	lth_buf_putc(out, '\n');
	if (count > WHOLE && t->dtype != LTH_DTYPE_STRING && lth_dtype_class(t->dtype) != LTH_CLASS_COMPLEX)
		print_range(t, count, out);
}

static void print_as_json(const char *path, const struct lth_host_tensor *t, struct lth_buf *out)
{
	lth_buf_puts(out, "{\"file\":");
	lth_buf_quote(out, path);
	lth_buf_putc(out, ',');
	lth_host_json_members(t, out);
	lth_buf_puts(out, "}\n");
}

enum lth_code lth_cli_show(struct lth_cli *cli)
{
	for (size_t i = 0; i < cli->num_arguments; i++) {
		struct lth_host_tensor tensor;
		struct lth_buf out = {0};
		enum lth_code code = lth_host_read_file(cli->arguments[i], &tensor, &cli->diag);
		if (code != LTH_OK)
			return code;
		if (lth_cli_has(cli, LTH_CLI_JSON))
			print_as_json(cli->arguments[i], &tensor, &out);
		else
			print_text(cli->arguments[i], &tensor, &out);
		fwrite(lth_buf_text(&out), 1, out.size, stdout);
		lth_buf_free(&out);
		lth_host_tensor_free(&tensor);
	}
	return LTH_OK;
}
