/* Rows of a non-interlaced PNG, unfiltered: samples of up to eight bits as bytes, samples of 16 bits
 * as uint16_t, and colours as uint32_t, red + 256 green + 65536 blue.
 *
 * A mask, and colours that are ids, are made of runs, so nearly every filtered byte (residual) is
 * zero. Pixels where something changes are found by blocks of 64 bytes and computed; those between
 * two of them repeat the first one, or the row above. The bytes of a pixel are lanes of one
 * integer. Every function of `bytes`, those of a pixel in the file, is inlined where they are a
 * constant.
 *
 * Every function may read BLOCK bytes behind the rows that it is given, and write as many behind
 * its own.
 *
 * Definitions: PNG (third edition), section 9 "Filtering".
 */
#ifndef SEGIOU_PNG_ROWS_H
#define SEGIOU_PNG_ROWS_H

#include "_png_inflate.h"

enum { BLOCK = 64 };

/* The pixel at the beginning of some residuals. */
ALWAYS_INLINED uint32_t
load_residual(const uint8_t *from, unsigned bytes)
{
    return bytes == 1 ? from[0]
        : bytes == 2 ? from[1] | (uint32_t)from[0] << 8
                     : (uint32_t)load_word(from) & 0xFFFFFF;
}

/* Bytes of a pixel in memory. */
static inline size_t
bytes_in_memory(unsigned bytes)
{
    return bytes == 3 ? 4 : bytes;
}

ALWAYS_INLINED uint32_t
load_pixel(const void *row, size_t x, unsigned bytes)
{
    return bytes == 1 ? ((const uint8_t *)row)[x]
        : bytes == 2  ? ((const uint16_t *)row)[x]
                      : ((const uint32_t *)row)[x];
}

ALWAYS_INLINED void
store_pixel(void *row, size_t x, uint32_t value, unsigned bytes)
{
    if (bytes == 1) {
        ((uint8_t *)row)[x] = (uint8_t)value;
    } else if (bytes == 2) {
        ((uint16_t *)row)[x] = (uint16_t)value;
    } else {
        ((uint32_t *)row)[x] = value;
    }
}

/* Sums of the lanes, without carries between them. */
ALWAYS_INLINED uint32_t
add_lanes(uint32_t one, uint32_t other, unsigned bytes)
{
    return bytes == 1 ? (uint8_t)(one + other)
        : ((one & 0x7F7F7Fu) + (other & 0x7F7F7Fu)) ^ ((one ^ other) & 0x808080u);
}

/* Means of the lanes, rounded down. */
static inline uint32_t
average_lanes(uint32_t one, uint32_t other)
{
    return (one & other) + ((one ^ other) >> 1 & 0x7F7F7Fu);
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

ALWAYS_INLINED uint32_t
paeth_lanes(uint32_t left, uint32_t above, uint32_t corner, unsigned bytes)
{
    uint32_t nearest = 0;
    if (bytes > 1 && above == corner) {
        return left;
    }
    for (unsigned shift = 0; shift < 8 * bytes; shift += 8) {
        nearest |= (uint32_t)paeth(left >> shift & 255, above >> shift & 255,
                                   corner >> shift & 255) << shift;
    }
    return nearest;
}

/* A bit for each of 16 pixels, from those of their three bytes. */
static inline uint64_t
join_triples(uint64_t bits)
{
    bits = (bits | bits >> 1 | bits >> 2) & UINT64_C(0x249249249249);
    bits = (bits | bits >> 2) & UINT64_C(0x0C30C30C30C3);
    bits = (bits | bits >> 4) & UINT64_C(0x00F00F00F00F);
    bits = (bits | bits >> 8) & UINT64_C(0x0000FF0000FF);
    return (bits | bits >> 16) & 0xFFFF;
}

/* A bit for each pixel of a block whose residual is not zero. */
ALWAYS_INLINED uint64_t
find_residuals(const uint8_t *residuals, unsigned bytes)
{
    const size_t size = BLOCK / bytes_in_memory(bytes) * bytes;
    uint64_t any = 0, word;
    for (size_t i = 0; i < size; i += sizeof word) {
        memcpy(&word, residuals + i, sizeof word);
        any |= word;
    }
    if (any == 0) { /* as most often, and found sooner than which of them are not */
        return 0;
    }
    uint64_t found = differ64_from(residuals, 0);
    return bytes == 3 ? join_triples(found) : join_bits(found, bytes);
}

/* A bit for each pixel of a block that differs from the one on its left. */
ALWAYS_INLINED uint64_t
find_edges(const uint8_t *row, unsigned bytes)
{
    size_t pixel = bytes_in_memory(bytes);
    return join_bits(differ64(row, row - pixel), pixel);
}

/* A call of memmove takes longer. Blocks overlap where rows are short. */
static inline void
copy_block(uint8_t *to, const uint8_t *from)
{
    uint8_t block[BLOCK];
    memcpy(block, from, BLOCK);
    memcpy(to, block, BLOCK);
}

/* The pixels from..to - 1 of a run, and up to 31 bytes behind it. */
ALWAYS_INLINED void
fill_run(uint8_t *row, size_t from, size_t to, uint32_t value, unsigned bytes)
{
    const size_t step = 32 / bytes_in_memory(bytes);
    do {
        for (size_t i = 0; i < step; i++) {
            store_pixel(row, from + i, value, bytes);
        }
        from += step;
    } while (from < to);
}

/* Sub, or Paeth. At zero residuals, Sub repeats the pixel on the left. Paeth does the same while
 * the row above is constant. Once a pixel equals the one above it, Paeth copies the row above. */
ALWAYS_INLINED void
undo_runs(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size,
          unsigned bytes, int is_paeth, Checksum *sum)
{
    const size_t pixel = bytes_in_memory(bytes), step = BLOCK / pixel;
    size_t from = 0; /* of the last run, which is not written yet */
    uint32_t up = is_paeth ? load_pixel(above, 0, bytes) : 0;
    uint32_t left = add_lanes(up, load_residual(residuals, bytes), bytes);
    int is_copy = is_paeth && left == up;
    count_bytes(sum, residuals, bytes, bytes * size);
    store_pixel(row, 0, left, bytes);
    for (size_t x = 1; x < size; x += step) {
        uint64_t inside = UINT64_MAX >> (64 - (size - x < step ? size - x : step));
        uint64_t changes = find_residuals(residuals + x * bytes, bytes) & inside;
        if (is_copy) {
            copy_block(row + x * pixel, above + x * pixel);
            if (changes == 0) {
                continue;
            }
        }
        uint64_t edges = is_paeth ? find_edges(above + x * pixel, bytes) & inside : 0;
        for (uint64_t events; (events = is_copy ? changes : changes | edges) != 0;) {
            size_t at = x + lowest_bit(events);
            if (!is_copy) {
                fill_run(row, from, at, left, bytes);
            }
            if (is_paeth) {
                uint32_t corner = load_pixel(above, at - 1, bytes);
                up = load_pixel(above, at, bytes);
                left = is_copy ? up : paeth_lanes(left, up, corner, bytes);
            }
            left = add_lanes(left, load_residual(residuals + bytes * at, bytes), bytes);
            count_bytes(sum, residuals + bytes * at, bytes, bytes * (size - at));
            is_copy = is_paeth && left == up;
            if (is_copy) {
                copy_block(row + at * pixel, above + at * pixel);
            }
            from = at;
            changes &= ~(events ^ (events - 1));
            edges &= ~(events ^ (events - 1));
        }
    }
    if (!is_copy) {
        fill_run(row, from, size, left, bytes);
    }
}

/* None, or Up: most blocks are zeros, or those above. */
ALWAYS_INLINED void
undo_blocks(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size,
            unsigned bytes, int is_up, Checksum *sum)
{
    const size_t pixel = bytes_in_memory(bytes), step = BLOCK / pixel;
    for (size_t x = 0; x < size; x += step) {
        const uint8_t *from = residuals + bytes * x;
        size_t left = bytes * (size - x);
        if (find_residuals(from, bytes) == 0) {
            if (is_up) {
                copy_block(row + x * pixel, above + x * pixel);
            } else {
                memset(row + x * pixel, 0, BLOCK);
            }
            continue;
        }
        for (size_t i = 0; i < step; i++) {
            uint32_t guess = is_up ? load_pixel(above, x + i, bytes) : 0;
            uint32_t value = add_lanes(guess, load_residual(from + bytes * i, bytes), bytes);
            store_pixel(row, x + i, value, bytes);
        }
        if (left >= bytes * step) {
            count_bytes(sum, from, bytes * step, left);
        } else {
            count_bytes(sum, from, left, left);
        }
    }
}

/* The mean of left and above depends on every pixel before: no shortcut worth having. */
ALWAYS_INLINED void
undo_average(const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size,
             unsigned bytes, Checksum *sum)
{
    uint32_t left = 0;
    for (size_t x = 0; x < size; x++) {
        uint32_t mean = average_lanes(left, load_pixel(above, x, bytes));
        left = add_lanes(mean, load_residual(residuals + bytes * x, bytes), bytes);
        count_bytes(sum, residuals + bytes * x, bytes, bytes * (size - x));
        store_pixel(row, x, left, bytes);
    }
}

ALWAYS_INLINED int
unfilter(uint8_t filter, const uint8_t *residuals, const uint8_t *above, uint8_t *row, size_t size,
         unsigned bytes, Checksum *sum)
{
    const size_t whole = 1 + bytes * size;
    Checksum own = {filter, filter * whole};
    switch (filter) {
    case 0: undo_blocks(residuals, above, row, size, bytes, 0, &own); break;
    case 1: undo_runs(residuals, above, row, size, bytes, 0, &own); break;
    case 2: undo_blocks(residuals, above, row, size, bytes, 1, &own); break;
    case 3: undo_average(residuals, above, row, size, bytes, &own); break;
    case 4: undo_runs(residuals, above, row, size, bytes, 1, &own); break;
    default: return 0;
    }
    append_sums(sum, own, whole);
    return 1;
}

/* Undo one filter, and append the sums of the filtered row. Returns 0 for an unknown filter. */
static int
unfilter_row(uint8_t filter, const uint8_t *residuals, const uint8_t *above, uint8_t *row,
             size_t size, unsigned bytes, Checksum *sum)
{
    switch (bytes) {
    case 1: return unfilter(filter, residuals, above, row, size, 1, sum);
    case 2: return unfilter(filter, residuals, above, row, size, 2, sum);
    default: return unfilter(filter, residuals, above, row, size, 3, sum);
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
