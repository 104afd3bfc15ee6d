/* Portable bitmaps, greymaps and pixmaps (P1 to P6; netpbm's pbm(5), pgm(5), ppm(5)), plain and raw, any maximum. */
#include "runtime/media/image.h"

#include <stdbool.h>

struct scanner {
	const unsigned char *at, *end;
};

static bool is_space(unsigned char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

/* White space, and comments from # to the end of their line. */
static void skip_space(struct scanner *s)
{
	while (s->at < s->end && (is_space(*s->at) || *s->at == '#')) {
		bool comment = *s->at == '#';
		while (comment && s->at < s->end && *s->at != '\n')
			s->at++;
		if (s->at < s->end)
			s->at++;
	}
}

/* A number of at most eight digits, or one digit where bits stand side by side. */
static bool number(struct scanner *s, bool one_digit, uint32_t *out)
{
	int digits = 0;
	*out = 0;
	skip_space(s);
	while (s->at < s->end && *s->at >= '0' && *s->at <= '9' && digits < (one_digit ? 1 : 9)) {
		*out = *out * 10 + (uint32_t)(*s->at++ - '0');
		digits++;
	}
	return digits > 0 && digits < 9;
}

struct layout {
	bool plain, bits;
	uint32_t channels, most;
};

/* One row of samples, in 8 bits each; bits are 1 for black. False where the bytes end. */
static bool read_row(struct scanner *s, const struct layout *layout, size_t samples, unsigned char *out)
{
	size_t width = layout->bits ? 0 : layout->most > 255 ? 2 : 1;
	size_t need = layout->bits ? (samples + 7) / 8 : samples * width;
	if (!layout->plain && need > (size_t)(s->end - s->at))
		return false;
	for (size_t i = 0; i < samples; i++) {
		uint32_t value;
		if (layout->plain) {
			if (!number(s, layout->bits, &value))
				return false;
		} else if (layout->bits) {
			value = s->at[i / 8] >> (7 - i % 8) & 1;
		} else {
			const unsigned char *at = s->at + i * width;
			value = width == 2 ? (uint32_t)at[0] << 8 | at[1] : at[0];
		}
		if (value > layout->most)
			return false;
		value = (value * 255 * 2 + layout->most) / (2 * layout->most);
		out[i] = (unsigned char)(layout->bits ? 255 - value : value);
	}
	if (!layout->plain)
		s->at += need;
	return true;
}

/* Grey samples at the front of a row become its pixels. */
static void spread(unsigned char *row, size_t width)
{
	for (size_t x = width; x-- > 0;)
		row[3 * x] = row[3 * x + 1] = row[3 * x + 2] = row[x];
}

enum lathe_media_code lth_image_pnm(struct lth_image_job *job)
{
	struct scanner s = {job->bytes + 2, job->bytes + job->size};
	uint32_t width, height, kind = job->size > 3 ? job->bytes[1] - (uint32_t)'0' : 0;
	if (kind < 1 || kind > 6)
		return LATHE_MEDIA_BROKEN;
	struct layout layout = {.plain = kind <= 3, .bits = kind == 1 || kind == 4, .most = 1};
	layout.channels = kind == 3 || kind == 6 ? 3 : 1;
	if (!number(&s, false, &width) || !number(&s, false, &height) ||
	    (!layout.bits && !number(&s, false, &layout.most)) || layout.most < 1 || layout.most > 65535)
		return LATHE_MEDIA_BROKEN;
	if (!layout.plain) {
		if (s.at == s.end || !is_space(*s.at))
			return LATHE_MEDIA_BROKEN;
		s.at++; /* one white space, then bytes */
	}
	enum lathe_media_code code = lth_image_begin(job, width, height);
	for (size_t y = 0; code == LATHE_MEDIA_OK && y < job->height; y++) {
		unsigned char *row = job->rgb + y * job->width * 3;
		if (!read_row(&s, &layout, job->width * layout.channels, row))
			return LATHE_MEDIA_BROKEN;
		if (layout.channels == 1)
			spread(row, job->width);
	}
	return code;
}
