/* The pixels of a plain PNG file: grey of up to 16 bits, or palette or colours of eight bits, not
 * interlaced, and with no chunk that could change how the pixels look or upset Pillow, which judges
 * every other file. */
#ifndef SEGIOU_PNG_FILE_H
#define SEGIOU_PNG_FILE_H

#include "_png_rows.h"

#define HEADER_BYTES 33
#define CHUNK_BYTES 12   /* of length, name and checksum */
#define MAX_RATIO 1032   /* no deflate stream grows by more */
#define MOST_ROW_BYTES (1 << 28) /* whose checksum does not overflow */
#define MOST_TEXT (1 << 16)
#define MOST_TEXTS 256
#define MOST_KEYWORD 79

/* Memory to read a file. */
typedef struct {
    Codes codes;
    uint8_t *stream, *buffer, *lines; /* the deflated pixels; inflated pieces; two rows */
    size_t buffer_size, line_size;
    int texts;
} PngReader;

typedef struct {
    size_t width, height;
    size_t row_bytes;     /* without the filter byte */
    size_t pixel_bytes;   /* in memory */
    unsigned bytes;       /* of a pixel in the file; 1 if it has fewer bits */
    unsigned depth, scale; /* bits per sample, and the factor of packed samples */
    const char *mode;     /* Pillow's */
    const uint8_t *palette; /* in the file; empty for other modes */
    size_t palette_size;
    size_t stream_size;
} PngImage;

/* CRC-32 of every byte with up to seven zeros behind it. */
static uint32_t checksums[8][256];

/* Before any file is read: when a module is imported. */
static int
fill_checksums(PyObject *Py_UNUSED(module))
{
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xEDB88320) : 0);
        }
        checksums[0][byte] = sum;
    }
    for (int i = 1; i < 8; i++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint32_t before = checksums[i - 1][byte];
            checksums[i][byte] = before >> 8 ^ checksums[0][before & 255];
        }
    }
    return 0;
}

/* CRC-32, eight bytes at a time. */
static uint32_t
chunk_checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_C(0xFFFFFFFF);
    for (; size >= 8; size -= 8, bytes += 8) {
        sum ^= (uint32_t)load_word(bytes);
        sum = checksums[7][sum & 255] ^ checksums[6][sum >> 8 & 255]
            ^ checksums[5][sum >> 16 & 255] ^ checksums[4][sum >> 24] ^ checksums[3][bytes[4]]
            ^ checksums[2][bytes[5]] ^ checksums[1][bytes[6]] ^ checksums[0][bytes[7]];
    }
    for (; size > 0; size--) {
        sum = sum >> 8 ^ checksums[0][(sum ^ *bytes++) & 255];
    }
    return ~sum;
}

/* Size and kind. 0 if the file is not a PNG, not plain, or needs more than `room` bytes. */
static int
read_header(const uint8_t *file, size_t size, size_t room, PngImage *image)
{
    static const uint8_t start[16] = {137, 'P', 'N', 'G', '\r', '\n', 26, '\n', 0, 0, 0, 13,
                                      'I', 'H', 'D', 'R'};
    /* Packed grey samples are spread over 0..255, as Pillow does; one bit stays 0 and 1. */
    static const uint8_t scales[17] = {[1] = 1, [2] = 85, [4] = 17, [8] = 1, [16] = 1};
    if (size < HEADER_BYTES || memcmp(file, start, sizeof start) != 0
        || read_big_endian(file + 29) != chunk_checksum(file + 12, 17)) {
        return 0;
    }
    uint32_t width = read_big_endian(file + 16), height = read_big_endian(file + 20);
    unsigned depth = file[24], color = file[25];
    int is_color = color == 2 && depth == 8, is_palette = color == 3 && depth <= 8;
    if (width == 0 || height == 0 || height > room / width || depth > 16 || !scales[depth]
        || (color != 0 && !is_color && !is_palette) || file[26] || file[27] || file[28]) {
        return 0;
    }
    image->width = width;
    image->height = height;
    image->depth = depth;
    image->scale = is_palette ? 1 : scales[depth];
    image->mode = is_color ? "RGB" : is_palette ? "P" : depth == 1 ? "1" : depth == 16 ? "I;16" : "L";
    image->bytes = is_color ? 3 : depth == 16 ? 2 : 1;
    image->pixel_bytes = bytes_in_memory(image->bytes);
    image->row_bytes = depth < 8 ? image->width / 8 * depth + (image->width % 8 * depth + 7) / 8
                                 : image->width * image->bytes;
    return image->row_bytes <= MOST_ROW_BYTES && room >= BLOCK
        && height <= (room - BLOCK) / image->pixel_bytes / width;
}

/* Counts the bytes of a text. */
static const uint8_t *
skip_text(void *sink, const uint8_t *from, const uint8_t *to, Checksum *sum)
{
    size_t *length = sink;
    *length += (size_t)(to - from);
    Checksum own = {0, 0};
    for (const uint8_t *at = from; at < to; at++) {
        count_bytes(&own, at, 1, (size_t)(to - at));
    }
    append_sums(sum, own, (size_t)(to - from));
    return *length <= MOST_TEXT ? to : NULL;
}

/* Whether a deflated text is short; it is copied behind the pixels joined so far. */
static int
is_short_text(PngReader *reader, size_t joined, const uint8_t *deflated, size_t size)
{
    uint8_t *stream = reader->stream + joined;
    size_t length = 0;
    memcpy(stream, deflated, size);
    memset(stream + size, 0, READ_BEHIND);
    return inflate(stream, size, &reader->codes, reader->buffer, reader->buffer_size,
                   skip_text, &length);
}

/* Whether a keyword is that of a text with EXIF or XMP, which can turn the image. */
static int
can_turn(const uint8_t *keyword, size_t length)
{
    static const char *const known[] = {"Raw profile type exif", "XML:com.adobe.xmp"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (length == strlen(known[i]) && memcmp(keyword, known[i], length) == 0) {
            return 1;
        }
    }
    return 0;
}

/* Whether a text or profile is short, also decompressed, and has a keyword that Pillow does not
 * use itself: it stores texts and its own properties together, and a text called `interlace`
 * changes how it reads the pixels. */
static int
is_harmless_text(PngReader *reader, size_t joined, const uint8_t *name, const uint8_t *body,
                 size_t length)
{
    const uint8_t *end = body + length, *rest = memchr(body, 0, length);
    int is_fact = 1, is_deflated = memcmp(name, "tEXt", 4) != 0;
    if (++reader->texts > MOST_TEXTS || rest == NULL || rest - body > MOST_KEYWORD
        || can_turn(body, (size_t)(rest - body))) {
        return 0;
    }
    for (; body < rest; body++) {
        is_fact &= *body >= 128 || *body == '_' || (*body >= '0' && *body <= '9')
            || (*body >= 'a' && *body <= 'z');
    }
    rest++;
    if (memcmp(name, "iTXt", 4) == 0) {
        if (end - rest < 2 || rest[0] > 1 || rest[1] != 0) {
            return 0;
        }
        is_deflated = rest[0];
        rest += 2;
        for (int skipped = 0; skipped < 2; skipped++) { /* language and translated keyword */
            rest = memchr(rest, 0, (size_t)(end - rest));
            if (rest++ == NULL) {
                return 0;
            }
        }
    } else if (is_deflated && (rest == end || *rest++ != 0)) {
        return 0;
    }
    size_t left = (size_t)(end - rest);
    return !is_fact
        && (is_deflated ? is_short_text(reader, joined, rest, left) : left <= MOST_TEXT);
}

/* Whether a chunk is allowed and does not change the pixels. */
static int
is_harmless(PngReader *reader, size_t joined, const uint8_t *name, const uint8_t *body,
            size_t length)
{
    enum { TEXT = -1, NEVER = -2 };
    static const struct {
        char name[5];
        int length;
    } known[] = {{"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}, {"tEXt", TEXT},
                 {"zTXt", TEXT}, {"iCCP", TEXT}, {"iTXt", TEXT}, {"eXIf", NEVER},
                 {"acTL", NEVER}, {"fcTL", NEVER}, {"fdAT", NEVER}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (memcmp(name, known[i].name, 4) == 0) {
            return known[i].length == TEXT
                ? is_harmless_text(reader, joined, name, body, length)
                : length == (size_t)known[i].length;
        }
    }
    for (int i = 0; i < 4; i++) {
        if ((name[i] | 32) < 'a' || (name[i] | 32) > 'z') {
            return 0;
        }
    }
    /* Neither critical nor reserved. */
    return name[0] & 32 && !(name[2] & 32);
}

/* Join the deflated pixels. 0 where the chunks are not plain. */
static int
join_stream(PngReader *reader, const uint8_t *file, size_t size, PngImage *image)
{
    size_t at = HEADER_BYTES, colors = 0;
    int is_palette = image->mode[0] == 'P', has_begun = 0, has_ended = 0, has_alpha = 0;
    int is_plain = 1;
    image->stream_size = image->palette_size = 0;
    image->palette = file;
    reader->texts = 0;
    while (is_plain && size - at >= CHUNK_BYTES) {
        size_t length = read_big_endian(file + at);
        const uint8_t *name = file + at + 4, *body = name + 4;
        if (length > size - at - CHUNK_BYTES
            || read_big_endian(body + length) != chunk_checksum(name, length + 4)) {
            return 0;
        }
        at += CHUNK_BYTES + length;
        if (memcmp(name, "IEND", 4) == 0) {
            memset(reader->stream + image->stream_size, 0, READ_BEHIND);
            return length == 0 && at == size && image->stream_size > 0;
        }
        if (memcmp(name, "IDAT", 4) == 0) {
            is_plain = !has_ended && (colors > 0 || !is_palette);
            has_begun = 1;
            memcpy(reader->stream + image->stream_size, body, length);
            image->stream_size += length;
            continue;
        }
        has_ended = has_begun;
        if (memcmp(name, "PLTE", 4) == 0) {
            is_plain = is_palette && !has_begun && !colors && length && length % 3 == 0;
            colors = length / 3;
            is_plain &= colors <= 256;
            image->palette = body;
            image->palette_size = length;
        } else if (memcmp(name, "tRNS", 4) == 0) {
            is_plain = !has_begun && !has_alpha
                && (is_palette ? length > 0 && length <= colors
                               : length == (image->bytes == 3 ? 6 : 2));
            has_alpha = 1;
        } else {
            is_plain = is_harmless(reader, image->stream_size, name, body, length);
        }
    }
    return 0;
}

/* Rows on their way from the stream into the pixels. */
typedef struct {
    const PngImage *image;
    size_t left; /* rows */
    uint8_t *pixels;
    uint8_t *above, *line; /* of packed pixels; above the first row: zeros */
    uint8_t spread[256 * 8];
} PngRows;

/* Unfilter one row. 0 where it names no filter. */
static int
decode_row(PngRows *rows, const uint8_t *row, Checksum *sum)
{
    const PngImage *image = rows->image;
    int is_packed = image->depth < 8;
    size_t width = is_packed ? image->row_bytes : image->width;
    uint8_t *line = is_packed ? rows->line : rows->pixels;
    int done = unfilter_row(row[0], row + 1, rows->above, line, width, image->bytes, sum);
    if (is_packed) {
        spread_row(line, rows->pixels, image->width, rows->spread, 8 / image->depth);
        rows->line = rows->above;
    }
    rows->above = line;
    rows->pixels += image->width * image->pixel_bytes;
    return done;
}

/* A consumer of whole rows. */
static const uint8_t *
decode_rows(void *sink, const uint8_t *from, const uint8_t *to, Checksum *sum)
{
    PngRows *rows = sink;
    size_t size = rows->image->row_bytes + 1;
    for (; (size_t)(to - from) >= size; from += size) {
        if (rows->left == 0 || !decode_row(rows, from, sum)) {
            return NULL;
        }
        rows->left--;
    }
    return from;
}

/* The pixels of a file whose header was read; `memory` is as for read_png(). */
static int
read_pixels(PngReader *reader, const uint8_t *file, size_t size, uint8_t *memory, PngImage *image)
{
    if (!join_stream(reader, file, size, image)
        || image->height * (image->row_bytes + 1) / MAX_RATIO > image->stream_size) {
        return 0;
    }
    uint8_t *lines = memset(reader->lines, 0, 2 * reader->line_size);
    PngRows rows = {image, image->height, memory, lines, lines + reader->line_size, {0}};
    if (image->depth < 8) {
        fill_spread_table(rows.spread, image->depth, image->scale);
    }
    return inflate(reader->stream, image->stream_size, &reader->codes, reader->buffer,
                   reader->buffer_size, decode_rows, &rows)
        && rows.left == 0;
}

/* Pixels at the beginning of `memory`, of which `room` bytes may be written: one byte each, or
 * uint16_t for 16 bits, or uint32_t for colours, and BLOCK bytes more. 0 where the file is not
 * plain, damaged, needs more room or memory ran out; `memory` is then garbage. */
static int
read_png(const void *file, size_t size, size_t room, uint8_t *memory, PngImage *image)
{
    if (!read_header(file, size, room, image) || (uintptr_t)memory % image->pixel_bytes) {
        return 0;
    }
    PngReader reader;
    reader.buffer_size = buffer_bytes(image->row_bytes + 1);
    reader.line_size = image->width * image->pixel_bytes + BLOCK;
    reader.stream = malloc(size + READ_BEHIND);
    reader.buffer = malloc(reader.buffer_size + BLOCK);
    reader.lines = malloc(2 * reader.line_size);
    int done = reader.stream != NULL && reader.buffer != NULL && reader.lines != NULL
        && read_pixels(&reader, file, size, memory, image);
    free(reader.stream);
    free(reader.buffer);
    free(reader.lines);
    return done;
}

#endif
