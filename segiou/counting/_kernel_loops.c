/* The inner loops: portable, with AVX2 (nearly every processor since 2013), and with AVX-512 (since
 * Ice Lake and Zen 4). */
#include "../_support/_bytes.h"
#include "_kernel.h"

#include <string.h>

#define AT_ONCE 256 /* values that become symbols before it is asked whether all fit */

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

#define append_portable append_positions
#define append_avx2 append_positions

#ifdef HAS_X86_LOOPS
/* The bits of the mask as bytes, then as positions; more than 32 of them are rare. */
__attribute__((target("avx512bw,avx512vbmi2,popcnt"))) static inline size_t
append_avx512(uint16_t *positions, size_t found, uint64_t mask, size_t at)
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

#endif

#define LOOPS_FILE "../counting/_kernel_loops.h"
#define USES_VBMI2
#include "../_support/_loops.h"
