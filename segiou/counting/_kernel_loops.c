/* The inner loops: portable, with AVX2 (nearly every processor since 2013), and with AVX-512 (since
 * Ice Lake and Zen 4); and which of them this processor can run. */
#include "../_support/_bytes.h"
#include "_kernel.h"

#include <string.h>

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(x) PASTE(x, SET)
#define LOOPS(NAMED, IS_RUNNABLE, SHIFT32, SHIFT64)                                           \
    {                                                                                         \
        .name = NAMED,                                                                        \
        .is_runnable = IS_RUNNABLE,                                                           \
        .scan8 = NAME(scan8),                                                                 \
        .scan16 = NAME(scan16),                                                               \
        .shift = {NAME(shift16), SHIFT32, SHIFT64},                                           \
        .wide = {NAME(wide16), NAME(wide32), NAME(wide64)},                                   \
        .find_pairs = NAME(find_pairs),                                                       \
    }

/* position_lookup[m]: the bits set in m, ascending, then zeros. */
static uint16_t position_lookup[256][8];
static uint8_t bit_count[256];

void fill_position_lookup(void)
{
    for (int mask = 0; mask < 256; mask++) {
        int found = 0;
        for (int bit = 0; bit < 8; bit++)
            if (mask >> bit & 1)
                position_lookup[mask][found++] = (uint16_t)bit;
        bit_count[mask] = (uint8_t)found;
    }
}

/* Eight at a time; writes eight and keeps as many as there are bits: no branch to mispredict. */
static inline size_t append_positions(uint16_t *positions, size_t found, uint64_t mask, size_t at)
{
    if (mask == 0)
        return found;
    for (size_t j = 0; j < 64; j += 8) {
        unsigned bits = mask >> j & 255;
        uint16_t eight[8]; /* positions could alias the table */
        for (size_t k = 0; k < 8; k++)
            eight[k] = (uint16_t)(position_lookup[bits][k] + (uint16_t)(at + j));
        memcpy(positions + found, eight, sizeof eight);
        found += bit_count[bits];
    }
    return found;
}

#define TARGET
#define SET portable

static inline uint64_t changed64_portable(const uint8_t *truth, const uint8_t *pred, size_t width)
{
    return differ64(truth, truth - width) | differ64(pred, pred - width);
}

#define append_portable append_positions
#include "_kernel_loops.h"
DEFINE_SHIFT(32)
DEFINE_SHIFT(64)
static const Loops portable_loops = LOOPS("c", NULL, shift32_portable, shift64_portable);
#undef TARGET
#undef SET

#ifdef HAS_X86_LOOPS

#define TARGET __attribute__((target("avx2,bmi,bmi2,popcnt")))
#define SET avx2

static int has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

TARGET static inline __m256i same32(const uint8_t *a, const uint8_t *b)
{
    return _mm256_cmpeq_epi8(load_avx2(a), load_avx2(b));
}

/* Both arrays in one mask: a twentieth faster than a mask of each. */
TARGET static inline uint64_t changed64_avx2(const uint8_t *truth, const uint8_t *pred,
                                             size_t width)
{
    const uint8_t *t = truth - width, *p = pred - width;
    __m256i low = _mm256_and_si256(same32(truth, t), same32(pred, p));
    __m256i high = _mm256_and_si256(same32(truth + 32, t + 32), same32(pred + 32, p + 32));
    uint64_t bits = (uint32_t)_mm256_movemask_epi8(high);
    return ~(bits << 32 | (uint32_t)_mm256_movemask_epi8(low));
}

#define append_avx2 append_positions
#include "_kernel_loops.h"

/* Thirty-two values per step: differences below 256 leave the upper bytes free, so that one
 * vector takes those of all others, moved up a byte each. Its two halves are then brought into
 * order byte by byte, and interleaved in units of as many bytes as a half has values. */
#define DEFINE_SHIFT256(BITS, UNIT_BITS)                                                      \
    TARGET static void shift##BITS##_avx2(const char *values, size_t n, uint64_t first,                \
                                 uint8_t outside, uint8_t *symbols)                           \
    {                                                                                         \
        enum { LANES = BITS / 8, UNIT = UNIT_BITS / 8 };                                      \
        __m256i firsts = _mm256_set1_epi##BITS##_v((int##BITS##_t)first);                      \
        __m256i above = _mm256_set1_epi##BITS##_v((int##BITS##_t) ~(uint##BITS##_t)255);       \
        uint8_t sources[32];                                                                  \
        for (int i = 0; i < 32; i++)                                                          \
            sources[i] = (uint8_t)(i % UNIT * LANES + i % 16 / UNIT);                         \
        __m256i order = load_avx2(sources);                                                        \
        size_t i = 0;                                                                         \
        for (; i + 32 <= n; i += 32) {                                                        \
            __m256i all = _mm256_setzero_si256(), any = _mm256_setzero_si256();               \
            for (int j = 0; j < LANES; j++) {                                                 \
                const char *at = values + i * LANES + 32 * j;                                 \
                __m256i index = _mm256_sub_epi##BITS(load_avx2(at), firsts);                       \
                any = _mm256_or_si256(any, index);                                            \
                all = _mm256_or_si256(all, _mm256_slli_epi##BITS(index, 8 * j));              \
            }                                                                                 \
            if (!_mm256_testz_si256(any, above)) {                                            \
                shift##BITS##_portable(values + i * LANES, 32, first, outside, symbols + i);  \
                continue;                                                                     \
            }                                                                                 \
            all = _mm256_shuffle_epi8(all, order);                                            \
            __m128i low = _mm256_castsi256_si128(all), high = _mm256_extracti128_si256(all, 1); \
            _mm_storeu_si128((__m128i *)(symbols + i),                                        \
                             _mm_unpacklo_epi##UNIT_BITS(low, high));                         \
            _mm_storeu_si128((__m128i *)(symbols + i + 16),                                   \
                             _mm_unpackhi_epi##UNIT_BITS(low, high));                         \
        }                                                                                     \
        shift##BITS##_portable(values + i * LANES, n - i, first, outside, symbols + i);       \
    }

#define _mm256_set1_epi32_v _mm256_set1_epi32
#define _mm256_set1_epi64_v _mm256_set1_epi64x
DEFINE_SHIFT256(32, 32)
DEFINE_SHIFT256(64, 16)
static const Loops avx2_loops = LOOPS("c-avx2", has_avx2, shift32_avx2, shift64_avx2);
#undef TARGET
#undef SET

#define TARGET                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,"         \
                          "avx2,bmi,bmi2,popcnt")))
#define SET avx512

static int has_avx512(void)
{
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
}

TARGET static inline uint64_t changed64_avx512(const uint8_t *truth, const uint8_t *pred,
                                               size_t width)
{
    return differ64_avx512(truth, truth - width) | differ64_avx512(pred, pred - width);
}

/* The bits of the mask as bytes, then as positions; more than 32 of them are rare. */
TARGET static inline size_t append_avx512(uint16_t *positions, size_t found, uint64_t mask, size_t at)
{
    const __m512i counting = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42,
        41, 40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20,
        19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    __m512i bits = _mm512_maskz_compress_epi8(mask, counting);
    __m512i base = _mm512_set1_epi16((short)at);
    __m512i first = _mm512_cvtepu8_epi16(_mm512_castsi512_si256(bits));
    size_t count = (size_t)_mm_popcnt_u64(mask);
    _mm512_storeu_si512(positions + found, _mm512_add_epi16(base, first));
    if (count > 32) {
        __m512i rest = _mm512_cvtepu8_epi16(_mm512_extracti64x4_epi64(bits, 1));
        _mm512_storeu_si512(positions + found + 32, _mm512_add_epi16(base, rest));
    }
    return found + count;
}

#include "_kernel_loops.h"
DEFINE_SHIFT(32)
static const Loops avx512_loops = LOOPS("c-avx512", has_avx512, shift32_avx512, shift64_avx2);
#endif

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
