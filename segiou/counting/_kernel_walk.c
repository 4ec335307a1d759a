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
 * Where most pixels start a run, which is called noise, pixels are counted one by one: the number
 * of each pair of symbols first, which compilers turn into vector instructions, then one added to
 * its counter of 32 bits. A counter that was written just before must be waited for, so that small
 * tables are counted into two copies in turn.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

#define MIN_RUN 4 /* where runs are shorter on average, counting pixels is faster */
#define SAMPLE 256
#define FEW_CELLS 4096 /* twice four bytes each fill 32 KiB */
#ifndef FEW_ROOM       /* a test makes it small */
#define FEW_ROOM (UINT64_C(1) << 31) /* pixels; 32 bits hold a block more */
#endif
/* Rows shorter than this are gathered into blocks, since every block has its fixed cost. */
#define SHORT_ROW 192
#define CACHE_LINE 64

/* The first of the symbols that all mean the same, up to 255. */
static uint8_t find_last(const uint32_t *offsets)
{
    unsigned last = 255;
    while (last > 0 && offsets[last - 1] == offsets[255])
        last--;
    return (uint8_t)last;
}

/* Arrays with fewer pixels than cells are not worth the emptying. */
static int prepare_cells(Noise *noise, const Counters *counters)
{
    if (noise->count == 0) {
        noise->last_truth = find_last(counters->truth_offsets);
        noise->last_pred = find_last(counters->pred_offsets);
        noise->width = noise->last_pred + 1u;
        noise->count = (noise->last_truth + 1u) * noise->width;
        noise->copies = noise->count <= FEW_CELLS ? 2 : 1;
        if (noise->count <= noise->all_pixels)
            noise->cells = calloc(noise->count, noise->copies * sizeof(uint32_t));
    }
    return noise->cells != NULL;
}

static void empty_cells(Noise *noise, const Counters *counters)
{
    uint32_t *cell = noise->cells;
    for (size_t t = 0; t <= noise->last_truth; t++) {
        int64_t *row = counters->table + counters->truth_offsets[t];
        for (size_t p = 0; p <= noise->last_pred; p++)
            for (size_t copy = 0; copy < noise->copies; copy++)
                row[counters->pred_offsets[p]] += *cell++;
    }
    memset(noise->cells, 0, noise->copies * noise->count * sizeof(uint32_t));
    noise->pixels = 0;
}

static inline void add_pairs(uint32_t *cells, const uint16_t *pairs, size_t n, size_t copies)
{
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        uint64_t four;
        memcpy(&four, pairs + i, sizeof four);
        cells[copies * (four & 65535)]++;
        cells[copies * (four >> 16 & 65535) + copies - 1]++;
        cells[copies * (four >> 32 & 65535)]++;
        cells[copies * (four >> 48) + copies - 1]++;
    }
    for (; i < n; i++)
        cells[copies * pairs[i]]++;
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
static void count_noise(const Loops *loops, int is_wide, const void *truth, const void *pred, size_t n,
                        const Counters *counters, uint16_t *pairs)
{
    Noise *noise = counters->noise;
    if (is_wide) {
        count_pixels16(truth, pred, n, counters);
    } else if (prepare_cells(noise, counters)) {
        loops->find_pairs(truth, pred, n, noise, pairs);
        if (noise->copies == 2)
            add_pairs(noise->cells, pairs, n, 2);
        else
            add_pairs(noise->cells, pairs, n, 1);
        noise->pixels += n;
        if (noise->pixels >= FEW_ROOM)
            empty_cells(noise, counters);
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
        count_noise(loops, is_wide, truth, pred, n, counters, positions);
    else if (is_wide)
        count_runs16(truth, pred, positions, runs, counters);
    else
        count_runs8(truth, pred, positions, runs, counters);
}

/* Brings what the small counters hold into the table. */
static void finish_noise(const Counters *counters)
{
    Noise *noise = counters->noise;
    if (noise->cells)
        empty_cells(noise, counters);
    free(noise->cells);
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
    Noise noise = {.all_pixels = 1};
    for (int axis = 0; axis < axes->ndim; axis++)
        noise.all_pixels *= (uint64_t)axes->shape[axis];
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
