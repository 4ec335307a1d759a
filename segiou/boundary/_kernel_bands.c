/* Pixels within reach of a boundary, for all classes at once.
 *
 * A pixel is near a boundary of its class where its window holds another code. Rows of codes go
 * into columns of the window's height, as the largest and the smallest code, and those into bits:
 * a row of columns has two codes where a column has, or where two neighbours differ.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK_ROWS 32 /* rows whose bits are spread at once */

/* Room for a window of rows, and for a few single ones.
 *
 * A row of bytes is two: the largest codes, and, `half` bytes on, the complements of the smallest,
 * so that all are maxima. Ignored pixels are neutral to both. Halves are whole words; what lies
 * behind the width stays 0. */
typedef struct {
    const Loops *loops;
    const Pair *pair;
    const uint8_t *codes;
    size_t reach, row_reach, words, half;
    uint8_t *suffixes;            /* a row for each row of a window */
    uint8_t *prefix, *next, *row;
    uint8_t *both; /* largest and smallest codes, not complements */
    uint64_t *mixed, *edges, *filled;
    uint64_t *none, *inside, *frame; /* frame: within reach of the left or right border */
    BitRows block;
    void *block_memory;
} Workspace;

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void place_rows(Workspace *work, uint64_t *bits, uint8_t *bytes)
{
    uint64_t **rows[] = {&work->mixed, &work->edges,  &work->filled,
                         &work->none,  &work->inside, &work->frame};
    size_t single = 2 * work->half + VECTOR;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        *rows[i] = bits + i * (work->words + 1);
    work->prefix = bytes;
    work->next = bytes + single;
    work->row = bytes + 2 * single;
    work->both = bytes + 3 * single;
    work->suffixes = bytes + 4 * single;
}

static void *open_workspace(Workspace *work, const Loops *loops, const Pair *pair, size_t reach)
{
    size_t row_reach = less(reach, pair->height), words = count_words(pair->width);
    size_t bits = 6 * (words + 1), rows = 2 * row_reach + 5; /* twice a half each, and a vector */
    size_t needed = bits * sizeof(uint64_t) + rows * (2 * 64 * words + VECTOR);
    uint8_t *memory = calloc(needed + VECTOR, 1);
    *work = (Workspace){.loops = loops, .pair = pair, .reach = reach, .row_reach = row_reach,
                        .words = words, .half = 64 * words};
    work->block_memory = open_bit_rows(&work->block, loops, BLOCK_ROWS, words, reach);
    if (memory == NULL || work->block_memory == NULL)
        return memory;
    /* Vectors that lie across cache lines take twice as long. */
    uint8_t *bytes = memory + (VECTOR - (uintptr_t)memory % VECTOR);
    place_rows(work, (uint64_t *)(bytes + rows * (2 * 64 * words + VECTOR)), bytes);
    set_bits(work->inside, 0, pair->width - 1);
    set_bits(work->frame, 0, less(reach, pair->width) - 1);
    set_bits(work->frame, pair->width - less(reach, pair->width), pair->width - 1);
    return memory;
}

/* Row i of the map with the reach above and below, where there are no codes. */
static const uint8_t *codes_at(const Workspace *work, size_t i)
{
    int is_inside = i >= work->row_reach && i < work->pair->height + work->row_reach;
    return is_inside ? work->codes + (i - work->row_reach) * work->pair->width : NULL;
}

/* Maxima from each row of the window that starts at row i to the window's end. */
static void fill_suffixes(Workspace *work, size_t i)
{
    memset(work->prefix, 0, 2 * work->half);
    const uint8_t *after = work->prefix;
    for (size_t k = 2 * work->row_reach + 1; k-- > 0;) {
        uint8_t *suffix = work->suffixes + 2 * k * work->half;
        const uint8_t *codes = codes_at(work, i + k);
        if (codes)
            work->loops->extend(suffix, after, codes, work->half, work->pair->width);
        else
            memcpy(suffix, after, 2 * work->half);
        after = suffix;
    }
}

/* Largest and smallest codes of the columns around row y. Rows come in order.
 *
 * A window of rows is the end of one block of rows and the start of the next, so that its maxima
 * are those of a suffix and a prefix (van Herk 1992; Gil and Werman 1993). */
static void fill_columns(Workspace *work, size_t y)
{
    size_t k = y % (2 * work->row_reach + 1);
    const uint8_t *codes = codes_at(work, y + 2 * work->row_reach);
    if (k == 0)
        fill_suffixes(work, y);
    else if (codes) {
        uint8_t *prefix = work->prefix;
        work->prefix = work->next;
        work->next = prefix;
        work->loops->extend(work->prefix, prefix, codes, work->half, work->pair->width);
    }
    work->loops->join(work->both, work->suffixes + 2 * k * work->half, work->prefix, work->half);
}

/* The first column from x on with valid pixels; past the last there is none. */
static size_t next_filled(const Workspace *work, size_t x)
{
    for (size_t w = x / 64; w < work->words; w++) {
        uint64_t bits = work->filled[w] & (w == x / 64 ? ~UINT64_C(0) << x % 64 : ~UINT64_C(0));
        if (bits)
            return 64 * w + trailing_zeros(bits);
    }
    return 64 * work->words;
}

/* Ignored columns are neutral: what differs across them does so for windows that hold both sides. */
static void bridge_gaps(const Workspace *work, uint64_t *near)
{
    size_t last = work->pair->width - 1;
    for (size_t w = 0; w < work->words; w++) {
        uint64_t next = work->filled[w] >> 1 | work->filled[w + 1] << 63;
        for (uint64_t ends = work->filled[w] & ~next; ends; ends &= ends - 1) {
            size_t a = 64 * w + trailing_zeros(ends), b = next_filled(work, a + 1);
            size_t from = b - less(b, work->reach), to = less(a + work->reach, last);
            if (b <= last && from <= to && work->both[a] != work->both[b])
                set_bits(near, from, to);
        }
    }
}

/* What the image border reaches in row y, if it is a boundary. */
static const uint64_t *frame_at(const Workspace *work, size_t y, int border)
{
    int is_edge = y < work->reach || y + work->reach >= work->pair->height;
    return !border ? work->none : is_edge ? work->inside : work->frame;
}

/* Where marks go: by the band's border, and by the trimap's unless there is no room for them. */
typedef struct {
    const Band *band;
    uint64_t *marks, *trimap;
} Target;

static void finish_block(Workspace *work, const Target *target, size_t start, size_t end)
{
    const Loops *loops = work->loops;
    size_t words = work->words;
    for (size_t y = start; y < end; y++) {
        const uint8_t *codes = readable_row(work->pair, work->codes, y, work->row);
        const uint64_t *near = work->block.bits + (y - start) * work->block.stride;
        uint64_t *marks = target->marks + y * words;
        if (target->trimap)
            loops->finish_marks(target->trimap + y * words, marks, near,
                                frame_at(work, y, target->band->trimap_border), work->inside,
                                codes, words);
        loops->finish_marks(marks, marks, near, frame_at(work, y, target->band->band_border),
                            work->inside, codes, words);
    }
}

static void mark_block(Workspace *work, const Target *target, size_t start, size_t end)
{
    uint64_t *bridged = target->marks + start * work->words;
    memset(bridged, 0, (end - start) * work->words * sizeof *bridged);
    for (size_t y = start; y < end; y++) {
        fill_columns(work, y);
        work->loops->find_edges(work->edges, work->filled, work->mixed, work->both, work->words);
        bridge_gaps(work, bridged + (y - start) * work->words);
        write_bit_row(&work->block, y - start, work->edges);
    }
    spread_bit_rows(&work->block, 2 * work->reach);
    finish_block(work, target, start, end);
}

static void mark_all(Workspace *work, const uint8_t *codes, const Target *target)
{
    work->codes = codes;
    for (size_t y = 0; y < work->pair->height; y += BLOCK_ROWS)
        mark_block(work, target, y, less(y + BLOCK_ROWS, work->pair->height));
}

static void tally_all(Tally *tally, const Workspace *work, const uint64_t *truth,
                      const uint64_t *pred)
{
    const Pair *pair = work->pair;
    int is_few = pair->num_classes <= work->loops->few_classes;
    tally->num_classes = pair->num_classes;
    for (size_t c = 0; c < pair->num_classes; c++)
        tally->order[c] = (uint8_t)c;
    for (size_t y = 0, at = 0; y < pair->height; y++, at += work->words) {
        MarkedRow row = {readable_row(pair, pair->truth, y, work->row),
                         readable_row(pair, pair->pred, y, work->both), truth + at, pred + at};
        (is_few ? work->loops->tally_classes : work->loops->tally_runs)(tally, &row, work->words);
    }
}

int count_bands(const Loops *loops, const Pair *pair, const Band *band, int64_t *inner,
                int64_t *trimap, int64_t *outer)
{
    Workspace work;
    int has_trimap = band->trimap_border >= 0, status = -1;
    size_t size = pair->height * count_words(pair->width);
    void *memory = open_workspace(&work, loops, pair, band->reach);
    Tally *tallies = calloc(2, sizeof *tallies);
    uint64_t *marks = malloc((has_trimap ? 3 : 2) * size * sizeof *marks);
    if (memory && work.block_memory && tallies && marks) {
        uint64_t *pred_marks = marks + size, *near_truth = has_trimap ? marks + 2 * size : NULL;
        mark_all(&work, pair->truth, &(Target){band, marks, near_truth});
        mark_all(&work, pair->pred, &(Target){band, pred_marks, NULL});
        tally_all(&tallies[0], &work, marks, pred_marks);
        if (has_trimap)
            tally_all(&tallies[1], &work, near_truth, near_truth);
        memcpy(inner, tallies[0].counts, pair->num_classes * sizeof tallies->counts[0]);
        memcpy(trimap, tallies[1].counts, pair->num_classes * sizeof tallies->counts[0]);
        status = has_trimap ? count_outer(loops, pair, band->reach, outer) : 0;
    }
    free(memory);
    free(work.block_memory);
    free(tallies);
    free(marks);
    return status;
}
