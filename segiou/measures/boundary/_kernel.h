/* Counting at boundaries: declarations of all kernel files. Only _kernel.c uses Python. */
#ifndef SEGIOU_BOUNDARY_KERNEL_H
#define SEGIOU_BOUNDARY_KERNEL_H

#include "../../_support/_bytes.h"

#include <stddef.h>
#include <stdint.h>

#define IGNORED 255
#define UNASSIGNED 254
#define VECTOR 64 /* bytes; a multiple of what any loop takes at once */

/* The columns of a window of rows that moves down. Rows are counted in 8, 16 or 32 bits, as few as
 * suffice for its height, since the more of them fit a vector. */
typedef struct {
    uint8_t *latest;  /* the last valid code of each column, */
    void *left;       /* for how many rows it will stay in the window, */
    void *left_other; /* and for how many the last code before it that is another */
    uint8_t *seen;    /* different codes in the window: 0, 1, or 2 for several */
} Columns;

/* The rows that contain a code; none if `end` is 0. */
typedef struct {
    size_t start, end;
} Rows;

/* Pixels marked in the truth, in the prediction, and in both as one class, by code. */
typedef struct {
    int64_t counts[256][3];
    Rows rows[256]; /* that hold marked pixels of this truth */
} Tally;

/* A row of codes, and its marks, one bit per code, lowest first. */
typedef struct {
    size_t y;
    const uint8_t *t, *p;
    const uint64_t *truth, *pred;
} MarkedRow;

/* Loops over rows of bytes, for the instruction set at hand; `words` are 64 bytes each. */
typedef struct {
    const char *name;
    /* Moves a window of this height down to a row of n codes; by the bits of counted rows. */
    void (*take_row[3])(const Columns *columns, const uint8_t *codes, size_t height, size_t n);
    /* Bit x of `edges`: columns x and x + 1 hold two codes; of `filled`: column x has one. The
     * rows of bits have a word more, which is 0. */
    void (*find_edges)(uint64_t *restrict edges, uint64_t *restrict filled,
                       uint64_t *restrict mixed, const Columns *columns, size_t words);
    /* Bit i: a[i] != value */
    void (*differ_from)(uint64_t *bits, const uint8_t *a, uint8_t value, size_t words);
    /* into[w] = bits[w] | the word `step` bits ahead; reads step / 64 + 1 words more. */
    void (*or_ahead)(uint64_t *restrict into, const uint64_t *restrict bits, size_t words,
                     size_t step);
    /* Adds the marked pixels of a row run by run; reads one code behind those of the words. */
    void (*tally)(Tally *tally, const MarkedRow *row, size_t words);
    /* Adds to counts[1] the pixels marked in the truth that have another code than c there, to [0]
     * those of them that are predicted as c. */
    void (*tally_outer)(int64_t *counts, const MarkedRow *row, uint8_t c, size_t words);
    /* Labels as codes; where is_ignoring is 255, not 0, the truth value `ignored` makes both
     * IGNORED. highest: the largest code of each side but that. */
    void (*encode)(uint8_t *restrict truth_codes, uint8_t *restrict pred_codes,
                   const uint8_t *restrict truth, const uint8_t *restrict pred, uint8_t ignored,
                   uint8_t is_ignoring, uint8_t *highest, size_t n);
} Loops;

/* The best loops that this processor runs; with a name, those, or NULL. */
const Loops *find_loops(const char *name);

/* Rows of bits, one after another, with room for windows over them.
 *
 * Each row starts `before` bits late and is followed by as many that are 0, so that a window from
 * x - before on, of up to 2 * before + 1 bits, is one from x on, and sees nothing of other rows. */
typedef struct {
    const Loops *loops;
    size_t words, before, stride;
    uint64_t *bits, *spare; /* in one piece of memory */
} BitRows;

/* Returns the memory to free, or NULL if there is none. */
void *open_bit_rows(BitRows *all, const Loops *loops, size_t rows, size_t words, size_t before);
void write_bit_row(BitRows *all, size_t i, const uint64_t *restrict bits);

/* Each bit of some rows: any of it and those behind it in steps of `unit` bits, `size` bits in all.
 * The last rows, or the room behind them, do not see so many and are lost. */
void spread_bits(BitRows *all, size_t rows, size_t size, size_t unit);

/* Two maps of class codes with the same ignored pixels, followed by results and work space.
 * Planes are of bits, with a row of `words` for each row of pixels. */
typedef struct {
    const Loops *loops;
    const uint8_t *truth, *pred;
    size_t height, width, num_classes;
    size_t rows, cols; /* that windows reach, no more than there are */
    int band_border;   /* whether the image border is a boundary of bands, */
    int trimap_border; /* and of trimaps; -1: of those there are none */
    size_t words;
    uint64_t *valid, *near_truth, *near_pred; /* planes: not ignored; and near another code */
    BitRows plane;                            /* with the reach above and below */
    Columns columns;
    Tally tally;
    uint8_t *blank, *spare[2];       /* rows of codes: ignored ones, and copies */
    uint64_t *bits, *filled, *mixed; /* rows of bits */
    uint64_t *none, *inside, *frame; /* frame: within reach of the left or right border */
} Work;

/* Row y of the truth or the prediction, if whole words and one code more can be read from there,
 * else a copy. */
const uint8_t *readable_row(const Work *work, int is_pred, size_t y);

/* Writes (C, 3), (C, 3) and (C, 2) counts of maps of which nothing is found yet. Returns -1 where
 * memory ran out. */
int count_bands(Work *work, int64_t *inner, int64_t *trimap, int64_t *outer);
/* After the rows of classes that are near another one are in the tally. */
void count_outer(Work *work, int64_t *outer);

#endif
