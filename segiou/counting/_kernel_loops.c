/* The inner loops for any processor, and which loops this processor can run. */
#include "_kernel.h"

#include <string.h>

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
    for (size_t j = 0; j < 8; j++)
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

DEFINE_SHIFT(, shift16, 16)
DEFINE_SHIFT(, shift32, 32)
DEFINE_SHIFT(, shift64, 64)

DEFINE_WIDE_SHIFTS()

DEFINE_FIND_PAIRS()

const Loops portable_loops = {
    .name = "c",
    .scan8 = scan8,
    .scan16 = scan16_portable,
    .shift = {shift16, shift32, shift64},
    .wide = {wide16, wide32, wide64},
    .find_pairs = find_pairs,
};

/* The best first. */
static const Loops *const all_loops[] = {
#ifdef HAS_X86_LOOPS
    &avx512_loops,
    &avx2_loops,
#endif
    &portable_loops,
};
static const size_t all_count = sizeof all_loops / sizeof all_loops[0];

static int is_runnable(const Loops *loops)
{
    return loops->is_runnable == NULL || loops->is_runnable();
}

const Loops *find_loops(const char *name)
{
    for (size_t i = 0; i < all_count; i++) {
        int is_wanted = name == NULL || strcmp(name, all_loops[i]->name) == 0;
        if (is_wanted && is_runnable(all_loops[i]))
            return all_loops[i];
    }
    return NULL;
}

int list_loops(const char **names)
{
    int found = 0;
    for (size_t i = 0; i < all_count; i++)
        if (is_runnable(all_loops[i]))
            names[found++] = all_loops[i]->name;
    return found;
}
