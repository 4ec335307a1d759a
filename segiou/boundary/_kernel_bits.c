/* Rows of pixels as bits, and windows over them. */
#include "_kernel.h"

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

static size_t steps_after(size_t words, size_t before)
{
    return words + before / 64 + 1;
}

size_t spread_room(size_t words, size_t before, size_t size)
{
    return steps_after(words, before) + size / 64 + 2;
}

/* bits[x] |= bits[x + step] */
static void or_ahead(uint64_t *bits, size_t words, size_t step)
{
    size_t skip = step / 64;
    unsigned right = step % 64, left = 63 - right;
    for (size_t w = 0; w < words; w++) /* a shift by 64 is none, so it is one by 1 and the rest */
        bits[w] |= bits[w + skip] >> right | bits[w + skip + 1] << 1 << left;
}

void spread_bits(uint64_t *into, const uint64_t *bits, size_t words, size_t before, size_t size,
                 uint64_t *spare)
{
    size_t skip = before / 64, used = steps_after(words, before);
    unsigned left = before % 64, right = 63 - left;
    memset(spare, 0, spread_room(words, before, size) * sizeof *spare);
    for (size_t w = 0; w < words; w++) {
        spare[w + skip] |= bits[w] << left;
        spare[w + skip + 1] = bits[w] >> 1 >> right;
    }
    /* Any of 2n is any of n, twice. */
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = reached < size - reached ? reached : size - reached;
        or_ahead(spare, used, step);
    }
    memcpy(into, spare, words * sizeof *into);
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
