/* Pixels within reach of a boundary, for all classes at once.
 *
 * A pixel is near a boundary of its class where its window holds another code: where the largest
 * code in it is not the smallest. Ignored pixels are neutral to both.
 */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

#define ONES UINT64_C(0x0101010101010101)

/* Room for a window of rows, and for a few single ones.
 *
 * A row is two: the largest codes, and, `half` bytes on, the complements of the smallest, so that
 * all are maxima. Halves and sections are whole vectors; what lies behind the width stays 0. */
typedef struct {
    const Loops *loops;
    size_t height, width, reach, half, section;
    const uint8_t *codes;
    uint8_t *suffixes, *prefix, *row; /* suffixes: a row for each row of a window */
    uint8_t *padded, *spare;          /* two sections: a half with the reach on either side */
    uint8_t *frame, *edge;            /* FRAME as it is in most rows, and all over */
} Workspace;

static size_t whole_vectors(size_t n)
{
    return (n + VECTOR - 1) / VECTOR * VECTOR;
}

static uint8_t *open_workspace(Workspace *work, const Pair *pair, const uint8_t *codes,
                               size_t reach)
{
    size_t half = whole_vectors(pair->width), section = half + whole_vectors(2 * reach);
    size_t window = 2 * reach + 1;
    /* Windows are read past the end of the last section. */
    uint8_t *memory = calloc((2 * window + 6) * half + 4 * section + 2 * whole_vectors(window), 1);
    if (memory == NULL)
        return NULL;
    uint8_t *singles = memory + 2 * window * half;
    *work = (Workspace){find_loops(), pair->height, pair->width, reach, half, section, codes,
                        memory, singles, singles + 2 * half, NULL, NULL, singles + 4 * half,
                        singles + 5 * half};
    work->padded = singles + 6 * half;
    work->spare = work->padded + 2 * section + whole_vectors(window);
    memset(work->edge, FRAME, pair->width);
    for (size_t x = 0; x < pair->width; x++)
        work->frame[x] = x < reach || x + reach >= pair->width ? FRAME : 0;
    return memory;
}

/* Row i of the map with the reach above and below, where there are no codes. */
static void read_row(const Workspace *work, size_t i, uint8_t *into)
{
    if (i >= work->reach && i < work->height + work->reach)
        work->loops->split(into, into + work->half,
                           work->codes + (i - work->reach) * work->width, work->width);
    else
        memset(into, 0, 2 * work->half);
}

/* Maxima from each row of the window that starts at row i to the window's end. */
static void fill_suffixes(Workspace *work, size_t i)
{
    for (size_t k = 2 * work->reach + 1; k-- > 0;) {
        uint8_t *suffix = work->suffixes + 2 * k * work->half;
        read_row(work, i + k, suffix);
        if (k < 2 * work->reach)
            work->loops->max_into(suffix, suffix + 2 * work->half, 2 * work->half);
    }
    memset(work->prefix, 0, 2 * work->half);
}

static void extend_prefix(Workspace *work, size_t i)
{
    read_row(work, i, work->row);
    work->loops->max_into(work->prefix, work->row, 2 * work->half);
}

/* Both halves with the reach, empty, on either side. */
static void pad_halves(const Workspace *work, const uint8_t *suffix)
{
    for (size_t i = 0; i < 2; i++) {
        uint8_t *section = work->padded + i * work->section;
        size_t used = work->reach + work->half;
        memset(section, 0, work->reach);
        work->loops->max_of(section + work->reach, suffix + i * work->half,
                            work->prefix + i * work->half, work->half);
        memset(section + used, 0, work->section - used);
    }
}

/* Writes NEAR and FRAME for each valid pixel of row y, 0 for ignored ones. Rows come in order.
 *
 * A window of rows is the end of one block of rows and the start of the next, so that its maxima
 * are those of a suffix and a prefix (van Herk 1992; Gil and Werman 1993). */
static void mark_row(Workspace *work, size_t y, uint8_t *marks)
{
    size_t size = 2 * work->reach + 1, k = y % size;
    int is_edge = y < work->reach || y + work->reach >= work->height;
    if (k == 0)
        fill_suffixes(work, y);
    else
        extend_prefix(work, y + 2 * work->reach);
    pad_halves(work, work->suffixes + 2 * k * work->half);
    const uint8_t *row =
        max_along_row(work->loops, work->padded, work->spare, 2 * work->section, size);
    work->loops->mark(marks, row, row + work->section, work->codes + y * work->width,
                      is_edge ? work->edge : work->frame, work->width);
}

/* Eight bytes of marks as eight bytes of 0 or 1. */
static uint64_t choose(uint64_t marks, int border)
{
    return border < 0 ? 0 : (border ? marks | marks >> 1 : marks) & ONES;
}

typedef struct {
    int64_t inner[256][3], trimap[256][3];
} Tallies;

/* What a run of pixels whose codes are t and p adds: eight sums of at most 255 in each word. */
typedef struct {
    uint64_t t, p; /* eight times the code */
    uint64_t truth, pred, both, trimap;
    unsigned words;
} Run;

static int64_t sum_bytes(uint64_t sums)
{
    const uint64_t even = UINT64_C(0x00FF00FF00FF00FF), ones = UINT64_C(0x0001000100010001);
    return (int64_t)(((sums & even) + (sums >> 8 & even)) * ones >> 48);
}

static void finish_run(Tallies *tallies, const Run *run)
{
    size_t t = run->t & 255, p = run->p & 255;
    tallies->inner[t][0] += sum_bytes(run->truth);
    tallies->inner[p][1] += sum_bytes(run->pred);
    if (t == p)
        tallies->inner[t][2] += sum_bytes(run->both);
    if (run->trimap) {
        int64_t trimap = sum_bytes(run->trimap);
        tallies->trimap[t][0] += trimap;
        tallies->trimap[p][1] += trimap;
        tallies->trimap[t][2] += t == p ? trimap : 0;
    }
}

static Run start_run(uint8_t t, uint8_t p)
{
    return (Run){.t = t * ONES, .p = p * ONES};
}

static uint64_t load(const uint8_t *from)
{
    uint64_t word;
    memcpy(&word, from, 8);
    return word;
}

static void extend_run(Run *run, uint64_t truth, uint64_t pred, uint64_t trimap)
{
    run->truth += truth;
    run->pred += pred;
    run->both += truth & pred;
    run->trimap += trimap;
    run->words++;
}

/* How many of the eight bytes in memory order are 0 before the first that is not. */
static size_t leading_zeros(uint64_t word)
{
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return word ? (size_t)__builtin_ctzll(word) / 8 : 8;
#else
    uint8_t bytes[8];
    size_t n = 0;
    memcpy(bytes, &word, 8);
    while (n < 8 && bytes[n] == 0)
        n++;
    return n;
#endif
}

/* All bits of the first n bytes in memory order. */
static uint64_t first_bytes(size_t n)
{
    static const uint8_t ones_and_zeros[16] = {255, 255, 255, 255, 255, 255, 255, 255};
    return load(ones_and_zeros + 8 - n);
}

/* Counts the marks of eight pixels. Masks are made of runs: most continue the last. */
static inline void tally_eight(Tallies *tallies, Run *run, const uint8_t *t, const uint8_t *p,
                               const Band *band, uint64_t truth_marks, uint64_t pred_marks)
{
    uint64_t truth = choose(truth_marks, band->band_border);
    uint64_t pred = choose(pred_marks, band->band_border);
    uint64_t trimap = choose(truth_marks, band->trimap_border);
    uint64_t left = ~UINT64_C(0), truth_codes = load(t), pred_codes = load(p), differs;
    while ((differs = ((truth_codes ^ run->t) | (pred_codes ^ run->p)) & left) != 0) {
        size_t at = leading_zeros(differs);
        uint64_t now = left & first_bytes(at);
        extend_run(run, truth & now, pred & now, trimap & now);
        finish_run(tallies, run);
        *run = start_run(t[at], p[at]);
        left &= ~now;
    }
    extend_run(run, truth & left, pred & left, trimap & left);
    if (run->words == 255) {
        finish_run(tallies, run);
        *run = start_run(run->t & 255, run->p & 255);
    }
}

static void tally_row(Tallies *tallies, Run *run, const uint8_t *t, const uint8_t *p,
                      const Band *band, const uint8_t *truth_marks, const uint8_t *pred_marks,
                      size_t n)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t truth = load(truth_marks + i), pred = load(pred_marks + i);
        if (truth | pred)
            tally_eight(tallies, run, t + i, p + i, band, truth, pred);
    }
    if (i < n) {
        uint8_t tail[4][8] = {{0}};
        const uint8_t *sources[4] = {t, p, truth_marks, pred_marks};
        for (size_t k = 0; k < 4; k++)
            memcpy(tail[k], sources[k] + i, n - i);
        tally_eight(tallies, run, tail[0], tail[1], band, load(tail[2]), load(tail[3]));
    }
}

static void tally_all(Tallies *tallies, const Pair *pair, const Band *band, Workspace *truth,
                      Workspace *pred, uint8_t *marks)
{
    Run run = start_run(0, 0);
    for (size_t y = 0; y < pair->height; y++) {
        size_t start = y * pair->width;
        mark_row(truth, y, marks);
        mark_row(pred, y, marks + pair->width);
        tally_row(tallies, &run, pair->truth + start, pair->pred + start, band, marks,
                  marks + pair->width, pair->width);
    }
    finish_run(tallies, &run);
}

int count_bands(const Pair *pair, const Band *band, int64_t *inner, int64_t *trimap,
                int64_t *outer)
{
    Workspace truth, pred;
    Tallies *tallies = calloc(1, sizeof *tallies);
    uint8_t *marks = malloc(2 * pair->width);
    uint8_t *truth_memory = open_workspace(&truth, pair, pair->truth, band->reach);
    uint8_t *pred_memory = open_workspace(&pred, pair, pair->pred, band->reach);
    int status = tallies && marks && truth_memory && pred_memory ? 0 : -1;
    if (status == 0) {
        tally_all(tallies, pair, band, &truth, &pred, marks);
        memcpy(inner, tallies->inner, pair->num_classes * sizeof tallies->inner[0]);
        memcpy(trimap, tallies->trimap, pair->num_classes * sizeof tallies->trimap[0]);
        if (band->trimap_border >= 0)
            status = count_outer(truth.loops, pair, band->reach, outer);
    }
    free(truth_memory);
    free(pred_memory);
    free(tallies);
    free(marks);
    return status;
}
