/* Rows of pixels as bits, and windows over them. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

size_t count_words(size_t pixels)
{
    return (pixels + 63) / 64;
}

const uint8_t *readable_row(const Pair *pair, const uint8_t *codes, size_t y, uint8_t *spare)
{
    const uint8_t *row = codes + y * pair->width;
    size_t left = (pair->height - y) * pair->width;
    if (left > 64 * count_words(pair->width))
        return row;
    memcpy(spare, row, pair->width);
    return spare;
}

size_t count_others(const Loops *loops, const uint8_t *codes, uint8_t value, size_t n)
{
    size_t found = loops->count_others(codes, value, n / 64);
    for (size_t i = n / 64 * 64; i < n; i++)
        found += codes[i] != value;
    return found;
}

void *open_bit_rows(BitRows *all, const Loops *loops, size_t rows, size_t words, size_t before)
{
    size_t stride = words + 2 * before / 64 + 1;
    size_t room = rows * stride + 2 * (before / 64) + 4;
    uint64_t *memory = calloc(2 * room, sizeof *memory);
    *all = (BitRows){loops, rows, words, before, stride, room, memory, memory + room};
    return memory;
}

void write_bit_row(BitRows *all, size_t i, const uint64_t *restrict bits)
{
    uint64_t *restrict row = all->bits + i * all->stride;
    unsigned left = all->before % 64, right = 63 - left;
    size_t skip = all->before / 64, words = all->words;
    memset(row, 0, all->stride * sizeof *row);
    row += skip;
    row[0] = bits[0] << left;
    for (size_t w = 1; w < words; w++)
        row[w] = bits[w] << left | bits[w - 1] >> 1 >> right;
    row[words] = bits[words - 1] >> 1 >> right;
}

void spread_bit_rows(BitRows *all, size_t size)
{
    /* Any of 2n is any of n, twice. */
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = reached < size - reached ? reached : size - reached;
        all->loops->or_ahead(all->spare, all->bits, all->rows * all->stride, step);
        uint64_t *swapped = all->bits;
        all->bits = all->spare;
        all->spare = swapped;
    }
}

void set_bits(uint64_t *bits, size_t first, size_t last)
{
    uint64_t from = ~UINT64_C(0) << first % 64, to = ~UINT64_C(0) >> (63 - last % 64);
    if (first / 64 == last / 64) {
        bits[first / 64] |= from & to;
        return;
    }
    bits[first / 64] |= from;
    for (size_t w = first / 64 + 1; w < last / 64; w++)
        bits[w] = ~UINT64_C(0);
    bits[last / 64] |= to;
}
