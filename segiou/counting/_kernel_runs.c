/* Two blocks of symbols, counted.
 *
 * Label maps are runs: neighbours are mostly equal. The positions at which either symbol changes
 * are collected first, without a branch that depends on the labels, and the runs between them
 * are counted in a second, tight loop. Where most pixels start a run, pixels are counted instead.
 */
#include "_kernel.h"

#include <string.h>

#define MIN_RUN 2 /* where runs are shorter on average, counting pixels is faster */
#define SAMPLE 256

uint8_t position_bytes[256][8];
/* The same, as wide as portable code has to write them. */
static uint16_t position_lookup[256][8];
static uint8_t bit_count[256];

void fill_position_lookup(void)
{
    for (int mask = 0; mask < 256; mask++) {
        int found = 0;
        for (int bit = 0; bit < 8; bit++)
            if (mask >> bit & 1)
                position_bytes[mask][found++] = (uint8_t)bit;
        for (int i = 0; i < found; i++)
            position_lookup[mask][i] = position_bytes[mask][i];
        bit_count[mask] = (uint8_t)found;
    }
}

static uint64_t load_word(const uint8_t *bytes)
{
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* Nonzero where the symbols at `at` (in bytes) differ from those `width` bytes before. */
static uint64_t change_word(const uint8_t *truth, const uint8_t *pred, size_t at, size_t width)
{
    return (load_word(truth + at) ^ load_word(truth + at - width)) |
           (load_word(pred + at) ^ load_word(pred + at - width));
}

/* One bit for each byte that is not zero, the first byte's lowest. The product moves bit 8j to
 * bit 56 + j; no two of its terms meet, so nothing carries. */
static unsigned nonzero_bytes(uint64_t word)
{
    uint64_t low = 0x7F7F7F7F7F7F7F7Fu;
    uint64_t flags = ((((word & low) + low) | word) & ~low) >> 7;
    return (unsigned)(flags * 0x0102040810204080u >> 56);
}

/* Likewise for four 16-bit lanes: bit 16j to bit 48 + j. */
static unsigned nonzero_pairs(uint64_t word)
{
    uint64_t low = 0x7FFF7FFF7FFF7FFFu;
    uint64_t flags = ((((word & low) + low) | word) & ~low) >> 15;
    return (unsigned)(flags * 0x0001000200040008u >> 48) & 15u;
}

/* Writes eight, keeps as many as there are bits: no branch to mispredict. */
static size_t append_positions(uint16_t *positions, size_t found, unsigned mask, size_t base)
{
    for (int j = 0; j < 8; j++)
        positions[found + j] = (uint16_t)(base + position_lookup[mask][j]);
    return found + bit_count[mask];
}

static size_t scan8(const void *truth_symbols, const void *pred_symbols, size_t n,
                    uint16_t *positions)
{
    const uint8_t *truth = truth_symbols, *pred = pred_symbols;
    size_t found = 1, i = 1;
    positions[0] = 0;
    for (; i + 32 <= n; i += 32) {
        uint64_t words[4], any = 0;
        for (int j = 0; j < 4; j++)
            any |= words[j] = change_word(truth, pred, i + 8 * (size_t)j, 1);
        if (any == 0)
            continue;
        for (int j = 0; j < 4; j++)
            found = append_positions(positions, found, nonzero_bytes(words[j]), i + 8 * (size_t)j);
    }
    for (; i < n; i++) {
        positions[found] = (uint16_t)i;
        found += truth[i] != truth[i - 1] || pred[i] != pred[i - 1];
    }
    return found;
}

size_t scan16_portable(const void *truth_symbols, const void *pred_symbols, size_t n,
                       uint16_t *positions)
{
    const uint16_t *truth = truth_symbols, *pred = pred_symbols;
    size_t found = 1, i = 1;
    positions[0] = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t low = change_word(truth_symbols, pred_symbols, 2 * i, 2);
        uint64_t high = change_word(truth_symbols, pred_symbols, 2 * i + 8, 2);
        if ((low | high) == 0)
            continue;
        found = append_positions(positions, found, nonzero_pairs(low) | nonzero_pairs(high) << 4, i);
    }
    for (; i < n; i++) {
        positions[found] = (uint16_t)i;
        found += truth[i] != truth[i - 1] || pred[i] != pred[i - 1];
    }
    return found;
}

#define DEFINE_COUNT_RUNS(WIDTH)                                                              \
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

DEFINE_COUNT_RUNS(8)
DEFINE_COUNT_RUNS(16)

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

#define DEFINE_SHIFT(BITS)                                                                    \
    static void shift##BITS(const char *values, size_t n, uint64_t first, uint8_t outside,    \
                            uint8_t *symbols)                                                 \
    {                                                                                         \
        uint##BITS##_t value;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            uint##BITS##_t index = (uint##BITS##_t)(value - (uint##BITS##_t)first);           \
            symbols[i] = index < 256 ? (uint8_t)index : outside;                              \
        }                                                                                     \
    }

DEFINE_SHIFT(16)
DEFINE_SHIFT(32)
DEFINE_SHIFT(64)

#define DEFINE_WIDE(BITS)                                                                     \
    void wide##BITS##_portable(const char *values, size_t n, uint64_t first, uint64_t length, \
                               uint16_t *symbols)                                             \
    {                                                                                         \
        uint##BITS##_t value, limit = (uint##BITS##_t)length;                                 \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            uint##BITS##_t index = (uint##BITS##_t)(value - (uint##BITS##_t)first);           \
            symbols[i] = (uint16_t)(index < limit ? index : limit);                           \
        }                                                                                     \
    }

DEFINE_WIDE(16)
DEFINE_WIDE(32)
DEFINE_WIDE(64)

const Loops portable_loops = {
    .name = "c",
    .scan8 = scan8,
    .scan16 = scan16_portable,
    .shift16 = shift16,
    .shift32 = shift32,
    .shift64 = shift64,
    .wide16 = wide16_portable,
    .wide32 = wide32_portable,
    .wide64 = wide64_portable,
    .count_few = count_few_portable,
};
