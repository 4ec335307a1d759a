/* Bytes compared 64 at a time, and bits counted, by instructions that every processor of its kind
 * has; and for those with AVX2 or AVX-512, under names that end so. */
#ifndef SEGIOU_BYTES_H
#define SEGIOU_BYTES_H

#include <stdint.h>
#include <string.h>

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

#if defined(__SSE2__)
#include <emmintrin.h>
typedef __m128i Bytes;

static inline Bytes repeat_byte(uint8_t value) { return _mm_set1_epi8((char)value); }

static inline Bytes load_bytes(const uint8_t *from) { return _mm_loadu_si128((const void *)from); }

static inline uint64_t same16(Bytes a, Bytes b)
{
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
}

static inline uint64_t unequal64(const uint8_t *a, Bytes b0, Bytes b1, Bytes b2, Bytes b3)
{
    return ~(same16(load_bytes(a), b0) | same16(load_bytes(a + 16), b1) << 16 |
             same16(load_bytes(a + 32), b2) << 32 | same16(load_bytes(a + 48), b3) << 48);
}
#elif defined(__ARM_NEON) && defined(__aarch64__) && !defined(__ARM_BIG_ENDIAN)
#include <arm_neon.h>
typedef uint8x16_t Bytes;

static inline Bytes repeat_byte(uint8_t value) { return vdupq_n_u8(value); }

static inline Bytes load_bytes(const uint8_t *from) { return vld1q_u8(from); }

static inline Bytes unequal16(const uint8_t *a, Bytes b)
{
    const Bytes places = vreinterpretq_u8_u64(vdupq_n_u64(UINT64_C(0x8040201008040201)));
    return vbicq_u8(places, vceqq_u8(load_bytes(a), b));
}

/* Sums of neighbours, three times: of the bits of eight bytes. */
static inline uint64_t unequal64(const uint8_t *a, Bytes b0, Bytes b1, Bytes b2, Bytes b3)
{
    Bytes low = vpaddq_u8(unequal16(a, b0), unequal16(a + 16, b1));
    Bytes high = vpaddq_u8(unequal16(a + 32, b2), unequal16(a + 48, b3));
    Bytes sums = vpaddq_u8(low, high);
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(sums, sums)), 0);
}
#else
typedef struct {
    uint64_t low, high;
} Bytes;

static inline Bytes repeat_byte(uint8_t value)
{
    return (Bytes){value * EACH_BYTE, value * EACH_BYTE};
}

static inline Bytes load_bytes(const uint8_t *from)
{
    Bytes bytes;
    memcpy(&bytes, from, sizeof bytes);
    return bytes;
}

static inline uint64_t unequal16(const uint8_t *a, Bytes b)
{
    Bytes bytes = load_bytes(a);
    return nonzero_bytes(bytes.low ^ b.low) | nonzero_bytes(bytes.high ^ b.high) << 8;
}

static inline uint64_t unequal64(const uint8_t *a, Bytes b0, Bytes b1, Bytes b2, Bytes b3)
{
    return unequal16(a, b0) | unequal16(a + 16, b1) << 16 | unequal16(a + 32, b2) << 32 |
           unequal16(a + 48, b3) << 48;
}
#endif

/* Bit i: a[i] and b[i] differ. */
static inline uint64_t differ64(const uint8_t *a, const uint8_t *b)
{
    return unequal64(a, load_bytes(b), load_bytes(b + 16), load_bytes(b + 32), load_bytes(b + 48));
}

/* Bit i: a[i] is not the value. */
static inline uint64_t differ64_from(const uint8_t *a, uint8_t value)
{
    Bytes all = repeat_byte(value);
    return unequal64(a, all, all, all, all);
}

/* A number of 1, 2, 4 or 8 bytes of an aligned array. */
static inline uint64_t load_number(const void *numbers, size_t i, size_t size)
{
    switch (size) {
    case 1: return ((const uint8_t *)numbers)[i];
    case 2: return ((const uint16_t *)numbers)[i];
    case 4: return ((const uint32_t *)numbers)[i];
    default: return ((const uint64_t *)numbers)[i];
    }
}

/* A bit for each number of 1, 2, 4 or 8 bytes, from those of its bytes. */
static inline uint64_t join_bits(uint64_t bits, size_t bytes)
{
    for (; bytes > 1; bytes /= 2) {
        bits = (bits | bits >> 1) & EACH_BYTE * 0x55;
        bits = (bits | bits >> 1) & EACH_BYTE * 0x33;
        bits = (bits | bits >> 2) & EACH_BYTE * 0x0F;
        bits = (bits | bits >> 4) & UINT64_C(0x00FF00FF00FF00FF);
        bits = (bits | bits >> 8) & UINT64_C(0x0000FFFF0000FFFF);
        bits = (bits | bits >> 16) & UINT32_MAX;
    }
    return bits;
}

static inline unsigned count_ones(uint64_t bits)
{
    bits -= bits >> 1 & EACH_BYTE * 0x55;
    bits = (bits & EACH_BYTE * 0x33) + (bits >> 2 & EACH_BYTE * 0x33);
    return (unsigned)(((bits + (bits >> 4)) & EACH_BYTE * 0x0F) * EACH_BYTE >> 56);
}

#ifdef __GNUC__
#define ALWAYS_INLINED static inline __attribute__((always_inline))
#define NOT_INLINED __attribute__((noinline))
#else
#define ALWAYS_INLINED static inline
#define NOT_INLINED
#endif

static inline unsigned lowest_bit(uint64_t bits)
{
#ifdef __GNUC__
    return (unsigned)__builtin_ctzll(bits);
#else
    unsigned place = 0;
    for (; !(bits & 1); bits >>= 1)
        place++;
    return place;
#endif
}

#if defined(__x86_64__) && defined(__GNUC__)
#define AHEAD 2048 /* bytes */
/* Intel's own prefetching stops at every page. AMD's is a quarter faster alone up to Zen 4; Zen 5,
 * which has VP2INTERSECT, reads wide labels up to 1.4 times as fast with hints. Past the end of an
 * array, a hint names an address that is never read. */
#define FETCH_AHEAD(at) __builtin_prefetch((const char *)(at) + AHEAD)
#define FETCHES_AHEAD                                                                              \
    (__builtin_cpu_is("intel") || __builtin_cpu_supports("avx512vp2intersect"))

#include <immintrin.h>
#define HAS_X86_LOOPS
#define AVX2 __attribute__((target("avx2")))
#define AVX512 __attribute__((target("avx512bw")))

AVX2 static inline __m256i load_avx2(const void *from) { return _mm256_loadu_si256(from); }

AVX2 static inline uint64_t unequal_avx2(const uint8_t *a, __m256i low, __m256i high)
{
    __m256i first = _mm256_cmpeq_epi8(load_avx2(a), low);
    __m256i second = _mm256_cmpeq_epi8(load_avx2(a + 32), high);
    uint64_t same = (uint32_t)_mm256_movemask_epi8(second);
    return ~(same << 32 | (uint32_t)_mm256_movemask_epi8(first));
}

AVX2 static inline uint64_t differ64_avx2(const uint8_t *a, const uint8_t *b)
{
    return unequal_avx2(a, load_avx2(b), load_avx2(b + 32));
}

AVX2 static inline uint64_t differ64_from_avx2(const uint8_t *a, uint8_t value)
{
    return unequal_avx2(a, _mm256_set1_epi8((char)value), _mm256_set1_epi8((char)value));
}

__attribute__((target("popcnt"))) static inline unsigned count_ones_avx2(uint64_t bits)
{
    return (unsigned)__builtin_popcountll(bits);
}

#define count_ones_avx512 count_ones_avx2

AVX512 static inline uint64_t differ64_avx512(const uint8_t *a, const uint8_t *b)
{
    return _mm512_cmpneq_epu8_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
}

AVX512 static inline uint64_t differ64_from_avx512(const uint8_t *a, uint8_t value)
{
    return _mm512_cmpneq_epu8_mask(_mm512_loadu_si512(a), _mm512_set1_epi8((char)value));
}
#else
#define FETCH_AHEAD(at) ((void)(at))
#define FETCHES_AHEAD 0
#endif

#endif
