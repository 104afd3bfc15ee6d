/* Writes the blob of an executable as C source: a program of one kernel, its constants and its info. With it the test
 * link-image links rt-so.o and rt-exe.o as the compiler would. */
#include "runtime/program/program.h"

#include <stdio.h>
#include <string.h>

static const char text[] = "program \"fixture\" {\n constants 64\n"
			   " symbol $n in [1, 1024] hint 4 input 0 axis 0\n"
			   " e0 = $n * 16\n"
			   " storage s0 \"x\" input 0 bytes e0\n storage s1 constant 0 bytes 16\n"
			   " storage s2 \"y\" output 0 bytes e0\n storage s3 \"t\" arena bytes e0 live [0, 4)\n"
			   " kernel k0 \"add_row\" \"add a row\" pointers 3 ints 0\n"
			   " tensor t0 \"x\" f32[$n, 4] in s0\n tensor t1 f32[4] in s1\n"
			   " tensor t2 \"y\" f32[$n, 4] in s2\n tensor t3 f32[$n, 4] in s3\n"
			   " input \"x\" t0\n output \"y\" t2\n"
			   " alloc s3\n call k0 writes (t3) reads (t0, t1) range $n grain 16 node \"first\"\n"
			   " call k0 writes (t2) reads (t3, t1) range $n grain 16 node \"second\"\n kill s3\n return\n"
			   " orientation {\n s3 base 0\n }\n}\n";

static void print_bytes(const char *name, const char *attributes, const void *bytes, size_t size)
{
	const unsigned char *from = bytes;
	printf("const unsigned char %s[%zu]%s = {", name, size, attributes);
	for (size_t i = 0; i < size; i++)
		printf("%s%u,", i % 16 ? "" : "\n", from[i]);
	printf("\n};\nconst unsigned long %s_bytes = %zu;\n", name, size);
}

int main(void)
{
	static const float constants[16] = {1, 2, 3, 4};
	static const char info[] = "{\"info\":true}";
	struct lth_arena *arena = lth_arena_create(0);
	struct lth_program *program;
	struct lth_diag diag = {0};
	struct lth_buf bytes = {0};
	char line[4096];
	if (lth_program_parse(text, strlen(text), arena, &program, &diag) != LTH_OK ||
	    lth_program_verify(program, &diag) != LTH_OK) {
		fprintf(stderr, "%s\n", lth_diag_line(&diag, line, sizeof(line)));
		return 1;
	}
	lth_program_encode(program, &bytes);
	print_bytes("lth_image_program", "", bytes.data, bytes.size);
	print_bytes("lth_image_constants", " __attribute__((aligned(64)))", constants, sizeof(constants));
	print_bytes("lth_image_info", "", info, sizeof(info) - 1);
	printf("struct call { void *const *pointers; };\n"
	       "static int add_row(const struct call *c, long begin, long end)\n{\n"
	       "\tfloat *out = c->pointers[0]; const float *in = c->pointers[1], *row = c->pointers[2];\n"
	       "\tfor (long i = begin * 4; i < end * 4; i++)\n\t\tout[i] = in[i] + row[i & 3];\n\treturn 0;\n}\n"
	       "int (*const lth_image_kernels[])(const struct call *, long, long) = {add_row};\n"
	       "const unsigned long lth_image_num_kernels = 1;\n");
	lth_buf_free(&bytes);
	lth_arena_destroy(&arena);
	return 0;
}
