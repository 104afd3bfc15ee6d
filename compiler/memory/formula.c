/* The arena as text: for each orientation the largest of some sums, and the least of these.
 *
 * The offset of a storage is a maximum over sums of sizes below it. Sums are kept as coefficients over atoms: products
 * of symbols and of what is not a polynomial, all of them 0 or more. A sum that can never be the larger of two is
 * dropped: its every atom is covered by as much of the other's, of the same atom or of a multiple of it (batch*seq
 * covers batch). What remains is exact at every shape. Sizes count as plans take them, in whole alignment units. Thread
 * rule: reads the program only. */
#include "compiler/memory/memory.h"

#include "runtime/base/checked.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FACTORS = 6, MAX_TERMS = 12, MAX_ATOMS = 48, MAX_SUMS = 64, MAX_TEXT = 900, MAX_STORAGES = 2000 };

/* A product of expressions, sorted by id; none: 1. `rounded` instead: one expression, up to the alignment. */
struct atom {
	uint32_t factors[MAX_FACTORS];
	uint32_t count;
	int64_t rounded_to;
};

struct term {
	struct atom atom;
	int64_t coefficient;
};

struct polynomial {
	struct term terms[MAX_TERMS];
	uint32_t count;
	bool valid;
};

struct sum {
	int64_t of[MAX_ATOMS];
};

struct sums {
	struct sum *list; /* MAX_SUMS */
	uint32_t count;
};

struct former {
	const struct lth_program *program;
	struct atom atoms[MAX_ATOMS];
	uint32_t num_atoms;
	int64_t covers[MAX_ATOMS][MAX_ATOMS]; /* [a][b]: atom b is at least so many times atom a */
	struct sum *sizes;		      /* by storage */
	struct sums *ends;		      /* by place in the orientation: tops of the storage */
};

static bool same_atom(const struct atom *a, const struct atom *b)
{
	return a->count == b->count && a->rounded_to == b->rounded_to &&
	       memcmp(a->factors, b->factors, a->count * sizeof(a->factors[0])) == 0;
}

static bool add_term(struct polynomial *p, const struct atom *atom, int64_t coefficient)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (same_atom(&p->terms[i].atom, atom))
			return lth_add_i64(p->terms[i].coefficient, coefficient, &p->terms[i].coefficient);
	if (p->count == MAX_TERMS)
		return false;
	p->terms[p->count++] = (struct term){*atom, coefficient};
	return true;
}

static bool times(const struct atom *a, const struct atom *b, struct atom *out)
{
	if (a->count + b->count > MAX_FACTORS)
		return false;
	*out = (struct atom){.count = a->count + b->count};
	for (uint32_t i = 0, j = 0, k = 0; k < out->count; k++) {
		bool from_a = j == b->count || (i < a->count && a->factors[i] <= b->factors[j]);
		out->factors[k] = from_a ? a->factors[i++] : b->factors[j++];
	}
	return true;
}

static struct polynomial polynomial_of(const struct lth_program *program, uint32_t id, unsigned depth)
{
	const struct lth_expr *e = &program->exprs[id];
	struct polynomial p = {.valid = true};
	struct atom one = {.count = 0}, self = {.factors = {id}, .count = 1};
	if (e->op == LTH_EXPR_CONST) {
		p.valid = e->value == 0 || add_term(&p, &one, e->value);
		return p;
	}
	if ((e->op != LTH_EXPR_ADD && e->op != LTH_EXPR_MUL) || depth > 24) {
		add_term(&p, &self, 1);
		return p;
	}
	struct polynomial a = polynomial_of(program, e->a, depth + 1), b = polynomial_of(program, e->b, depth + 1);
	p.valid = a.valid && b.valid;
	if (e->op == LTH_EXPR_ADD) {
		p = a;
		p.valid &= b.valid;
		for (uint32_t i = 0; i < b.count && p.valid; i++)
			p.valid = add_term(&p, &b.terms[i].atom, b.terms[i].coefficient);
		return p;
	}
	for (uint32_t i = 0; i < a.count && p.valid; i++)
		for (uint32_t j = 0; j < b.count && p.valid; j++) {
			struct atom product;
			int64_t coefficient;
			p.valid = times(&a.terms[i].atom, &b.terms[j].atom, &product) &&
				  lth_mul_i64(a.terms[i].coefficient, b.terms[j].coefficient, &coefficient) &&
				  add_term(&p, &product, coefficient);
		}
	return p;
}

/* The coefficient of an atom in a sum, appending the atom; NULL when there are too many. */
static int64_t *coefficient_of(struct former *f, struct sum *sum, const struct atom *atom)
{
	for (uint32_t i = 0; i < f->num_atoms; i++)
		if (same_atom(&f->atoms[i], atom))
			return &sum->of[i];
	if (f->num_atoms == MAX_ATOMS)
		return NULL;
	f->atoms[f->num_atoms] = *atom;
	return &sum->of[f->num_atoms++];
}

/* What a storage takes, over the atoms. A polynomial of whole units stays one; anything else is rounded as a whole. */
static bool form_size(struct former *f, const struct lth_storage *storage, struct sum *out)
{
	struct polynomial p = polynomial_of(f->program, storage->size, 0);
	struct atom one = {.count = 0},
		    whole = {.factors = {storage->size}, .count = 1, .rounded_to = storage->alignment};
	int64_t constant, *at;
	if (f->program->exprs[storage->size].op == LTH_EXPR_CONST) {
		constant = f->program->exprs[storage->size].value;
		constant = constant > 0 ? constant : 1;
		at = coefficient_of(f, out, &one);
		return at && lth_add_i64(constant, storage->alignment - 1, at) && ((*at &= -storage->alignment), true);
	}
	bool units = p.valid && p.count;
	for (uint32_t i = 0; i < p.count; i++)
		units &= p.terms[i].coefficient > 0 && p.terms[i].coefficient % storage->alignment == 0;
	if (!units) {
		at = coefficient_of(f, out, &whole);
		return at && (*at = 1);
	}
	for (uint32_t i = 0; i < p.count; i++) {
		at = coefficient_of(f, out, &p.terms[i].atom);
		if (!at)
			return false;
		*at = p.terms[i].coefficient;
	}
	return true;
}

/* The largest q for which atom `b` is at least q times atom `a` at every shape; 0 when it is not known to be. */
static int64_t cover(const struct lth_program *program, const struct atom *a, const struct atom *b)
{
	int64_t times_least = 1;
	uint32_t matched = 0;
	if (a->rounded_to)
		return same_atom(a, b);
	if (b->rounded_to)
		return a->count == 0 ? b->rounded_to : 0;
	for (uint32_t i = 0; i < b->count; i++) {
		if (matched < a->count && a->factors[matched] == b->factors[i]) {
			matched++;
			continue;
		}
		const struct lth_expr *e = &program->exprs[b->factors[i]];
		int64_t least = e->op == LTH_EXPR_SYMBOL ? program->symbols[e->a].min : 0;
		if (least <= 0 || !lth_mul_i64(times_least, least, &times_least))
			return 0;
	}
	return matched == a->count ? times_least : 0;
}

/* Is sum `a` never larger than `b`? What `a` has more of an atom must fit into what `b` has more of its multiples. */
static bool at_most(const struct former *f, const struct sum *a, const struct sum *b)
{
	int64_t spare[MAX_ATOMS];
	for (uint32_t i = 0; i < f->num_atoms; i++)
		spare[i] = b->of[i] - a->of[i];
	for (uint32_t i = 0; i < f->num_atoms; i++)
		for (uint32_t j = 0; j < f->num_atoms && spare[i] < 0; j++) {
			int64_t room;
			if (spare[j] <= 0 || f->covers[i][j] == 0)
				continue;
			if (!lth_mul_i64(spare[j], f->covers[i][j], &room) || room >= -spare[i]) {
				spare[j] -= (-spare[i] + f->covers[i][j] - 1) / f->covers[i][j];
				spare[i] = 0;
			} else {
				spare[i] += room;
				spare[j] = 0;
			}
		}
	for (uint32_t i = 0; i < f->num_atoms; i++)
		if (spare[i] < 0)
			return false;
	return true;
}

/* Adds a sum to a maximum, unless it can never be the largest. False when there are too many. */
static bool add_sum(const struct former *f, struct sums *sums, const struct sum *sum)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < sums->count; i++)
		if (at_most(f, sum, &sums->list[i]))
			return true;
	for (uint32_t i = 0; i < sums->count; i++)
		if (!at_most(f, &sums->list[i], sum))
			sums->list[kept++] = sums->list[i];
	sums->count = kept;
	if (kept == MAX_SUMS)
		return false;
	sums->list[sums->count++] = *sum;
	return true;
}

static bool plus(const struct former *f, const struct sum *a, const struct sum *b, struct sum *out)
{
	for (uint32_t i = 0; i < f->num_atoms; i++)
		if (!lth_add_i64(a->of[i], b->of[i], &out->of[i]))
			return false;
	return true;
}

/* The maximum that one orientation's height is. */
static bool form_orientation(struct former *f, const struct lth_orientation *o, struct sums *out)
{
	for (uint32_t i = 0; i < o->num_storages; i++) {
		const struct sum *size = &f->sizes[o->storages[i]];
		struct sums *ends = &f->ends[i];
		struct sum top = *size;
		ends->count = 0;
		if (o->edges[i] == o->edges[i + 1] && !add_sum(f, ends, &top))
			return false;
		for (uint32_t e = o->edges[i]; e < o->edges[i + 1]; e++)
			for (uint32_t k = 0; k < f->ends[o->below[e]].count; k++)
				if (!plus(f, &f->ends[o->below[e]].list[k], size, &top) || !add_sum(f, ends, &top))
					return false;
		for (uint32_t k = 0; k < ends->count; k++)
			if (!add_sum(f, out, &ends->list[k]))
				return false;
	}
	return true;
}

/* --- text */
static void put_atom(const struct former *f, const struct atom *atom, struct lth_buf *out)
{
	if (atom->rounded_to)
		lth_buf_printf(out, "round%lld(", (long long)atom->rounded_to);
	for (uint32_t i = 0; i < atom->count; i++) {
		if (i)
			lth_buf_putc(out, '*');
		lth_program_expr_text(f->program, atom->factors[i], out);
	}
	if (atom->rounded_to)
		lth_buf_putc(out, ')');
}

static void put_sum(const struct former *f, const struct sum *sum, struct lth_buf *out)
{
	bool first = true;
	for (uint32_t i = 0; i < f->num_atoms; i++) {
		if (sum->of[i] == 0)
			continue;
		if (!first)
			lth_buf_puts(out, " + ");
		first = false;
		if (sum->of[i] != 1 || f->atoms[i].count == 0)
			lth_buf_printf(out, "%lld", (long long)sum->of[i]);
		if (sum->of[i] != 1 && f->atoms[i].count)
			lth_buf_putc(out, '*');
		put_atom(f, &f->atoms[i], out);
	}
	if (first)
		lth_buf_putc(out, '0');
}

static void put_sums(const struct former *f, const struct sums *sums, struct lth_buf *out)
{
	if (sums->count > 1)
		lth_buf_puts(out, "max(");
	for (uint32_t i = 0; i < sums->count; i++) {
		if (i)
			lth_buf_puts(out, ", ");
		put_sum(f, &sums->list[i], out);
	}
	if (sums->count > 1)
		lth_buf_putc(out, ')');
}

static bool prepare(struct former *f)
{
	const struct lth_program *program = f->program;
	const struct lth_orientation *first = &program->orientations[0];
	for (uint32_t i = 0; i < first->num_storages; i++) {
		uint32_t s = first->storages[i];
		f->ends[i].list = calloc(MAX_SUMS, sizeof(struct sum));
		if (!f->ends[i].list || !form_size(f, &program->storages[s], &f->sizes[s]))
			return false;
	}
	for (uint32_t i = 0; i < f->num_atoms; i++)
		for (uint32_t j = 0; j < f->num_atoms; j++)
			f->covers[i][j] = cover(program, &f->atoms[i], &f->atoms[j]);
	return true;
}

static void too_long(const struct lth_program *program, struct lth_buf *out)
{
	lth_buf_printf(out,
		       "the least of %u max-plus expressions over %u storages, too long to print; evaluate it with "
		       "lathe_memory",
		       program->num_orientations, program->orientations[0].num_storages);
}

void lth_memory_formula(const struct lth_program *program, const int64_t *symbols, struct lth_buf *out)
{
	struct lth_memory_figures figures;
	struct lth_diag ignored = {0};
	struct former f = {.program = program};
	struct sums whole = {.list = calloc(MAX_SUMS, sizeof(struct sum))};
	struct lth_buf text = {0};
	if (program->num_orientations == 0 || lth_memory_figures(program, symbols, &figures, &ignored) != LTH_OK) {
		free(whole.list);
		return;
	}
	uint32_t count = program->orientations[0].num_storages;
	bool fixed = program->num_symbols == 0 || program->orientations[0].num_edges == 0,
	     ok = whole.list && !fixed && count <= MAX_STORAGES;
	f.sizes = calloc(program->num_storages + 1, sizeof(*f.sizes));
	f.ends = calloc(count + 1, sizeof(*f.ends));
	ok = ok && f.sizes && f.ends && prepare(&f);
	if (program->num_orientations > 1)
		lth_buf_puts(&text, "min(");
	for (uint32_t k = 0; k < program->num_orientations && ok; k++) {
		whole.count = 0;
		ok = form_orientation(&f, &program->orientations[k], &whole);
		if (k)
			lth_buf_puts(&text, ", ");
		put_sums(&f, &whole, &text);
	}
	if (program->num_orientations > 1)
		lth_buf_putc(&text, ')');
	if (fixed && program->orientations[0].num_edges == 0)
		lth_buf_printf(out, "%lld", (long long)figures.arena_bytes);
	else if (ok && lth_buf_ok(&text) && text.size <= MAX_TEXT)
		lth_buf_append(out, text.data, text.size);
	else
		too_long(program, out);
	for (uint32_t i = 0; f.ends && i < count; i++)
		free(f.ends[i].list);
	free(f.ends);
	free(f.sizes);
	free(whole.list);
	lth_buf_free(&text);
}
