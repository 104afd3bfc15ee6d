/* Views of the storages as lists: JSON of all, CSV of the plan's buffers. See views.h. */
#include "runtime/memory/ledger.h"
#include "runtime/memory/views.h"

#include <stdlib.h>

/* What a list says of each storage. */
struct columns {
	struct lth_storage_facts *facts;
	int64_t *sizes, *offsets;
};

static void columns_free(struct columns *c)
{
	free(c->facts);
	free(c->sizes);
	free(c->offsets);
}

static enum lth_code columns_init(struct columns *c, const struct lth_program *program, const int64_t *symbols,
				  struct lth_diag *diag)
{
	c->facts = calloc(program->num_storages + 1, sizeof(*c->facts));
	c->sizes = calloc(program->num_storages + 1, sizeof(*c->sizes));
	c->offsets = calloc(program->num_storages + 1, sizeof(*c->offsets));
	if (!c->facts || !c->sizes || !c->offsets)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "storages", NULL, NULL, "no memory to list them");
	lth_storage_ledger(program, c->facts);
	enum lth_code code = lth_storage_sizes(program, symbols, c->sizes, diag);
	return code == LTH_OK ? lth_memory_offsets(program, symbols, c->offsets, diag) : code;
}

static void put_node(const struct lth_program *program, uint32_t instr, struct lth_buf *out)
{
	const char *node = instr == LTH_NONE ? NULL : program->instrs[instr].node;
	if (node)
		lth_buf_quote(out, node);
	else
		lth_buf_puts(out, "null");
}

static void put_storage(const struct lth_program *program, uint32_t s, const struct lth_storage_facts *facts,
			int64_t bytes, int64_t offset, struct lth_buf *out)
{
	const struct lth_storage *storage = &program->storages[s];
	lth_buf_printf(out, "{\"id\":%u,\"tensor\":", s);
	if (storage->name)
		lth_buf_quote(out, storage->name);
	else
		lth_buf_puts(out, "null");
	lth_buf_printf(out, ",\"kind\":\"%s\",\"written_by\":", storage->kind == LTH_STORAGE_POOL ? "pool" : "arena");
	put_node(program, facts->first_write, out);
	lth_buf_puts(out, ",\"last_read_by\":");
	put_node(program, facts->last_read, out);
	lth_buf_printf(out, ",\"first\":%u,\"last\":%u", storage->first, storage->last);
	if (bytes >= 0)
		lth_buf_printf(out, ",\"bytes\":%lld", (long long)bytes);
	if (offset >= 0)
		lth_buf_printf(out, ",\"offset\":%lld", (long long)offset);
	lth_buf_putc(out, '}');
}

static void put_dims(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out)
{
	bool any = false;
	for (uint32_t i = 0; i < program->num_symbols; i++)
		if (program->symbols[i].source == LTH_SOURCE_INPUT) {
			lth_buf_puts(out, any ? "," : "");
			lth_buf_quote(out, program->symbols[i].name);
			lth_buf_printf(out, ":%lld", (long long)symbols[i]);
			any = true;
		}
}

enum lth_code lth_memory_ledger(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out,
				struct lth_diag *diag)
{
	struct columns c = {0};
	struct lth_memory_figures figures;
	enum lth_code code = columns_init(&c, program, symbols, diag);
	if (code == LTH_OK)
		code = lth_memory_figures(program, symbols, &figures, diag);
	if (code == LTH_OK) {
		lth_buf_puts(out, "{\"dims\":{");
		put_dims(program, symbols, out);
		lth_buf_printf(out, "},\"steps\":%u,\"peak_step\":%u,\"live_bound_bytes\":%lld,\"arena_bytes\":",
			       program->num_instrs, figures.peak_instr, (long long)figures.live_bound_bytes);
		if (figures.arena_bytes >= 0)
			lth_buf_printf(out, "%lld", (long long)figures.arena_bytes);
		else
			lth_buf_puts(out, "null");
		lth_buf_puts(out, ",\"storages\":[");
		bool first = true;
		for (uint32_t s = 0; s < program->num_storages; s++) {
			if (program->storages[s].last <= program->storages[s].first)
				continue;
			lth_buf_puts(out, first ? "\n" : ",\n");
			first = false;
			put_storage(program, s, &c.facts[s], c.sizes[s], c.offsets[s], out);
		}
		lth_buf_puts(out, "\n]}\n");
	}
	columns_free(&c);
	return code;
}

enum lth_code lth_memory_csv(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out,
			     struct lth_diag *diag)
{
	struct columns c = {0};
	enum lth_code code = columns_init(&c, program, symbols, diag);
	if (code == LTH_OK)
		lth_buf_puts(out, "id,lower,upper,size,alignment,offset\n");
	for (uint32_t i = 0; i < program->num_storages && code == LTH_OK; i++) {
		const struct lth_storage *s = &program->storages[i];
		if (lth_storage_planned(s))
			lth_buf_printf(out, "%u,%u,%u,%lld,%lld,%lld\n", i, s->first, s->last, (long long)c.sizes[i],
				       (long long)s->alignment, (long long)c.offsets[i]);
	}
	columns_free(&c);
	return code;
}
