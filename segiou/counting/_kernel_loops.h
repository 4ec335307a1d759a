/* The inner loops for one instruction set; included by _kernel_loops.c, with
 *
 *   TARGET           the attribute of its functions
 *   NAME(x)          their names
 *   changed64        a bit for each of 64 bytes that differs from the one `width` bytes before it
 *                    in either array
 *   append           adds the positions of the bits set in a mask, counted from `at`
 *
 * Compilers turn most loops into vector instructions of the target.
 */

/* The position of every change. The last step goes back to where a whole one fits. */
TARGET static inline size_t NAME(scan)(const void *truth_symbols, const void *pred_symbols,
                                       size_t n, uint16_t *positions, size_t width)
{
    const uint8_t *truth = truth_symbols, *pred = pred_symbols;
    const size_t step = 64 / width;
    const int fetches = FETCHES_AHEAD;
    size_t found = 1, i = 1;
    positions[0] = 0;
    if (n <= step) {
        for (; i < n; i++) {
            const uint8_t *t = truth + i * width, *p = pred + i * width;
            positions[found] = (uint16_t)i;
            found += memcmp(t, t - width, width) || memcmp(p, p - width, width);
        }
        return found;
    }
    /* Loads of a whole line cost twice across two of them: those of truth start at one. */
    size_t head = (size_t)(-(uintptr_t)(truth + width) % 64) / width;
    if (head) {
        uint64_t mask = join_bits(NAME(changed64)(truth + width, pred + width, width), width);
        found = NAME(append)(positions, found, mask & ~(UINT64_MAX << head), 1);
        i += head;
    }
    for (; i + 4 * step <= n; i += 4 * step) {
        uint64_t masks[4];
        for (size_t j = 0; j < 4; j++) {
            const uint8_t *t = truth + i * width + 64 * j, *p = pred + i * width + 64 * j;
            if (fetches)
                FETCH_AHEAD(t), FETCH_AHEAD(p);
            masks[j] = NAME(changed64)(t, p, width);
        }
        if ((masks[0] | masks[1] | masks[2] | masks[3]) == 0)
            continue;
        for (size_t j = 0; j < 4; j++)
            found = NAME(append)(positions, found, join_bits(masks[j], width), i + j * step);
    }
    while (i < n) {
        size_t at = i + step <= n ? i : n - step;
        const uint8_t *t = truth + at * width, *p = pred + at * width;
        uint64_t mask = NAME(changed64)(t, p, width);
        mask = join_bits(mask, width) & UINT64_MAX << (i - at);
        found = NAME(append)(positions, found, mask, at);
        i = at + step;
    }
    return found;
}

TARGET ALIGNED_CODE static size_t NAME(scan8)(const void *truth, const void *pred, size_t n,
                                              uint16_t *positions)
{
    return NAME(scan)(truth, pred, n, positions, 1);
}

TARGET static size_t NAME(scan16)(const void *truth, const void *pred, size_t n,
                                  uint16_t *positions)
{
    return NAME(scan)(truth, pred, n, positions, 2);
}

#define DEFINE_SHIFT(BITS)                                                                    \
    TARGET ALIGNED_CODE static void NAME(shift##BITS)(                                        \
        const char *values, size_t n, uint64_t first, uint8_t outside, uint8_t *symbols)      \
    {                                                                                         \
        uint##BITS##_t value;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            uint##BITS##_t index = (uint##BITS##_t)(value - (uint##BITS##_t)first);           \
            symbols[i] = index < 256 ? (uint8_t)index : outside;                              \
        }                                                                                     \
    }
#define DEFINE_WIDE_SHIFT(BITS)                                                               \
    TARGET static void NAME(wide##BITS)(const char *values, size_t n, uint64_t first,         \
                                        uint64_t length, uint16_t *symbols)                   \
    {                                                                                         \
        uint##BITS##_t value, limit = (uint##BITS##_t)length;                                 \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            uint##BITS##_t index = (uint##BITS##_t)(value - (uint##BITS##_t)first);           \
            symbols[i] = (uint16_t)(index < limit ? index : limit);                           \
        }                                                                                     \
    }

DEFINE_SHIFT(16)
DEFINE_WIDE_SHIFT(16)
DEFINE_WIDE_SHIFT(32)
DEFINE_WIDE_SHIFT(64)

TARGET static void NAME(find_pairs)(const uint8_t *truth, const uint8_t *pred, size_t n,
                                    const Noise *noise, uint16_t *restrict pairs)
{
    const uint8_t last_truth = noise->last_truth, last_pred = noise->last_pred;
    const uint16_t width = (uint16_t)noise->width;
    for (size_t i = 0; i < n; i++) {
        uint8_t t = truth[i] < last_truth ? truth[i] : last_truth;
        uint8_t p = pred[i] < last_pred ? pred[i] : last_pred;
        pairs[i] = (uint16_t)(t * width + p);
    }
}
