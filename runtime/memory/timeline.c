/* The plan as a picture: steps to the right, addresses upwards, each storage a box whose tooltip says what it is, the
 * step of the peak marked. The same as trace events for chrome://tracing and Perfetto. Thread rule: reads the program
 * only. */
#include "runtime/memory/ledger.h"
#include "runtime/memory/views.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, HEIGHT = 560, MARGIN = 40, MAX_BOXES = 20000 };

struct view {
	const struct lth_program *program;
	struct lth_memory_figures figures;
	int64_t *sizes, *offsets;
	struct lth_storage_facts *facts;
	int64_t *live; /* by step */
};

static void view_free(struct view *v)
{
	free(v->sizes);
	free(v->offsets);
	free(v->facts);
	free(v->live);
}

static enum lth_code view_init(struct view *v, const struct lth_program *program, const int64_t *symbols,
			       struct lth_diag *diag)
{
	*v = (struct view){.program = program};
	v->sizes = calloc(program->num_storages + 1, sizeof(*v->sizes));
	v->offsets = calloc(program->num_storages + 1, sizeof(*v->offsets));
	v->facts = calloc(program->num_storages + 1, sizeof(*v->facts));
	v->live = calloc(program->num_instrs + 2, sizeof(*v->live));
	if (!v->sizes || !v->offsets || !v->facts || !v->live)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "timeline", NULL, NULL, "no memory");
	enum lth_code code = lth_memory_figures(program, symbols, &v->figures, diag);
	if (code == LTH_OK)
		code = lth_storage_sizes(program, symbols, v->sizes, diag);
	if (code == LTH_OK)
		code = lth_memory_offsets(program, symbols, v->offsets, diag);
	lth_storage_ledger(program, v->facts);
	for (uint32_t s = 0; s < program->num_storages && code == LTH_OK; s++)
		if (lth_storage_planned(&program->storages[s])) {
			v->live[program->storages[s].first] += v->sizes[s];
			v->live[program->storages[s].last] -= v->sizes[s];
		}
	for (uint32_t i = 1; i <= program->num_instrs; i++)
		v->live[i] += v->live[i - 1];
	return code;
}

/* Text inside an element: what XML gives a meaning is written as an entity, what it does not allow as a blank. */
static void put_xml(const char *text, struct lth_buf *out)
{
	for (const char *at = text ? text : ""; *at; at++) {
		if (*at == '&')
			lth_buf_puts(out, "&amp;");
		else if (*at == '<')
			lth_buf_puts(out, "&lt;");
		else if (*at == '>')
			lth_buf_puts(out, "&gt;");
		else if ((unsigned char)*at < 0x20)
			lth_buf_putc(out, ' ');
		else
			lth_buf_putc(out, *at);
	}
}

static const char *node_of(const struct lth_program *program, uint32_t instr)
{
	return instr != LTH_NONE && program->instrs[instr].node ? program->instrs[instr].node : "-";
}

static double x_of(const struct view *v, uint32_t step)
{
	return MARGIN + (double)step * (WIDTH - 2 * MARGIN) / (v->program->num_instrs ? v->program->num_instrs : 1);
}

static double y_of(const struct view *v, int64_t address)
{
	double whole = (double)(v->figures.arena_bytes > 0 ? v->figures.arena_bytes : 1);
	return HEIGHT - MARGIN - (double)address * (HEIGHT - 2 * MARGIN) / whole;
}

static void put_box(const struct view *v, uint32_t s, struct lth_buf *out)
{
	const struct lth_storage *storage = &v->program->storages[s];
	int64_t size = v->sizes[s] > 0 ? v->sizes[s] : storage->alignment;
	double left = x_of(v, storage->first), right = x_of(v, storage->last);
	double top = y_of(v, v->offsets[s] + size), bottom = y_of(v, v->offsets[s]);
	bool peak = storage->first <= v->figures.peak_instr && v->figures.peak_instr < storage->last;
	lth_buf_printf(out,
		       "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"hsl(%u,%u%%,%u%%)\"><title>",
		       left, top, right - left, bottom - top, s * 137 % 360, peak ? 75 : 45, peak ? 60 : 75);
	put_xml(storage->name ? storage->name : "scratch", out);
	lth_buf_printf(out, "\n%lld bytes at %lld, steps %u to %u\nwritten by ", (long long)v->sizes[s],
		       (long long)v->offsets[s], storage->first, storage->last);
	put_xml(node_of(v->program, v->facts[s].first_write), out);
	lth_buf_puts(out, "\nlast read by ");
	put_xml(node_of(v->program, v->facts[s].last_read), out);
	lth_buf_puts(out, "</title></rect>\n");
}

struct by_size {
	uint32_t storage;
	int64_t size;
};

static int larger_first(const void *a, const void *b)
{
	const struct by_size *x = a, *y = b;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->storage < y->storage ? -1 : x->storage > y->storage;
}

/* Of very many storages the largest are drawn. */
static uint32_t put_boxes(const struct view *v, struct lth_buf *out)
{
	struct by_size *list = calloc(v->program->num_storages + 1, sizeof(*list));
	uint32_t count = 0;
	for (uint32_t s = 0; list && s < v->program->num_storages; s++)
		if (lth_storage_planned(&v->program->storages[s]) && v->offsets[s] >= 0)
			list[count++] = (struct by_size){s, v->sizes[s]};
	if (count)
		qsort(list, count, sizeof(*list), larger_first);
	for (uint32_t i = 0; i < count && i < MAX_BOXES; i++)
		put_box(v, list[i].storage, out);
	free(list);
	return count;
}

enum lth_code lth_memory_svg(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out,
			     struct lth_diag *diag)
{
	struct view v;
	enum lth_code code = view_init(&v, program, symbols, diag);
	if (code != LTH_OK) {
		view_free(&v);
		return code;
	}
	lth_buf_printf(out,
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" "
		       "font-size=\"12\">\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
		       WIDTH, HEIGHT, WIDTH, HEIGHT);
	lth_buf_printf(out, "<text x=\"%d\" y=\"20\">", MARGIN);
	put_xml(program->name && *program->name ? program->name : "program", out);
	lth_buf_printf(out, ": arena %lld bytes, live bound %lld at step %u of %u", (long long)v.figures.arena_bytes,
		       (long long)v.figures.live_bound_bytes, v.figures.peak_instr, program->num_instrs);
	for (uint32_t i = 0; i < program->num_symbols; i++)
		if (program->symbols[i].source == LTH_SOURCE_INPUT) {
			lth_buf_puts(out, ", ");
			put_xml(program->symbols[i].name, out);
			lth_buf_printf(out, " = %lld", (long long)symbols[i]);
		}
	lth_buf_puts(out, "</text>\n<g stroke=\"#444\" stroke-width=\"0.3\">\n");
	uint32_t boxes = put_boxes(&v, out);
	lth_buf_printf(
		out,
		"</g>\n<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" fill=\"#d00\" fill-opacity=\"0.25\">"
		"<title>the peak: step %u, ",
		x_of(&v, v.figures.peak_instr), MARGIN,
		x_of(&v, v.figures.peak_instr + 1) - x_of(&v, v.figures.peak_instr), HEIGHT - 2 * MARGIN,
		v.figures.peak_instr);
	put_xml(v.figures.peak_instr < program->num_instrs ? node_of(program, v.figures.peak_instr) : "-", out);
	lth_buf_puts(out, "</title></rect>\n");
	lth_buf_printf(
		out,
		"<text x=\"%d\" y=\"%d\">step 0</text><text x=\"%d\" y=\"%d\" text-anchor=\"end\">step %u</text>\n",
		MARGIN, HEIGHT - 15, WIDTH - MARGIN, HEIGHT - 15, program->num_instrs);
	if (boxes > MAX_BOXES)
		lth_buf_printf(out,
			       "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">the largest %d of %u storages</text>\n",
			       WIDTH / 2, HEIGHT - 15, MAX_BOXES, boxes);
	lth_buf_puts(out, "</svg>\n");
	view_free(&v);
	return LTH_OK;
}

enum lth_code lth_memory_trace(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out,
			       struct lth_diag *diag)
{
	struct view v;
	enum lth_code code = view_init(&v, program, symbols, diag);
	bool first = true;
	if (code == LTH_OK)
		lth_buf_puts(out, "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[");
	for (uint32_t s = 0; s < program->num_storages && code == LTH_OK; s++) {
		const struct lth_storage *storage = &program->storages[s];
		if (!lth_storage_planned(storage))
			continue;
		lth_buf_printf(out, "%s{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"ts\":%u,\"dur\":%u,\"name\":",
			       first ? "\n" : ",\n", s, storage->first, storage->last - storage->first);
		lth_buf_quote(out, storage->name ? storage->name : "scratch");
		lth_buf_printf(out, ",\"args\":{\"bytes\":%lld,\"offset\":%lld,\"written_by\":", (long long)v.sizes[s],
			       (long long)v.offsets[s]);
		lth_buf_quote(out, node_of(program, v.facts[s].first_write));
		lth_buf_puts(out, ",\"last_read_by\":");
		lth_buf_quote(out, node_of(program, v.facts[s].last_read));
		lth_buf_puts(out, "}}");
		first = false;
	}
	for (uint32_t i = 0; i < program->num_instrs && code == LTH_OK; i++)
		if (i == 0 || v.live[i] != v.live[i - 1]) {
			lth_buf_printf(
				out, "%s{\"ph\":\"C\",\"pid\":1,\"ts\":%u,\"name\":\"live\",\"args\":{\"bytes\":%lld}}",
				first ? "\n" : ",\n", i, (long long)v.live[i]);
			first = false;
		}
	if (code == LTH_OK)
		lth_buf_puts(out, "\n]}\n");
	view_free(&v);
	return code;
}
