/* Unit tests of liblathe-media's code: images of every format, made here by the libraries' own encoders or byte by byte,
 * come back as they were; every cut of them, and claims of great sizes, are refused; patterns match as RE2's would, and
 * hostile ones end. */
#include "runtime/media/media.h"
#include "tests/unit/run_suite.h"

#include <stdio.h>

#include <jpeglib.h>
#include <openjpeg.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <webp/encode.h>

enum { WIDTH = 7, HEIGHT = 5, BYTES = WIDTH * HEIGHT * 3 };
static unsigned char sample[BYTES]; /* RGB */

/* The bytes of a file, and the pixels that decoding gave. */
static struct {
	unsigned char bytes[8192];
	size_t size, at;
} file;
static unsigned char *taken;

static void setup(void)
{
	for (int i = 0; i < BYTES; i++)
		sample[i] = (unsigned char)(i * 37 + i / 3 * 11);
	file.size = file.at = 0;
	free(taken);
	taken = NULL;
}

static void teardown(void)
{
	free(taken);
	taken = NULL;
}

static void *take(void *context, size_t bytes)
{
	(void)context;
	free(taken);
	return taken = malloc(bytes);
}

static enum lathe_media_code decode(enum lathe_media_pixels pixels, size_t size, struct lathe_media_image *out)
{
	*out = (struct lathe_media_image){.bytes = file.bytes, .size = size, .pixels_are = pixels, .take = take};
	return lathe_media_query(LATHE_MEDIA_VERSION)->decode(out);
}

/* The file decodes to the sample, in each order of channels, within `most` a value. Cut short it is refused. */
static void check_sample(int most)
{
	struct lathe_media_image image;
	ck_assert_int_eq(decode(LATHE_MEDIA_RGB, file.size, &image), LATHE_MEDIA_OK);
	ck_assert_int_eq(image.width, WIDTH);
	ck_assert_int_eq(image.height, HEIGHT);
	for (int i = 0; i < BYTES; i++)
		ck_assert_int_le(abs(image.pixels[i] - sample[i]), most);
	ck_assert_int_eq(decode(LATHE_MEDIA_BGR, file.size, &image), LATHE_MEDIA_OK);
	for (int i = 0; i < BYTES; i++)
		ck_assert_int_le(abs(image.pixels[i / 3 * 3 + 2 - i % 3] - sample[i]), most);
	ck_assert_int_eq(decode(LATHE_MEDIA_GRAYSCALE, file.size, &image), LATHE_MEDIA_OK);
	for (int i = 0; i < BYTES / 3; i++) {
		const unsigned char *p = sample + 3 * i;
		ck_assert_int_le(abs(image.pixels[i] - (299 * p[0] + 587 * p[1] + 114 * p[2] + 500) / 1000), most + 1);
	}
	for (size_t size = 0; size < file.size / 2; size++)
		ck_assert_int_eq(decode(LATHE_MEDIA_RGB, size, &image), LATHE_MEDIA_BROKEN);
}

static void put(const void *bytes, size_t size)
{
	ck_assert_uint_le(size, sizeof(file.bytes) - file.at);
	memcpy(file.bytes + file.at, bytes, size);
	file.at += size;
	file.size = file.at > file.size ? file.at : file.size;
}

static void put_numbers(int width, int count, const unsigned *list)
{
	for (int i = 0; i < count; i++) {
		unsigned char bytes[4] = {(unsigned char)list[i], (unsigned char)(list[i] >> 8),
					  (unsigned char)(list[i] >> 16), (unsigned char)(list[i] >> 24)};
		put(bytes, (size_t)width);
	}
}

START_TEST(png)
{
	png_image image = {.version = PNG_IMAGE_VERSION, .width = WIDTH, .height = HEIGHT, .format = PNG_FORMAT_RGB};
	png_alloc_size_t size = sizeof(file.bytes);
	ck_assert(png_image_write_to_memory(&image, file.bytes, &size, 0, sample, 0, NULL));
	file.size = size;
	check_sample(0);
}
END_TEST

START_TEST(jpeg)
{
	struct jpeg_compress_struct c;
	struct jpeg_error_mgr errors;
	unsigned char *bytes = NULL;
	unsigned long size = 0;
	memset(sample, 90, sizeof(sample)); /* smooth, so that it loses little */
	sample[0] = 93;
	c.err = jpeg_std_error(&errors);
	jpeg_create_compress(&c);
	jpeg_mem_dest(&c, &bytes, &size);
	c.image_width = WIDTH;
	c.image_height = HEIGHT;
	c.input_components = 3;
	c.in_color_space = JCS_RGB;
	jpeg_set_defaults(&c);
	jpeg_set_quality(&c, 100, TRUE);
	jpeg_start_compress(&c, TRUE);
	for (int y = 0; y < HEIGHT; y++)
		jpeg_write_scanlines(&c, &(JSAMPROW){sample + y * WIDTH * 3}, 1);
	jpeg_finish_compress(&c);
	jpeg_destroy_compress(&c);
	put(bytes, size);
	free(bytes);
	check_sample(4);
}
END_TEST

START_TEST(webp)
{
	uint8_t *bytes = NULL;
	size_t size = WebPEncodeLosslessRGB(sample, WIDTH, HEIGHT, WIDTH * 3, &bytes);
	ck_assert_uint_gt(size, 0);
	put(bytes, size);
	WebPFree(bytes);
	check_sample(0);
}
END_TEST

/* --- TIFF and JPEG 2000 write through functions */
static tmsize_t tiff_read(thandle_t handle, void *out, tmsize_t size)
{
	(void)handle;
	size_t left = file.size - file.at, count = (size_t)size < left ? (size_t)size : left;
	memcpy(out, file.bytes + file.at, count);
	file.at += count;
	return (tmsize_t)count;
}

static tmsize_t tiff_write(thandle_t handle, void *bytes, tmsize_t size)
{
	(void)handle;
	put(bytes, (size_t)size);
	return size;
}

static toff_t tiff_seek(thandle_t handle, toff_t offset, int whence)
{
	(void)handle;
	file.at = (whence == SEEK_CUR ? file.at : whence == SEEK_END ? file.size : 0) + offset;
	return file.at;
}

static int tiff_close(thandle_t handle)
{
	(void)handle;
	return 0;
}

static toff_t tiff_size(thandle_t handle)
{
	(void)handle;
	return file.size;
}

START_TEST(tiff)
{
	const uint16_t compressions[] = {COMPRESSION_NONE, COMPRESSION_LZW, COMPRESSION_PACKBITS};
	for (size_t k = 0; k < sizeof(compressions) / sizeof(compressions[0]); k++) {
		file.size = file.at = 0;
		TIFF *t = TIFFClientOpen("t", "wm", NULL, tiff_read, tiff_write, tiff_seek, tiff_close, tiff_size, NULL,
					 NULL);
		ck_assert_ptr_nonnull(t);
		TIFFSetField(t, TIFFTAG_IMAGEWIDTH, WIDTH);
		TIFFSetField(t, TIFFTAG_IMAGELENGTH, HEIGHT);
		TIFFSetField(t, TIFFTAG_BITSPERSAMPLE, 8);
		TIFFSetField(t, TIFFTAG_SAMPLESPERPIXEL, 3);
		TIFFSetField(t, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
		TIFFSetField(t, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
		TIFFSetField(t, TIFFTAG_COMPRESSION, compressions[k]);
		for (uint32_t y = 0; y < HEIGHT; y++)
			ck_assert_int_eq(TIFFWriteScanline(t, sample + y * WIDTH * 3, y, 0), 1);
		TIFFClose(t);
		check_sample(0);
	}
}
END_TEST

static OPJ_SIZE_T jp2_write(void *bytes, OPJ_SIZE_T size, void *context)
{
	(void)context;
	put(bytes, size);
	return size;
}

static OPJ_BOOL jp2_seek(OPJ_OFF_T offset, void *context)
{
	(void)context;
	file.at = (size_t)offset;
	return OPJ_TRUE;
}

static OPJ_OFF_T jp2_skip(OPJ_OFF_T count, void *context)
{
	(void)context;
	file.at += (size_t)count;
	return count;
}

START_TEST(jp2)
{
	opj_image_cmptparm_t parts[3] = {{0}};
	opj_cparameters_t parameters;
	for (int k = 0; k < 3; k++)
		parts[k] = (opj_image_cmptparm_t){.dx = 1, .dy = 1, .w = WIDTH, .h = HEIGHT, .prec = 8, .bpp = 8};
	opj_image_t *image = opj_image_create(3, parts, OPJ_CLRSPC_SRGB);
	image->x1 = WIDTH;
	image->y1 = HEIGHT;
	for (int i = 0; i < BYTES; i++)
		image->comps[i % 3].data[i / 3] = sample[i];
	opj_set_default_encoder_parameters(&parameters);
	parameters.tcp_numlayers = 1;
	parameters.cp_disto_alloc = 1;
	parameters.tcp_mct = 1;
	parameters.numresolution = 2;
	opj_codec_t *codec = opj_create_compress(_i ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
	ck_assert(opj_setup_encoder(codec, &parameters, image));
	opj_stream_t *stream = opj_stream_create(1024, OPJ_FALSE);
	opj_stream_set_write_function(stream, jp2_write);
	opj_stream_set_seek_function(stream, jp2_seek);
	opj_stream_set_skip_function(stream, jp2_skip);
	ck_assert(opj_start_compress(codec, image, stream) && opj_encode(codec, stream) &&
		  opj_end_compress(codec, stream));
	opj_stream_destroy(stream);
	opj_destroy_codec(codec);
	opj_image_destroy(image);
	check_sample(0);
}
END_TEST

/* --- formats of our own reading */

/* A bitmap's headers; `palette` bytes lie between them and the pixels. */
static void put_bmp(int height, unsigned bits, unsigned compression, unsigned palette)
{
	const unsigned place[] = {0, 0, 54 + palette, 40, WIDTH, (unsigned)height};
	put("BM", 2);
	put_numbers(4, 6, place);
	put_numbers(2, 2, (const unsigned[]){1, bits});
	put_numbers(4, 6, (const unsigned[]){compression, 0, 0, 0, 0, 0});
}

static void put_bmp_pixel(const unsigned char *rgb, unsigned bits)
{
	if (bits == 16)
		put_numbers(2, 1, (const unsigned[]){rgb[0] >> 3 << 11 | rgb[1] >> 2 << 5 | rgb[2] >> 3});
	else
		put((const unsigned char[]){rgb[2], rgb[1], rgb[0], 0}, bits / 8);
}

START_TEST(bmp_of_true_colour)
{
	const struct {
		int height;
		unsigned bits, compression;
	} kinds[] = {{HEIGHT, 24, 0}, {-HEIGHT, 24, 0}, {HEIGHT, 32, 0}, {HEIGHT, 16, 3}, {-HEIGHT, 32, 3}};
	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		const unsigned bits = kinds[k].bits, masks16[] = {0xF800, 0x07E0, 0x001F};
		const unsigned masks32[] = {0xFF0000, 0xFF00, 0xFF};
		setup();
		put_bmp(kinds[k].height, bits, kinds[k].compression, kinds[k].compression ? 12 : 0);
		if (kinds[k].compression)
			put_numbers(4, 3, bits == 16 ? masks16 : masks32);
		for (int y = 0; y < HEIGHT; y++) {
			int row = kinds[k].height < 0 ? y : HEIGHT - 1 - y;
			for (int x = 0; x < WIDTH; x++)
				put_bmp_pixel(sample + (row * WIDTH + x) * 3, bits);
			while ((file.at - 54 - (kinds[k].compression ? 12u : 0)) % 4)
				put("", 1);
		}
		check_sample(bits == 16 ? 7 : 0);
	}
}
END_TEST

/* Indices 0 .. WIDTH - 1 in every row; entry i of the palette is (i, 2 i, 3 i). */
static void check_indices(void)
{
	for (int i = 0; i < BYTES; i++)
		sample[i] = (unsigned char)(i / 3 % WIDTH * (i % 3 + 1));
	struct lathe_media_image image;
	ck_assert_int_eq(decode(LATHE_MEDIA_RGB, file.size, &image), LATHE_MEDIA_OK);
	ck_assert_mem_eq(image.pixels, sample, BYTES);
}

static void put_palette(unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		put((const unsigned char[]){(unsigned char)(3 * i), (unsigned char)(2 * i), (unsigned char)i, 0}, 4);
}

START_TEST(bmp_of_a_palette)
{
	put_bmp(HEIGHT, 8, 0, 1024);
	put_palette(256);
	for (int y = 0; y < HEIGHT; y++)
		put("\0\1\2\3\4\5\6", 8);
	check_indices();
	setup();
	put_bmp(HEIGHT, 4, 0, 64);
	put_palette(16);
	for (int y = 0; y < HEIGHT; y++)
		put("\x01\x23\x45\x60", 4);
	check_indices();
}
END_TEST

START_TEST(bmp_of_run_lengths)
{
	put_bmp(HEIGHT, 8, 1, 1024);
	put_palette(256);
	for (int y = 0; y < HEIGHT; y++)
		put("\0\5\0\1\2\3\4\0\1\5\1\6\0\0", 14); /* five as they are (padded), two runs of one, end of row */
	put("\0\1", 2);
	check_indices();
	setup();
	put_bmp(HEIGHT, 4, 2, 64);
	put_palette(16);
	for (int y = 0; y < HEIGHT; y++)
		put("\2\x01\0\5\x23\x45\x60\0\0\0", 10);
	put("\0\1", 2);
	check_indices();
	file.size -= 2; /* no end of the image, but all of its rows */
	check_indices();
	file.size -= 40;
	struct lathe_media_image image;
	ck_assert_int_eq(decode(LATHE_MEDIA_RGB, file.size, &image), LATHE_MEDIA_BROKEN);
}
END_TEST

START_TEST(pnm_raw_and_plain)
{
	char text[64];
	int size = snprintf(text, sizeof(text), "P6 # comment\n%d %d\n255\n", WIDTH, HEIGHT);
	put(text, (size_t)size);
	put(sample, BYTES);
	check_sample(0);
	setup();
	size = snprintf(text, sizeof(text), "P3\n%d %d 255\n", WIDTH, HEIGHT);
	put(text, (size_t)size);
	for (int i = 0; i < BYTES; i++)
		put(text, (size_t)snprintf(text, sizeof(text), "%d\n", sample[i]));
	check_sample(0);
	static const struct {
		const char *bytes;
		size_t size;
		unsigned char grey[4];
	} small[] = {
		{"P1 2 2 10\n01", 12, {0, 255, 255, 0}},
		{"P4 2 2 \x80\x40", 9, {0, 255, 255, 0}},
		{"P2 2 2 3 0 1 2 3", 16, {0, 85, 170, 255}},
		{"P5 2 2 1023 \0\0\1\x54\2\xab\3\xff", 20, {0, 85, 170, 255}},
	};
	for (size_t k = 0; k < sizeof(small) / sizeof(small[0]); k++) {
		struct lathe_media_image image;
		setup();
		put(small[k].bytes, small[k].size);
		ck_assert_int_eq(decode(LATHE_MEDIA_GRAYSCALE, file.size, &image), LATHE_MEDIA_OK);
		ck_assert_mem_eq(image.pixels, small[k].grey, 4);
		ck_assert_int_eq(decode(LATHE_MEDIA_GRAYSCALE, file.size - 1, &image), LATHE_MEDIA_BROKEN);
	}
}
END_TEST

START_TEST(great_claims_are_refused)
{
	struct lathe_media_image image;
	put("P6 60000 60000 255 x", 20);
	ck_assert_int_eq(decode(LATHE_MEDIA_RGB, file.size, &image), LATHE_MEDIA_LIMIT);
	ck_assert_ptr_nonnull(strstr(image.message, "60000 x 60000"));
	ck_assert_ptr_null(taken);
	setup();
	put_bmp((int)0x80000000u, 32, 0, 0);
	memset(file.bytes + 18, 0x7f, 4);
	ck_assert_int_eq(decode(LATHE_MEDIA_RGB, file.size, &image), LATHE_MEDIA_BROKEN);
	setup();
	put("no image", 8);
	ck_assert_int_eq(decode(LATHE_MEDIA_RGB, file.size, &image), LATHE_MEDIA_BROKEN);
	ck_assert_ptr_null(lathe_media_query(LATHE_MEDIA_VERSION + 1));
}
END_TEST

/* --- regular expressions */
static enum lathe_media_code match(const char *pattern, const char *text, size_t size, int *out)
{
	const struct lathe_media_api *api = lathe_media_query(LATHE_MEDIA_VERSION);
	char message[LATHE_MEDIA_MESSAGE] = "";
	struct lathe_regex *regex;
	enum lathe_media_code code = api->regex_open(pattern, strlen(pattern), &regex, message);
	if (code == LATHE_MEDIA_OK) {
		code = api->regex_match(regex, text, size, out, message);
		api->regex_close(&regex);
	}
	ck_assert(code == LATHE_MEDIA_OK || code == LATHE_MEDIA_MEMORY || message[0]);
	return code;
}

START_TEST(full_matches)
{
	static const struct {
		const char *pattern, *text;
		size_t size;
		int matches;
	} rows[] = {
		{"a|ab", "ab", 2, 1},	       {"a+", "aab", 3, 0},
		{"", "", 0, 1},		       {"a*?", "aaa", 3, 1},
		{"a$", "a\n", 2, 0},	       {"a.b", "a\nb", 3, 0},
		{"(?s)a.b", "a\nb", 3, 1},     {"(?i)straSSE", "STRAsse", 7, 1},
		{"...", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", 9, 1}, {"\\pL+", "\xc3\xa4x", 3, 1},
		{"a.b", "a\0b", 3, 1},	       {"a", "a\xff", 2, 0},
		{"(?P<x>a)b", "ab", 2, 1},     {"\\Qa.b\\E", "a.b", 3, 1},
		{"[[:alpha:]]+", "abc", 3, 1}, {"x{2,3}", "xxxx", 4, 0},
		{"^a$|^b$", "b", 1, 1},	       {"\\d", "\xd9\xa1", 2, 0},
	};
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		int matches = -1;
		ck_assert_int_eq(match(rows[k].pattern, rows[k].text, rows[k].size, &matches), LATHE_MEDIA_OK);
		ck_assert_msg(matches == rows[k].matches, "'%s' on row %zu: %d", rows[k].pattern, k, matches);
	}
}
END_TEST

START_TEST(hostile_patterns_end)
{
	char text[64];
	int matches;
	memset(text, 'a', sizeof(text));
	ck_assert_int_eq(match("(a*)*(a*)*(a*)*b|(a+)+c", text, sizeof(text), &matches), LATHE_MEDIA_LIMIT);
	ck_assert_int_eq(match("(a", text, 1, &matches), LATHE_MEDIA_BROKEN);
	ck_assert_int_eq(match("\\C", text, 1, &matches), LATHE_MEDIA_BROKEN);
	ck_assert_int_eq(match("\xff", text, 1, &matches), LATHE_MEDIA_BROKEN);
	ck_assert_int_eq(match("((a{0,1000}){0,1000}){0,1000}", text, 1, &matches), LATHE_MEDIA_BROKEN);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("media");
	TCase *images = tcase_create("images"), *patterns = tcase_create("patterns");
	tcase_add_checked_fixture(images, setup, teardown);
	tcase_add_test(images, png);
	tcase_add_test(images, jpeg);
	tcase_add_test(images, webp);
	tcase_add_test(images, tiff);
	tcase_add_loop_test(images, jp2, 0, 2);
	tcase_add_test(images, bmp_of_true_colour);
	tcase_add_test(images, bmp_of_a_palette);
	tcase_add_test(images, bmp_of_run_lengths);
	tcase_add_test(images, pnm_raw_and_plain);
	tcase_add_test(images, great_claims_are_refused);
	tcase_add_test(patterns, full_matches);
	tcase_add_test(patterns, hostile_patterns_end);
	suite_add_tcase(suite, images);
	suite_add_tcase(suite, patterns);
	return run_suite(suite);
}
