/* Rows of a non-interlaced PNG with one channel: unfiltered, one byte per pixel. */
#ifndef SEGIOU_PNG_DECODE_H
#define SEGIOU_PNG_DECODE_H

#include "_png_rows.h"

/* table[b * 8 ...]: the pixels packed in byte b, first pixel in its high bits. */
static void
fill_spread_table(uint8_t *table, unsigned depth, unsigned scale)
{
    unsigned per_byte = 8 / depth;
    for (unsigned packed = 0; packed < 256; packed++) {
        for (unsigned i = 0; i < per_byte; i++) {
            unsigned sample = packed >> (8 - depth * (i + 1)) & ((1u << depth) - 1);
            table[packed * 8 + i] = (uint8_t)(sample * scale);
        }
    }
}

/* One byte per pixel from per_byte (8, 4 or 2) pixels to a byte. */
static void
spread_row(const uint8_t *packed, uint8_t *row, size_t width, const uint8_t *table,
           unsigned per_byte)
{
    size_t x = 0;
    for (; x + 8 <= width; x += per_byte) {   /* eight bytes fit: write all, keep some */
        memcpy(row + x, table + 8 * (size_t)*packed++, 8);
    }
    while (x < width) {
        size_t count = width - x < per_byte ? width - x : per_byte;
        memcpy(row + x, table + 8 * (size_t)*packed++, count);
        x += count;
    }
}

/* What the loops need to know of an image, or of some rows of it. */
typedef struct {
    size_t width;
    size_t height;
    unsigned depth;   /* bits per pixel: 1, 2, 4 or 8 */
    unsigned scale;   /* what a packed sample is multiplied by */
} Raster;

static inline size_t
count_row_bytes(Raster raster)
{
    return raster.width / 8 * raster.depth + (raster.width % 8 * raster.depth + 7) / 8;
}

/* Whole-byte pixels: the output row is the unfiltered row. */
static int
decode_bytes(const uint8_t *raw, uint8_t *out, uint8_t *above, Raster raster)
{
    const uint8_t *last = above;
    for (size_t y = 0; y < raster.height; y++) {
        if (!unfilter_row(raw[0], raw + 1, last, out, raster.width)) {
            return 0;
        }
        last = out;
        raw += raster.width + 1;
        out += raster.width;
    }
    memcpy(above, last, raster.width);
    return 1;
}

/* Packed pixels: unfilter into one of two line buffers in turn, then spread out. */
static int
decode_packed(const uint8_t *raw, uint8_t *out, uint8_t *above, uint8_t *spare, Raster raster)
{
    size_t row_bytes = count_row_bytes(raster);
    uint8_t *last = above, *line = spare;
    uint8_t table[256 * 8] = {0};
    fill_spread_table(table, raster.depth, raster.scale);
    for (size_t y = 0; y < raster.height; y++) {
        if (!unfilter_row(raw[0], raw + 1, last, line, row_bytes)) {
            return 0;
        }
        spread_row(line, out, raster.width, table, 8 / raster.depth);
        uint8_t *swap = last;
        last = line;
        line = swap;
        raw += row_bytes + 1;
        out += raster.width;
    }
    if (last != above) {
        memcpy(above, last, row_bytes);
    }
    return 1;
}

/* Decode some rows; above is the unfiltered row before them and becomes the last of them.
 * 1: done. 0: a row names no filter. -1: no memory for a line buffer. */
static int
decode(const uint8_t *raw, uint8_t *out, uint8_t *above, Raster raster)
{
    if (raster.depth == 8) {
        return decode_bytes(raw, out, above, raster);
    }
    uint8_t *spare = malloc(count_row_bytes(raster));
    if (spare == NULL) {
        return -1;
    }
    int done = decode_packed(raw, out, above, spare, raster);
    free(spare);
    return done;
}

#endif
