/* The loops over scores of one width; included by _scores_widths.h, with
 *
 *   TARGET   the attribute of its functions
 *   NAME(x)  x with its suffix
 *   WIDTH    bits of a score: 8, 16, 32 or 64
 */
#define INT PASTE(int, WIDTH, _t)
#define UINT PASTE(uint, WIDTH, _t)
#define TOP ((UINT)((UINT)1 << (WIDTH - 1)))

/* Negative floats sort backwards, and -0 equals 0. The distance of infinity from the largest
 * integer is taken off, which wraps the NaN of either sign to above infinity. */
TARGET static inline INT NAME(key)(INT score, int is_float, UINT constant)
{
    if (!is_float)
        return (INT)((UINT)score ^ constant);
    UINT negative = (UINT)(constant - (UINT)score), positive = (UINT)((UINT)score + constant - TOP);
    return (INT)(score < 0 ? negative : positive);
}

/* The best scores so far and their labels, as wide as scores, so that one instruction serves as
 * many of both. */
TARGET static inline void NAME(take_one)(const INT *restrict plane, UINT k, size_t n,
                                         INT *restrict best, UINT *restrict labels, int is_float,
                                         UINT constant)
{
    for (size_t i = 0; i < n; i++) {
        INT score = NAME(key)(plane[i], is_float, constant), old = best[i];
        labels[i] = score > old ? k : labels[i];
        best[i] = score > old ? score : old;
    }
}

/* Four planes at once: then the best so far is loaded and stored once for all four. */
TARGET static inline void NAME(take_four)(const INT *restrict a, const INT *restrict b,
                                          const INT *restrict c, const INT *restrict d, UINT k,
                                          size_t n, INT *restrict best, UINT *restrict labels,
                                          int is_float, UINT constant)
{
    UINT k1 = (UINT)(k + 1), k2 = (UINT)(k + 2), k3 = (UINT)(k + 3);
    for (size_t i = 0; i < n; i++) {
        INT s0 = NAME(key)(a[i], is_float, constant), s1 = NAME(key)(b[i], is_float, constant);
        INT s2 = NAME(key)(c[i], is_float, constant), s3 = NAME(key)(d[i], is_float, constant);
        INT old = best[i];
        UINT low = s1 > s0 ? k1 : k, high = s3 > s2 ? k3 : k2;
        s0 = s1 > s0 ? s1 : s0;
        s2 = s3 > s2 ? s3 : s2;
        low = s2 > s0 ? high : low;
        s0 = s2 > s0 ? s2 : s0;
        labels[i] = s0 > old ? low : labels[i];
        best[i] = s0 > old ? s0 : old;
    }
}

/* While these pixels of four planes are compared, those of the next block are fetched: the
 * processor does not foresee where a short walk through many planes goes on. */
TARGET static inline void NAME(take_planes)(const char *four, ptrdiff_t stride, UINT k, size_t n,
                                            INT *best, UINT *labels, int is_float, UINT constant)
{
    for (size_t i = 0; i < n; i += CHUNK) {
        const char *at = four + i * sizeof(INT);
        const INT *a = (const INT *)at, *b = (const INT *)(at + stride);
        const INT *c = (const INT *)(at + 2 * stride), *d = (const INT *)(at + 3 * stride);
        for (int plane = 0; plane < 4; plane++)
            for (size_t line = 0; line < CHUNK * sizeof(INT); line += CACHE_LINE)
                FETCH(at + plane * stride + BLOCK * sizeof(INT) + line);
        if (n - i >= CHUNK)
            NAME(take_four)(a, b, c, d, k, CHUNK, best + i, labels + i, is_float, constant);
        else
            NAME(take_four)(a, b, c, d, k, n - i, best + i, labels + i, is_float, constant);
    }
}

TARGET static inline int NAME(argmax)(const char *first, ptrdiff_t stride, size_t classes,
                                      size_t n, int is_float, UINT constant,
                                      uint8_t *restrict labels)
{
    INT best[BLOCK], worst = 0, infinity = NAME(key)((INT)constant, is_float, constant);
    UINT wide[BLOCK];
    const INT *plane = (const INT *)first;
    for (size_t i = 0; i < n; i++) {
        best[i] = NAME(key)(plane[i], is_float, constant);
        wide[i] = 0;
    }
    size_t k = 1;
    for (; (classes - k) % 4; k++)
        NAME(take_one)((const INT *)(first + (ptrdiff_t)k * stride), (UINT)k, n, best, wide,
                       is_float, constant);
    for (; k < classes; k += 4)
        NAME(take_planes)(first + (ptrdiff_t)k * stride, stride, (UINT)k, n, best, wide, is_float,
                          constant);
    for (size_t i = 0; i < n; i++) {
        labels[i] = (uint8_t)wide[i];
        worst |= best[i] > infinity;
    }
    return is_float && worst;
}

#include "_scores_rows.h"

TARGET static int NAME(argmax_integers)(const char *first, ptrdiff_t stride, size_t classes,
                                        size_t n, uint64_t flip, uint8_t *labels)
{
    return NAME(argmax)(first, stride, classes, n, 0, (UINT)flip, labels);
}

TARGET static int NAME(argmax_rows_integers)(const char *first, ptrdiff_t stride, size_t classes,
                                             size_t n, uint64_t flip, uint8_t *labels)
{
    return NAME(argmax_rows)(first, stride, classes, n, 0, (UINT)flip, labels);
}

#if WIDTH > 8
TARGET static int NAME(argmax_floats)(const char *first, ptrdiff_t stride, size_t classes,
                                      size_t n, uint64_t infinity, uint8_t *labels)
{
    return NAME(argmax)(first, stride, classes, n, 1, (UINT)infinity, labels);
}

TARGET static int NAME(argmax_rows_floats)(const char *first, ptrdiff_t stride, size_t classes,
                                           size_t n, uint64_t infinity, uint8_t *labels)
{
    return NAME(argmax_rows)(first, stride, classes, n, 1, (UINT)infinity, labels);
}

TARGET static int NAME(above)(const char *scores, size_t n, uint64_t infinity, uint64_t threshold,
                              uint8_t *restrict labels)
{
    const INT *score = (const INT *)scores;
    INT limit = NAME(key)((INT)threshold, 1, (UINT)infinity), worst = 0;
    INT largest = NAME(key)((INT)infinity, 1, (UINT)infinity);
    for (size_t i = 0; i < n; i++) {
        INT key = NAME(key)(score[i], 1, (UINT)infinity);
        labels[i] = key > limit;
        worst |= key > largest;
    }
    return worst != 0;
}
#endif

#undef TOP
#undef UINT
#undef INT
