/* Scores of one width whose classes lie side by side; included by _scores_loops.h.
 *
 * Few classes are transposed into planes, squares of a vector's width at a time. Many are
 * compared pixel by pixel, since so many planes would not stay in cache.
 */

#ifdef HAS_SHUFFLES
#define LANES (128 / WIDTH)
typedef UINT NAME(Vector) __attribute__((vector_size(16)));
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
TARGET static inline void NAME(transpose_square)(const char *from, ptrdiff_t from_stride, char *to,
                                            size_t to_stride)
{
    NAME(Vector) rows[LANES], zipped[LANES];
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
TARGET static inline size_t NAME(transpose_squares)(const char *scores, ptrdiff_t pixel_stride,
                                               size_t classes, size_t n, char *planes, size_t room)
{
    size_t i = 0, size = sizeof(UINT);
    for (; classes >= LANES && i + LANES <= n; i += LANES)
        for (size_t k = 0; k < classes; k += LANES) {
            /* The last square goes back to where a whole one fits. */
            size_t at = k + LANES <= classes ? k : classes - LANES;
            NAME(transpose_square)(scores + (ptrdiff_t)i * pixel_stride + at * size, pixel_stride,
                              planes + (at * room + i) * size, room * size);
        }
    return i;
}
#undef ZIP_LOW
#undef ZIP_HIGH
#undef LANES
#endif

/* `classes` and `stride` are constants wherever that lets compilers see a pattern. */
TARGET static inline void NAME(transpose_pixels)(const char *scores, ptrdiff_t stride, size_t classes,
                                            size_t n, char *planes, size_t room)
{
    for (size_t k = 0; k < classes; k++)
        for (size_t i = 0; i < n; i++)
            memcpy(planes + (k * room + i) * sizeof(UINT),
                   scores + (ptrdiff_t)i * stride + k * sizeof(UINT), sizeof(UINT));
}

TARGET static void NAME(transpose)(const char *scores, ptrdiff_t pixel_stride, size_t classes, size_t n,
                              char *planes, size_t room)
{
    ptrdiff_t size = sizeof(UINT);
    size_t done = 0;
    if (classes == 2 && pixel_stride == 2 * size) {
        NAME(transpose_pixels)(scores, 2 * size, 2, n, planes, room);
        return;
    }
#ifdef HAS_SHUFFLES
    done = NAME(transpose_squares)(scores, pixel_stride, classes, n, planes, room);
#endif
    NAME(transpose_pixels)(scores + (ptrdiff_t)done * pixel_stride, pixel_stride, classes, n - done,
                      planes + (ptrdiff_t)done * size, room);
}

#ifdef HAS_SHUFFLES
#define ROW (256 / WIDTH) /* scores that are compared at once */
typedef INT NAME(Row) __attribute__((vector_size(32)));
typedef UINT NAME(BitsOfRow) __attribute__((vector_size(32)));

/* As the key of one score, but without a branch, which vectors do not have. */
TARGET static inline void NAME(load_keys)(const char *scores, int is_float, UINT constant,
                                          NAME(Row) *keys)
{
    NAME(BitsOfRow) bits;
    memcpy(&bits, scores, sizeof bits);
    if (is_float) {
        NAME(BitsOfRow) sign = (NAME(BitsOfRow))((NAME(Row))bits >> (WIDTH - 1));
        *keys = (NAME(Row))((bits ^ sign) + (sign & (UINT)(TOP + 1)) - (UINT)(TOP - constant));
    } else {
        *keys = (NAME(Row))(bits ^ constant);
    }
}

/* The first of the largest; afterwards that is best[0]. */
TARGET static inline UINT NAME(first_of_row)(INT *best, UINT *at)
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

TARGET static inline int NAME(argmax_rows)(const char *scores, ptrdiff_t pixel_stride,
                                           size_t classes, size_t n, int is_float, UINT constant,
                                           uint8_t *restrict labels)
{
    INT worst = 0, infinity = NAME(key)((INT)constant, is_float, constant), bests[ROW];
    UINT ats[ROW];
    NAME(BitsOfRow) numbers;
    for (int i = 0; i < ROW; i++)
        numbers[i] = (UINT)i;
    for (size_t i = 0; i < n; i++, scores += pixel_stride) {
        NAME(Row) best, row;
        NAME(BitsOfRow) at = numbers;
        NAME(load_keys)(scores, is_float, constant, &best);
        for (size_t k = ROW; k < classes; k += ROW) {
            size_t from = k + ROW <= classes ? k : classes - ROW;
            NAME(load_keys)(scores + from * sizeof(INT), is_float, constant, &row);
            NAME(Row) is_more = row > best;
            best = (row & is_more) | (best & ~is_more);
            at = ((numbers + (UINT)from) & (NAME(BitsOfRow))is_more) |
                 (at & (NAME(BitsOfRow))~is_more);
        }
        memcpy(bests, &best, sizeof bests);
        memcpy(ats, &at, sizeof ats);
        labels[i] = (uint8_t)NAME(first_of_row)(bests, ats);
        worst |= bests[0] > infinity;
    }
    return is_float && worst;
}
#undef ROW
#else
TARGET static inline int NAME(argmax_rows)(const char *scores, ptrdiff_t pixel_stride,
                                           size_t classes, size_t n, int is_float, UINT constant,
                                           uint8_t *restrict labels)
{
    INT worst = 0, infinity = NAME(key)((INT)constant, is_float, constant), score;
    for (size_t i = 0; i < n; i++, scores += pixel_stride) {
        memcpy(&score, scores, sizeof score);
        INT best = NAME(key)(score, is_float, constant);
        labels[i] = 0;
        for (size_t k = 1; k < classes; k++) {
            memcpy(&score, scores + k * sizeof score, sizeof score);
            INT key = NAME(key)(score, is_float, constant);
            labels[i] = key > best ? (uint8_t)k : labels[i];
            best = key > best ? key : best;
        }
        worst |= best > infinity;
    }
    return is_float && worst;
}
#endif
