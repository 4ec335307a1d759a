/* The inner loops with AVX2, as nearly every processor since 2013 has it. */
#include "_kernel.h"

#ifdef HAS_X86_LOOPS

#include <immintrin.h>
#include <string.h>

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt")))

static int has_avx2(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

AVX2 static inline __m256i load(const void *from) { return _mm256_loadu_si256(from); }

AVX2 static inline uint32_t unchanged32(const uint8_t *truth, const uint8_t *pred)
{
    __m256i t = _mm256_cmpeq_epi8(load(truth), load(truth - 1));
    __m256i p = _mm256_cmpeq_epi8(load(pred), load(pred - 1));
    return (uint32_t)_mm256_movemask_epi8(_mm256_and_si256(t, p));
}

AVX2 static inline uint64_t changes64(const uint8_t *truth, const uint8_t *pred)
{
    return ~((uint64_t)unchanged32(truth + 32, pred + 32) << 32 | unchanged32(truth, pred));
}

/* The positions of 64 changes, eight looked up at a time: no branch to mispredict. */
AVX2 static inline size_t append64(uint16_t *positions, size_t found, uint64_t mask, size_t at)
{
    for (size_t j = 0; j < 64; j += 8) {
        unsigned eight = mask >> j & 255;
        __m128i bits = _mm_loadl_epi64((const __m128i *)position_bytes[eight]);
        __m128i base = _mm_set1_epi16((short)(at + j));
        _mm_storeu_si128((__m128i *)(positions + found), _mm_add_epi16(base, _mm_cvtepu8_epi16(bits)));
        found += (size_t)_mm_popcnt_u32(eight);
    }
    return found;
}

AVX2 ALIGNED_CODE static size_t scan8_avx2(const void *truth_symbols, const void *pred_symbols,
                                           size_t n, uint16_t *positions)
{
    const uint8_t *truth = truth_symbols, *pred = pred_symbols;
    const int fetches = FETCHES_AHEAD;
    size_t found = 1, i = 1;
    positions[0] = 0;
    for (; i + 64 <= n; i += 64) {
        if (fetches)
            FETCH_AHEAD(truth + i), FETCH_AHEAD(pred + i);
        uint64_t mask = changes64(truth + i, pred + i);
        if (mask == 0)
            continue;
        found = append64(positions, found, mask, i);
    }
    for (; i < n; i++) {
        positions[found] = (uint16_t)i;
        found += truth[i] != truth[i - 1] || pred[i] != pred[i - 1];
    }
    return found;
}

/* Thirty-two values per step: differences below 256 leave the upper bytes free, so that one
 * vector takes those of all others, moved up a byte each. Its two halves are then brought into
 * order byte by byte, and interleaved in units of as many bytes as a half has values. */
#define DEFINE_SHIFT256(BITS, UNIT_BITS)                                                      \
    AVX2 void shift##BITS##_avx2(const char *values, size_t n, uint64_t first,                \
                                 uint8_t outside, uint8_t *symbols)                           \
    {                                                                                         \
        enum { LANES = BITS / 8, UNIT = UNIT_BITS / 8 };                                      \
        __m256i firsts = _mm256_set1_epi##BITS##_v((int##BITS##_t)first);                      \
        __m256i above = _mm256_set1_epi##BITS##_v((int##BITS##_t) ~(uint##BITS##_t)255);       \
        uint8_t sources[32];                                                                  \
        for (int i = 0; i < 32; i++)                                                          \
            sources[i] = (uint8_t)(i % UNIT * LANES + i % 16 / UNIT);                         \
        __m256i order = load(sources);                                                        \
        size_t i = 0;                                                                         \
        for (; i + 32 <= n; i += 32) {                                                        \
            __m256i all = _mm256_setzero_si256(), any = _mm256_setzero_si256();               \
            for (int j = 0; j < LANES; j++) {                                                 \
                const char *at = values + i * LANES + 32 * j;                                 \
                __m256i index = _mm256_sub_epi##BITS(load(at), firsts);                       \
                any = _mm256_or_si256(any, index);                                            \
                all = _mm256_or_si256(all, _mm256_slli_epi##BITS(index, 8 * j));              \
            }                                                                                 \
            if (!_mm256_testz_si256(any, above)) {                                            \
                portable_loops.shift[BITS / 64 + 1](values + i * LANES, 32, first, outside,            \
                                           symbols + i);                                      \
                continue;                                                                     \
            }                                                                                 \
            all = _mm256_shuffle_epi8(all, order);                                            \
            __m128i low = _mm256_castsi256_si128(all), high = _mm256_extracti128_si256(all, 1); \
            _mm_storeu_si128((__m128i *)(symbols + i),                                        \
                             _mm_unpacklo_epi##UNIT_BITS(low, high));                         \
            _mm_storeu_si128((__m128i *)(symbols + i + 16),                                   \
                             _mm_unpackhi_epi##UNIT_BITS(low, high));                         \
        }                                                                                     \
        portable_loops.shift[BITS / 64 + 1](values + i * LANES, n - i, first, outside, symbols + i);   \
    }

#define _mm256_set1_epi32_v _mm256_set1_epi32
#define _mm256_set1_epi64_v _mm256_set1_epi64x
DEFINE_SHIFT(AVX2, shift16, 16)
DEFINE_SHIFT256(32, 32)
DEFINE_SHIFT256(64, 16)

DEFINE_WIDE_SHIFTS(AVX2)

DEFINE_FIND_PAIRS(AVX2)

const Loops avx2_loops = {
    .name = "c-avx2",
    .is_runnable = has_avx2,
    .scan8 = scan8_avx2,
    .scan16 = scan16_portable,
    .shift = {shift16, shift32_avx2, shift64_avx2},
    .wide = {wide16, wide32, wide64},
    .find_pairs = find_pairs,
};

#endif
