/* Pixels within reach of a boundary, for all classes at once.
 *
 * A pixel is near a boundary of its class if its window contains another code. A window of rows
 * moves down the map, and each of its columns contains no code, one code, or several. A row of bits
 * marks the columns with several codes and those that differ from their neighbour, so a window of
 * columns contains two codes if it contains a mark.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Sets the bits from `first` to `last`. */
static void set_bits(uint64_t *bits, size_t first, size_t last)
{
    uint64_t from = ~UINT64_C(0) << first % 64, to = ~UINT64_C(0) >> (63 - last % 64);
    if (first / 64 == last / 64) {
        bits[first / 64] |= from & to;
        return;
    }
    bits[first / 64] |= from;
    for (size_t w = first / 64 + 1; w < last / 64; w++)
        bits[w] = ~UINT64_C(0);
    bits[last / 64] |= to;
}

/* Allocates everything except the plane. Returns the memory to free, or NULL if there is none. */
static void *open_work(Work *work)
{
    size_t width = work->width, words = work->words, plane = work->height * words;
    /* The longest rows are those of columns; others take as much room. */
    size_t row = 64 * words * sizeof(uint32_t) + VECTOR;
    uint8_t **of_codes[] = {&work->columns.latest, &work->columns.seen, &work->blank,
                            &work->spare[0], &work->spare[1]};
    uint64_t **of_bits[] = {&work->bits, &work->filled, &work->mixed,
                            &work->none, &work->inside, &work->frame};
    uint8_t *memory = calloc(13 * row + 3 * plane * sizeof(uint64_t) + VECTOR, 1);
    if (memory == NULL)
        return NULL;
    /* Vectors across two cache lines take twice as long. */
    uint8_t *at = memory + (VECTOR - (uintptr_t)memory % VECTOR);
    for (size_t i = 0; i < 5; i++, at += row)
        *of_codes[i] = at;
    for (size_t i = 0; i < 6; i++, at += row)
        *of_bits[i] = (uint64_t *)at;
    work->columns.left = at;
    work->columns.left_other = at + row;
    work->valid = (uint64_t *)(at + 2 * row);
    work->near_truth = work->valid + plane;
    work->near_pred = work->near_truth + plane;
    memset(work->blank, IGNORED, width);
    set_bits(work->inside, 0, width - 1);
    set_bits(work->frame, 0, work->cols - 1);
    set_bits(work->frame, width - work->cols, width - 1);
    return memory;
}

static void find_valid(Work *work)
{
    for (size_t y = 0; y < work->height; y++) {
        uint64_t *valid = work->valid + y * work->words;
        const uint8_t *t = readable_row(work, 0, y);
        work->loops->differ_from(valid, t, IGNORED, work->words);
        for (size_t w = 0; w < work->words; w++)
            valid[w] &= work->inside[w];
    }
}

/* Moves the window of rows down to row y, or past the last one. */
static void take_row(Work *work, const uint8_t *codes, size_t y)
{
    size_t width = work->width, height = 2 * work->rows + 1;
    const uint8_t *row = y < work->height ? codes + y * width : work->blank;
    int bits = (height > UINT8_MAX) + (height > UINT16_MAX);
    work->loops->take_row[bits](&work->columns, row, height, width);
}

/* The first column from x on with valid pixels; past the last there is none. */
static size_t next_filled(const Work *work, size_t x)
{
    for (size_t w = x / 64; w < work->words; w++) {
        uint64_t bits = work->filled[w] & (w == x / 64 ? ~UINT64_C(0) << x % 64 : ~UINT64_C(0));
        if (bits)
            return 64 * w + lowest_bit(bits);
    }
    return 64 * work->words;
}

/* Ignored columns are neutral: only windows with both sides see a difference across them. */
static void bridge_gaps(const Work *work, uint64_t *near)
{
    const uint8_t *latest = work->columns.latest;
    size_t last = work->width - 1;
    for (size_t w = 0; w < work->words; w++) {
        uint64_t next = work->filled[w] >> 1 | work->filled[w + 1] << 63;
        for (uint64_t ends = work->filled[w] & ~next; ends; ends &= ends - 1) {
            size_t a = 64 * w + lowest_bit(ends), b = next_filled(work, a + 1);
            size_t from = b - less(b, work->cols), to = less(a + work->cols, last);
            if (b <= last && from <= to && latest[a] != latest[b])
                set_bits(near, from, to);
        }
    }
}

/* Marks the valid pixels whose window contains another code; there must be no marks before. */
static void mark_near(Work *work, const uint8_t *codes, uint64_t *marks)
{
    size_t height = work->height, width = work->width, words = work->words;
    memset(work->columns.left, 0, width * sizeof(uint32_t));
    memset(work->columns.left_other, 0, width * sizeof(uint32_t));
    for (size_t y = 0; y < work->rows; y++)
        take_row(work, codes, y);
    for (size_t y = 0; y < height; y++) {
        take_row(work, codes, y + work->rows);
        work->loops->find_edges(work->bits, work->filled, work->mixed, &work->columns, words);
        bridge_gaps(work, marks + y * words);
        write_bit_row(&work->plane, y, work->bits);
    }
    spread_bits(&work->plane, height, 2 * work->cols, 1);
    for (size_t y = 0; y < height; y++)
        for (size_t w = 0; w < words; w++, marks++)
            *marks = (*marks | work->plane.bits[y * work->plane.stride + w]) &
                     work->valid[y * words + w];
}

/* Pixels of row y within reach of the image border, if the border is a boundary. */
static const uint64_t *frame_at(const Work *work, size_t y, int border)
{
    int is_edge = y < work->rows || y + work->rows >= work->height;
    return !border ? work->none : is_edge ? work->inside : work->frame;
}

/* Counts the marks, and the pixels within reach of the border, by class. */
static void tally_all(Work *work, const uint64_t *truth, const uint64_t *pred, int border,
                      int64_t *counts)
{
    uint64_t *in_truth = work->bits, *in_pred = work->mixed;
    memset(&work->tally, 0, sizeof work->tally);
    for (size_t y = 0, at = 0; y < work->height; y++, at += work->words) {
        const uint64_t *frame = frame_at(work, y, border), *valid = work->valid + at;
        for (size_t w = 0; w < work->words; w++) {
            in_truth[w] = truth[at + w] | (frame[w] & valid[w]);
            in_pred[w] = pred[at + w] | (frame[w] & valid[w]);
        }
        MarkedRow row = {y, readable_row(work, 0, y), readable_row(work, 1, y), in_truth, in_pred};
        work->loops->tally(&work->tally, &row, work->words);
    }
    memcpy(counts, work->tally.counts, work->num_classes * sizeof work->tally.counts[0]);
}

int count_bands(Work *work, int64_t *inner, int64_t *trimap, int64_t *outer)
{
    work->words = (work->width + 63) / 64;
    void *plane = open_bit_rows(&work->plane, work->loops, work->height + 2 * work->rows,
                                work->words, work->cols);
    void *memory = open_work(work);
    int status = plane && memory ? 0 : -1;
    if (status == 0) {
        find_valid(work);
        mark_near(work, work->truth, work->near_truth);
        mark_near(work, work->pred, work->near_pred);
        tally_all(work, work->near_truth, work->near_pred, work->band_border, inner);
        if (work->trimap_border >= 0) {
            count_outer(work, outer);
            tally_all(work, work->near_truth, work->near_truth, work->trimap_border, trimap);
        }
    }
    free(plane);
    free(memory);
    return status;
}
