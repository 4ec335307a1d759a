/* One row of a PNG: the five filters undone, packed pixels spread out.
 *
 * Plain C without Python, so that a sanitizer harness can include it. Every
 * function reads and writes only the bytes of the rows that it is given.
 */
#ifndef SEGIOU_PNG_ROWS_H
#define SEGIOU_PNG_ROWS_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define SEGIOU_PNG_SSE2 1
#if defined(_MSC_VER)
#include <intrin.h>
#endif
#endif

enum { BLOCK = 16 };

static inline int
first_bit(unsigned mask)   /* of a mask that is not zero */
{
#if defined(_MSC_VER)
    unsigned long index;
    _BitScanForward(&index, mask);
    return (int)index;
#elif defined(__GNUC__)
    return __builtin_ctz(mask);
#else
    int index = 0;
    while (!(mask >> index & 1)) {
        index++;
    }
    return index;
#endif
}

/* Bit i is set where byte i of the block is not zero. */
static inline unsigned
nonzero_mask(const uint8_t *block)
{
#if SEGIOU_PNG_SSE2
    __m128i zero = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)block), _mm_setzero_si128());
    return (unsigned)_mm_movemask_epi8(zero) ^ 0xFFFFu;
#else
    uint64_t words[2];
    unsigned mask = 0;
    memcpy(words, block, BLOCK);
    if ((words[0] | words[1]) != 0) {
        for (unsigned i = 0; i < BLOCK; i++) {
            mask |= (unsigned)(block[i] != 0) << i;
        }
    }
    return mask;
#endif
}

/* Bit i is set where bytes i of the two blocks differ. */
static inline unsigned
differ_mask(const uint8_t *one, const uint8_t *other)
{
#if SEGIOU_PNG_SSE2
    __m128i same = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)one),
                                  _mm_loadu_si128((const __m128i *)other));
    return (unsigned)_mm_movemask_epi8(same) ^ 0xFFFFu;
#else
    unsigned mask = 0;
    if (memcmp(one, other, BLOCK) != 0) {
        for (unsigned i = 0; i < BLOCK; i++) {
            mask |= (unsigned)(one[i] != other[i]) << i;
        }
    }
    return mask;
#endif
}

/* Running sums of a block of residuals, begun with the pixel on its left. */
static inline void
sum_block(const uint8_t *residuals, uint8_t left, uint8_t *row)
{
#if SEGIOU_PNG_SSE2
    __m128i sums = _mm_loadu_si128((const __m128i *)residuals);
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 1));
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 2));
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 4));
    sums = _mm_add_epi8(sums, _mm_slli_si128(sums, 8));
    _mm_storeu_si128((__m128i *)row, _mm_add_epi8(sums, _mm_set1_epi8((char)left)));
#else
    for (int i = 0; i < BLOCK; i++) {
        row[i] = left = (uint8_t)(left + residuals[i]);
    }
#endif
}

static void
undo_sub(const uint8_t *residuals, uint8_t *row, size_t size)
{
    uint8_t left = 0;
    size_t x = 0;
    for (; x + BLOCK <= size; x += BLOCK) {
        if (nonzero_mask(residuals + x) == 0) {
            memset(row + x, left, BLOCK);
        }
        else {
            sum_block(residuals + x, left, row + x);
            left = row[x + BLOCK - 1];
        }
    }
    for (; x < size; x++) {
        row[x] = left = (uint8_t)(left + residuals[x]);
    }
}

static void
undo_up(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size)
{
    size_t x = 0;
#if SEGIOU_PNG_SSE2
    for (; x + BLOCK <= size; x += BLOCK) {
        __m128i sum = _mm_add_epi8(_mm_loadu_si128((const __m128i *)(residuals + x)),
                                   _mm_loadu_si128((const __m128i *)(above + x)));
        _mm_storeu_si128((__m128i *)(row + x), sum);
    }
#endif
    for (; x < size; x++) {
        row[x] = (uint8_t)(residuals[x] + above[x]);
    }
}

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
static inline uint8_t
paeth(int left, int above, int corner)
{
    int from_left = abs(above - corner);
    int from_above = abs(left - corner);
    int from_corner = abs(left + above - 2 * corner);
    if (from_left <= from_above && from_left <= from_corner) {
        return (uint8_t)left;
    }
    return (uint8_t)(from_above <= from_corner ? above : corner);
}

/* Pixels start .. stop - 1 one by one; start is at least 1. */
static inline void
undo_paeth_slowly(const uint8_t *residuals, const uint8_t *above, uint8_t *row,
                  size_t start, size_t stop)
{
    int left = row[start - 1], corner = above[start - 1];
    for (size_t x = start; x < stop; x++) {
        left = (uint8_t)(residuals[x] + paeth(left, above[x], corner));
        row[x] = (uint8_t)left;
        corner = above[x];
    }
}

/* Where the residuals are zero, Paeth's choice is settled for whole runs:
 * left == corner     picks above, so that the next left == corner again: copy;
 * above == corner    picks left, for as long as the row above is level: fill.
 * Only a residual, or a step in the row above during a fill, ends a run. */
static void
undo_paeth(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size)
{
    row[0] = (uint8_t)(residuals[0] + above[0]);
    size_t x = 1;
    while (x + BLOCK <= size) {
        unsigned ends = nonzero_mask(residuals + x);
        if (row[x - 1] == above[x - 1]) {
            memcpy(row + x, above + x, BLOCK);
        }
        else {
            ends |= differ_mask(above + x, above + x - 1);
            memset(row + x, row[x - 1], BLOCK);
        }
        if (ends == 0) {
            x += BLOCK;
            continue;
        }
        x += (size_t)first_bit(ends);
        undo_paeth_slowly(residuals, above, row, x, x + 1);
        x++;
    }
    undo_paeth_slowly(residuals, above, row, x, size);
}

/* Undo one filter. 0 where there is no such filter. */
static int
unfilter_row(uint8_t filter, const uint8_t *residuals, const uint8_t *above,
             uint8_t *row, size_t size)
{
    switch (filter) {
    case 0: memcpy(row, residuals, size); return 1;
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

#endif
