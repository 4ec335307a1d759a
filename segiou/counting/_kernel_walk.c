/* Two strided arrays as a sequence of blocks that fit the first-level cache.
 *
 * Counts do not depend on the order of the pixels, so the axes may be turned round, sorted and
 * merged: most arrays that are not contiguous, such as transposed or reversed ones, become
 * contiguous that way and are read in place.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

/* Rows shorter than this are gathered into blocks, since every block has its fixed cost. */
#define SHORT_ROW 192
#define CACHE_LINE 64

typedef struct {
    int ndim;
    ptrdiff_t shape[MAX_AXES];
    Source *truth, *pred;
} Grid;

typedef struct {
    const Loops *loops;
    const Counters *counters;
    int is_wide;
    uint16_t *positions;
    char *native;
    char *truth_symbols;
    char *pred_symbols;
} Workspace;

static ptrdiff_t magnitude(ptrdiff_t stride) { return stride < 0 ? -stride : stride; }

static void reverse_axis(Source *source, int axis, ptrdiff_t length)
{
    source->data += (length - 1) * source->strides[axis];
    source->strides[axis] = -source->strides[axis];
}

static void swap_strides(Source *source, int a, int b)
{
    ptrdiff_t kept = source->strides[a];
    source->strides[a] = source->strides[b];
    source->strides[b] = kept;
}

static int is_before(const Grid *grid, int a, int b)
{
    size_t stride_a = (size_t)magnitude(grid->truth->strides[a]) +
                      (size_t)magnitude(grid->pred->strides[a]);
    size_t stride_b = (size_t)magnitude(grid->truth->strides[b]) +
                      (size_t)magnitude(grid->pred->strides[b]);
    return stride_a > stride_b;
}

static void drop_single_axes(Grid *grid)
{
    int kept = 0;
    for (int axis = 0; axis < grid->ndim; axis++) {
        if (grid->shape[axis] == 1)
            continue;
        grid->shape[kept] = grid->shape[axis];
        grid->truth->strides[kept] = grid->truth->strides[axis];
        grid->pred->strides[kept] = grid->pred->strides[axis];
        kept++;
    }
    grid->ndim = kept;
}

static void sort_axes(Grid *grid)
{
    for (int axis = 1; axis < grid->ndim; axis++) {
        for (int b = axis; b > 0 && is_before(grid, b, b - 1); b--) {
            ptrdiff_t kept = grid->shape[b];
            grid->shape[b] = grid->shape[b - 1];
            grid->shape[b - 1] = kept;
            swap_strides(grid->truth, b, b - 1);
            swap_strides(grid->pred, b, b - 1);
        }
    }
}

static int continues(const Source *source, int outer, int inner, ptrdiff_t inner_length)
{
    return source->strides[outer] == source->strides[inner] * inner_length;
}

static void merge_axes(Grid *grid)
{
    int last = 0;
    for (int axis = 1; axis < grid->ndim; axis++) {
        ptrdiff_t length = grid->shape[axis];
        if (continues(grid->truth, last, axis, length) &&
            continues(grid->pred, last, axis, length)) {
            grid->shape[last] *= length;
        } else {
            grid->shape[++last] = length;
        }
        grid->truth->strides[last] = grid->truth->strides[axis];
        grid->pred->strides[last] = grid->pred->strides[axis];
    }
    grid->ndim = grid->ndim ? last + 1 : 0;
}

static void simplify(Grid *grid)
{
    drop_single_axes(grid);
    for (int axis = 0; axis < grid->ndim; axis++) {
        if (grid->truth->strides[axis] <= 0 && grid->pred->strides[axis] <= 0) {
            reverse_axis(grid->truth, axis, grid->shape[axis]);
            reverse_axis(grid->pred, axis, grid->shape[axis]);
        }
    }
    sort_axes(grid);
    merge_axes(grid);
}

/* Steps to the next row. Returns 0 after the last one. */
static int next_row(const Grid *grid, ptrdiff_t *index, const char **truth, const char **pred)
{
    for (int axis = grid->ndim - 2; axis >= 0; axis--) {
        ptrdiff_t truth_stride = grid->truth->strides[axis];
        ptrdiff_t pred_stride = grid->pred->strides[axis];
        if (++index[axis] < grid->shape[axis]) {
            *truth += truth_stride;
            *pred += pred_stride;
            return 1;
        }
        *truth -= truth_stride * (grid->shape[axis] - 1);
        *pred -= pred_stride * (grid->shape[axis] - 1);
        index[axis] = 0;
    }
    return 0;
}

static void count_long_row(const Grid *grid, const Workspace *work, const char *truth,
                           const char *pred)
{
    ptrdiff_t length = grid->shape[grid->ndim - 1];
    ptrdiff_t truth_stride = grid->truth->strides[grid->ndim - 1];
    ptrdiff_t pred_stride = grid->pred->strides[grid->ndim - 1];
    int itemsize = grid->truth->itemsize > grid->pred->itemsize ? grid->truth->itemsize
                                                                : grid->pred->itemsize;
    /* A page or less of either at once: the memory would idle while more of it is counted. */
    ptrdiff_t step = BLOCK / itemsize;
    for (ptrdiff_t done = 0; done < length; done += step) {
        size_t n = (size_t)(length - done < step ? length - done : step);
        const void *t = as_symbols(grid->truth, work->loops, truth + done * truth_stride,
                                   truth_stride, n, work->native, work->truth_symbols);
        const void *p = as_symbols(grid->pred, work->loops, pred + done * pred_stride,
                                   pred_stride, n, work->native, work->pred_symbols);
        count_block(work->loops, work->is_wide, t, p, n, work->counters, work->positions);
    }
}

static void count_long_rows(const Grid *grid, const Workspace *work)
{
    const char *truth = grid->truth->data, *pred = grid->pred->data;
    ptrdiff_t index[MAX_AXES] = {0};
    do {
        count_long_row(grid, work, truth, pred);
    } while (next_row(grid, index, &truth, &pred));
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

static void count_short_rows(const Grid *grid, const Workspace *work)
{
    const char *truth = grid->truth->data, *pred = grid->pred->data;
    ptrdiff_t index[MAX_AXES] = {0};
    size_t n = grid->ndim ? (size_t)grid->shape[grid->ndim - 1] : 1;
    ptrdiff_t truth_stride = grid->ndim ? grid->truth->strides[grid->ndim - 1] : 0;
    ptrdiff_t pred_stride = grid->ndim ? grid->pred->strides[grid->ndim - 1] : 0;
    size_t filled = 0;
    do {
        if (filled + n > BLOCK) {
            count_block(work->loops, work->is_wide, work->truth_symbols, work->pred_symbols,
                        filled, work->counters, work->positions);
            filled = 0;
        }
        append(grid->truth, work, truth, truth_stride, n, work->truth_symbols, filled);
        append(grid->pred, work, pred, pred_stride, n, work->pred_symbols, filled);
        filled += n;
    } while (next_row(grid, index, &truth, &pred));
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

int count_all(const Loops *loops, int ndim, const ptrdiff_t *shape, Source *truth, Source *pred,
              int64_t *table, size_t rows, size_t cols)
{
    Grid grid = {.ndim = ndim, .truth = truth, .pred = pred};
    for (int axis = 0; axis < ndim; axis++) {
        if (shape[axis] == 0)
            return has_any_last(table, rows, cols);
        grid.shape[axis] = shape[axis];
    }
    simplify(&grid);

    size_t symbols = BLOCK * sizeof(uint16_t), native = BLOCK * sizeof(uint64_t);
    size_t positions = (BLOCK + OVERRUN) * sizeof(uint16_t);
    char *allocated = malloc(native + 2 * symbols + positions + CACHE_LINE);
    if (allocated == NULL)
        return -1;
    /* Stores of a whole line are a third slower across two of them. */
    char *memory = allocated + (CACHE_LINE - (uintptr_t)allocated % CACHE_LINE);
    Noise noise = {0};
    Counters counters = {table, rows, cols, truth->offsets, pred->offsets, &noise};
    Workspace work = {.loops = loops, .counters = &counters, .native = memory};
    work.is_wide = truth->kind >= SYMBOL_IS_SHIFT16;
    work.truth_symbols = memory + native;
    work.pred_symbols = work.truth_symbols + symbols;
    work.positions = (uint16_t *)(work.pred_symbols + symbols);
    if (grid.ndim > 0 && grid.shape[grid.ndim - 1] >= SHORT_ROW)
        count_long_rows(&grid, &work);
    else
        count_short_rows(&grid, &work);
    finish_noise(&counters);
    free(allocated);
    return has_any_last(table, rows, cols);
}
