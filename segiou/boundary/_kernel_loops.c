/* Loops over rows of bytes for each instruction set, and which this processor runs. */
#include "_bytes.h"
#include "_kernel.h"

#include <string.h>

#define differ64_portable differ64

static inline uint64_t differ64_from_portable(const uint8_t *a, uint8_t value)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < 8; i++) {
        uint64_t word;
        memcpy(&word, a + 8 * i, 8);
        bits |= nonzero_bytes(word ^ value * EACH_BYTE) << 8 * i;
    }
    return bits;
}

static inline int64_t count_ones_portable(uint64_t word)
{
    word -= word >> 1 & EACH_BYTE * 0x55;
    word = (word & EACH_BYTE * 0x33) + (word >> 2 & EACH_BYTE * 0x33);
    return (int64_t)(((word + (word >> 4)) & EACH_BYTE * 0x0F) * EACH_BYTE >> 56);
}

#define TARGET
#define LOOPS "portable"
#define FEW_CLASSES 0
#define NAME(x) x##_portable
#include "_kernel_loops.h"
#undef TARGET
#undef LOOPS
#undef FEW_CLASSES
#undef NAME

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,bmi,popcnt")))
#define LOOPS "avx2"
#define FEW_CLASSES 16
#define NAME(x) x##_avx2

TARGET static inline uint64_t unequal_avx2(__m256i a0, __m256i a1, __m256i b0, __m256i b1)
{
    uint32_t first = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a0, b0));
    uint32_t second = (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(a1, b1));
    return ~(first | (uint64_t)second << 32);
}

TARGET static inline __m256i load_avx2(const uint8_t *from)
{
    return _mm256_loadu_si256((const __m256i *)from);
}

TARGET static inline uint64_t differ64_avx2(const uint8_t *a, const uint8_t *b)
{
    return unequal_avx2(load_avx2(a), load_avx2(a + 32), load_avx2(b), load_avx2(b + 32));
}

TARGET static inline uint64_t differ64_from_avx2(const uint8_t *a, uint8_t value)
{
    __m256i values = _mm256_set1_epi8((char)value);
    return unequal_avx2(load_avx2(a), load_avx2(a + 32), values, values);
}

TARGET static inline int64_t count_ones_avx2(uint64_t word)
{
    return __builtin_popcountll(word);
}

#include "_kernel_loops.h"
#undef TARGET
#undef LOOPS
#undef FEW_CLASSES
#undef NAME

/* GCC would take vectors of half the width; clang does not know the option. */
#ifdef __clang__
#define WIDEST_VECTORS
#else
#define WIDEST_VECTORS ",prefer-vector-width=512"
#endif
#define TARGET                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi,popcnt" WIDEST_VECTORS)))
#define LOOPS "avx512"
#define FEW_CLASSES 32
#define NAME(x) x##_avx512

TARGET static inline uint64_t differ64_avx512(const uint8_t *a, const uint8_t *b)
{
    return _mm512_cmpneq_epu8_mask(_mm512_loadu_si512(a), _mm512_loadu_si512(b));
}

TARGET static inline uint64_t differ64_from_avx512(const uint8_t *a, uint8_t value)
{
    return _mm512_cmpneq_epu8_mask(_mm512_loadu_si512(a), _mm512_set1_epi8((char)value));
}

TARGET static inline int64_t count_ones_avx512(uint64_t word)
{
    return __builtin_popcountll(word);
}

#include "_kernel_loops.h"

#endif

const Loops *find_loops(const char *name)
{
    const Loops *all[3];
    size_t n = 0;
#if defined(__x86_64__) && defined(__GNUC__)
    __builtin_cpu_init();
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("popcnt");
    if (has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        all[n++] = &loops_avx512;
    if (has_avx2)
        all[n++] = &loops_avx2;
#endif
    all[n++] = &loops_portable;
    for (size_t i = 0; i < n; i++)
        if (name == NULL || strcmp(name, all[i]->name) == 0)
            return all[i];
    return NULL;
}
