/* Two strided arrays as a sequence of blocks that fit the first-level cache, and the blocks
 * counted. Any order of the axes is right; that of memory is fast.
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
/* With more cells, the counters and the values of the next block evict each other from the L1
 * cache. */
#define CACHED_CELLS 1024
#ifndef FEW_ROOM       /* a test makes it small */
#define FEW_ROOM (UINT64_C(1) << 31) /* pixels; 32 bits hold a block more */
#endif
/* Rows shorter than this are gathered into blocks, since every block has its fixed cost. */
#define SHORT_ROW 192

enum { TRUTH, PRED };

typedef struct {
    const Loops *loops;
    const Axes *axes;
    const Source *truth, *pred;
    int64_t *table;
    int is_wide; /* symbols have 16 bits */
    uint16_t *positions;
    char *gathered, *truth_symbols, *pred_symbols;
    const char *next[2]; /* the values after the block, which are fetched while it is counted */
    int fetches;         /* whether they may be; values of one byte are counted as they come */
    Noise noise;
} Workspace;

/* The first of the symbols that all mean the same, up to 255. */
static uint8_t find_last(const uint32_t *offsets)
{
    unsigned last = 255;
    while (last > 0 && offsets[last - 1] == offsets[255])
        last--;
    return (uint8_t)last;
}

/* Arrays with fewer pixels than cells are not worth the emptying. */
static int prepare_cells(Workspace *work)
{
    Noise *noise = &work->noise;
    if (noise->count == 0) {
        noise->last_truth = find_last(work->truth->offsets);
        noise->last_pred = find_last(work->pred->offsets);
        noise->width = noise->last_pred + 1u;
        noise->count = (noise->last_truth + 1u) * noise->width;
        noise->copies = noise->count <= FEW_CELLS ? 2 : 1;
        if (noise->count <= noise->all_pixels)
            noise->cells = calloc(noise->count, noise->copies * sizeof(uint32_t));
    }
    return noise->cells != NULL;
}

static void empty_cells(Workspace *work)
{
    Noise *noise = &work->noise;
    uint32_t *cell = noise->cells;
    for (size_t t = 0; t <= noise->last_truth; t++) {
        int64_t *row = work->table + work->truth->offsets[t];
        for (size_t p = 0; p <= noise->last_pred; p++)
            for (size_t copy = 0; copy < noise->copies; copy++)
                row[work->pred->offsets[p]] += *cell++;
    }
    memset(noise->cells, 0, noise->copies * noise->count * sizeof(uint32_t));
    noise->pixels = 0;
}

static inline void add_pairs(const Workspace *work, uint32_t *cells, size_t n, size_t copies,
                             int fetches)
{
    const uint16_t *pairs = work->positions;
    const char *truth = work->next[TRUTH], *pred = work->next[PRED];
    const size_t truth_step = 4 * (size_t)work->truth->itemsize;
    const size_t pred_step = 4 * (size_t)work->pred->itemsize;
    size_t i = 0;
    for (; i + 4 <= n; i += 4, truth += truth_step, pred += pred_step) {
        uint64_t four;
        if (fetches)
            FETCH(truth), FETCH(pred);
        memcpy(&four, pairs + i, sizeof four);
        cells[copies * (four & 65535)]++;
        cells[copies * (four >> 16 & 65535) + copies - 1]++;
        cells[copies * (four >> 32 & 65535)]++;
        cells[copies * (four >> 48) + copies - 1]++;
    }
    for (; i < n; i++)
        cells[copies * pairs[i]]++;
}

static void count_pixels(const Workspace *work, const uint8_t *truth, const uint8_t *pred, size_t n)
{
    const uint32_t *rows = work->truth->offsets, *cols = work->pred->offsets;
    for (size_t i = 0; i < n; i++)
        work->table[(size_t)rows[truth[i]] + cols[pred[i]]]++;
}

#define DEFINE_COUNT(WIDTH)                                                                   \
    static void count_runs##WIDTH(const Workspace *work, const uint##WIDTH##_t *truth,        \
                                  const uint##WIDTH##_t *pred, size_t runs)                   \
    {                                                                                         \
        const uint32_t *rows = work->truth->offsets, *cols = work->pred->offsets;             \
        const uint16_t *positions = work->positions;                                          \
        for (size_t run = 0; run < runs; run++) {                                             \
            size_t at = positions[run];                                                       \
            work->table[(size_t)rows[truth[at]] + cols[pred[at]]] +=                          \
                positions[run + 1] - positions[run];                                          \
        }                                                                                     \
    }

DEFINE_COUNT(8)
DEFINE_COUNT(16)

/* The table of many classes is larger than caches: its cells are fetched ahead. */
static void count_wide(const Workspace *work, const uint16_t *truth, const uint16_t *pred, size_t n)
{
    const uint32_t *rows = work->truth->offsets, *cols = work->pred->offsets;
    size_t *cells = (size_t *)work->gathered; /* which have become symbols */
    for (size_t i = 0; i < n; i++)
        cells[i] = (size_t)rows[truth[i]] + cols[pred[i]];
    for (size_t i = 0; i < n; i++) {
        FETCH(work->table + cells[i + 32 < n ? i + 32 : n - 1]);
        work->table[cells[i]]++;
    }
}

/* Without memory for small counters the table itself does; that is only slower. */
static void count_noise(Workspace *work, const void *truth, const void *pred, size_t n)
{
    Noise *noise = &work->noise;
    if (work->is_wide) {
        count_wide(work, truth, pred, n);
    } else if (prepare_cells(work)) {
        work->loops->find_pairs(truth, pred, n, noise, work->positions);
        int fetches = work->fetches && noise->count > CACHED_CELLS;
        if (noise->copies == 2 && fetches)
            add_pairs(work, noise->cells, n, 2, 1);
        else if (noise->copies == 2)
            add_pairs(work, noise->cells, n, 2, 0);
        else if (fetches)
            add_pairs(work, noise->cells, n, 1, 1);
        else
            add_pairs(work, noise->cells, n, 1, 0);
        noise->pixels += n;
        if (noise->pixels >= FEW_ROOM)
            empty_cells(work);
    } else {
        count_pixels(work, truth, pred, n);
    }
}

/* Noise goes on as noise mostly: then a look at the first pixels of a block will do. */
static void count_block(Workspace *work, const void *truth, const void *pred, size_t n)
{
    Scan scan = work->loops->scan[work->is_wide];
    size_t sample = n < SAMPLE ? n : SAMPLE, runs = 0;
    int is_noise = work->noise.is_expected &&
                   scan(truth, pred, sample, work->positions) > sample / MIN_RUN;
    if (!is_noise) {
        runs = scan(truth, pred, n, work->positions);
        work->positions[runs] = (uint16_t)n;
        is_noise = runs > n / MIN_RUN;
    }
    work->noise.is_expected = is_noise;
    if (is_noise)
        count_noise(work, truth, pred, n);
    else if (work->is_wide)
        count_runs16(work, truth, pred, runs);
    else
        count_runs8(work, truth, pred, runs);
}

static const void *symbols_of(const Workspace *work, const Source *source, const char *values,
                              ptrdiff_t stride, size_t n, char *symbols)
{
    return as_symbols(source, work->loops, work->is_wide, values, stride, n, work->gathered,
                      symbols);
}

/* Pixels that fill one page of the wider array, or less of the other. The memory would idle while a
 * larger block is counted. */
static ptrdiff_t find_page(const Workspace *work)
{
    int truth = work->truth->itemsize, pred = work->pred->itemsize;
    return BLOCK / (truth > pred ? truth : pred);
}

/* Whether counting noise waits for its counters. Concurrent reads delay them, so whole blocks are
 * then faster than pages. */
static int has_many_cells(const Workspace *work)
{
    return work->noise.is_expected && work->noise.count > CACHED_CELLS;
}

static void count_long_row(Workspace *work, const char *truth, const char *pred)
{
    ptrdiff_t length = row_length(work->axes);
    ptrdiff_t truth_stride = row_stride(work->axes, TRUTH);
    ptrdiff_t pred_stride = row_stride(work->axes, PRED);
    ptrdiff_t step, page = find_page(work);
    for (ptrdiff_t done = 0; done < length; done += step) {
        step = has_many_cells(work) ? BLOCK : page;
        size_t n = (size_t)(length - done < step ? length - done : step);
        work->next[TRUTH] = truth + (done + step) * truth_stride;
        work->next[PRED] = pred + (done + step) * pred_stride;
        const void *t = symbols_of(work, work->truth, truth + done * truth_stride, truth_stride,
                                   n, work->truth_symbols);
        const void *p = symbols_of(work, work->pred, pred + done * pred_stride, pred_stride, n,
                                   work->pred_symbols);
        count_block(work, t, p, n);
    }
}

static void append_row(Workspace *work, int array, const char *row, size_t n, char *into)
{
    const Source *source = array == TRUTH ? work->truth : work->pred;
    const void *made = symbols_of(work, source, row, row_stride(work->axes, array), n, into);
    if (made != into)
        memcpy(into, made, n << work->is_wide);
}

static void count_rows(Workspace *work)
{
    const char *rows[] = {work->truth->data, work->pred->data};
    ptrdiff_t index[MAX_AXES] = {0};
    size_t n = (size_t)row_length(work->axes), filled = 0;
    do {
        if (n >= SHORT_ROW) {
            count_long_row(work, rows[TRUTH], rows[PRED]);
            continue;
        }
        if (filled + n > BLOCK) {
            count_block(work, work->truth_symbols, work->pred_symbols, filled);
            filled = 0;
        }
        size_t at = filled << work->is_wide;
        append_row(work, TRUTH, rows[TRUTH], n, work->truth_symbols + at);
        append_row(work, PRED, rows[PRED], n, work->pred_symbols + at);
        filled += n;
    } while (next_row(work->axes, index, rows));
    if (filled > 0)
        count_block(work, work->truth_symbols, work->pred_symbols, filled);
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

int count_all(const Loops *loops, Axes *axes, Source *truth, Source *pred, int64_t *table)
{
    int is_wide = prepare_sources(truth, pred);
    size_t symbols = BLOCK * sizeof(uint16_t), gathered = BLOCK * sizeof(uint64_t);
    size_t positions = (BLOCK + OVERRUN) * sizeof(uint16_t);
    char *allocated = malloc(gathered + 2 * symbols + positions + CACHE_LINE);
    if (is_wide < 0 || allocated == NULL) {
        free(allocated);
        return -1;
    }
    /* Stores of a whole line are a third slower across two of them. */
    char *memory = allocated + (CACHE_LINE - (uintptr_t)allocated % CACHE_LINE);
    Workspace work = {.loops = loops, .axes = axes, .truth = truth, .pred = pred, .table = table,
                      .is_wide = is_wide};
    work.gathered = memory;
    work.truth_symbols = memory + gathered;
    work.pred_symbols = work.truth_symbols + symbols;
    work.positions = (uint16_t *)(work.pred_symbols + symbols);
    work.noise.all_pixels = count_items(axes);
    merge_axes(axes);
    work.fetches = (truth->itemsize > 1 || pred->itemsize > 1) &&
                   row_length(axes) >= SHORT_ROW && row_stride(axes, TRUTH) == truth->itemsize &&
                   row_stride(axes, PRED) == pred->itemsize;
    if (work.noise.all_pixels > 0)
        count_rows(&work);
    if (work.noise.cells)
        empty_cells(&work);
    free(work.noise.cells);
    free(allocated);
    return has_any_last(table, truth->states, pred->states);
}
