/* lathe.h: running executables that Lathe compiled.
 *
 * An executable (.so) exports one symbol, lathe_query, that returns a table of functions; everything else in this
 * header is a thin call through that table, so a program needs this header and dlopen, and no library:
 *
 *	struct lathe_executable *model;
 *	struct lathe_context *context;
 *	struct lathe_error error;
 *	if (lathe_load("m.so", &model, &error) || lathe_context_create(model, NULL, &context, &error))
 *		return fprintf(stderr, "%s\n", error.text), 1;
 *	struct lathe_tensor in = {.dtype = LATHE_F32, .rank = 2, .dims = {1, 16}, .data = x, .bytes = sizeof(x)};
 *	struct lathe_tensor out = {0};
 *	if (lathe_run(context, &in, 1, &out, 1, &error)) ...
 *	use(out.data);
 *	lathe_release(context, &out);
 *	lathe_context_destroy(&context);
 *	lathe_unload(&model);
 *
 * With LATHE_LINKED defined the functions are declared only, and come from liblathe (-llathe, or its archive); that is
 * for programs in languages that cannot use this header's inline functions.
 *
 * Functions that can fail return 0 or a positive code (LATHE_ERROR_...), and then have filled in `error`, which may be
 * NULL. Output parameters are written on success only.
 *
 * Threads: an executable is immutable and may be shared. A context serves one run at a time; use one context a thread.
 * Results do not depend on the number of contexts, and for one number of threads they are the same bytes every time. */
#ifndef LATHE_H
#define LATHE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { LATHE_ABI_VERSION = 1, LATHE_MAX_RANK = 16 };

/* Element types, numbered as TensorProto.DataType in ONNX. Sub-byte types are packed, low half first. */
enum lathe_dtype {
	LATHE_F32 = 1,
	LATHE_U8 = 2,
	LATHE_I8 = 3,
	LATHE_U16 = 4,
	LATHE_I16 = 5,
	LATHE_I32 = 6,
	LATHE_I64 = 7,
	LATHE_STRING = 8, /* elements are struct lathe_string */
	LATHE_BOOL = 9,   /* one byte, 0 or 1 */
	LATHE_F16 = 10,
	LATHE_F64 = 11,
	LATHE_U32 = 12,
	LATHE_U64 = 13,
	LATHE_C64 = 14,
	LATHE_C128 = 15,
	LATHE_BF16 = 16,
	LATHE_F8E4M3FN = 17,
	LATHE_F8E4M3FNUZ = 18,
	LATHE_F8E5M2 = 19,
	LATHE_F8E5M2FNUZ = 20,
	LATHE_U4 = 21,
	LATHE_I4 = 22,
	LATHE_F4E2M1 = 23,
	LATHE_F8E8M0 = 24,
	LATHE_U2 = 25,
	LATHE_I2 = 26,
	LATHE_OBJECT = 256 /* none of ONNX: the one element is a struct lathe_value */
};

/* The codes that these functions return. Others of Lathe's codes may come in later versions. */
enum lathe_code {
	LATHE_OK = 0,
	LATHE_ERROR_OPTION = 2,           /* an argument is not allowed */
	LATHE_ERROR_BUDGET = 8,           /* no value fits the bytes asked about */
	LATHE_ERROR_MEMORY = 21,          /* the system has no memory left */
	LATHE_ERROR_IO = 22,              /* a file cannot be read */
	LATHE_ERROR_EXECUTABLE = 27,      /* damaged, or of another version */
	LATHE_ERROR_INPUT = 28,           /* an input's type, rank, dims or size; nothing was written */
	LATHE_ERROR_ARENA_TOO_SMALL = 29, /* the caller's arena is too small for these dims; nothing was written */
	LATHE_ERROR_RUNTIME = 30          /* the data broke a rule of an operator */
};

struct lathe_error {
	int code;
	char text[2048]; /* one line: where, what was found, what was expected, what to do */
};

/* The bytes of a string element. In outputs they belong to the context and live until its next run. */
struct lathe_string {
	const char *data;
	size_t size;
};

/* A tensor of the caller's: dense, row-major. */
struct lathe_tensor {
	int32_t dtype; /* enum lathe_dtype */
	uint32_t rank;
	int64_t dims[LATHE_MAX_RANK];
	void *data;
	uint64_t bytes; /* of data; inputs may have more than their dims need */
};

/* A value of any kind: what a sequence, optional or map holds. A model's input or output that is one is a tensor of
 * rank 0 and type LATHE_OBJECT whose data points at it:
 *
 *	struct lathe_value pair[2] = {{.kind = LATHE_TENSOR, .tensor = a}, {.kind = LATHE_TENSOR, .tensor = b}};
 *	struct lathe_value list = {.kind = LATHE_SEQUENCE, .count = 2, .elements = pair};
 *	struct lathe_tensor in = {.dtype = LATHE_OBJECT, .data = &list, .bytes = sizeof(list)}, out = {0};
 *	if (lathe_run(context, &in, 1, &out, 1, &error)) ...
 *	const struct lathe_value *result = out.data;
 *	for (uint64_t i = 0; i < result->count; i++)
 *		use(&result->elements[i].tensor);
 *
 * In outputs it belongs to the context, with all that it holds, and lives until the end of its next run, which may take
 * it as input (but for the bytes of strings, which end when that run begins). A caller who brings a struct lathe_value
 * of his own (data and bytes) gets the outermost one there. */
enum lathe_kind {
	LATHE_TENSOR = 0,
	LATHE_SEQUENCE = 1, /* elements of one kind and type */
	LATHE_OPTIONAL = 2, /* no element, or one */
	LATHE_MAP = 3       /* two tensors of rank 1 and one length: keys (i64 or strings, each once) and values */
};

struct lathe_value {
	int32_t kind; /* enum lathe_kind */
	uint64_t count;
	struct lathe_value *elements; /* count of them; of all kinds but LATHE_TENSOR */
	struct lathe_tensor tensor;   /* LATHE_TENSOR */
};

/* A dimension by name. */
struct lathe_symbol {
	const char *name;
	int64_t min, max; /* inclusive; max INT64_MAX: no bound */
	int64_t multiple; /* every value is a multiple of it */
	int64_t hint;     /* the value the executable was planned for */
	int32_t from_data; /* 1: its value comes from the data, in the course of a run */
};

struct lathe_port {
	const char *name;
	int32_t dtype;
	uint32_t rank;
	const char *const *dims;    /* text: "3", "batch", "2*height + 1" */
	const int64_t *static_dims; /* the same as numbers; -1 where symbols decide */
	const int32_t *dim_symbols; /* number of the symbol that a dimension is; -1 for constants and expressions */
};

struct lathe_description {
	const char *name;
	uint32_t num_inputs, num_outputs, num_symbols;
	const struct lathe_port *inputs, *outputs;
	const struct lathe_symbol *symbols;
	uint64_t constants_bytes;
	const char *certificate; /* of the memory plan; "" where there is none */
	const char *info;        /* what the compiler says about itself: JSON; not terminated */
	uint64_t info_bytes;
	/* The types of inputs and outputs that are no tensors, as text: "seq(f32[*])", "optional(i64[?, 4])",
	 * "seq(map(string, f32[]))", where ? is a size and * a rank that may differ from element to element. NULL for
	 * tensors. */
	const char *const *input_types, *const *output_types;
};

/* Memory at given dims. Inputs and outputs are the caller's; constants are the executable's. */
struct lathe_memory {
	uint64_t arena_bytes;      /* what a run's arena takes; 0 without a plan */
	uint64_t live_bound_bytes; /* the largest sum of storages alive at one step: no plan in this order is less */
	uint64_t naive_bytes;      /* the sum of all storages */
	uint64_t io_bytes;         /* inputs and outputs, where known before the run */
	uint64_t constants_bytes;
};

struct lathe_options {
	uint32_t bytes;   /* sizeof(struct lathe_options) */
	uint32_t threads; /* 0 or 1: the caller's only */
	void *arena;      /* aligned to 64; NULL: the context allocates and grows its own */
	uint64_t arena_bytes;
	uint32_t profile;    /* 1: take the time of each call */
	uint32_t signatures; /* shape signatures to remember; 0: as many as fit some megabytes */
};

struct lathe_counters {
	uint64_t runs;
	uint64_t signature_hits, signature_misses;
	uint64_t arena_bytes;         /* of the arena now */
	uint64_t arena_used_bytes;    /* of it, by the last run's shape */
	uint64_t peak_bytes;          /* most bytes of arena in use and pool at one time, in the context's life; without
	                               * outputs, which are the caller's */
	uint64_t pool_takes;          /* storages and temporaries that came from the pool */
	uint64_t pool_gives;
	uint64_t pool_used_bytes;     /* out of the pool now */
	uint64_t pool_peak_bytes;
	uint64_t pool_reserved_bytes; /* held from the system by the pool */
	uint64_t output_bytes;        /* of outputs that were handed over and not yet released */
	uint64_t system_allocations;  /* times that arena, pool or outputs asked the system */
	uint64_t last_run_allocations; /* storages from the pool and system allocations of the last run */
	uint64_t last_run_copies;      /* tensors that the last run copied beside its kernels: states, branches, outputs */
};

/* One instruction's time over the runs so far. */
struct lathe_profile_entry {
	const char *kernel; /* what it computes */
	const char *node;   /* the graph node it came from; "" when none */
	uint64_t calls;
	uint64_t ns;
	uint64_t bytes; /* read and written by one call at the last shape */
	uint64_t flops; /* of one call at the last shape: products of matrices and convolutions; 0: not known */
};

struct lathe_executable;
struct lathe_context;

/* The table that lathe_query returns. Later versions append. */
struct lathe_api {
	uint32_t version;
	uint32_t bytes;
	const char *runtime; /* version of Lathe */
	int (*open)(struct lathe_executable **out_executable, struct lathe_error *error);
	void (*close)(struct lathe_executable **executable);
	const struct lathe_description *(*describe)(const struct lathe_executable *executable);
	int (*memory)(const struct lathe_executable *executable, const int64_t *symbols,
		      struct lathe_memory *out_memory, struct lathe_error *error);
	int (*fit)(const struct lathe_executable *executable, const int64_t *symbols, uint32_t symbol, uint64_t bytes,
		   int64_t *out_value, struct lathe_error *error);
	int (*context_create)(const struct lathe_executable *executable, const struct lathe_options *options,
			      struct lathe_context **out_context, struct lathe_error *error);
	void (*context_destroy)(struct lathe_context **context);
	int (*run)(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
		   struct lathe_tensor *outputs, size_t num_outputs, struct lathe_error *error);
	void (*release)(struct lathe_context *context, struct lathe_tensor *output);
	void (*counters)(const struct lathe_context *context, struct lathe_counters *out_counters);
	size_t (*profile)(const struct lathe_context *context, struct lathe_profile_entry *out_entries,
			  size_t capacity);
	const void *(*program)(const struct lathe_executable *executable, uint64_t *out_bytes);
};

/* What executables export. NULL for a version that this executable does not speak. */
typedef const struct lathe_api *(*lathe_query_fn)(uint32_t version);

#ifdef LATHE_LINKED
#define LATHE_API extern
#else
#ifndef LATHE_API
#define LATHE_API static inline
#define LATHE_INLINE
#endif
#endif

/* Loads an executable from a file, by dlopen. The caller owns it. */
LATHE_API int lathe_load(const char *path, struct lathe_executable **out_executable, struct lathe_error *error);
/* The same from bytes in memory (by memfd_create, which a C library declares with _GNU_SOURCE only). */
#if defined(LATHE_LINKED) || defined(_GNU_SOURCE)
LATHE_API int lathe_load_memory(const void *bytes, size_t size, struct lathe_executable **out_executable,
				struct lathe_error *error);
#endif
/* The same for one that is in the process already: its lathe_query. */
LATHE_API int lathe_open(lathe_query_fn query, struct lathe_executable **out_executable, struct lathe_error *error);
/* Ends it; its contexts must be gone. The library stays mapped. Accepts NULL. */
LATHE_API void lathe_unload(struct lathe_executable **executable);
/* Borrowed from the executable. */
LATHE_API const struct lathe_description *lathe_describe(const struct lathe_executable *executable);
/* Memory for given values of all symbols, in the description's order; those that come from data are ignored. */
LATHE_API int lathe_memory(const struct lathe_executable *executable, const int64_t *symbols,
			   struct lathe_memory *out_memory, struct lathe_error *error);
/* The largest value of one symbol, the others fixed, whose arena takes at most `bytes`. LATHE_ERROR_BUDGET when not
 * even its least value does. */
LATHE_API int lathe_fit(const struct lathe_executable *executable, const int64_t *symbols, uint32_t symbol,
			uint64_t bytes, int64_t *out_value, struct lathe_error *error);
/* `options` may be NULL. The caller owns the context; the executable must outlive it. */
LATHE_API int lathe_context_create(const struct lathe_executable *executable, const struct lathe_options *options,
				   struct lathe_context **out_context, struct lathe_error *error);
LATHE_API void lathe_context_destroy(struct lathe_context **context);
/* Inputs in the description's order. An output with data NULL is allocated by the context and becomes the caller's, who
 * ends it with lathe_release; one with data is written in place, and its `bytes` must suffice. dtype, rank and dims of
 * outputs are filled in. Wrong inputs are refused before anything is written; so is a run of a context that is running
 * in another thread. */
LATHE_API int lathe_run(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
			struct lathe_tensor *outputs, size_t num_outputs, struct lathe_error *error);
/* Gives back an output that lathe_run allocated, and sets its data to NULL. Values that are no tensors
 * live on as struct lathe_value says. */
LATHE_API void lathe_release(struct lathe_context *context, struct lathe_tensor *output);
LATHE_API void lathe_counters(const struct lathe_context *context, struct lathe_counters *out_counters);
/* Writes up to `capacity` entries in program order and returns how many there are; 0 unless the
 * options asked for it. */
LATHE_API size_t lathe_profile(const struct lathe_context *context, struct lathe_profile_entry *out_entries,
			       size_t capacity);

/* The program with its storages, live ranges and plan, as the executable carries it (binary, docs/PROGRAM.md): what tools
 * draw the plan from. Borrowed from the executable; NULL where that was made before there was such a function. */
LATHE_API const void *lathe_program(const struct lathe_executable *executable, uint64_t *out_bytes);

#ifndef LATHE_LINKED
#ifdef __cplusplus
}
#endif
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#ifdef __cplusplus
extern "C" {
#endif

/* Every opaque object begins with its table. */
struct lathe_object {
	const struct lathe_api *api;
};

#define LATHE_TABLE(object) (((const struct lathe_object *)(const void *)(object))->api)

static inline int lathe_fail(struct lathe_error *error, int code, const char *what, const char *why)
{
	if (error) {
		error->code = code;
		snprintf(error->text, sizeof(error->text), "%s: %s", what, why);
	}
	return code;
}

LATHE_API int lathe_open(lathe_query_fn query, struct lathe_executable **out_executable, struct lathe_error *error)
{
	const struct lathe_api *api = query ? query(LATHE_ABI_VERSION) : NULL;
	if (!api)
		return lathe_fail(error, LATHE_ERROR_EXECUTABLE, "the executable",
				  "it does not speak this version of lathe.h; compile the model again");
	return api->open(out_executable, error);
}

LATHE_API int lathe_load(const char *path, struct lathe_executable **out_executable, struct lathe_error *error)
{
	char here[260]; /* a name alone is a file here, not one to look for where the system has its libraries */
	int length = strchr(path, '/') ? 0 : snprintf(here, sizeof(here), "./%s", path);
	void *library = dlopen(length > 0 && length < (int)sizeof(here) ? here : path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return lathe_fail(error, LATHE_ERROR_IO, "cannot load the executable", dlerror());
	void *symbol = dlsym(library, "lathe_query");
	if (!symbol) {
		dlclose(library);
		return lathe_fail(error, LATHE_ERROR_EXECUTABLE, path, "it exports no lathe_query");
	}
	lathe_query_fn query;
	memcpy(&query, &symbol, sizeof(query)); /* ISO C has no cast from an object's pointer to a function's */
	int code = lathe_open(query, out_executable, error);
	if (code)
		dlclose(library);
	return code;
}

#if defined(_GNU_SOURCE)
LATHE_API int lathe_load_memory(const void *bytes, size_t size, struct lathe_executable **out_executable,
				struct lathe_error *error)
{
	const char *from = (const char *)bytes;
	char path[64];
	int code = LATHE_ERROR_IO, fd = memfd_create("lathe", MFD_CLOEXEC);
	if (fd < 0)
		return lathe_fail(error, LATHE_ERROR_IO, "cannot make a file in memory", "memfd_create failed");
	while (size) {
		ssize_t written = write(fd, from, size);
		if (written <= 0)
			break;
		from += written;
		size -= (size_t)written;
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (size)
		lathe_fail(error, LATHE_ERROR_IO, "cannot write a file in memory", "no memory left");
	else
		code = lathe_load(path, out_executable, error);
	if (code)
		close(fd); /* else it stays: a second library behind the same number would be taken for this one */
	return code;
}
#endif

LATHE_API void lathe_unload(struct lathe_executable **executable)
{
	if (*executable)
		LATHE_TABLE(*executable)->close(executable);
}

LATHE_API const struct lathe_description *lathe_describe(const struct lathe_executable *executable)
{
	return LATHE_TABLE(executable)->describe(executable);
}

LATHE_API int lathe_memory(const struct lathe_executable *executable, const int64_t *symbols,
			   struct lathe_memory *out_memory, struct lathe_error *error)
{
	return LATHE_TABLE(executable)->memory(executable, symbols, out_memory, error);
}

LATHE_API int lathe_fit(const struct lathe_executable *executable, const int64_t *symbols, uint32_t symbol,
			uint64_t bytes, int64_t *out_value, struct lathe_error *error)
{
	return LATHE_TABLE(executable)->fit(executable, symbols, symbol, bytes, out_value, error);
}

LATHE_API int lathe_context_create(const struct lathe_executable *executable, const struct lathe_options *options,
				   struct lathe_context **out_context, struct lathe_error *error)
{
	return LATHE_TABLE(executable)->context_create(executable, options, out_context, error);
}

LATHE_API void lathe_context_destroy(struct lathe_context **context)
{
	if (*context)
		LATHE_TABLE(*context)->context_destroy(context);
}

LATHE_API int lathe_run(struct lathe_context *context, const struct lathe_tensor *inputs, size_t num_inputs,
			struct lathe_tensor *outputs, size_t num_outputs, struct lathe_error *error)
{
	return LATHE_TABLE(context)->run(context, inputs, num_inputs, outputs, num_outputs, error);
}

LATHE_API void lathe_release(struct lathe_context *context, struct lathe_tensor *output)
{
	LATHE_TABLE(context)->release(context, output);
}

LATHE_API void lathe_counters(const struct lathe_context *context, struct lathe_counters *out_counters)
{
	LATHE_TABLE(context)->counters(context, out_counters);
}

LATHE_API size_t lathe_profile(const struct lathe_context *context, struct lathe_profile_entry *out_entries,
			       size_t capacity)
{
	return LATHE_TABLE(context)->profile(context, out_entries, capacity);
}

LATHE_API const void *lathe_program(const struct lathe_executable *executable, uint64_t *out_bytes)
{
	const struct lathe_api *api = LATHE_TABLE(executable);
	return api->bytes > offsetof(struct lathe_api, program) ? api->program(executable, out_bytes) : NULL;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
