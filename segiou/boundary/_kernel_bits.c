/* Rows of pixels as bits, and windows over them. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

const uint8_t *readable_row(const Pair *pair, const uint8_t *codes, size_t y, uint8_t *spare)
{
    const uint8_t *row = codes + y * pair->width;
    size_t left = (pair->height - y) * pair->width;
    if (left > (pair->width + 63) / 64 * 64)
        return row;
    memcpy(spare, row, pair->width);
    return spare;
}

void *open_bit_rows(BitRows *all, const Loops *loops, size_t rows, size_t words, size_t before)
{
    size_t stride = words + 2 * before / 64 + 1, room = rows * stride + 1;
    uint64_t *memory = calloc(2 * room, sizeof *memory);
    *all = (BitRows){loops, words, before, stride, memory, memory + room};
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

void spread_bits(BitRows *all, size_t rows, size_t size, size_t unit)
{
    size_t words = rows * all->stride;
    /* Any of 2n is any of n, twice. */
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = reached < size - reached ? reached : size - reached;
        words -= step * unit / 64;
        all->loops->or_ahead(all->spare, all->bits, words, step * unit);
        uint64_t *swapped = all->bits;
        all->bits = all->spare;
        all->spare = swapped;
    }
}
