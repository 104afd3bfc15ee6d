/* Attaching the constants to what the linker made. The linker saw a stand-in for them, which is alone in its segment,
 * the last one, so that the segment can grow. Here the bytes follow the file's end, on a page of their own, and
 * segment and section are told where they are. So 100 MB of weights are written once and take no time in the linker.
 * See elf_write.h. */
#include "compiler/emit/elf_write.h"

#include "runtime/base/io.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The patched head of the file, then the constants from `at` on; what lies between is a hole. An errno, or 0. */
static int write_back(int fd, const void *linked, size_t linked_size, const struct lth_emit_input *input, size_t at)
{
	if (!lth_write_full(fd, linked, linked_size) || ftruncate(fd, (off_t)(at + input->constants_size)) != 0)
		return errno;
	return lth_write_constants(input, fd, at);
}

static enum lth_code attach(const char *path, unsigned char *linked, size_t size, const struct lth_emit_input *input,
			    struct lth_diag *diag)
{
	Elf64_Ehdr elf;
	size_t at = (size + LTH_PAGE - 1) & ~(size_t)(LTH_PAGE - 1);
	if (!read_header(linked, size, &elf))
		return refuse("an ELF file", diag);
	uint32_t index = find_section(linked, size, &elf);
	if (index == 0 || !patch(linked, &elf, index, at, input->constants_size))
		return refuse("a segment of its own for the constants", diag);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int error = fd < 0 ? errno : write_back(fd, linked, size, input, at);
	if (fd >= 0)
		close(fd);
	if (error == 0)
		return LTH_OK;
	enum lth_code code = error == ENOSPC   ? LTH_DISK_FULL
			     : error == EFBIG  ? LTH_LIMIT_EXCEEDED
			     : error == ENOMEM ? LTH_OUT_OF_MEMORY
					       : LTH_IO_ERROR;
	return lth_diag_fail(diag, code, "executable", NULL, NULL, "%zu bytes of constants: %s", input->constants_size,
			     strerror(error));
}

enum lth_code lth_attach_constants(const char *path, const struct lth_emit_input *input, struct lth_diag *diag)
{
	char *linked;
	size_t size;
	if (!input->constants_size)
		return LTH_OK;
	enum lth_code code = lth_read_file(path, 0, &linked, &size, diag);
	if (code != LTH_OK)
		return code;
	code = attach(path, (unsigned char *)linked, size, input, diag);
	free(linked);
	return code;
}
