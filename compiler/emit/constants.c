/* The constants' bytes: into a file at some offset, or into memory. Weights that kernels want packed are packed here, a
 * part at a time into a buffer that stays in the cache and goes to the file from there, on all threads of the compile:
 * a model's weights never lie packed in memory. See elf_write.h. */
#include "compiler/emit/elf_write.h"

#include "compiler/lower/templates/pack.h"
#include "runtime/base/team.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is written at once, and the size of the parts of a piece that is not packed. */
enum { RUN_BYTES = 1 << 19 };

/* One part of one piece. */
struct part {
	const struct lth_emit_piece *piece;
	int64_t number;
	size_t offset, size; /* among all constants */
};

/* Parts [begin, end): a stretch of the file that one thread makes and writes. */
struct stretch {
	size_t begin, end;
};

struct writer {
	struct part *parts;
	struct stretch *stretches;
	size_t num_parts, num_stretches, largest; /* bytes of the largest stretch that needs a buffer */
	int fd;
	uint64_t base;
	atomic_size_t next;
	atomic_int error; /* errno of the first failure */
};

static int64_t num_parts(const struct lth_emit_piece *piece)
{
	return piece->pack ? lth_pack_num_parts(piece->pack) : (int64_t)((piece->size + RUN_BYTES - 1) / RUN_BYTES);
}

static struct part part_of(const struct lth_emit_piece *piece, int64_t number)
{
	int64_t offset = number * RUN_BYTES, size = (int64_t)piece->size - offset;
	if (piece->pack)
		lth_pack_part_place(piece->pack, number, &offset, &size);
	else if (size > RUN_BYTES)
		size = RUN_BYTES;
	return (struct part){piece, number, piece->offset + (size_t)offset, (size_t)size};
}

static void make(const struct part *part, void *out)
{
	const struct lth_emit_piece *piece = part->piece;
	if (piece->pack)
		lth_pack_part(piece->pack, piece->data, part->number, out);
	else
		memcpy(out, (const char *)piece->data + (part->offset - piece->offset), part->size);
}

void lth_place_constants(const struct lth_emit_input *input, void *zeroed)
{
	for (uint32_t k = 0; k < input->num_constants; k++) {
		const struct lth_emit_piece *piece = &input->constants[k];
		for (int64_t number = 0, count = num_parts(piece); number < count; number++) {
			struct part part = part_of(piece, number);
			make(&part, (char *)zeroed + part.offset);
		}
	}
}

static size_t stretch_bytes(const struct writer *writer, const struct stretch *stretch)
{
	const struct part *last = &writer->parts[stretch->end - 1];
	return last->offset + last->size - writer->parts[stretch->begin].offset;
}

/* A part of the model's own bytes is written from where it lies. */
static bool needs_buffer(const struct writer *writer, const struct stretch *stretch)
{
	return stretch->end - stretch->begin > 1 || writer->parts[stretch->begin].piece->pack;
}

static bool plan(struct writer *writer, const struct lth_emit_input *input)
{
	size_t count = 0;
	for (uint32_t k = 0; k < input->num_constants; k++)
		count += (size_t)num_parts(&input->constants[k]);
	writer->parts = calloc(count + 1, sizeof(*writer->parts));
	writer->stretches = calloc(count + 1, sizeof(*writer->stretches));
	if (!writer->parts || !writer->stretches)
		return false;
	for (uint32_t k = 0; k < input->num_constants; k++)
		for (int64_t number = 0, parts = num_parts(&input->constants[k]); number < parts; number++)
			writer->parts[writer->num_parts++] = part_of(&input->constants[k], number);
	for (size_t k = 0; k < writer->num_parts; k++) {
		struct stretch *last = writer->num_stretches ? &writer->stretches[writer->num_stretches - 1] : NULL;
		if (!last || stretch_bytes(writer, &(struct stretch){last->begin, k + 1}) > RUN_BYTES)
			writer->stretches[writer->num_stretches++] = (struct stretch){k, k + 1};
		else
			last->end = k + 1;
	}
	for (size_t k = 0; k < writer->num_stretches; k++) {
		size_t bytes = stretch_bytes(writer, &writer->stretches[k]);
		if (needs_buffer(writer, &writer->stretches[k]) && bytes > writer->largest)
			writer->largest = bytes;
	}
	return true;
}

static bool write_at(const struct writer *writer, const char *data, size_t size, size_t offset)
{
	while (size) {
		ssize_t count = pwrite(writer->fd, data, size, (off_t)(writer->base + offset));
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return false;
		data += count;
		offset += (size_t)count;
		size -= (size_t)count;
	}
	return true;
}

static bool write_stretch(const struct writer *writer, const struct stretch *stretch, char *buffer)
{
	const struct part *first = &writer->parts[stretch->begin];
	size_t bytes = stretch_bytes(writer, stretch), filled = 0;
	if (!needs_buffer(writer, stretch)) {
		const char *data = (const char *)first->piece->data + (first->offset - first->piece->offset);
		return write_at(writer, data, bytes, first->offset);
	}
	for (size_t k = stretch->begin; k < stretch->end; k++) {
		const struct part *part = &writer->parts[k];
		size_t at = part->offset - first->offset;
		memset(buffer + filled, 0, at - filled);
		make(part, buffer + at);
		filled = at + part->size;
	}
	return write_at(writer, buffer, bytes, first->offset);
}

static void work(void *context, unsigned member)
{
	struct writer *writer = context;
	char *buffer = malloc(writer->largest + 1);
	(void)member;
	if (!buffer)
		atomic_store(&writer->error, ENOMEM);
	while (!atomic_load(&writer->error)) {
		size_t k = atomic_fetch_add(&writer->next, 1);
		if (k >= writer->num_stretches)
			break;
		if (!write_stretch(writer, &writer->stretches[k], buffer))
			atomic_store(&writer->error, errno);
	}
	free(buffer);
}

int lth_write_constants(const struct lth_emit_input *input, int fd, uint64_t base)
{
	struct writer writer = {.fd = fd, .base = base};
	bool planned = plan(&writer, input), few = writer.num_stretches < input->threads;
	if (planned)
		lth_team_run(few ? (unsigned)writer.num_stretches : input->threads, work, &writer);
	else
		atomic_store(&writer.error, ENOMEM);
	free(writer.parts);
	free(writer.stretches);
	return atomic_load(&writer.error);
}
