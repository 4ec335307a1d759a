/* Counting label pairs: what the files of the kernel share.
 *
 * A call passes three stages, none of which knows Python:
 *
 *   walk     the two arrays, of any strides, as blocks of at most BLOCK pixels
 *   symbols  a block of values, of any integer width, as small symbols
 *   blocks   two blocks of symbols, counted: runs of equal pairs, or pixel by pixel
 *
 * Symbols make a pass over pixels cheap: what a value means is looked up once per run, in
 * `offsets`, and not once per pixel.
 */
#ifndef SEGIOU_KERNEL_H
#define SEGIOU_KERNEL_H

#include "_axes.h"

#include <stddef.h>
#include <stdint.h>

#define BLOCK 4096       /* pixels of a block; positions in it must fit 16 bits */
#define OVERRUN 64       /* what a scan may write past the last position */
#define MAX_CODES 65536  /* codes are 16 bits wide */

/* How the values of one array become symbols. */
typedef enum {
    AS_IS,    /* bytes, if symbols have 8 bits */
    SHIFTED,  /* value - first, where that is at most `mask`, else `outside` */
    LOOKED_UP /* the code itself, looked up per pixel; 16 bits */
} SymbolKind;

/* One of the two label arrays and what its values mean. */
typedef struct {
    const char *data;
    int itemsize; /* 1, 2, 4 or 8 */
    int is_bool;
    uint16_t *memory; /* the copied codes */
    uint16_t *codes;  /* of the values first, first + 1, ..., then of all others; below states */
    uint64_t length;  /* how many values from `first` on have a code */
    uint64_t first;   /* the low bits of the dtype; higher ones do not matter */
    uint32_t states;  /* rows or columns of the table; states - 1 is the code of all other values */
    SymbolKind kind;
    uint16_t mask, outside; /* the largest symbol, all bits set; that of values beyond it */
    uint32_t *offsets;      /* symbol -> what it adds to the index of a counter in the table */
    uint32_t few_offsets[256]; /* what offsets points to where there are no more symbols */
} Source;

/* Small counters for blocks without runs; see _kernel_walk.c. */
typedef struct {
    uint32_t *cells; /* one or two per pair of symbols up to the last ones */
    size_t count, width, copies;
    uint64_t pixels, all_pixels; /* in the cells, and in both arrays */
    uint8_t last_truth, last_pred; /* what later symbols mean, too */
    int is_expected; /* the last block was noise */
} Noise;

/* Finds the positions where a block's pair differs from its predecessor's. Position 0 always
 * counts as one. Returns how many; may write OVERRUN more entries than that. */
typedef size_t (*Scan)(const void *truth, const void *pred, size_t n, uint16_t *positions);

/* Values -> symbols of 8 or 16 bits, for contiguous values of SHIFTED sources. */
typedef void (*Shift)(const Source *source, const char *values, size_t n, void *symbols);

/* A 16-bit number for each pair of 8-bit symbols. */
typedef void (*FindPairs)(const uint8_t *truth, const uint8_t *pred, size_t n,
                          const Noise *noise, uint16_t *restrict pairs);

/* The inner loops for one instruction set. */
typedef struct {
    const char *name;
    Scan scan[2];      /* of symbols of 8 and 16 bits */
    Shift shift[2][4]; /* to those, of values of 1, 2, 4 and 8 bytes */
    FindPairs find_pairs;
} Loops;

#define MAX_SETS 3

/* Called once, before any loops run. */
void fill_position_lookup(void);
/* The loops by name, or the best that this processor can run where name is NULL. */
const Loops *find_loops(const char *name);
int list_loops(const Loops **found);

/* Cuts the codes down to those of values that the dtype can hold. `missing` of them come before
 * `lowest`, which then is the first. */
void cut_range(Source *source, uint64_t missing, uint64_t lowest, uint64_t highest);
/* Whether symbols have 16 bits; -1 where memory ran out. */
int prepare_sources(Source *truth, Source *pred);
void free_source(Source *source);

/* `into` has room for n symbols. Returns it, or the values themselves where those serve. */
const void *as_symbols(const Source *source, const Loops *loops, int is_wide, const char *values,
                       ptrdiff_t stride, size_t n, char *gathered, void *into);

/* Adds the counts of all pixels to the table; the axes may be merged. Returns whether its last
 * row or column holds anything now; -1 where memory ran out, with nothing counted. */
int count_all(const Loops *loops, Axes *axes, Source *truth, Source *pred, int64_t *table);

#endif
