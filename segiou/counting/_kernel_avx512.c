/* The inner loops with AVX-512, as processors since Ice Lake and Zen 4 have it. */
#include "_kernel.h"

#ifdef HAS_X86_LOOPS

#include <immintrin.h>
#include <string.h>

#define AVX512                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi,avx512vbmi2,"         \
                          "avx2,bmi,bmi2,popcnt")))

static int has_avx512(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
}

AVX512 static inline uint64_t changes8(const uint8_t *truth, const uint8_t *pred)
{
    __m512i t = _mm512_loadu_si512(truth), p = _mm512_loadu_si512(pred);
    return _mm512_cmpneq_epu8_mask(t, _mm512_loadu_si512(truth - 1)) |
           _mm512_cmpneq_epu8_mask(p, _mm512_loadu_si512(pred - 1));
}

AVX512 static inline uint64_t last_changes8(const uint8_t *truth, const uint8_t *pred, size_t n)
{
    __mmask64 rest = _bzhi_u64(UINT64_MAX, (unsigned)n);
    __m512i t = _mm512_maskz_loadu_epi8(rest, truth), p = _mm512_maskz_loadu_epi8(rest, pred);
    return _mm512_cmpneq_epu8_mask(t, _mm512_maskz_loadu_epi8(rest, truth - 1)) |
           _mm512_cmpneq_epu8_mask(p, _mm512_maskz_loadu_epi8(rest, pred - 1));
}

/* The bits of the mask as bytes, then as positions; more than 32 of them are rare. */
AVX512 static inline size_t append64(uint16_t *positions, size_t found, uint64_t mask, size_t at)
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

AVX512 ALIGNED_CODE static size_t scan8_avx512(const void *truth_symbols, const void *pred_symbols,
                                               size_t n, uint16_t *positions)
{
    const uint8_t *truth = truth_symbols, *pred = pred_symbols;
    const int fetches = FETCHES_AHEAD;
    size_t found = 1, i = 1;
    positions[0] = 0;
    /* Loads of a whole line cost twice across two of them: those of truth start at one. */
    size_t head = -(uintptr_t)(truth + 1) % 64;
    if (head < n - 1) {
        found = append64(positions, found, last_changes8(truth + 1, pred + 1, head), 1);
        i += head;
    }
    for (; i + 256 <= n; i += 256) {
        uint64_t masks[4];
        for (size_t j = 0; fetches && j < 4; j++)
            FETCH_AHEAD(truth + i + 64 * j), FETCH_AHEAD(pred + i + 64 * j);
        for (size_t j = 0; j < 4; j++)
            masks[j] = changes8(truth + i + 64 * j, pred + i + 64 * j);
        if ((masks[0] | masks[1] | masks[2] | masks[3]) == 0)
            continue;
        for (size_t j = 0; j < 4; j++)
            found = append64(positions, found, masks[j], i + 64 * j);
    }
    for (; i + 64 <= n; i += 64)
        found = append64(positions, found, changes8(truth + i, pred + i), i);
    if (i < n)
        found = append64(positions, found, last_changes8(truth + i, pred + i, n - i), i);
    return found;
}

AVX512 static size_t scan16_avx512(const void *truth_symbols, const void *pred_symbols, size_t n,
                                   uint16_t *positions)
{
    const uint16_t *truth = truth_symbols, *pred = pred_symbols;
    size_t found = 1, i = 1;
    positions[0] = 0;
    for (; i < n; i += 32) {
        __mmask32 rest = _bzhi_u32(UINT32_MAX, n - i < 32 ? (unsigned)(n - i) : 32);
        __m512i t = _mm512_maskz_loadu_epi16(rest, truth + i);
        __m512i p = _mm512_maskz_loadu_epi16(rest, pred + i);
        __m512i t_before = _mm512_maskz_loadu_epi16(rest, truth + i - 1);
        __m512i p_before = _mm512_maskz_loadu_epi16(rest, pred + i - 1);
        uint32_t mask = _mm512_cmpneq_epu16_mask(t, t_before) | _mm512_cmpneq_epu16_mask(p, p_before);
        if (mask)
            found = append64(positions, found, mask, i);
    }
    return found;
}

DEFINE_SHIFT(AVX512, shift16, 16)
DEFINE_SHIFT(AVX512, shift32, 32)
DEFINE_WIDE_SHIFTS(AVX512)

DEFINE_FIND_PAIRS(AVX512)

const Loops avx512_loops = {
    .name = "c-avx512",
    .is_runnable = has_avx512,
    .scan8 = scan8_avx512,
    .scan16 = scan16_avx512,
    .shift = {shift16, shift32, shift64_avx2},
    .wide = {wide16, wide32, wide64},
    .find_pairs = find_pairs,
};

#endif
