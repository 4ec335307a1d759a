/* The loops over scores of WIDTH bits: 8, 16, 32 or 64. */
#define INT TYPE(int, WIDTH)
#define UINT TYPE(uint, WIDTH)
#define TOP ((UINT)((UINT)1 << (WIDTH - 1)))

/* Negative floats sort backwards, and -0 equals 0. The distance of infinity from the largest
 * integer is taken off, which wraps the NaN of either sign to above infinity. */
TARGET static inline INT SIZED(key)(INT score, int is_float, UINT constant)
{
    if (!is_float)
        return (INT)((UINT)score ^ constant);
    UINT negative = (UINT)(constant - (UINT)score), positive = (UINT)((UINT)score + constant - TOP);
    return (INT)(score < 0 ? negative : positive);
}

/* The best scores so far and their labels, as wide as scores, so that one instruction serves as
 * many of both. */
TARGET static inline void SIZED(take_one)(const INT *restrict plane, UINT k, size_t n,
                                          INT *restrict best, UINT *restrict labels, int is_float,
                                          UINT constant)
{
    for (size_t i = 0; i < n; i++) {
        INT score = SIZED(key)(plane[i], is_float, constant), old = best[i];
        labels[i] = score > old ? k : labels[i];
        best[i] = score > old ? score : old;
    }
}

/* Four planes at once: then the best so far is loaded and stored once for all four. */
TARGET static inline void SIZED(take_four)(const INT *restrict a, const INT *restrict b,
                                           const INT *restrict c, const INT *restrict d, UINT k,
                                           size_t n, INT *restrict best, UINT *restrict labels,
                                           int is_float, UINT constant)
{
    UINT k1 = (UINT)(k + 1), k2 = (UINT)(k + 2), k3 = (UINT)(k + 3);
    for (size_t i = 0; i < n; i++) {
        INT s0 = SIZED(key)(a[i], is_float, constant), s1 = SIZED(key)(b[i], is_float, constant);
        INT s2 = SIZED(key)(c[i], is_float, constant), s3 = SIZED(key)(d[i], is_float, constant);
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
TARGET static inline void SIZED(take_planes)(const char *four, ptrdiff_t stride, UINT k, size_t n,
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
            SIZED(take_four)(a, b, c, d, k, CHUNK, best + i, labels + i, is_float, constant);
        else
            SIZED(take_four)(a, b, c, d, k, n - i, best + i, labels + i, is_float, constant);
    }
}

TARGET static inline int SIZED(argmax_of_keys)(const char *first, ptrdiff_t stride,
                                               size_t classes, size_t n, int is_float,
                                               UINT constant, void *restrict labels, int is_wide)
{
    INT best[BLOCK], worst = 0, infinity = SIZED(key)((INT)constant, is_float, constant);
    UINT wide[BLOCK];
    const INT *plane = (const INT *)first;
    for (size_t i = 0; i < n; i++) {
        best[i] = SIZED(key)(plane[i], is_float, constant);
        wide[i] = 0;
    }
    size_t k = 1;
    for (; (classes - k) % 4; k++)
        SIZED(take_one)((const INT *)(first + (ptrdiff_t)k * stride), (UINT)k, n, best, wide,
                        is_float, constant);
    for (; k < classes; k += 4)
        SIZED(take_planes)(first + (ptrdiff_t)k * stride, stride, (UINT)k, n, best, wide, is_float,
                           constant);
    for (size_t i = 0; i < n; i++)
        worst |= best[i] > infinity;
    uint8_t *bytes = labels;
    uint16_t *words = labels;
    if (is_wide)
        for (size_t i = 0; i < n; i++)
            words[i] = (uint16_t)wide[i];
    else
        for (size_t i = 0; i < n; i++)
            bytes[i] = (uint8_t)wide[i];
    return is_float && worst;
}

/* Compiled once for floats and once for integers. */
TARGET static int SIZED(argmax)(const char *first, ptrdiff_t stride, size_t classes, size_t n,
                                Key key, void *labels, int is_wide)
{
    UINT constant = (UINT)key.constant;
    if (key.is_float)
        return SIZED(argmax_of_keys)(first, stride, classes, n, 1, constant, labels, is_wide);
    return SIZED(argmax_of_keys)(first, stride, classes, n, 0, constant, labels, is_wide);
}

#if WIDTH > 8
TARGET static int SIZED(above)(const char *scores, size_t n, uint64_t infinity, uint64_t threshold,
                               uint8_t *restrict labels)
{
    const INT *score = (const INT *)scores;
    INT limit = SIZED(key)((INT)threshold, 1, (UINT)infinity), worst = 0;
    INT largest = SIZED(key)((INT)infinity, 1, (UINT)infinity);
    for (size_t i = 0; i < n; i++) {
        INT key = SIZED(key)(score[i], 1, (UINT)infinity);
        labels[i] = key > limit;
        worst |= key > largest;
    }
    return worst != 0;
}
#endif

/* Scores whose classes lie side by side. Few classes are transposed into planes, squares of a
 * vector's width at a time. Many are compared pixel by pixel, since so many planes would not stay
 * in cache. */

#ifdef HAS_SHUFFLES
#define LANES (128 / WIDTH)
typedef UINT SIZED(Vector) __attribute__((vector_size(16)));
#if WIDTH == 8
#define ZIP_LOW(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ZIP_HIGH(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#elif WIDTH == 16
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#elif WIDTH == 32
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#else
#define ZIP_LOW(a, b) __builtin_shufflevector(a, b, 0, 2)
#define ZIP_HIGH(a, b) __builtin_shufflevector(a, b, 1, 3)
#endif

/* Each round of zipping moves one bit of the column's number into the row's. */
TARGET static inline void SIZED(transpose_square)(const char *from, ptrdiff_t from_stride, char *to,
                                            size_t to_stride)
{
    SIZED(Vector) rows[LANES], zipped[LANES];
    for (int i = 0; i < LANES; i++)
        memcpy(&rows[i], from + i * from_stride, sizeof rows[i]);
    for (int round = 1; round < LANES; round *= 2) {
        for (int i = 0; i < LANES / 2; i++) {
            zipped[2 * i] = ZIP_LOW(rows[i], rows[i + LANES / 2]);
            zipped[2 * i + 1] = ZIP_HIGH(rows[i], rows[i + LANES / 2]);
        }
        memcpy(rows, zipped, sizeof rows);
    }
    for (int i = 0; i < LANES; i++)
        memcpy(to + (size_t)i * to_stride, &rows[i], sizeof rows[i]);
}

/* Returns how many pixels were transposed: as many as make whole squares. */
TARGET static inline size_t SIZED(transpose_squares)(const char *scores, ptrdiff_t pixel_stride,
                                               size_t classes, size_t n, char *planes, size_t room)
{
    size_t i = 0, size = sizeof(UINT);
    for (; classes >= LANES && i + LANES <= n; i += LANES)
        for (size_t k = 0; k < classes; k += LANES) {
            /* The last square goes back to where a whole one fits. */
            size_t at = k + LANES <= classes ? k : classes - LANES;
            SIZED(transpose_square)(scores + (ptrdiff_t)i * pixel_stride + at * size, pixel_stride,
                              planes + (at * room + i) * size, room * size);
        }
    return i;
}
#undef ZIP_LOW
#undef ZIP_HIGH
#undef LANES
#endif

/* Strides and `classes` are constants wherever that lets compilers see a pattern. */
TARGET static inline void SIZED(gather)(const char *scores, ptrdiff_t pixel_stride,
                                        ptrdiff_t class_stride, size_t classes, size_t n,
                                        char *planes, size_t room)
{
    for (size_t k = 0; k < classes; k++)
        for (size_t i = 0; i < n; i++)
            memcpy(planes + (k * room + i) * sizeof(UINT),
                   scores + (ptrdiff_t)i * pixel_stride + (ptrdiff_t)k * class_stride,
                   sizeof(UINT));
}

TARGET static void SIZED(transpose)(const char *scores, ptrdiff_t pixel_stride,
                                    ptrdiff_t class_stride, size_t classes, size_t n, char *planes,
                                    size_t room)
{
    ptrdiff_t size = sizeof(UINT);
    size_t done = 0;
    if (classes == 2 && class_stride == size && pixel_stride == 2 * size) {
        SIZED(gather)(scores, 2 * size, size, 2, n, planes, room);
        return;
    }
#ifdef HAS_SHUFFLES
    if (class_stride == size)
        done = SIZED(transpose_squares)(scores, pixel_stride, classes, n, planes, room);
#endif
    SIZED(gather)(scores + (ptrdiff_t)done * pixel_stride, pixel_stride, class_stride, classes,
                  n - done, planes + (ptrdiff_t)done * size, room);
}

#ifdef HAS_SHUFFLES
#define ROW (256 / WIDTH) /* scores that are compared at once */
typedef INT SIZED(Row) __attribute__((vector_size(32)));
typedef UINT SIZED(BitsOfRow) __attribute__((vector_size(32)));

/* As the key of one score, but without a branch, which vectors do not have. */
TARGET static inline void SIZED(load_keys)(const char *scores, int is_float, UINT constant,
                                           SIZED(Row) *keys)
{
    SIZED(BitsOfRow) bits;
    memcpy(&bits, scores, sizeof bits);
    if (is_float) {
        SIZED(BitsOfRow) sign = (SIZED(BitsOfRow))((SIZED(Row))bits >> (WIDTH - 1));
        *keys = (SIZED(Row))((bits ^ sign) + (sign & (UINT)(TOP + 1)) - (UINT)(TOP - constant));
    } else {
        *keys = (SIZED(Row))(bits ^ constant);
    }
}

/* The first of the largest; afterwards that is best[0]. */
TARGET static inline UINT SIZED(first_of_row)(INT *best, UINT *at)
{
    for (int half = ROW / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) {
            INT a = best[i], b = best[i + half];
            UINT j = at[i], k = at[i + half];
            int is_b = (b > a) | ((b == a) & (k < j));
            best[i] = is_b ? b : a;
            at[i] = is_b ? k : j;
        }
    return at[0];
}

TARGET static inline int SIZED(rows_of_keys)(const char *scores, ptrdiff_t pixel_stride,
                                             size_t classes, size_t n, int is_float, UINT constant,
                                             void *restrict labels, int is_wide)
{
    INT worst = 0, infinity = SIZED(key)((INT)constant, is_float, constant), bests[ROW];
    UINT ats[ROW];
    SIZED(BitsOfRow) numbers;
    for (int i = 0; i < ROW; i++)
        numbers[i] = (UINT)i;
    for (size_t i = 0; i < n; i++, scores += pixel_stride) {
        SIZED(Row) best, row;
        SIZED(BitsOfRow) at = numbers;
        SIZED(load_keys)(scores, is_float, constant, &best);
        for (size_t k = ROW; k < classes; k += ROW) {
            size_t from = k + ROW <= classes ? k : classes - ROW;
            SIZED(load_keys)(scores + from * sizeof(INT), is_float, constant, &row);
            SIZED(Row) is_more = row > best;
            best = (row & is_more) | (best & ~is_more);
            at = ((numbers + (UINT)from) & (SIZED(BitsOfRow))is_more) |
                 (at & (SIZED(BitsOfRow))~is_more);
        }
        memcpy(bests, &best, sizeof bests);
        memcpy(ats, &at, sizeof ats);
        UINT label = SIZED(first_of_row)(bests, ats);
        if (is_wide)
            ((uint16_t *)labels)[i] = (uint16_t)label;
        else
            ((uint8_t *)labels)[i] = (uint8_t)label;
        worst |= bests[0] > infinity;
    }
    return is_float && worst;
}
#undef ROW

TARGET static int SIZED(argmax_rows)(const char *first, ptrdiff_t stride, size_t classes, size_t n,
                                     Key key, void *labels, int is_wide)
{
    UINT constant = (UINT)key.constant;
    if (key.is_float)
        return SIZED(rows_of_keys)(first, stride, classes, n, 1, constant, labels, is_wide);
    return SIZED(rows_of_keys)(first, stride, classes, n, 0, constant, labels, is_wide);
}
#endif

#undef TOP
#undef UINT
#undef INT
#undef WIDTH
