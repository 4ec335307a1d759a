/* Rows of a non-interlaced PNG with one channel: unfiltered, one byte per pixel.
 *
 * A mask is made of runs, so nearly every filtered byte (residual) is zero. Pixels where something
 * changes are found 64 at a time and computed; those between two of them repeat the first one.
 *
 * Every function may read BLOCK bytes behind the rows that it is given, and write as many behind
 * its own.
 *
 * Definitions: PNG (third edition), section 9 "Filtering".
 */
#ifndef SEGIOU_PNG_ROWS_H
#define SEGIOU_PNG_ROWS_H

#include "../_support/_bytes.h"
#include "_png_inflate.h"

enum { BLOCK = 64 };

static inline unsigned
lowest_bit(uint64_t bits)
{
#ifdef __GNUC__
    return (unsigned)__builtin_ctzll(bits);
#else
    unsigned place = 0;
    for (; !(bits & 1); bits >>= 1) {
        place++;
    }
    return place;
#endif
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

/* The pixels from..to - 1 of a run, and up to 31 behind it. */
static inline void
fill_run(uint8_t *row, size_t from, size_t to, uint8_t value)
{
    for (; from < to; from += 32) {
        memset(row + from, value, 32);
    }
}

/* Sub, or Paeth: where a residual is zero and the row above level, both repeat the pixel on the
 * left. */
static inline void
undo_runs(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size, int is_paeth)
{
    enum { TEXTURE = 24 }; /* changes in a block from which on its pixels are computed one by one */
    size_t from = 0; /* of the last run, which is not written yet */
    uint8_t left = (uint8_t)(residuals[0] + (is_paeth ? above[0] : 0));
    for (size_t x = 1; x < size; x += BLOCK) {
        uint64_t changes = differ64_from(residuals + x, 0);
        changes |= is_paeth ? differ64(above + x, above + x - 1) : 0;
        if (size - x < BLOCK) {
            changes &= (UINT64_C(1) << (size - x)) - 1;
        }
        if (changes == 0) {
            continue;
        }
        if (count_ones(changes) >= TEXTURE) {
            size_t stop = size - x < BLOCK ? size : x + BLOCK;
            fill_run(row, from, x, left);
            for (size_t i = x; i < stop; i++) {
                int guess = is_paeth ? paeth(left, above[i], above[i - 1]) : left;
                row[i] = left = (uint8_t)(guess + residuals[i]);
            }
            from = stop;
            continue;
        }
        for (; changes != 0; changes &= changes - 1) {
            size_t at = x + lowest_bit(changes);
            fill_run(row, from, at, left);
            int guess = is_paeth ? paeth(left, above[at], above[at - 1]) : left;
            left = (uint8_t)(guess + residuals[at]);
            from = at;
        }
    }
    fill_run(row, from, size, left);
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

/* Undo one filter. 0 where there is no such filter. */
static int
unfilter_row(uint8_t filter, const uint8_t *residuals, const uint8_t *above, uint8_t *row,
             size_t size)
{
    switch (filter) {
    case 0: memcpy(row, residuals, size); return 1;
    case 1: undo_runs(residuals, above, row, size, 0); return 1;
    case 2: undo_up(residuals, above, row, size); return 1;
    case 3: undo_average(residuals, above, row, size); return 1;
    case 4: undo_runs(residuals, above, row, size, 1); return 1;
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

/* One byte per pixel from per_byte (8, 4 or 2) pixels to a byte; up to seven more are written. */
static void
spread_row(const uint8_t *packed, uint8_t *row, size_t width, const uint8_t *table,
           unsigned per_byte)
{
    for (size_t x = 0; x < width; x += per_byte) {
        memcpy(row + x, table + 8 * (size_t)*packed++, 8);
    }
}

#endif
