/* Rows of a PNG of 8-bit colours: unfiltered, each pixel as red + 256 green + 65536 blue.
 *
 * Such files mostly hold ids of segments, so that they are made of runs as masks are. The three
 * channels of a pixel are lanes of one integer.
 *
 * Every function may read BLOCK bytes behind the rows that it is given, and write seven pixels
 * behind its own.
 */
#ifndef SEGIOU_PNG_IDS_H
#define SEGIOU_PNG_IDS_H

#include "_png_rows.h"

static inline uint32_t
load_color(const uint8_t *bytes)
{
    return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16;
}

/* Sums of the lanes, without carries between them. */
static inline uint32_t
add_lanes(uint32_t one, uint32_t other)
{
    return ((one & 0x7F7F7Fu) + (other & 0x7F7F7Fu)) ^ ((one ^ other) & 0x808080u);
}

/* Means of the lanes, rounded down. */
static inline uint32_t
average_lanes(uint32_t one, uint32_t other)
{
    return (one & other) + ((one ^ other) >> 1 & 0x7F7F7Fu);
}

static inline uint32_t
paeth_lanes(uint32_t left, uint32_t above, uint32_t corner)
{
    uint32_t nearest = 0;
    if (left == corner) {
        return above;
    }
    if (above == corner) {
        return left;
    }
    for (int shift = 0; shift < 24; shift += 8) {
        nearest |= (uint32_t)paeth(left >> shift & 255, above >> shift & 255,
                                   corner >> shift & 255) << shift;
    }
    return nearest;
}

/* A bit for each of 16 pixels with a residual that is not zero. */
static inline unsigned
nonzero_colors(const uint8_t *residuals)
{
    uint64_t bits = differ64_from(residuals, 0) & UINT64_C(0xFFFFFFFFFFFF);
    if (bits == 0) {
        return 0;
    }
    bits = (bits | bits >> 1 | bits >> 2) & UINT64_C(0x249249249249);
    /* Every third bit, closer together step by step. */
    bits = (bits | bits >> 2) & UINT64_C(0x0C30C30C30C3);
    bits = (bits | bits >> 4) & UINT64_C(0x00F00F00F00F);
    bits = (bits | bits >> 8) & UINT64_C(0x0000FF0000FF);
    return (unsigned)(bits | bits >> 16) & 0xFFFF;
}

/* A bit for each of 16 pixels that differs from the pixel before it. */
static inline unsigned
changed_colors(const uint32_t *pixels)
{
    unsigned found = 0;
#if defined(__SSE2__)
    for (int i = 0; i < 16; i += 4) {
        __m128i same = _mm_cmpeq_epi32(_mm_loadu_si128((const void *)(pixels + i)),
                                       _mm_loadu_si128((const void *)(pixels + i - 1)));
        found |= (unsigned)_mm_movemask_ps(_mm_castsi128_ps(same)) << i;
    }
    return found ^ 0xFFFF;
#else
    for (int i = 0; i < 16; i++) {
        found |= (unsigned)(pixels[i] != pixels[i - 1]) << i;
    }
    return found;
#endif
}

/* The pixels from..to - 1 of a run, and up to seven behind it. */
static inline void
fill_color_run(uint32_t *row, size_t from, size_t to, uint32_t value)
{
    for (; from < to; from += 8) {
        for (size_t i = 0; i < 8; i++) {
            row[from + i] = value;
        }
    }
}

/* Sub, or Paeth: where residuals are zero and the row above level, both repeat the pixel on the
 * left. */
static inline void
undo_color_runs(const uint8_t *residuals, const uint32_t *above, uint32_t *row, size_t size,
                int is_paeth)
{
    size_t from = 0; /* of the last run, which is not written yet */
    uint32_t left = add_lanes(load_color(residuals), is_paeth ? above[0] : 0);
    for (size_t x = 1; x < size; x += 16) {
        unsigned changes = nonzero_colors(residuals + 3 * x);
        changes |= is_paeth ? changed_colors(above + x) : 0;
        if (size - x < 16) {
            changes &= (1u << (size - x)) - 1;
        }
        for (; changes != 0; changes &= changes - 1) {
            size_t at = x + lowest_bit(changes);
            fill_color_run(row, from, at, left);
            uint32_t guess = is_paeth ? paeth_lanes(left, above[at], above[at - 1]) : left;
            left = add_lanes(guess, load_color(residuals + 3 * at));
            from = at;
        }
    }
    fill_color_run(row, from, size, left);
}

static void
undo_color_up(const uint8_t *residuals, const uint32_t *above, uint32_t *row, size_t size)
{
    for (size_t x = 0; x < size; x += 8) {
        const uint8_t *block = residuals + 3 * x;
        uint64_t words[3];
        memcpy(words, block, sizeof words);
        memmove(row + x, above + x, 8 * sizeof *row); /* rows of fewer pixels overlap */
        if (words[0] | words[1] | words[2]) {
            for (size_t i = 0; i < 8; i++) {
                row[x + i] = add_lanes(row[x + i], load_color(block + 3 * i));
            }
        }
    }
}

static void
undo_color_average(const uint8_t *residuals, const uint32_t *above, uint32_t *row, size_t size)
{
    uint32_t left = 0;
    for (size_t x = 0; x < size; x++) {
        row[x] = left = add_lanes(average_lanes(left, above[x]), load_color(residuals + 3 * x));
    }
}

/* Undo one filter. 0 where there is no such filter. */
static int
unfilter_colors(uint8_t filter, const uint8_t *residuals, const uint32_t *above, uint32_t *row,
                size_t size)
{
    switch (filter) {
    case 0:
        for (size_t x = 0; x < size; x++) {
            row[x] = load_color(residuals + 3 * x);
        }
        return 1;
    case 1: undo_color_runs(residuals, above, row, size, 0); return 1;
    case 2: undo_color_up(residuals, above, row, size); return 1;
    case 3: undo_color_average(residuals, above, row, size); return 1;
    case 4: undo_color_runs(residuals, above, row, size, 1); return 1;
    default: return 0;
    }
}

#endif
