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
    uint64_t *plane, *bits, *spare; /* plane: the map with the reach above and below */
    uint8_t *truth_row, *pred_row;
    Rows rows[256];
} Workspace;

static int open_workspace(Workspace *work)
{
    size_t words = work->words, rows = work->pair->height + 2 * work->row_reach;
    size_t room = spread_room(words, work->reach, 2 * work->reach + 1);
    work->plane = malloc((rows * words + words + room) * sizeof *work->plane);
    work->truth_row = calloc(2 * (64 * words + VECTOR), 1);
    if (work->plane == NULL || work->truth_row == NULL)
        return -1;
    work->bits = work->plane + rows * words;
    work->spare = work->bits + words;
    work->pred_row = work->truth_row + 64 * words + VECTOR;
    return 0;
}

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

/* planes[i] |= planes[i + 1] | ... | planes[i + size - 1] */
static void or_rows(uint64_t *plane, size_t rows, size_t words, size_t size)
{
    for (size_t reached = 1, step; reached < size; reached += step) {
        step = reached < size - reached ? reached : size - reached;
        rows -= step;
        for (size_t i = 0; i < rows * words; i++)
            plane[i] |= plane[i + step * words];
    }
}

static void count_class(Workspace *work, uint8_t c, int64_t *counts)
{
    size_t words = work->words, reach = work->row_reach, height = work->pair->height;
    Rows own = work->rows[c];
    size_t top = own.start - (own.start < reach ? own.start : reach);
    size_t bottom = height - own.end < reach ? height : own.end + reach;
    memset(work->plane, 0, (bottom - top + 2 * reach) * words * sizeof *work->plane);
    for (size_t y = own.start; y < own.end; y++) {
        uint64_t *row = work->plane + (y - top + reach) * words;
        work->loops->differ_from(row, truth_at(work, y), c, words);
        for (size_t w = 0; w < words; w++)
            row[w] = ~row[w];
        row[words - 1] &= ~UINT64_C(0) >> (64 * words - work->pair->width);
    }
    or_rows(work->plane, bottom - top + 2 * reach, words, 2 * reach + 1);
    for (size_t y = top; y < bottom; y++) {
        spread_bits(work->bits, work->plane + (y - top) * words, words, work->reach,
                    2 * work->reach + 1, work->spare);
        work->bits[words - 1] &= ~UINT64_C(0) >> (64 * words - work->pair->width);
        work->loops->tally_outer(counts, truth_at(work, y),
                                 readable_row(work->pair, work->pair->pred, y, work->pred_row), c,
                                 work->bits, words);
    }
}

int count_outer(const Loops *loops, const Pair *pair, size_t reach, int64_t *outer)
{
    size_t row_reach = reach < pair->height ? reach : pair->height;
    Workspace work = {.loops = loops, .pair = pair, .reach = reach, .row_reach = row_reach,
                      .words = count_words(pair->width)};
    int status = open_workspace(&work);
    if (status == 0) {
        find_rows(&work);
        for (size_t c = 0; c < pair->num_classes; c++)
            if (work.rows[c].end)
                count_class(&work, (uint8_t)c, outer + 2 * c);
    }
    free(work.plane);
    free(work.truth_row);
    return status;
}
