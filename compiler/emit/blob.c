/* The image as an ELF relocatable, written by hand: program, info, sizes, the table of kernels with its relocations, and
 * the constants or a stand-in for them. ELF64, little-endian, x86-64 (System V ABI, AMD64 supplement). See elf_write.h and
 * runtime/exec/image.h. */
#include "compiler/emit/elf_write.h"

#include <elf.h>
#include <string.h>

enum section {
	SECTION_NULL,
	SECTION_RODATA,
	SECTION_KERNELS,
	SECTION_RELA,
	SECTION_GAP, /* not empty: what the linker places behind it begins a segment of its own */
	SECTION_CONSTANTS,
	SECTION_STACK,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_SHSTRTAB,
	NUM_SECTIONS
};

/* Names of the sections, behind each other. */
static const char section_names[] =
	"\0.rodata\0.data.rel.ro\0.rela.data.rel.ro\0" LTH_GAP_SECTION "\0" LTH_CONSTANTS_SECTION "\0.note.GNU-stack\0.symtab\0.strtab\0.shstrtab";

struct blob {
	struct lth_blob_options options;
	struct lth_buf *head, *tail;
	struct lth_buf rodata, symtab, strtab, rela;
	Elf64_Shdr headers[NUM_SECTIONS];
};

static uint32_t section_name(enum section section)
{
	const char *at = section_names;
	for (int k = 0; k < (int)section; k++)
		at += strlen(at) + 1;
	return (uint32_t)(at - section_names);
}

static void pad(struct lth_buf *buf, size_t alignment)
{
	while (lth_buf_ok(buf) && buf->size % alignment)
		lth_buf_putc(buf, 0);
}

/* A global symbol; returns its index. */
static uint32_t add_symbol(struct blob *blob, const char *prefix, const char *name, uint16_t section, uint64_t value,
			   uint64_t size)
{
	bool defined = section != SHN_UNDEF;
	Elf64_Sym symbol = {
		.st_name = (uint32_t)blob->strtab.size,
		.st_info = ELF64_ST_INFO(STB_GLOBAL, defined ? STT_OBJECT : STT_NOTYPE),
		.st_other = defined && blob->options.exported ? STV_DEFAULT : STV_HIDDEN,
		.st_shndx = section,
		.st_value = value,
		.st_size = size,
	};
	lth_buf_puts(&blob->strtab, prefix);
	lth_buf_append(&blob->strtab, name, strlen(name) + 1);
	lth_buf_append(&blob->symtab, &symbol, sizeof(symbol));
	return (uint32_t)(blob->symtab.size / sizeof(symbol)) - 1;
}

/* Bytes with their symbol in .rodata, and the size as an object of its own. */
static void add_bytes(struct blob *blob, const char *name, const void *data, size_t size)
{
	pad(&blob->rodata, 64);
	add_symbol(blob, "lth_image_", name, SECTION_RODATA, blob->rodata.size, size);
	if (size)
		lth_buf_append(&blob->rodata, data, size);
}

static void add_size(struct blob *blob, const char *name, uint64_t value)
{
	pad(&blob->rodata, 8);
	add_symbol(blob, "lth_image_", name, SECTION_RODATA, blob->rodata.size, 8);
	lth_buf_u64(&blob->rodata, value);
}

static void add_contents(struct blob *blob, const struct lth_emit_input *input)
{
	Elf64_Sym none = {0};
	lth_buf_append(&blob->symtab, &none, sizeof(none));
	lth_buf_putc(&blob->strtab, 0);
	add_bytes(blob, "program", input->program, input->program_size);
	add_bytes(blob, "info", input->info, input->info_size);
	add_size(blob, "program_bytes", input->program_size);
	add_size(blob, "info_bytes", input->info_size);
	add_size(blob, "constants_bytes", input->constants_size);
	add_size(blob, "num_kernels", input->num_kernels);
	if (input->constants_size)
		add_symbol(blob, "lth_image_", "constants", SECTION_CONSTANTS, 0, input->constants_size);
	else /* any address will do */
		add_bytes(blob, "constants", NULL, 0);
	add_symbol(blob, "lth_image_", "kernels", SECTION_KERNELS, 0, 8 * (uint64_t)input->num_kernels);
	for (uint32_t k = 0; k < input->num_kernels; k++) {
		/* Several entries may name one kernel: one undefined symbol each is harmless, but costs time to resolve. */
		uint32_t same = 0;
		while (input->kernels[same] != input->kernels[k] && strcmp(input->kernels[same], input->kernels[k]) != 0)
			same++;
		uint32_t symbol;
		if (same == k) {
			symbol = add_symbol(blob, "lth_k_", input->kernels[k], SHN_UNDEF, 0, 0);
		} else {
			Elf64_Rela earlier;
			memcpy(&earlier, blob->rela.data + same * sizeof(earlier), sizeof(earlier));
			symbol = (uint32_t)ELF64_R_SYM(earlier.r_info);
		}
		Elf64_Rela rela = {.r_offset = 8 * (uint64_t)k, .r_info = ELF64_R_INFO((uint64_t)symbol, R_X86_64_64)};
		lth_buf_append(&blob->rela, &rela, sizeof(rela));
		if (!lth_buf_ok(&blob->rela))
			return;
	}
}

static Elf64_Shdr *describe(struct blob *blob, enum section section, uint32_t type, uint64_t flags, uint64_t alignment,
			    uint64_t size)
{
	Elf64_Shdr *header = &blob->headers[section];
	*header = (Elf64_Shdr){
		.sh_name = section_name(section), .sh_type = type, .sh_flags = flags, .sh_addralign = alignment,
		.sh_size = size,
	};
	return header;
}

/* Appends a section's bytes to a part of the file that begins at `base`. */
static void place(struct lth_buf *part, uint64_t base, Elf64_Shdr *header, const void *data)
{
	while (lth_buf_ok(part) && (base + part->size) % header->sh_addralign)
		lth_buf_putc(part, 0);
	header->sh_offset = base + part->size;
	if (header->sh_size)
		lth_buf_append(part, data, header->sh_size);
}

static void add_zeros(struct lth_buf *buf, size_t count)
{
	static const char zeros[256];
	for (; count > 0 && lth_buf_ok(buf); count -= count < sizeof(zeros) ? count : sizeof(zeros))
		lth_buf_append(buf, zeros, count < sizeof(zeros) ? count : sizeof(zeros));
}

static void describe_all(struct blob *blob, const struct lth_emit_input *input)
{
	describe(blob, SECTION_RODATA, SHT_PROGBITS, SHF_ALLOC, 64, blob->rodata.size);
	describe(blob, SECTION_KERNELS, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 8, 8 * (uint64_t)input->num_kernels);
	Elf64_Shdr *rela = describe(blob, SECTION_RELA, SHT_RELA, SHF_INFO_LINK, 8, blob->rela.size);
	rela->sh_link = SECTION_SYMTAB;
	rela->sh_info = SECTION_KERNELS;
	rela->sh_entsize = sizeof(Elf64_Rela);
	describe(blob, SECTION_GAP, SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 8, 8);
	describe(blob, SECTION_CONSTANTS, SHT_PROGBITS, SHF_ALLOC, LTH_PAGE,
		 blob->options.inline_constants ? input->constants_size : LTH_CONSTANTS_STAND_IN);
	describe(blob, SECTION_STACK, SHT_PROGBITS, 0, 1, 0);
	Elf64_Shdr *symtab = describe(blob, SECTION_SYMTAB, SHT_SYMTAB, 0, 8, blob->symtab.size);
	symtab->sh_link = SECTION_STRTAB;
	symtab->sh_info = 1; /* the first global */
	symtab->sh_entsize = sizeof(Elf64_Sym);
	describe(blob, SECTION_STRTAB, SHT_STRTAB, 0, 1, blob->strtab.size);
	describe(blob, SECTION_SHSTRTAB, SHT_STRTAB, 0, 1, sizeof(section_names));
}

void lth_blob_write(const struct lth_emit_input *input, struct lth_blob_options options, struct lth_buf *head,
		    struct lth_buf *tail)
{
	struct blob blob = {.options = options, .head = head, .tail = tail};
	add_contents(&blob, input);
	describe_all(&blob, input);
	Elf64_Ehdr elf = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_REL, .e_machine = EM_X86_64, .e_version = EV_CURRENT, .e_ehsize = sizeof(elf),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = NUM_SECTIONS, .e_shstrndx = SECTION_SHSTRTAB,
	};
	add_zeros(head, sizeof(elf));
	place(head, 0, &blob.headers[SECTION_RODATA], blob.rodata.data);
	Elf64_Shdr *kernels = &blob.headers[SECTION_KERNELS];
	pad(head, kernels->sh_addralign);
	kernels->sh_offset = head->size;
	add_zeros(head, kernels->sh_size);
	pad(head, LTH_PAGE); /* the constants, if inline, come here */
	blob.headers[SECTION_CONSTANTS].sh_offset = head->size;
	if (!options.inline_constants)
		add_zeros(head, LTH_CONSTANTS_STAND_IN);
	uint64_t base = head->size + (options.inline_constants ? input->constants_size : 0);
	place(tail, base, &blob.headers[SECTION_RELA], blob.rela.data);
	place(tail, base, &blob.headers[SECTION_SYMTAB], blob.symtab.data);
	place(tail, base, &blob.headers[SECTION_STRTAB], blob.strtab.data);
	place(tail, base, &blob.headers[SECTION_SHSTRTAB], section_names);
	while (lth_buf_ok(tail) && (base + tail->size) % 8)
		lth_buf_putc(tail, 0);
	elf.e_shoff = base + tail->size;
	lth_buf_append(tail, blob.headers, sizeof(blob.headers));
	if (lth_buf_ok(head))
		memcpy(head->data, &elf, sizeof(elf));
	head->failed |= blob.rodata.failed || blob.symtab.failed || blob.strtab.failed || blob.rela.failed;
	lth_buf_free(&blob.rodata);
	lth_buf_free(&blob.symtab);
	lth_buf_free(&blob.strtab);
	lth_buf_free(&blob.rela);
}
