/* Two strided arrays as a sequence of blocks that fit the first-level cache, and the blocks
 * counted.
 *
 * Counts do not depend on the order of the pixels, so the axes may be reversed, sorted and
 * merged: most arrays that are not contiguous, such as transposed or reversed ones, become
 * contiguous that way and are read in place.
 *
 * Label maps are runs: neighbours are mostly equal. The positions at which either symbol changes
 * are collected first, without a branch that depends on the labels, and the runs between them
 * are counted in a second, tight loop.
 *
 * Where most pixels start a run, which is called noise, pixels are counted one by one. What costs
 * there is adding one to a counter in memory: a counter that was written just before must be
 * waited for, and counters that do not fit the first-level cache must be fetched. So small tables
 * are counted into two copies in turn, in 32 bits, and large ones in 8 bits, with the carry going
 * to the table itself.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

#define MIN_RUN 2 /* where runs are shorter on average, counting pixels is faster */
#define SAMPLE 256
#define FEW_CELLS 4096 /* twice four bytes each fill 32 KiB */
#ifndef FEW_ROOM       /* a test makes it small */
#define FEW_ROOM (UINT64_C(1) << 31) /* pixels; 32 bits hold a block more */
#endif
#define SYMBOL_PAIRS 65536
#define CARRY 256
/* Rows shorter than this are gathered into blocks, since every block has its fixed cost. */
#define SHORT_ROW 192
#define CACHE_LINE 64

static int is_few(const Counters *counters)
{
    return counters->rows <= 256 && counters->cols <= 256 &&
           counters->rows * counters->cols <= FEW_CELLS;
}

static void fill_codes(Noise *noise, const Counters *counters)
{
    for (int symbol = 0; symbol < 256; symbol++) {
        noise->truth_codes[symbol] = (uint8_t)(counters->truth_offsets[symbol] / counters->cols);
        noise->pred_codes[symbol] = (uint8_t)counters->pred_offsets[symbol];
    }
}

static int prepare_few(Noise *noise, const Counters *counters)
{
    if (noise->few == NULL) {
        noise->few = calloc(counters->rows * counters->cols, 2 * sizeof(uint32_t));
        fill_codes(noise, counters);
    }
    return noise->few != NULL;
}

static void empty_few(Noise *noise, const Counters *counters)
{
    for (size_t cell = 0; cell < counters->rows * counters->cols; cell++) {
        counters->table[cell] += (int64_t)noise->few[2 * cell] + noise->few[2 * cell + 1];
        noise->few[2 * cell] = noise->few[2 * cell + 1] = 0;
    }
    noise->few_pixels = 0;
}

static int64_t *cell_of_pair(const Counters *counters, size_t pair)
{
    return counters->table + counters->truth_offsets[pair >> 8] +
           counters->pred_offsets[pair & 255];
}

static void count_many(const uint8_t *truth, const uint8_t *pred, size_t n,
                       const Counters *counters)
{
    uint8_t *many = counters->noise->many;
    for (size_t i = 0; i < n; i++) {
        size_t pair = (size_t)truth[i] << 8 | pred[i];
        if (++many[pair] == 0)
            *cell_of_pair(counters, pair) += CARRY;
    }
}

static void empty_many(const Noise *noise, const Counters *counters)
{
    for (size_t pair = 0; pair < SYMBOL_PAIRS; pair += 8) {
        uint64_t eight;
        memcpy(&eight, noise->many + pair, sizeof eight);
        for (size_t i = 0; eight != 0 && i < 8; i++)
            if (noise->many[pair + i])
                *cell_of_pair(counters, pair + i) += noise->many[pair + i];
    }
}

#define DEFINE_COUNT(WIDTH)                                                                   \
    static void count_pixels##WIDTH(const uint##WIDTH##_t *truth,                             \
                                    const uint##WIDTH##_t *pred, size_t n,                    \
                                    const Counters *counters)                                 \
    {                                                                                         \
        const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;       \
        for (size_t i = 0; i < n; i++)                                                        \
            counters->table[(size_t)rows[truth[i]] + cols[pred[i]]]++;                        \
    }                                                                                         \
    static void count_runs##WIDTH(const uint##WIDTH##_t *truth, const uint##WIDTH##_t *pred,  \
                                  const uint16_t *positions, size_t runs,                     \
                                  const Counters *counters)                                   \
    {                                                                                         \
        const uint32_t *rows = counters->truth_offsets, *cols = counters->pred_offsets;       \
        for (size_t run = 0; run < runs; run++) {                                             \
            size_t at = positions[run];                                                       \
            counters->table[(size_t)rows[truth[at]] + cols[pred[at]]] +=                      \
                positions[run + 1] - positions[run];                                          \
        }                                                                                     \
    }

DEFINE_COUNT(8)
DEFINE_COUNT(16)

/* Without memory for small counters the table itself does; that is only slower. */
static void count_noise(const Loops *loops, int is_wide, const void *truth, const void *pred,
                        size_t n, const Counters *counters)
{
    Noise *noise = counters->noise;
    if (is_wide) {
        count_pixels16(truth, pred, n, counters);
    } else if (is_few(counters) && prepare_few(noise, counters)) {
        loops->count_few(truth, pred, n, counters);
        noise->few_pixels += n;
        if (noise->few_pixels >= FEW_ROOM)
            empty_few(noise, counters);
    } else if (noise->many || (noise->many = calloc(SYMBOL_PAIRS, 1)) != NULL) {
        count_many(truth, pred, n, counters);
    } else {
        count_pixels8(truth, pred, n, counters);
    }
}

/* Noise goes on as noise mostly: then a look at the first pixels of the next block will do. */
static int is_noise(const Scan scan, const void *truth, const void *pred, size_t n,
                    uint16_t *positions)
{
    size_t sample = n < SAMPLE ? n : SAMPLE;
    return scan(truth, pred, sample, positions) > sample / MIN_RUN;
}

/* n may be 0. positions has room for BLOCK + OVERRUN. */
static void count_block(const Loops *loops, int is_wide, const void *truth, const void *pred,
                        size_t n, const Counters *counters, uint16_t *positions)
{
    Scan scan = is_wide ? loops->scan16 : loops->scan8;
    Noise *noise = counters->noise;
    size_t runs = 0;
    noise->is_expected = noise->is_expected && is_noise(scan, truth, pred, n, positions);
    if (!noise->is_expected) {
        runs = scan(truth, pred, n, positions);
        positions[runs] = (uint16_t)n;
        noise->is_expected = runs > n / MIN_RUN;
    }
    if (noise->is_expected)
        count_noise(loops, is_wide, truth, pred, n, counters);
    else if (is_wide)
        count_runs16(truth, pred, positions, runs, counters);
    else
        count_runs8(truth, pred, positions, runs, counters);
}

/* Brings what the small counters hold into the table. */
static void finish_noise(const Counters *counters)
{
    Noise *noise = counters->noise;
    if (noise->few)
        empty_few(noise, counters);
    if (noise->many)
        empty_many(noise, counters);
    free(noise->few);
    free(noise->many);
}

typedef struct {
    const Loops *loops;
    const Counters *counters;
    const Axes *axes;
    const Source *truth, *pred;
    int is_wide;
    uint16_t *positions;
    char *native;
    char *truth_symbols;
    char *pred_symbols;
} Workspace;

enum { TRUTH, PRED };

static size_t magnitude(ptrdiff_t stride) { return (size_t)(stride < 0 ? -stride : stride); }

/* Where both arrays go backwards along an axis, they may as well go forwards. */
static void reverse_axes(Axes *axes, Source *truth, Source *pred)
{
    for (int axis = 0; axis < axes->ndim; axis++) {
        ptrdiff_t *truth_stride = &axes->strides[TRUTH][axis];
        ptrdiff_t *pred_stride = &axes->strides[PRED][axis];
        if (*truth_stride > 0 || *pred_stride > 0)
            continue;
        truth->data += (axes->shape[axis] - 1) * *truth_stride;
        pred->data += (axes->shape[axis] - 1) * *pred_stride;
        *truth_stride = -*truth_stride;
        *pred_stride = -*pred_stride;
    }
}

static size_t both_strides(const Axes *axes, int axis)
{
    return magnitude(axes->strides[TRUTH][axis]) + magnitude(axes->strides[PRED][axis]);
}

static void swap_axes(Axes *axes, int a, int b)
{
    ptrdiff_t length = axes->shape[a];
    ptrdiff_t truth = axes->strides[TRUTH][a], pred = axes->strides[PRED][a];
    move_axis(axes, b, a);
    axes->shape[b] = length;
    axes->strides[TRUTH][b] = truth;
    axes->strides[PRED][b] = pred;
}

/* The axis with the longest steps first. */
static void sort_axes(Axes *axes)
{
    for (int axis = 1; axis < axes->ndim; axis++)
        for (int b = axis; b > 0 && both_strides(axes, b) > both_strides(axes, b - 1); b--)
            swap_axes(axes, b, b - 1);
}

static void count_long_row(const Workspace *work, const char *truth, const char *pred)
{
    ptrdiff_t length = row_length(work->axes);
    ptrdiff_t truth_stride = row_stride(work->axes, TRUTH);
    ptrdiff_t pred_stride = row_stride(work->axes, PRED);
    int is_truth_wider = work->truth->itemsize > work->pred->itemsize;
    /* A page or less of either at once: the memory would idle while more of it is counted. */
    ptrdiff_t step = BLOCK / (is_truth_wider ? work->truth : work->pred)->itemsize;
    for (ptrdiff_t done = 0; done < length; done += step) {
        size_t n = (size_t)(length - done < step ? length - done : step);
        const void *t = as_symbols(work->truth, work->loops, truth + done * truth_stride,
                                   truth_stride, n, work->native, work->truth_symbols);
        const void *p = as_symbols(work->pred, work->loops, pred + done * pred_stride,
                                   pred_stride, n, work->native, work->pred_symbols);
        count_block(work->loops, work->is_wide, t, p, n, work->counters, work->positions);
    }
}

static void count_long_rows(const Workspace *work)
{
    const char *rows[] = {work->truth->data, work->pred->data};
    ptrdiff_t index[MAX_AXES] = {0};
    do {
        count_long_row(work, rows[TRUTH], rows[PRED]);
    } while (next_row(work->axes, index, rows));
}

static void append(const Source *source, const Workspace *work, const char *values,
                   ptrdiff_t stride, size_t n, char *symbols, size_t filled)
{
    size_t width = work->is_wide ? 2 : 1;
    char *into = symbols + filled * width;
    const void *made = as_symbols(source, work->loops, values, stride, n, work->native, into);
    if (made != into)
        memcpy(into, made, n * width);
}

static void count_short_rows(const Workspace *work)
{
    const char *rows[] = {work->truth->data, work->pred->data};
    ptrdiff_t index[MAX_AXES] = {0};
    ptrdiff_t truth_stride = row_stride(work->axes, TRUTH);
    ptrdiff_t pred_stride = row_stride(work->axes, PRED);
    size_t n = (size_t)row_length(work->axes), filled = 0;
    do {
        if (filled + n > BLOCK) {
            count_block(work->loops, work->is_wide, work->truth_symbols, work->pred_symbols,
                        filled, work->counters, work->positions);
            filled = 0;
        }
        append(work->truth, work, rows[TRUTH], truth_stride, n, work->truth_symbols, filled);
        append(work->pred, work, rows[PRED], pred_stride, n, work->pred_symbols, filled);
        filled += n;
    } while (next_row(work->axes, index, rows));
    count_block(work->loops, work->is_wide, work->truth_symbols, work->pred_symbols, filled,
                work->counters, work->positions);
}

static int has_any_last(const int64_t *table, size_t rows, size_t cols)
{
    int64_t any = 0;
    for (size_t row = 0; row < rows; row++)
        any |= table[row * cols + cols - 1];
    for (size_t col = 0; col < cols; col++)
        any |= table[(rows - 1) * cols + col];
    return any != 0;
}

int count_all(const Loops *loops, Axes *axes, Source *truth, Source *pred, int64_t *table,
              size_t rows, size_t cols)
{
    if (is_empty(axes))
        return has_any_last(table, rows, cols);
    reverse_axes(axes, truth, pred);
    sort_axes(axes);
    merge_axes(axes);

    size_t symbols = BLOCK * sizeof(uint16_t), native = BLOCK * sizeof(uint64_t);
    size_t positions = (BLOCK + OVERRUN) * sizeof(uint16_t);
    char *allocated = malloc(native + 2 * symbols + positions + CACHE_LINE);
    if (allocated == NULL)
        return -1;
    /* Stores of a whole line are a third slower across two of them. */
    char *memory = allocated + (CACHE_LINE - (uintptr_t)allocated % CACHE_LINE);
    Noise noise = {0};
    Counters counters = {table, rows, cols, truth->offsets, pred->offsets, &noise};
    Workspace work = {.loops = loops, .counters = &counters, .axes = axes, .truth = truth,
                      .pred = pred, .native = memory};
    work.is_wide = truth->kind >= SYMBOL_IS_SHIFT16;
    work.truth_symbols = memory + native;
    work.pred_symbols = work.truth_symbols + symbols;
    work.positions = (uint16_t *)(work.pred_symbols + symbols);
    if (row_length(axes) >= SHORT_ROW)
        count_long_rows(&work);
    else
        count_short_rows(&work);
    finish_noise(&counters);
    free(allocated);
    return has_any_last(table, rows, cols);
}
