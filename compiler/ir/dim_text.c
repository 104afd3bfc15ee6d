/* Text of dimensions. Printing follows the normal form; parsing applies the same arithmetic again, so what prints
 * parses to the same dimension. Grammar (docs/IR.md): sum = ["-"] product { ("+" | "-") product };  product = factor {
 * "*" factor } factor = integer | symbol | "(" sum ")" | function "(" arguments ")" Symbols are words with dots and an
 * optional [axis]; any other name stands in quotes. */
#include "compiler/ir/dim_internal.h"
#include "compiler/ir/text.h"

#include "runtime/base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- printing ---- */

bool lth_text_is_symbol(const char *name)
{
	enum { MAX_BARE = 100 }; /* what parsers read into a buffer; longer names stand in quotes */
	size_t i = 0;
	if (strlen(name) > MAX_BARE)
		return false;
	if (!((name[0] | 32) >= 'a' && (name[0] | 32) <= 'z') && name[0] != '_')
		return false;
	while (lth_text_word_char(name[i]))
		i++;
	if (name[i] == '[') {
		size_t digits = ++i;
		while (name[i] >= '0' && name[i] <= '9')
			i++;
		if (i == digits || name[i++] != ']')
			return false;
	}
	return name[i] == 0;
}

void lth_text_symbol(struct lth_buf *out, const char *name)
{
	if (lth_text_is_symbol(name))
		lth_buf_puts(out, name);
	else
		lth_buf_quote(out, name);
}

static void print_real(const struct lth_dims *dims, lth_real id, struct lth_buf *out)
{
	const struct lth_real_node *real = &dims->reals[id];
	double value;
	if (lth_real_is_const(dims, id, &value)) {
		lth_buf_double(out, value);
		return;
	}
	lth_buf_puts(out, lth_expr_text(real->op));
	lth_buf_putc(out, '(');
	if (real->op == LTH_EXPR_TOREAL) {
		lth_dim_print(dims, real->a, out);
	} else {
		print_real(dims, real->a, out);
		if (real->b != LTH_NONE) {
			lth_buf_puts(out, ", ");
			print_real(dims, real->b, out);
		}
	}
	lth_buf_putc(out, ')');
}

/* An atom; of a symbol, the symbol divided by `divisor`. */
static void print_atom(const struct lth_dims *dims, const struct lth_dim_atom *atom, int64_t divisor,
		       struct lth_buf *out)
{
	if (atom->op == LTH_EXPR_SYMBOL) {
		lth_buf_puts(out, divisor > 1 ? "floordiv(" : "");
		lth_text_symbol(out, dims->symbols[atom->a].name);
		if (divisor > 1)
			lth_buf_printf(out, ", %" PRId64 ")", divisor);
		return;
	}
	lth_buf_puts(out, lth_expr_text(atom->op));
	lth_buf_putc(out, '(');
	if (atom->op == LTH_EXPR_TOINT) {
		print_real(dims, atom->a, out);
	} else if (atom->op == LTH_EXPR_OPAQUE) {
		lth_dim_print(dims, atom->a, out);
	} else {
		lth_dim_print(dims, atom->a, out);
		lth_buf_puts(out, ", ");
		lth_dim_print(dims, atom->b, out);
	}
	lth_buf_putc(out, ')');
}

static void print_term(const struct lth_dims *dims, struct lth_dim_term term, struct lth_buf *out)
{
	const struct lth_dim_product *product = &dims->products[term.product];
	int64_t divisors[LTH_DIM_MAX_FACTORS];
	lth_dim_cancel_multiples(dims, &term, divisors);
	uint64_t weight = term.weight < 0 ? 0 - (uint64_t)term.weight : (uint64_t)term.weight;
	bool first = product->count != 0 && weight == 1;
	if (!first)
		lth_buf_printf(out, "%" PRIu64, weight);
	for (uint32_t k = 0; k < product->count; k++) {
		if (!first)
			lth_buf_putc(out, '*');
		first = false;
		print_atom(dims, &dims->atoms[product->atoms[k]], divisors[k], out);
	}
}

void lth_dim_print(const struct lth_dims *dims, lth_dim a, struct lth_buf *out)
{
	if (a == LTH_DIM_NONE) {
		lth_buf_putc(out, '?');
		return;
	}
	const struct lth_dim_node *node = &dims->nodes[a];
	if (node->count == 0)
		lth_buf_putc(out, '0');
	for (uint32_t i = 0; i < node->count; i++) {
		int64_t weight = node->terms[i].weight;
		if (i > 0)
			lth_buf_puts(out, weight < 0 ? " - " : " + ");
		else if (weight < 0)
			lth_buf_putc(out, '-');
		print_term(dims, node->terms[i], out);
	}
}

/* ---- parsing ---- */

struct parser {
	struct lth_dims *dims;
	struct lth_text text;
	unsigned depth;
};

enum { MAX_PARSE_DEPTH = 150 };

static enum lth_code parse_sum(struct parser *parser, lth_dim *out);

static const struct {
	const char *name;
	lth_dim (*apply)(struct lth_dims *dims, lth_dim a, lth_dim b);
} functions[] = {
	{"floordiv", lth_dim_floordiv}, {"ceildiv", lth_dim_ceildiv}, {"mod", lth_dim_mod},
	{"min", lth_dim_min},           {"max", lth_dim_max},
};

static enum lth_code expect(struct parser *parser, char c)
{
	char words[] = {'\'', c, '\'', 0};
	return lth_text_take(&parser->text, c) ? LTH_OK : lth_text_fail(&parser->text, words, "a dimension");
}

static enum lth_code result_of(struct parser *parser, uint32_t id, uint32_t *out)
{
	if (id == LTH_DIM_NONE)
		return lth_text_fail(&parser->text, "an expression within 64-bit integers",
				     "overflow or division by 0");
	*out = id;
	return LTH_OK;
}

static enum lth_code parse_real(struct parser *parser, lth_real *out)
{
	char word[16];
	double value;
	lth_real a, b = LTH_DIM_NONE;
	enum lth_code code;
	if (lth_text_double(&parser->text, &value))
		return result_of(parser, lth_real_const(parser->dims, value), out);
	if (++parser->depth > MAX_PARSE_DEPTH || !lth_text_word(&parser->text, word, sizeof(word)))
		return lth_text_fail(&parser->text, "a number or a function of reals", NULL);
	int op = LTH_EXPR_TOREAL;
	while (op < LTH_NUM_EXPRS && (op == LTH_EXPR_TOINT || strcmp(lth_expr_text((enum lth_expr_op)op), word) != 0))
		op++;
	if (op == LTH_NUM_EXPRS)
		return lth_text_fail(&parser->text, "a function of reals", word);
	if ((code = expect(parser, '(')))
		return code;
	if (op == LTH_EXPR_TOREAL) {
		lth_dim dim;
		if ((code = parse_sum(parser, &dim)) || (code = expect(parser, ')')))
			return code;
		parser->depth--;
		return result_of(parser, lth_real_from_dim(parser->dims, dim), out);
	}
	if ((code = parse_real(parser, &a)))
		return code;
	if (lth_expr_operands((enum lth_expr_op)op) == 2 &&
	    ((code = expect(parser, ',')) || (code = parse_real(parser, &b))))
		return code;
	if ((code = expect(parser, ')')))
		return code;
	parser->depth--;
	return result_of(parser, lth_real_apply(parser->dims, (enum lth_expr_op)op, a, b), out);
}

/* What follows a word and "(". */
static enum lth_code parse_call(struct parser *parser, const char *word, lth_dim *out)
{
	enum lth_code code;
	lth_dim a, b;
	if (strcmp(word, "int") == 0) {
		lth_real real;
		if ((code = parse_real(parser, &real)) || (code = expect(parser, ')')))
			return code;
		return result_of(parser, lth_dim_from_real(parser->dims, real), out);
	}
	if (strcmp(word, "opaque") == 0) {
		if ((code = parse_sum(parser, &a)) || (code = expect(parser, ')')))
			return code;
		return result_of(parser, lth_dim_opaque(parser->dims, a), out);
	}
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (strcmp(functions[i].name, word) != 0)
			continue;
		if ((code = parse_sum(parser, &a)) || (code = expect(parser, ',')) || (code = parse_sum(parser, &b)) ||
		    (code = expect(parser, ')')))
			return code;
		return result_of(parser, functions[i].apply(parser->dims, a, b), out);
	}
	return lth_text_fail(&parser->text, "floordiv, ceildiv, mod, min, max, opaque or int", word);
}

static enum lth_code parse_symbol(struct parser *parser, const char *name, lth_dim *out)
{
	lth_dim symbol = lth_dim_find_symbol(parser->dims, name);
	if (symbol == LTH_DIM_NONE)
		return lth_text_fail(&parser->text, "a symbol declared before", name);
	*out = symbol;
	return LTH_OK;
}

static enum lth_code parse_factor(struct parser *parser, lth_dim *out)
{
	char word[256];
	int64_t value;
	char *quoted;
	enum lth_code code;
	if (lth_text_int(&parser->text, &value))
		return result_of(parser, lth_dim_const(parser->dims, value), out);
	if (lth_text_take(&parser->text, '(')) {
		if ((code = parse_sum(parser, out)))
			return code;
		return expect(parser, ')');
	}
	if (lth_text_peek(&parser->text) == '"') {
		if (!(quoted = lth_text_quoted(&parser->text, parser->dims->arena)))
			return lth_text_fail(&parser->text, "a quoted name", NULL);
		return parse_symbol(parser, quoted, out);
	}
	if (!lth_text_word(&parser->text, word, sizeof(word) - 24))
		return lth_text_fail(&parser->text, "a dimension", NULL);
	if (lth_text_take(&parser->text, '('))
		return parse_call(parser, word, out);
	if (lth_text_take(&parser->text, '[')) {
		if (!lth_text_int(&parser->text, &value) || value < 0 || !lth_text_take(&parser->text, ']'))
			return lth_text_fail(&parser->text, "an axis in brackets", NULL);
		size_t used = strlen(word);
		snprintf(word + used, sizeof(word) - used, "[%" PRId64 "]", value);
	}
	return parse_symbol(parser, word, out);
}

static enum lth_code parse_sum(struct parser *parser, lth_dim *out)
{
	enum lth_code code;
	if (++parser->depth > MAX_PARSE_DEPTH)
		return lth_text_fail(&parser->text, "a dimension that is nested less deeply", NULL);
	lth_dim total = lth_dim_const(parser->dims, 0), product, factor;
	bool minus = lth_text_take_minus(&parser->text);
	for (;;) {
		if ((code = parse_factor(parser, &product)))
			return code;
		while (lth_text_take(&parser->text, '*')) {
			if ((code = parse_factor(parser, &factor)))
				return code;
			product = lth_dim_mul(parser->dims, product, factor);
		}
		total = minus ? lth_dim_sub(parser->dims, total, product) : lth_dim_add(parser->dims, total, product);
		if ((code = result_of(parser, total, &total)))
			return code;
		minus = lth_text_peek(&parser->text) == '-';
		if (!minus && lth_text_peek(&parser->text) != '+')
			break;
		lth_text_take(&parser->text, lth_text_peek(&parser->text));
	}
	parser->depth--;
	*out = total;
	return LTH_OK;
}

enum lth_code lth_dim_parse_text(struct lth_dims *dims, struct lth_text *text, lth_dim *out)
{
	struct parser parser = {dims, *text, 0};
	enum lth_code code = parse_sum(&parser, out);
	*text = parser.text;
	return code;
}

enum lth_code lth_dim_parse(struct lth_dims *dims, const char *text, size_t size, lth_dim *out, struct lth_diag *diag)
{
	struct lth_text cursor = {.text = text, .size = size, .diag = diag, .line = 1};
	lth_dim result;
	enum lth_code code = lth_dim_parse_text(dims, &cursor, &result);
	if (code)
		return code;
	if (lth_text_peek(&cursor))
		return lth_text_fail(&cursor, "the end of the dimension", NULL);
	*out = result;
	return LTH_OK;
}
