/* The pixels of a plain PNG file: grey or palette, up to eight bits, not interlaced, and with no
 * chunk that could change how the pixels look or upset Pillow, which judges every other file. */
#ifndef SEGIOU_PNG_FILE_H
#define SEGIOU_PNG_FILE_H

#include "_png_inflate.h"
#include "_png_rows.h"

#define HEADER_BYTES 33
#define CHUNK_BYTES 12   /* of length, name and checksum */
#define MAX_RATIO 1032   /* no deflate stream grows by more */
#define MOST_TEXT (1 << 16)
#define MOST_TEXTS 256
#define MOST_KEYWORD 79

typedef struct {
    uint8_t *bytes;
    size_t size;
} Room;

/* What reading a file needs; one serves any number of files, in one thread. */
typedef struct {
    Codes codes;
    Room stream, lines; /* the deflated pixels; two rows */
    int texts;
    uint8_t text[MOST_TEXT + SPARE];
} PngReader;

typedef struct {
    Raster raster;
    const char *mode;   /* Pillow's */
    size_t stream_size, rows_size;
} PngImage;

/* CRC-32 of every byte with up to seven zeros behind it. */
static uint32_t checksums[8][256];

/* Before any file is read. */
static void
fill_checksums(void)
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
}

/* NULL where there is no memory. */
static PngReader *
open_reader(void)
{
    PngReader *reader = malloc(sizeof *reader);
    if (reader != NULL) {
        reader->stream = reader->lines = (Room){NULL, 0};
    }
    return reader;
}

static void
close_reader(PngReader *reader)
{
    if (reader != NULL) {
        free(reader->stream.bytes);
        free(reader->lines.bytes);
        free(reader);
    }
}

/* At least `size` bytes of any content. 0 where there is no memory. */
static int
make_room(Room *room, size_t size)
{
    if (size > room->size) {
        free(room->bytes);
        room->bytes = malloc(size);
        room->size = room->bytes ? size : 0;
    }
    return room->bytes != NULL;
}

/* CRC-32, eight bytes at a time. */
static uint32_t
chunk_checksum(const uint8_t *bytes, size_t size)
{
    uint32_t sum = UINT32_C(0xFFFFFFFF);
    for (; size >= 8; size -= 8, bytes += 8) {
        sum ^= bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16
            | (uint32_t)bytes[3] << 24;
        sum = checksums[7][sum & 255] ^ checksums[6][sum >> 8 & 255]
            ^ checksums[5][sum >> 16 & 255] ^ checksums[4][sum >> 24] ^ checksums[3][bytes[4]]
            ^ checksums[2][bytes[5]] ^ checksums[1][bytes[6]] ^ checksums[0][bytes[7]];
    }
    for (; size > 0; size--) {
        sum = sum >> 8 ^ checksums[0][(sum ^ *bytes++) & 255];
    }
    return ~sum;
}

static uint32_t
read_big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8
        | bytes[3];
}

/* Size and kind. 0 where the file is no PNG, not plain, or needs more than `room` bytes. */
static int
read_header(const uint8_t *file, size_t size, size_t room, PngImage *image)
{
    static const uint8_t start[16] = {137, 'P', 'N', 'G', '\r', '\n', 26, '\n', 0, 0, 0, 13,
                                      'I', 'H', 'D', 'R'};
    /* Packed grey samples are spread over 0..255, as Pillow does; one bit stays 0 and 1. */
    static const uint8_t scales[9] = {0, 1, 85, 0, 17, 0, 0, 0, 1};
    if (size < HEADER_BYTES || memcmp(file, start, sizeof start) != 0
        || read_big_endian(file + 29) != chunk_checksum(file + 12, 17)) {
        return 0;
    }
    uint32_t width = read_big_endian(file + 16), height = read_big_endian(file + 20);
    unsigned depth = file[24], color = file[25];
    if (width == 0 || height == 0 || height > room / width || depth > 8 || !scales[depth]
        || (color != 0 && color != 3) || file[26] || file[27] || file[28]) {
        return 0;
    }
    int is_palette = color == 3;
    image->raster = (Raster){width, height, depth, is_palette ? 1 : scales[depth]};
    image->mode = is_palette ? "P" : depth == 1 ? "1" : "L";
    image->rows_size = height * (count_row_bytes(image->raster) + 1);
    return find_start(image->raster) + image->rows_size + SPARE <= room;
}

/* Whether a text or profile is short, also unpacked, and has a keyword that Pillow cannot take
 * for one of its own facts: it keeps both together, and a text called `interlace` really changes
 * how it reads the pixels. */
static int
is_harmless_text(PngReader *reader, const uint8_t *name, const uint8_t *body, size_t length)
{
    const uint8_t *end = body + length, *rest = memchr(body, 0, length);
    int is_fact = 1, is_deflated = memcmp(name, "tEXt", 4) != 0;
    if (++reader->texts > MOST_TEXTS || rest == NULL || rest - body > MOST_KEYWORD) {
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
    size_t left = (size_t)(end - rest), found;
    return !is_fact
        && (is_deflated ? inflate(rest, left, &reader->codes, reader->text, MOST_TEXT, &found)
                        : left <= MOST_TEXT);
}

/* Whether a chunk may be there and leaves the pixels as they are. */
static int
is_harmless(PngReader *reader, const uint8_t *name, const uint8_t *body, size_t length)
{
    enum { TEXT = -1, NEVER = -2 };
    static const struct {
        char name[5];
        int length;
    } known[] = {{"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}, {"tEXt", TEXT},
                 {"zTXt", TEXT}, {"iCCP", TEXT}, {"iTXt", TEXT}, {"acTL", NEVER},
                 {"fcTL", NEVER}, {"fdAT", NEVER}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (memcmp(name, known[i].name, 4) == 0) {
            return known[i].length == TEXT ? is_harmless_text(reader, name, body, length)
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
    image->stream_size = 0;
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
            return length == 0 && at == size && image->stream_size > 0;
        }
        if (memcmp(name, "IDAT", 4) == 0) {
            is_plain = !has_ended && (colors > 0 || !is_palette);
            has_begun = 1;
            memcpy(reader->stream.bytes + image->stream_size, body, length);
            image->stream_size += length;
            continue;
        }
        has_ended = has_begun;
        if (memcmp(name, "PLTE", 4) == 0) {
            is_plain = is_palette && !has_begun && !colors && length && length % 3 == 0;
            colors = length / 3;
            is_plain &= colors <= 256;
        } else if (memcmp(name, "tRNS", 4) == 0) {
            is_plain = !has_begun && !has_alpha
                && (is_palette ? length > 0 && length <= colors : length == 2);
            has_alpha = 1;
        } else {
            is_plain = is_harmless(reader, name, body, length);
        }
    }
    return 0;
}

/* One byte per pixel at the beginning of `memory`, of which `room` bytes may be written. 0 where
 * the file is not plain, damaged, needs more room or memory ran out; `memory` is then garbage. */
static int
read_png(PngReader *reader, const uint8_t *file, size_t size, size_t room, uint8_t *memory,
         PngImage *image)
{
    if (!read_header(file, size, room, image) || !make_room(&reader->stream, size)
        || !join_stream(reader, file, size, image)) {
        return 0;
    }
    uint8_t *rows = memory + find_start(image->raster);
    size_t two_rows = 2 * count_row_bytes(image->raster), found;
    if (image->rows_size / MAX_RATIO > image->stream_size
        || !inflate(reader->stream.bytes, image->stream_size, &reader->codes, rows,
                    image->rows_size, &found)
        || found != image->rows_size || !make_room(&reader->lines, two_rows)) {
        return 0;
    }
    memset(reader->lines.bytes, 0, two_rows);
    return decode_rows(rows, memory, reader->lines.bytes, image->raster);
}

#endif
