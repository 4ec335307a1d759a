/* Pixels outside a class but within reach of it, class by class, in the rows where it is near. */
#include "_kernel.h"

#include <string.h>

/* Row y of the class's pixels, as bits. */
static void draw_row(Work *work, uint8_t c, size_t y)
{
    const uint64_t *valid = work->valid + y * work->words;
    const uint8_t *t = readable_row(work, 0, y);
    work->loops->differ_from(work->bits, t, c, work->words);
    for (size_t w = 0; w < work->words; w++)
        work->bits[w] = valid[w] & ~work->bits[w];
}

static void count_class(Work *work, uint8_t c, const Rows *rows, int64_t *counts)
{
    BitRows *plane = &work->plane;
    size_t reach = work->rows;
    size_t top = rows->start - (rows->start < reach ? rows->start : reach);
    size_t bottom = work->height - rows->end < reach ? work->height : rows->end + reach;
    size_t drawn = bottom - top + 2 * reach; /* the first row is the reach above the top */
    memset(plane->bits, 0, drawn * plane->stride * sizeof *plane->bits);
    for (size_t y = rows->start; y < rows->end; y++) {
        draw_row(work, c, y);
        write_bit_row(plane, y - top + reach, work->bits);
    }
    spread_bits(plane, drawn, 2 * reach + 1, 64 * plane->stride);
    spread_bits(plane, bottom - top, 2 * work->cols + 1, 1);
    for (size_t y = top; y < bottom; y++) {
        uint64_t *near = plane->bits + (y - top) * plane->stride;
        for (size_t w = 0; w < work->words; w++)
            near[w] &= work->valid[y * work->words + w];
        MarkedRow row = {y, readable_row(work, 0, y), readable_row(work, 1, y), near, near};
        work->loops->tally_outer(counts, &row, c, work->words);
    }
}

void count_outer(Work *work, int64_t *outer)
{
    for (size_t c = 0; c < work->num_classes; c++)
        if (work->tally.rows[c].end)
            count_class(work, (uint8_t)c, &work->tally.rows[c], outer + 2 * c);
}
