/* Pixels outside a class but within reach of it, class by class, in the rows where it is near. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

/* The rows of a class; no row where `end` is 0. */
typedef struct {
    size_t start, end;
} Rows;

typedef struct {
    const Loops *loops;
    const Pair *pair;
    size_t reach, row_reach, words;
    BitRows plane; /* the map with the reach above and below */
    uint64_t *bits;
    uint8_t *truth_row, *pred_row;
    Rows rows[256];
} Workspace;

static const uint8_t *truth_at(const Workspace *work, size_t y)
{
    return readable_row(work->pair, work->pair->truth, y, work->truth_row);
}

/* In which rows each code stands: looked at where runs end. */
static void find_rows(Workspace *work)
{
    uint64_t *ends = work->bits;
    for (size_t y = 0; y < work->pair->height; y++) {
        const uint8_t *t = truth_at(work, y);
        work->loops->differ(ends, t, t + 1, work->words);
        set_bits(ends, work->pair->width - 1, work->pair->width - 1);
        for (size_t w = 0; w < work->words; w++)
            for (uint64_t left = ends[w]; left; left &= left - 1) {
                size_t x = 64 * w + trailing_zeros(left);
                if (x >= work->pair->width)
                    break;
                Rows *rows = &work->rows[t[x]];
                rows->start = rows->end ? rows->start : y;
                rows->end = y + 1;
            }
    }
}

/* Bit x of row i: any of rows i to i + size - 1. */
static void spread_down(uint64_t *bits, size_t rows, size_t stride, size_t size)
{
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = reached < size - reached ? reached : size - reached;
        rows -= step;
        for (size_t i = 0; i < rows * stride; i++)
            bits[i] |= bits[i + step * stride];
    }
}

/* The class's pixels in the plane, whose first row is the reach above `top`. */
static void draw_class(Workspace *work, uint8_t c, size_t top)
{
    for (size_t y = work->rows[c].start; y < work->rows[c].end; y++) {
        work->loops->differ_from(work->bits, truth_at(work, y), c, work->words);
        for (size_t w = 0; w < work->words; w++)
            work->bits[w] = ~work->bits[w];
        work->bits[work->words - 1] &= ~UINT64_C(0) >> (64 * work->words - work->pair->width);
        write_bit_row(&work->plane, y - top + work->row_reach, work->bits);
    }
}

static void count_class(Workspace *work, uint8_t c, int64_t *counts)
{
    BitRows *plane = &work->plane;
    size_t reach = work->row_reach, height = work->pair->height;
    size_t top = work->rows[c].start - (work->rows[c].start < reach ? work->rows[c].start : reach);
    size_t bottom = height - work->rows[c].end < reach ? height : work->rows[c].end + reach;
    size_t drawn = bottom - top + 2 * reach;
    plane->rows = bottom - top;
    memset(plane->bits, 0, (drawn * plane->stride) * sizeof *plane->bits);
    draw_class(work, c, top);
    spread_down(plane->bits, drawn, plane->stride, 2 * reach + 1);
    spread_bit_rows(plane, 2 * work->reach + 1);
    for (size_t y = top; y < bottom; y++) {
        uint64_t *near = plane->bits + (y - top) * plane->stride;
        near[work->words - 1] &= ~UINT64_C(0) >> (64 * work->words - work->pair->width);
        work->loops->tally_outer(counts, truth_at(work, y),
                                 readable_row(work->pair, work->pair->pred, y, work->pred_row), c,
                                 near, work->words);
    }
}

int count_outer(const Loops *loops, const Pair *pair, size_t reach, int64_t *outer)
{
    size_t row_reach = reach < pair->height ? reach : pair->height;
    size_t words = count_words(pair->width), single = 64 * words + VECTOR;
    Workspace work = {.loops = loops, .pair = pair, .reach = reach, .row_reach = row_reach,
                      .words = words};
    void *plane = open_bit_rows(&work.plane, loops, pair->height + 2 * row_reach, words, reach);
    uint8_t *rows = calloc(words * sizeof *work.bits + 2 * single, 1);
    int status = plane && rows ? 0 : -1;
    if (status == 0) {
        work.bits = (uint64_t *)rows;
        work.truth_row = rows + words * sizeof *work.bits;
        work.pred_row = work.truth_row + single;
        find_rows(&work);
        for (size_t c = 0; c < pair->num_classes; c++)
            if (work.rows[c].end)
                count_class(&work, (uint8_t)c, outer + 2 * c);
    }
    free(plane);
    free(rows);
    return status;
}
