/* Blocks in which most pixels differ from their neighbour, counted pixel by pixel.
 *
 * What costs there is adding one to a counter in memory: a counter that was written just before
 * must be waited for, and counters that do not fit the first-level cache must be fetched. So
 * small tables are counted into two copies in turn, in 32 bits, and large ones in 8 bits, with
 * the carry going to the table itself.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

#define FEW_CELLS 4096 /* twice four bytes each fill 32 KiB */
#ifndef FEW_ROOM       /* a test makes it small */
#define FEW_ROOM (UINT64_C(1) << 31) /* pixels; 32 bits hold a block more */
#endif
#define SYMBOL_PAIRS 65536
#define CARRY 256

static int is_few(const Counters *counters)
{
    return counters->rows <= 256 && counters->cols <= 256 &&
           counters->rows * counters->cols <= FEW_CELLS;
}

static void fill_codes(Noise *noise, const Counters *counters)
{
    for (int symbol = 0; symbol < 256; symbol++) {
        noise->truth_codes[symbol] = (uint8_t)(counters->truth_offsets[symbol] / counters->cols);
        noise->pred_codes[symbol] = (uint8_t)counters->pred_offsets[symbol];
    }
}

static int prepare_few(Noise *noise, const Counters *counters)
{
    if (noise->few == NULL) {
        noise->few = calloc(counters->rows * counters->cols, 2 * sizeof(uint32_t));
        fill_codes(noise, counters);
    }
    return noise->few != NULL;
}

static void empty_few(Noise *noise, const Counters *counters)
{
    for (size_t cell = 0; cell < counters->rows * counters->cols; cell++) {
        counters->table[cell] += (int64_t)noise->few[2 * cell] + noise->few[2 * cell + 1];
        noise->few[2 * cell] = noise->few[2 * cell + 1] = 0;
    }
    noise->few_pixels = 0;
}

void count_few_portable(const uint8_t *truth, const uint8_t *pred, size_t n,
                        const Counters *counters)
{
    const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;
    uint32_t *few = counters->noise->few;
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
        few[2 * ((size_t)rows[truth[i]] + cols[pred[i]])]++;
        few[2 * ((size_t)rows[truth[i + 1]] + cols[pred[i + 1]]) + 1]++;
    }
    if (i < n)
        few[2 * ((size_t)rows[truth[i]] + cols[pred[i]])]++;
}

static int64_t *cell_of_pair(const Counters *counters, size_t pair)
{
    return counters->table + counters->truth_offsets[pair >> 8] +
           counters->pred_offsets[pair & 255];
}

static void count_many(const uint8_t *truth, const uint8_t *pred, size_t n,
                       const Counters *counters)
{
    uint8_t *many = counters->noise->many;
    for (size_t i = 0; i < n; i++) {
        size_t pair = (size_t)truth[i] << 8 | pred[i];
        if (++many[pair] == 0)
            *cell_of_pair(counters, pair) += CARRY;
    }
}

static void empty_many(const Noise *noise, const Counters *counters)
{
    for (size_t pair = 0; pair < SYMBOL_PAIRS; pair += 8) {
        uint64_t eight;
        memcpy(&eight, noise->many + pair, sizeof eight);
        for (size_t i = 0; eight != 0 && i < 8; i++)
            if (noise->many[pair + i])
                *cell_of_pair(counters, pair + i) += noise->many[pair + i];
    }
}

static void count_plain(const uint8_t *truth, const uint8_t *pred, size_t n,
                        const Counters *counters)
{
    const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;
    for (size_t i = 0; i < n; i++)
        counters->table[(size_t)rows[truth[i]] + cols[pred[i]]]++;
}

static void count_plain16(const uint16_t *truth, const uint16_t *pred, size_t n,
                          const Counters *counters)
{
    const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;
    for (size_t i = 0; i < n; i++)
        counters->table[(size_t)rows[truth[i]] + cols[pred[i]]]++;
}

/* Without memory for small counters the table itself does; that is only slower. */
void count_noise(const Loops *loops, int is_wide, const void *truth, const void *pred, size_t n,
                 const Counters *counters)
{
    Noise *noise = counters->noise;
    if (is_wide) {
        count_plain16(truth, pred, n, counters);
    } else if (is_few(counters) && prepare_few(noise, counters)) {
        loops->count_few(truth, pred, n, counters);
        noise->few_pixels += n;
        if (noise->few_pixels >= FEW_ROOM)
            empty_few(noise, counters);
    } else if (noise->many || (noise->many = calloc(SYMBOL_PAIRS, 1)) != NULL) {
        count_many(truth, pred, n, counters);
    } else {
        count_plain(truth, pred, n, counters);
    }
}

void finish_noise(const Counters *counters)
{
    Noise *noise = counters->noise;
    if (noise->few)
        empty_few(noise, counters);
    if (noise->many)
        empty_many(noise, counters);
    free(noise->few);
    free(noise->many);
}
