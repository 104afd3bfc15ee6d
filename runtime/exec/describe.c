/* The public description of an executable: ports, symbols, dims as text. Made once, when it is loaded. */
#include "runtime/exec/executable.h"

static const char *text_or_empty(const char *text)
{
	return text ? text : "";
}

/* Fills in a port's dims, in the arena. */
static bool describe_dims(struct lathe_executable *x, const struct lth_tensor *tensor, struct lathe_port *out)
{
	const char **dims = lth_arena_array(x->arena, tensor->rank, sizeof(*dims));
	int64_t *numbers = lth_arena_array(x->arena, tensor->rank, sizeof(*numbers));
	int32_t *symbols = lth_arena_array(x->arena, tensor->rank, sizeof(*symbols));
	struct lth_buf text = {0};
	bool ok = dims && numbers && symbols;
	for (uint32_t axis = 0; axis < tensor->rank && ok; axis++) {
		const struct lth_expr *e = &x->program->exprs[tensor->dims[axis]];
		text.size = 0;
		lth_program_expr_text(x->program, tensor->dims[axis], &text);
		dims[axis] = lth_arena_strndup(x->arena, lth_buf_text(&text), text.size);
		numbers[axis] = e->op == LTH_EXPR_CONST ? e->value : -1;
		symbols[axis] = e->op == LTH_EXPR_SYMBOL ? (int32_t)e->a : -1;
		ok = lth_buf_ok(&text) && dims[axis];
	}
	lth_buf_free(&text);
	out->dims = dims;
	out->static_dims = numbers;
	out->dim_symbols = symbols;
	return ok;
}

static bool describe_ports(struct lathe_executable *x, const struct lth_port *ports, uint32_t count,
			   const struct lathe_port **out)
{
	struct lathe_port *described = lth_arena_array(x->arena, count, sizeof(*described));
	for (uint32_t i = 0; described && i < count; i++) {
		const struct lth_tensor *tensor = &x->program->tensors[ports[i].tensor];
		described[i].name = text_or_empty(ports[i].name);
		described[i].dtype = lth_dtype_onnx(tensor->dtype);
		described[i].rank = tensor->rank;
		if (!describe_dims(x, tensor, &described[i]))
			return false;
	}
	*out = described;
	return described != NULL;
}

/* The types of ports that are objects, as text. */
static bool describe_types(struct lathe_executable *x, const struct lth_port *ports, uint32_t count,
			   const char *const **out)
{
	const char **types = lth_arena_array(x->arena, count, sizeof(*types));
	for (uint32_t i = 0; types && i < count; i++)
		types[i] = ports[i].type;
	*out = types;
	return types != NULL;
}

static bool parse_types(struct lathe_executable *x)
{
	x->input_types = lth_arena_array(x->arena, x->program->num_inputs, sizeof(*x->input_types));
	bool ok = x->input_types;
	for (uint32_t i = 0; ok && i < x->program->num_inputs; i++)
		ok = !x->program->inputs[i].type ||
		     lth_value_type_parse(x->program->inputs[i].type, &x->input_types[i]);
	return ok;
}

static bool describe_symbols(struct lathe_executable *x)
{
	struct lathe_symbol *symbols = lth_arena_array(x->arena, x->program->num_symbols, sizeof(*symbols));
	for (uint32_t i = 0; symbols && i < x->program->num_symbols; i++) {
		const struct lth_symbol *s = &x->program->symbols[i];
		symbols[i] = (struct lathe_symbol){
			.name = s->name, .min = s->min, .max = s->max, .multiple = s->multiple, .hint = s->hint,
			.from_data = s->source == LTH_SOURCE_DATA,
		};
	}
	x->description.symbols = symbols;
	x->description.num_symbols = x->program->num_symbols;
	return symbols != NULL;
}

enum lth_code lth_executable_describe(struct lathe_executable *x, struct lth_diag *diag)
{
	struct lathe_description *d = &x->description;
	d->name = text_or_empty(x->program->name);
	d->num_inputs = x->program->num_inputs;
	d->num_outputs = x->program->num_outputs;
	d->constants_bytes = x->program->constants_bytes;
	d->certificate = text_or_empty(x->program->certificate);
	d->info = text_or_empty(x->image.info);
	d->info_bytes = x->image.info_bytes;
	if (!describe_ports(x, x->program->inputs, d->num_inputs, &d->inputs) ||
	    !describe_ports(x, x->program->outputs, d->num_outputs, &d->outputs) || !describe_symbols(x) ||
	    !describe_types(x, x->program->inputs, d->num_inputs, &d->input_types) ||
	    !describe_types(x, x->program->outputs, d->num_outputs, &d->output_types) || !parse_types(x))
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "executable", NULL, NULL, "no memory to describe it");
	return LTH_OK;
}
