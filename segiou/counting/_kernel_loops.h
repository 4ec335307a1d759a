/* The inner loops for one instruction set; included by _kernel_loops.c, which has `append`: it adds
 * the positions of the bits set in a mask, counted from `at`.
 *
 * Compilers turn most loops into vector instructions of the target.
 */

/* A bit for each of 64 bytes that differs from the one `width` bytes before it in either array. */
TARGET static inline uint64_t NAME(changed64)(const uint8_t *truth, const uint8_t *pred,
                                              size_t width)
{
    return NAME(differ64)(truth, truth - width) | NAME(differ64)(pred, pred - width);
}

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

TARGET static size_t NAME(scan8)(const void *truth, const void *pred, size_t n,
                                 uint16_t *positions)
{
    return NAME(scan)(truth, pred, n, positions, 1);
}

TARGET static size_t NAME(scan16)(const void *truth, const void *pred, size_t n,
                                  uint16_t *positions)
{
    return NAME(scan)(truth, pred, n, positions, 2);
}

/* The low bits of all differences first: compilers turn that into few instructions. */
#define DEFINE_SHIFT(BITS, WIDTH)                                                             \
    TARGET static void NAME(shift##BITS##_##WIDTH)(const Source *source, const char *values,  \
                                                   size_t n, void *symbols)                   \
    {                                                                                         \
        const uint##BITS##_t first = (uint##BITS##_t)source->first;                           \
        const uint16_t mask = source->mask, outside = source->outside;                        \
        uint##WIDTH##_t *restrict into = symbols;                                             \
        uint##BITS##_t value;                                                                 \
        const int fetches = FETCHES_AHEAD;                                                    \
        for (size_t start = 0, end; start < n; start = end) {                                 \
            uint##BITS##_t any = 0;                                                           \
            end = n - start < AT_ONCE ? n : start + AT_ONCE;                                  \
            for (size_t i = start; fetches && i < end; i += 64 / sizeof value)                \
                FETCH_AHEAD(values + i * sizeof value);                                       \
            for (size_t i = start; i < end; i++) {                                            \
                memcpy(&value, values + i * sizeof value, sizeof value);                      \
                value -= first;                                                               \
                any |= value;                                                                 \
                into[i] = (uint##WIDTH##_t)value;                                             \
            }                                                                                 \
            for (size_t i = start; any > mask && i < end; i++) {                              \
                memcpy(&value, values + i * sizeof value, sizeof value);                      \
                value -= first;                                                               \
                into[i] = (uint##WIDTH##_t)(value > mask ? outside : value);                  \
            }                                                                                 \
        }                                                                                     \
    }

DEFINE_SHIFT(16, 8)
DEFINE_SHIFT(32, 8)
DEFINE_SHIFT(64, 8)
DEFINE_SHIFT(8, 16)
DEFINE_SHIFT(16, 16)
DEFINE_SHIFT(32, 16)
DEFINE_SHIFT(64, 16)
#undef DEFINE_SHIFT

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

static const Loops NAME(loops) = {
    .name = NAME(name),
    .scan = {NAME(scan8), NAME(scan16)},
    .shift = {{NULL, NAME(shift16_8), NAME(shift32_8), NAME(shift64_8)},
              {NAME(shift8_16), NAME(shift16_16), NAME(shift32_16), NAME(shift64_16)}},
    .find_pairs = NAME(find_pairs),
};
