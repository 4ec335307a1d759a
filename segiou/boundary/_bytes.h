/* Bytes compared 64 at a time, by instructions that every processor of its kind has. */
#ifndef SEGIOU_BOUNDARY_BYTES_H
#define SEGIOU_BOUNDARY_BYTES_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Which of eight bytes are not 0, as the lowest bits in memory order. */
static inline uint64_t nonzero_bytes(uint64_t word)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    const uint64_t low = EACH_BYTE * 0x7F;
    uint64_t high = (((word & low) + low) | word) & ~low;
    return (high >> 7) * UINT64_C(0x0102040810204080) >> 56;
#else
    uint8_t bytes[8];
    uint64_t bits = 0;
    memcpy(bytes, &word, 8);
    for (unsigned i = 0; i < 8; i++)
        bits |= (uint64_t)(bytes[i] != 0) << i;
    return bits;
#endif
}

/* Bit i: a[i] and b[i] differ. */
static inline uint64_t differ64(const uint8_t *a, const uint8_t *b)
{
    uint64_t bits = 0;
#if defined(__SSE2__)
    for (int i = 0; i < 64; i += 16) {
        __m128i one = _mm_loadu_si128((const __m128i *)(a + i));
        __m128i other = _mm_loadu_si128((const __m128i *)(b + i));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) << i;
    }
    return ~bits;
#else
    for (int i = 0; i < 64; i += 8) {
        uint64_t one, other;
        memcpy(&one, a + i, 8);
        memcpy(&other, b + i, 8);
        bits |= nonzero_bytes(one ^ other) << i;
    }
    return bits;
#endif
}

#endif
