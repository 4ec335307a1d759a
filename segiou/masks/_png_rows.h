/* Rows of a non-interlaced PNG with one channel: unfiltered, one byte per pixel.
 *
 * A mask is made of runs, so nearly every filtered byte (residual) is zero.
 * Eight residuals are looked at together; where they are all zero the row
 * is copied from the row above or filled with the pixel on the left, and only
 * the pixels where something changes are computed one by one.
 *
 * Every function reads and writes only the bytes of the rows that it is given.
 *
 * Definitions: PNG (third edition), section 9 "Filtering".
 */
#ifndef SEGIOU_PNG_ROWS_H
#define SEGIOU_PNG_ROWS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 16 };

static inline uint64_t
load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

/* The place of the first byte of a word in memory that is not zero, or a place before it. */
static inline size_t
first_byte(uint64_t word)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return (size_t)__builtin_ctzll(word) / 8;
#else
    (void)word;
    return 0;
#endif
}

/* Running sums of the residuals. */
static void
undo_sub(const uint8_t *residuals, uint8_t *row, size_t size)
{
    uint8_t left = 0;
    size_t x = 0;
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    /* Eight at a time: a product with `ones` has the sums of the lanes up to each. */
    const uint64_t lanes = UINT64_C(0x00FF00FF00FF00FF), ones = UINT64_C(0x0001000100010001);
    for (; x + 8 <= size; x += 8) {
        uint64_t word = load_word(residuals + x);
        uint64_t evens = (word & lanes) * ones + left * ones, odds = (word >> 8 & lanes) * ones;
        word = ((evens + (odds << 16)) & lanes) | ((evens + odds) & lanes) << 8;
        memcpy(row + x, &word, 8);
        left = row[x + 7];
    }
#endif
    for (; x < size; x++) {
        row[x] = left = (uint8_t)(left + residuals[x]);
    }
}

static void
undo_up(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size)
{
    for (size_t x = 0; x < size; x++) {
        row[x] = (uint8_t)(residuals[x] + above[x]);
    }
}

/* The mean of left and above depends on every pixel before: no shortcut worth having. */
static void
undo_average(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size)
{
    unsigned left = 0;
    for (size_t x = 0; x < size; x++) {
        left = (uint8_t)(residuals[x] + ((left + above[x]) >> 1));
        row[x] = (uint8_t)left;
    }
}

/* The neighbour (left, above, above left) closest to left + above - corner. */
static inline int
paeth(int left, int above, int corner)
{
    int from_left = abs(above - corner);
    int from_above = abs(left - corner);
    int from_corner = abs(left + above - 2 * corner);
    int nearer = from_above <= from_corner ? above : corner;
    int nearest = from_above <= from_corner ? from_above : from_corner;
    return from_left <= nearest ? left : nearer;
}

/* Pixels start .. stop - 1 one by one; start is at least 1. */
static inline void
undo_paeth_slowly(const uint8_t *residuals, const uint8_t *above, uint8_t *row,
                  size_t start, size_t stop)
{
    int left = row[start - 1], corner = above[start - 1];
    for (size_t x = start; x < stop; x++) {
        left = (residuals[x] + paeth(left, above[x], corner)) & 0xFF;
        row[x] = (uint8_t)left;
        corner = above[x];
    }
}

/* Where residuals are zero, Paeth's choice is the same for whole runs of pixels:
 * left == corner    picks above, after which left == corner again: copy the row above;
 * above == corner   picks left, for as long as the row above is level: repeat left.
 * Both functions write words from x on, the last of which may be wrong behind the run, and return
 * where the run ends: at a pixel that has to be computed, or where no whole word is left. */
static inline size_t
copy_run(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t x, size_t size)
{
    for (; x + 8 <= size; x += 8) {
        uint64_t ends = load_word(residuals + x);
        memcpy(row + x, above + x, 8);
        if (ends) {
            return x + first_byte(ends);
        }
    }
    return x;
}

static inline size_t
repeat_run(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t x, size_t size)
{
    uint8_t left = row[x - 1];
    for (; x + 8 <= size; x += 8) {
        uint64_t ends = load_word(residuals + x) | (load_word(above + x) ^ load_word(above + x - 1));
        memset(row + x, left, 8);
        if (ends) {
            return x + first_byte(ends);
        }
    }
    return x;
}

static void
undo_paeth(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size)
{
    row[0] = (uint8_t)(residuals[0] + above[0]);
    size_t x = 1;
    while (x < size) {
        int copies = row[x - 1] == above[x - 1];
        size_t end = copies ? copy_run(residuals, above, row, x, size)
                            : repeat_run(residuals, above, row, x, size);
        /* An edge mostly takes two pixels; where no run got going it is texture. */
        size_t stop = end + (end == x ? 8 : 2);
        stop = stop < size ? stop : size;
        undo_paeth_slowly(residuals, above, row, end, stop);
        x = stop;
    }
}

/* Undo one filter. 0 where there is no such filter. */
static int
unfilter_row(uint8_t filter, const uint8_t *residuals, const uint8_t *above,
             uint8_t *row, size_t size)
{
    switch (filter) {
    case 0: memmove(row, residuals, size); return 1;
    case 1: undo_sub(residuals, row, size); return 1;
    case 2: undo_up(residuals, above, row, size); return 1;
    case 3: undo_average(residuals, above, row, size); return 1;
    case 4: undo_paeth(residuals, above, row, size); return 1;
    default: return 0;
    }
}

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

/* Unfilter all rows, which are filter bytes and residuals, and write one byte per pixel. `lines`
 * is room for two rows, zeros at first. 0 where a row names no filter.
 *
 * The rows may lie behind the pixels in the same memory, where they are overwritten: from
 * find_start bytes on each row is read before its pixels get there. */
static int
decode_rows(const uint8_t *raw, uint8_t *out, uint8_t *lines, Raster raster)
{
    size_t row_bytes = count_row_bytes(raster);
    int is_packed = raster.depth < 8;
    uint8_t *above = lines, *line = is_packed ? lines + row_bytes : out;
    uint8_t table[256 * 8] = {0};
    fill_spread_table(table, raster.depth, raster.scale);
    for (size_t y = 0; y < raster.height; y++, raw += row_bytes + 1, out += raster.width) {
        if (!unfilter_row(raw[0], raw + 1, above, line, row_bytes)) {
            return 0;
        }
        uint8_t *done = line;
        if (is_packed) {
            spread_row(line, out, raster.width, table, 8 / raster.depth);
        }
        line = is_packed ? above : line + row_bytes;
        above = done;
    }
    return 1;
}

static inline size_t
find_start(Raster raster)
{
    size_t pixels = raster.height * raster.width;
    size_t rows = raster.height * (count_row_bytes(raster) + 1);
    return pixels > rows + BLOCK ? pixels - rows : BLOCK;
}

#endif
