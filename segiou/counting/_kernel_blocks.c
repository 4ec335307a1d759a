/* Two blocks of symbols, counted.
 *
 * Label maps are runs: neighbours are mostly equal. The positions at which either symbol changes
 * are collected first, without a branch that depends on the labels, and the runs between them
 * are counted in a second, tight loop.
 *
 * Where most pixels start a run, which is called noise, pixels are counted one by one. What costs
 * there is adding one to a counter in memory: a counter that was written just before must be
 * waited for, and counters that do not fit the first-level cache must be fetched. So small tables
 * are counted into two copies in turn, in 32 bits, and large ones in 8 bits, with the carry going
 * to the table itself.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

#define MIN_RUN 2 /* where runs are shorter on average, counting pixels is faster */
#define SAMPLE 256
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

#define DEFINE_COUNT(WIDTH)                                                                   \
    static void count_pixels##WIDTH(const uint##WIDTH##_t *truth,                             \
                                    const uint##WIDTH##_t *pred, size_t n,                    \
                                    const Counters *counters)                                 \
    {                                                                                         \
        const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;       \
        for (size_t i = 0; i < n; i++)                                                        \
            counters->table[(size_t)rows[truth[i]] + cols[pred[i]]]++;                        \
    }                                                                                         \
    static void count_runs##WIDTH(const uint##WIDTH##_t *truth, const uint##WIDTH##_t *pred,  \
                                  const uint16_t *positions, size_t runs,                     \
                                  const Counters *counters)                                   \
    {                                                                                         \
        const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;       \
        for (size_t run = 0; run < runs; run++) {                                             \
            size_t at = positions[run];                                                       \
            counters->table[(size_t)rows[truth[at]] + cols[pred[at]]] +=                      \
                positions[run + 1] - positions[run];                                          \
        }                                                                                     \
    }

DEFINE_COUNT(8)
DEFINE_COUNT(16)

/* Without memory for small counters the table itself does; that is only slower. */
static void count_noise(const Loops *loops, int is_wide, const void *truth, const void *pred,
                        size_t n, const Counters *counters)
{
    Noise *noise = counters->noise;
    if (is_wide) {
        count_pixels16(truth, pred, n, counters);
    } else if (is_few(counters) && prepare_few(noise, counters)) {
        loops->count_few(truth, pred, n, counters);
        noise->few_pixels += n;
        if (noise->few_pixels >= FEW_ROOM)
            empty_few(noise, counters);
    } else if (noise->many || (noise->many = calloc(SYMBOL_PAIRS, 1)) != NULL) {
        count_many(truth, pred, n, counters);
    } else {
        count_pixels8(truth, pred, n, counters);
    }
}

/* Noise goes on as noise mostly: then a look at the first pixels of the next block will do. */
static int is_noise(const Scan scan, const void *truth, const void *pred, size_t n,
                    uint16_t *positions)
{
    size_t sample = n < SAMPLE ? n : SAMPLE;
    return scan(truth, pred, sample, positions) > sample / MIN_RUN;
}

void count_block(const Loops *loops, int is_wide, const void *truth, const void *pred, size_t n,
                 const Counters *counters, uint16_t *positions)
{
    Scan scan = is_wide ? loops->scan16 : loops->scan8;
    Noise *noise = counters->noise;
    size_t runs = 0;
    noise->is_expected = noise->is_expected && is_noise(scan, truth, pred, n, positions);
    if (!noise->is_expected) {
        runs = scan(truth, pred, n, positions);
        positions[runs] = (uint16_t)n;
        noise->is_expected = runs > n / MIN_RUN;
    }
    if (noise->is_expected)
        count_noise(loops, is_wide, truth, pred, n, counters);
    else if (is_wide)
        count_runs16(truth, pred, positions, runs, counters);
    else
        count_runs8(truth, pred, positions, runs, counters);
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
