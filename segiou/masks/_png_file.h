/* The pixels of a plain PNG file: grey or palette, up to eight bits, not interlaced, and with no
 * chunk that could change how the pixels look. Of every other file Python has to judge. */
#ifndef SEGIOU_PNG_FILE_H
#define SEGIOU_PNG_FILE_H

#include "_png_decode.h"
#include "_png_inflate.h"

#define HEADER_BYTES 33
#define CHUNK_BYTES 12   /* of length, name and checksum */
#define MAX_RATIO 1032   /* no deflate stream grows by more */

/* What reading a file needs; one serves any number of files, in one thread. */
typedef struct {
    uint32_t checksums[8][256];
    Codes codes;
    uint8_t *stream, *rows; /* the deflated pixels; the rows as inflated, then the row above */
    size_t stream_room, rows_room;
} PngReader;

typedef struct {
    Raster raster;
    int is_palette;
} PngImage;

static void
open_reader(PngReader *reader)
{
    memset(reader, 0, sizeof *reader);
    for (unsigned byte = 0; byte < 256; byte++) {
        uint32_t sum = byte;
        for (int bit = 0; bit < 8; bit++) {
            sum = sum >> 1 ^ (sum & 1 ? UINT32_C(0xEDB88320) : 0);
        }
        reader->checksums[0][byte] = sum;
    }
    for (int i = 1; i < 8; i++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            uint32_t before = reader->checksums[i - 1][byte];
            reader->checksums[i][byte] = before >> 8 ^ reader->checksums[0][before & 255];
        }
    }
}

static void
close_reader(PngReader *reader)
{
    free(reader->stream);
    free(reader->rows);
}

/* Memory of at least `size` bytes of any content. 0 where there is none. */
static int
make_room(uint8_t **memory, size_t *room, size_t size)
{
    if (size > *room) {
        free(*memory);
        *memory = malloc(size);
        *room = *memory ? size : 0;
    }
    return *memory != NULL;
}

/* CRC-32, eight bytes at a time. */
static uint32_t
chunk_checksum(const PngReader *reader, const uint8_t *bytes, size_t size)
{
    const uint32_t(*tables)[256] = reader->checksums;
    uint32_t sum = UINT32_C(0xFFFFFFFF);
    for (; size >= 8; size -= 8, bytes += 8) {
        sum ^= bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16
            | (uint32_t)bytes[3] << 24;
        sum = tables[7][sum & 255] ^ tables[6][sum >> 8 & 255] ^ tables[5][sum >> 16 & 255]
            ^ tables[4][sum >> 24] ^ tables[3][bytes[4]] ^ tables[2][bytes[5]]
            ^ tables[1][bytes[6]] ^ tables[0][bytes[7]];
    }
    for (; size > 0; size--) {
        sum = sum >> 8 ^ tables[0][(sum ^ *bytes++) & 255];
    }
    return ~sum;
}

static uint32_t
read_big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8
        | bytes[3];
}

/* Size and kind. 0 where the file is no PNG, not plain, or has more pixels than `most`. */
static int
read_header(const PngReader *reader, const uint8_t *file, size_t size, size_t most,
            PngImage *image)
{
    static const uint8_t start[16] = {137, 'P', 'N', 'G', '\r', '\n', 26, '\n', 0, 0, 0, 13,
                                      'I', 'H', 'D', 'R'};
    static const uint8_t scales[9] = {0, 1, 85, 0, 17, 0, 0, 0, 1};
    if (size < HEADER_BYTES || memcmp(file, start, sizeof start) != 0
        || read_big_endian(file + 29) != chunk_checksum(reader, file + 12, 17)) {
        return 0;
    }
    uint32_t width = read_big_endian(file + 16), height = read_big_endian(file + 20);
    unsigned depth = file[24], color = file[25];
    if (width == 0 || height == 0 || height > most / width || depth > 8 || !scales[depth]
        || (color != 0 && color != 3) || file[26] || file[27] || file[28]) {
        return 0;
    }
    image->is_palette = color == 3;
    image->raster = (Raster){width, height, depth, image->is_palette ? 1 : scales[depth]};
    return 1;
}

/* Whether a chunk before the pixels may be there and leaves them as they are. */
static int
is_harmless(const uint8_t *name, size_t length)
{
    static const struct {
        char name[5];
        size_t length;
    } known[] = {{"gAMA", 4}, {"cHRM", 32}, {"sRGB", 1}, {"pHYs", 9}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (memcmp(name, known[i].name, 4) == 0) {
            return length == known[i].length;
        }
    }
    return 0;
}

/* The deflated pixels in one piece; returns their size, or 0 where the chunks are not plain. */
static size_t
join_stream(PngReader *reader, const uint8_t *file, size_t size, const PngImage *image)
{
    size_t joined = 0, at = HEADER_BYTES;
    int needs_palette = image->is_palette;
    while (size - at >= CHUNK_BYTES) {
        size_t length = read_big_endian(file + at);
        const uint8_t *name = file + at + 4, *body = name + 4;
        if (length > size - at - CHUNK_BYTES
            || read_big_endian(body + length) != chunk_checksum(reader, name, length + 4)) {
            return 0;
        }
        at += CHUNK_BYTES + length;
        if (memcmp(name, "IEND", 4) == 0) {
            return length == 0 && at == size ? joined : 0;
        }
        if (memcmp(name, "IDAT", 4) == 0 && !needs_palette) {
            memcpy(reader->stream + joined, body, length);
            joined += length;
        } else if (memcmp(name, "PLTE", 4) == 0 && needs_palette && joined == 0) {
            needs_palette = 0;
            if (length % 3 || length < 3 || length > 768) {
                return 0;
            }
        } else if (joined > 0 || !is_harmless(name, length)) {
            return 0;
        }
    }
    return 0;
}

/* One byte per pixel into `out`, which has room for `most`. 0 where the file is not plain or
 * damaged, or memory ran out; `out` is then garbage. */
static int
read_png(PngReader *reader, const uint8_t *file, size_t size, size_t most, uint8_t *out,
         PngImage *image)
{
    if (!read_header(reader, file, size, most, image)
        || !make_room(&reader->stream, &reader->stream_room, size)) {
        return 0;
    }
    size_t row_bytes = count_row_bytes(image->raster);
    size_t all_rows = image->raster.height * (row_bytes + 1);
    size_t stream_size = join_stream(reader, file, size, image);
    if (stream_size == 0 || all_rows / MAX_RATIO > stream_size
        || !make_room(&reader->rows, &reader->rows_room, all_rows + SPARE + row_bytes)
        || !inflate_exactly(reader->stream, stream_size, &reader->codes, reader->rows, all_rows)) {
        return 0;
    }
    uint8_t *above = reader->rows + all_rows + SPARE;
    memset(above, 0, row_bytes);
    return decode(reader->rows, out, above, image->raster) == 1;
}

#endif
