/* Loops over rows of bytes, and maxima over windows made of them. */
#include "_kernel.h"

#include <string.h>

#define DEFINE_LOOPS(suffix, attributes)                                                           \
    attributes static void max_into_##suffix(uint8_t *restrict into,                               \
                                             const uint8_t *restrict from, size_t n)               \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            into[i] = into[i] > from[i] ? into[i] : from[i];                                       \
    }                                                                                              \
    attributes static void max_of_##suffix(uint8_t *restrict into, const uint8_t *a,               \
                                           const uint8_t *b, size_t n)                             \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            into[i] = a[i] > b[i] ? a[i] : b[i];                                                   \
    }                                                                                              \
    attributes static void split_##suffix(uint8_t *restrict high, uint8_t *restrict low,           \
                                          const uint8_t *restrict codes, size_t n)                 \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            high[i] = codes[i] == IGNORED ? 0 : codes[i];                                          \
            low[i] = (uint8_t)~codes[i];                                                           \
        }                                                                                          \
    }                                                                                              \
    attributes static void mark_##suffix(                                                          \
        uint8_t *restrict marks, const uint8_t *restrict high, const uint8_t *restrict low,        \
        const uint8_t *restrict codes, const uint8_t *restrict frame, size_t n)                    \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint8_t complements = high[i] ^ low[i];                                                \
            uint8_t mark = frame[i] | (complements == 255 ? 0 : NEAR);                             \
            marks[i] = codes[i] == IGNORED ? 0 : mark;                                             \
        }                                                                                          \
    }                                                                                              \
    attributes static void encode_##suffix(                                                        \
        uint8_t *restrict truth_codes, uint8_t *restrict pred_codes, const uint8_t *restrict truth,\
        const uint8_t *restrict pred, uint8_t ignored, uint8_t is_ignoring, size_t n)              \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint8_t dropped = truth[i] == ignored ? is_ignoring : 0;                               \
            truth_codes[i] = (truth[i] == 255 ? UNASSIGNED : truth[i]) | dropped;                  \
            pred_codes[i] = (pred[i] == 255 ? UNASSIGNED : pred[i]) | dropped;                     \
        }                                                                                          \
    }                                                                                              \
    attributes static void keep_highest_##suffix(uint8_t *restrict highest,                        \
                                                 const uint8_t *restrict codes, size_t n)          \
    {                                                                                              \
        for (size_t i = 0; i + VECTOR <= n; i += VECTOR)                                           \
            for (size_t j = 0; j < VECTOR; j++) {                                                  \
                uint8_t code = codes[i + j] == IGNORED ? 0 : codes[i + j];                         \
                highest[j] = code > highest[j] ? code : highest[j];                                \
            }                                                                                      \
    }                                                                                              \
    static const Loops loops_##suffix = {max_into_##suffix, max_of_##suffix, split_##suffix,       \
                                         mark_##suffix, encode_##suffix, keep_highest_##suffix};

DEFINE_LOOPS(portable, )

#if defined(__x86_64__) && defined(__GNUC__)
DEFINE_LOOPS(avx2, __attribute__((target("avx2"))))

const Loops *find_loops(void)
{
    __builtin_cpu_init();
    return __builtin_cpu_supports("avx2") ? &loops_avx2 : &loops_portable;
}
#else
const Loops *find_loops(void)
{
    return &loops_portable;
}
#endif

int has_code_from(const Loops *loops, const uint8_t *codes, uint8_t lowest, size_t n)
{
    uint8_t highest[VECTOR] = {0}, tail[VECTOR] = {0};
    size_t whole = n / VECTOR * VECTOR;
    loops->keep_highest(highest, codes, whole);
    memcpy(tail, codes + whole, n - whole);
    loops->keep_highest(highest, tail, VECTOR);
    for (size_t j = 0; j < VECTOR; j++)
        if (highest[j] >= lowest)
            return 1;
    return 0;
}

/* The maximum over 2n is that of two maxima over n. */
static size_t next_step(size_t reached, size_t size)
{
    return reached < size - reached ? reached : size - reached;
}

void max_over_rows(const Loops *loops, uint8_t *data, size_t rows, size_t stride, size_t size)
{
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = next_step(reached, size);
        rows -= step;
        for (size_t i = 0; i < rows; i++)
            loops->max_into(data + i * stride, data + (i + step) * stride, stride);
    }
}

uint8_t *max_along_row(const Loops *loops, uint8_t *row, uint8_t *spare, size_t n, size_t size)
{
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = next_step(reached, size);
        loops->max_of(spare, row, row + step, n);
        uint8_t *swapped = row;
        row = spare;
        spare = swapped;
    }
    return row;
}
