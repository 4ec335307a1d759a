/* Rows of pixels as bits, and windows over them. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

const uint8_t *readable_row(const Work *work, int is_pred, size_t y)
{
    const uint8_t *row = (is_pred ? work->pred : work->truth) + y * work->width;
    if ((work->height - y) * work->width > 64 * work->words)
        return row;
    return memcpy(work->spare[is_pred], row, work->width);
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

/* Loops over rows for each instruction set, and which this processor runs. */
#define LOOPS_FILE "../measures/boundary/_kernel_loops.h"
#include "../../_support/_loops.h"
