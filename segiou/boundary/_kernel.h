/* Counting at boundaries: what the files of the kernel share. Only _kernel.c knows Python. */
#ifndef SEGIOU_BOUNDARY_KERNEL_H
#define SEGIOU_BOUNDARY_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#define IGNORED 255
#define UNASSIGNED 254
#define VECTOR 64 /* bytes; a multiple of what any loop takes at once */

/* Two maps of class codes of equal shape, ignored pixels at the same places. */
typedef struct {
    const uint8_t *truth, *pred;
    size_t height, width;
    size_t num_classes;
} Pair;

/* How wide bands are, and to what the image border is a boundary. */
typedef struct {
    size_t reach;
    int band_border;
    int trimap_border; /* -1: no trimaps */
} Band;

/* Pixels marked in the truth, in the prediction, and in both as one class. */
typedef struct {
    int64_t counts[256][3];
    size_t num_classes, recent;
    uint8_t order[256]; /* the classes; first the `recent` ones of the last row */
} Tally;

/* A row of codes, and what is marked of it, a bit each, lowest first. */
typedef struct {
    const uint8_t *t, *p;
    const uint64_t *truth, *pred;
} MarkedRow;

/* Loops over rows of bytes, for the instruction set at hand; `words` are 64 bytes each. */
typedef struct {
    const char *name;
    size_t few_classes; /* up to so many are best counted class by class */
    /* Rows are two halves of maxima, of codes and of their complements, ignored ones as 0 in both:
     * `into` is `rows` with n codes taken in. */
    void (*extend)(uint8_t *into, const uint8_t *rows, const uint8_t *codes, size_t half,
                   size_t n);
    /* Of two such rows together: the largest codes, and the smallest, 255 where there are none. */
    void (*join)(uint8_t *restrict rows, const uint8_t *restrict a, const uint8_t *restrict b,
                 size_t half);
    /* Bit i: a[i] != b[i] */
    void (*differ)(uint64_t *bits, const uint8_t *a, const uint8_t *b, size_t words);
    /* Bit i: a[i] != value */
    void (*differ_from)(uint64_t *bits, const uint8_t *a, uint8_t value, size_t words);
    /* Of joined rows, bit x of `edges`: columns x and x + 1 hold two codes; of `filled`: column x
     * has one. The rows of bits have a word more, which is 0. */
    void (*find_edges)(uint64_t *restrict edges, uint64_t *restrict filled,
                       uint64_t *restrict mixed, const uint8_t *rows, size_t words);
    /* marks: any of the three, where `inside` is and the code is valid. */
    void (*finish_marks)(uint64_t *marks, const uint64_t *bridged, const uint64_t *near,
                         const uint64_t *frame, const uint64_t *inside, const uint8_t *codes,
                         size_t words);
    /* into[w] = bits[w] | the word `step` bits ahead; reads step / 64 + 1 words more. */
    void (*or_ahead)(uint64_t *restrict into, const uint64_t *restrict bits, size_t words,
                     size_t step);
    /* How many bytes are not the value. */
    size_t (*count_others)(const uint8_t *codes, uint8_t value, size_t words);
    /* Adds what is marked of a row, for the classes. */
    void (*tally_classes)(Tally *tally, const MarkedRow *row, size_t words);
    /* The same for all codes, by runs; reads one code more than there are in the words. */
    void (*tally_runs)(Tally *tally, const MarkedRow *row, size_t words);
    /* Adds to counts[1] the marked pixels with another valid truth than c, to [0] those predicted
     * as c. */
    void (*tally_outer)(int64_t *counts, const uint8_t *t, const uint8_t *p, uint8_t c,
                        const uint64_t *marks, size_t words);
    /* Labels as codes; where is_ignoring is 255, not 0, the truth value `ignored` makes both
     * IGNORED. highest: the largest code of each side but that. */
    void (*encode)(uint8_t *restrict truth_codes, uint8_t *restrict pred_codes,
                   const uint8_t *restrict truth, const uint8_t *restrict pred, uint8_t ignored,
                   uint8_t is_ignoring, uint8_t *highest, size_t n);
} Loops;

/* The best loops that this processor runs; with a name, those, or NULL. */
const Loops *find_loops(const char *name);

size_t count_words(size_t pixels);

/* Row y where whole words and one code more can be read from it, else a copy in `spare`, which
 * has room for that. */
const uint8_t *readable_row(const Pair *pair, const uint8_t *codes, size_t y, uint8_t *spare);

size_t count_others(const Loops *loops, const uint8_t *codes, uint8_t value, size_t n);

/* Rows of bits, one after another, with room for windows over them.
 *
 * Each row starts `before` bits late and is followed by as many that are 0, so that a window from
 * x - before on, of up to 2 * before + 1 bits, is one from x on, and sees nothing of other rows. */
typedef struct {
    const Loops *loops;
    size_t rows, words, before, stride, room;
    uint64_t *bits, *spare; /* room words each, in one piece of memory */
} BitRows;

/* Returns what is to be freed, or NULL where memory ran out. */
void *open_bit_rows(BitRows *all, const Loops *loops, size_t rows, size_t words, size_t before);
void write_bit_row(BitRows *all, size_t i, const uint64_t *restrict bits);

/* Bit x of each row: any of x to x + size - 1. */
void spread_bit_rows(BitRows *all, size_t size);

/* Sets the bits from `first` to `last`. */
void set_bits(uint64_t *bits, size_t first, size_t last);

/* How many bits are 0 before the lowest that is not. */
static inline unsigned trailing_zeros(uint64_t word)
{
#if defined(__GNUC__)
    return (unsigned)__builtin_ctzll(word);
#else
    unsigned n = 0;
    while (!(word >> n & 1))
        n++;
    return n;
#endif
}

/* Writes (C, 3), (C, 3) and (C, 2) counts. Returns -1 where memory ran out. */
int count_bands(const Loops *loops, const Pair *pair, const Band *band, int64_t *inner,
                int64_t *trimap, int64_t *outer);
int count_outer(const Loops *loops, const Pair *pair, size_t reach, int64_t *outer);

#endif
