/* Attaching the constants to what the linker made. The linker saw a stand-in for them, which is alone in its segment, the
 * last one, so that the segment can grow. Here the bytes follow the file's end, on a page of their own, and segment and
 * section are told where they are. So 100 MB of weights cost one copy and no time in the linker. See elf_write.h. */
#include "compiler/emit/elf_write.h"

#include "runtime/base/arena.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static enum lth_code refuse(const char *what, struct lth_diag *diag)
{
	return lth_diag_fail(diag, LTH_INTERNAL, "linker output", what, "please report it", "something else");
}

/* `count` entries of `entry` bytes at `offset` lie inside the file. */
static bool inside(size_t size, uint64_t offset, uint64_t count, uint64_t entry)
{
	return offset <= size && count <= (size - offset) / entry;
}

static bool read_header(const void *linked, size_t size, Elf64_Ehdr *elf)
{
	if (size < sizeof(*elf))
		return false;
	memcpy(elf, linked, sizeof(*elf));
	return memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == ELFCLASS64 &&
	       elf->e_phentsize == sizeof(Elf64_Phdr) && elf->e_shentsize == sizeof(Elf64_Shdr) &&
	       inside(size, elf->e_phoff, elf->e_phnum, sizeof(Elf64_Phdr)) &&
	       inside(size, elf->e_shoff, elf->e_shnum, sizeof(Elf64_Shdr)) && elf->e_shstrndx < elf->e_shnum;
}

static Elf64_Shdr section_at(const unsigned char *file, const Elf64_Ehdr *elf, uint32_t index)
{
	Elf64_Shdr section;
	memcpy(&section, file + elf->e_shoff + index * sizeof(section), sizeof(section));
	return section;
}

/* Index of the constants' section, or 0. */
static uint32_t find_section(const unsigned char *file, size_t size, const Elf64_Ehdr *elf)
{
	static const char wanted[] = LTH_CONSTANTS_SECTION;
	Elf64_Shdr names = section_at(file, elf, elf->e_shstrndx);
	if (!inside(size, names.sh_offset, names.sh_size, 1))
		return 0;
	for (uint32_t k = 1; k < elf->e_shnum; k++) {
		Elf64_Shdr section = section_at(file, elf, k);
		if (section.sh_name < names.sh_size && names.sh_size - section.sh_name >= sizeof(wanted) &&
		    memcmp(file + names.sh_offset + section.sh_name, wanted, sizeof(wanted)) == 0)
			return k;
	}
	return 0;
}

/* No segment reaches beyond the address. */
static bool is_last(const unsigned char *file, const Elf64_Ehdr *elf, uint64_t address)
{
	for (uint32_t k = 0; k < elf->e_phnum; k++) {
		Elf64_Phdr segment;
		memcpy(&segment, file + elf->e_phoff + k * sizeof(segment), sizeof(segment));
		if (segment.p_type == PT_LOAD && segment.p_vaddr > address)
			return false;
	}
	return true;
}

/* Points the segment that begins with the section at the file's new end. */
static bool patch(unsigned char *file, const Elf64_Ehdr *elf, uint32_t index, uint64_t at, uint64_t bytes)
{
	Elf64_Shdr section = section_at(file, elf, index);
	uint64_t stand_in = section.sh_size;
	if (stand_in != LTH_CONSTANTS_STAND_IN || section.sh_addr % LTH_PAGE != 0 || !is_last(file, elf, section.sh_addr))
		return false;
	for (uint32_t k = 0; k < elf->e_phnum; k++) {
		Elf64_Phdr segment;
		unsigned char *place = file + elf->e_phoff + k * sizeof(segment);
		memcpy(&segment, place, sizeof(segment));
		if (segment.p_type != PT_LOAD || segment.p_vaddr != section.sh_addr)
			continue;
		if (segment.p_filesz != stand_in || segment.p_memsz != stand_in || segment.p_flags != PF_R)
			return false;
		segment.p_offset = at;
		segment.p_filesz = segment.p_memsz = bytes;
		segment.p_align = LTH_PAGE;
		memcpy(place, &segment, sizeof(segment));
		section.sh_offset = at;
		section.sh_size = bytes;
		memcpy(file + elf->e_shoff + index * sizeof(section), &section, sizeof(section));
		return true;
	}
	return false;
}

void lth_place_constants(const struct lth_emit_input *input, void *zeroed)
{
	for (uint32_t k = 0; k < input->num_constants; k++)
		if (input->constants[k].size)
			memcpy((char *)zeroed + input->constants[k].offset, input->constants[k].data,
			       input->constants[k].size);
}

enum lth_code lth_attach_constants(const void *linked, size_t linked_size, const struct lth_emit_input *input,
				   void **out_data, size_t *out_size, struct lth_diag *diag)
{
	size_t constants_size = input->constants_size;
	Elf64_Ehdr elf;
	if (!read_header(linked, linked_size, &elf))
		return refuse("an ELF file", diag);
	size_t at = (linked_size + LTH_PAGE - 1) & ~(size_t)(LTH_PAGE - 1);
	if (constants_size == 0)
		at = linked_size;
	if (constants_size > SIZE_MAX - at)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "executable", NULL, NULL, "%zu bytes of constants", constants_size);
	unsigned char *file = lth_calloc_large(at + constants_size);
	if (!file)
		return lth_diag_fail(diag, LTH_OUT_OF_MEMORY, "executable", NULL, NULL, "no memory for %zu bytes",
				     at + constants_size);
	memcpy(file, linked, linked_size);
	if (constants_size) {
		uint32_t index = find_section(file, linked_size, &elf);
		if (index == 0 || !patch(file, &elf, index, at, constants_size)) {
			free(file);
			return refuse("a segment of its own for the constants", diag);
		}
		lth_place_constants(input, file + at);
	}
	*out_data = file;
	*out_size = at + constants_size;
	return LTH_OK;
}
