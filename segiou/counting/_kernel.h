/* Counting label pairs: what the files of the kernel share.
 *
 * A call passes three stages, none of which knows Python:
 *
 *   walk     the two arrays, of any strides, as blocks of at most BLOCK pixels
 *   symbols  a block of values, of any integer dtype, as small symbols
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
#define MAX_BACKENDS 4

/* How the values of one array become symbols. From SYMBOL_IS_SHIFT16 on they have 16 bits, and
 * those of the other array then have, too. */
typedef enum {
    SYMBOL_IS_BYTE,  /* 1-byte values: the byte itself, of which there are 256 */
    SYMBOL_IS_SHIFT, /* value - first, where that is < 256, else `outside`; 8 bits */
    SYMBOL_IS_CODE8, /* the code itself, looked up per pixel; 8 bits */
    SYMBOL_IS_SHIFT16, /* min(value - first, length), or a byte; 16 bits */
    SYMBOL_IS_CODE16   /* the code itself, looked up per pixel; 16 bits */
} SymbolKind;

/* One of the two label arrays and what its values mean. */
typedef struct {
    const char *data;
    int itemsize; /* 1, 2, 4 or 8 */
    int is_swapped, is_bool, is_signed;
    uint16_t *memory;      /* the copied codes */
    const uint16_t *codes; /* of the values first, first + 1, ...; each below states */
    uint64_t length;       /* how many values from `first` on have a code */
    uint64_t first;  /* the low bits of the dtype; higher ones do not matter */
    uint32_t states; /* rows or columns of the table; states - 1 is the code of all other values */
    SymbolKind kind;
    uint8_t outside;   /* SYMBOL_IS_SHIFT: the symbol of every other value */
    void *looked_up;   /* SYMBOL_IS_CODE*: length + 1 codes, the last for every other value */
    uint32_t *offsets; /* symbol -> what it adds to the index of a counter in the table */
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

/* Where the counts go: table[truth_offsets[t] + pred_offsets[p]]. */
typedef struct {
    int64_t *table;
    size_t rows, cols;
    const uint32_t *truth_offsets;
    const uint32_t *pred_offsets;
    Noise *noise;
} Counters;

/* Finds the positions where a block's pair differs from its predecessor's. Position 0 always
 * counts as one. Returns how many; may write OVERRUN more entries than that. */
typedef size_t (*Scan)(const void *truth, const void *pred, size_t n, uint16_t *positions);

/* value -> 8-bit symbol of SYMBOL_IS_SHIFT, for contiguous native values. */
typedef void (*Shift)(const char *values, size_t n, uint64_t first, uint8_t outside,
                      uint8_t *symbols);

/* value -> 16-bit symbol of SYMBOL_IS_SHIFT16, likewise. */
typedef void (*WideShift)(const char *values, size_t n, uint64_t first, uint64_t length,
                          uint16_t *symbols);

/* A 16-bit number for each pair of 8-bit symbols. */
typedef void (*FindPairs)(const uint8_t *truth, const uint8_t *pred, size_t n,
                          const Noise *noise, uint16_t *restrict pairs);

/* One set of inner loops: portable, or for an instruction set. */
typedef struct {
    const char *name;
    int (*is_runnable)(void); /* NULL: everywhere */
    Scan scan8;
    Scan scan16;
    Shift shift[3]; /* of 2, 4 and 8 bytes */
    WideShift wide[3];
    FindPairs find_pairs;
} Loops;

/* A short loop takes a tenth longer where it happens to lie across lines of code. */
#if defined(__x86_64__) && defined(__GNUC__)
#define ALIGNED_CODE __attribute__((aligned(64)))
#else
#define ALIGNED_CODE
#endif
/* Called once, before any loops run. */
void fill_position_lookup(void);
/* The loops by name, or the best that this processor can run where name is NULL. */
const Loops *find_loops(const char *name);
int list_loops(const char **names);

/* Cuts the codes down to those of values that the dtype can hold. `missing` of them come before
 * `lowest`, which then is the first. */
void cut_range(Source *source, uint64_t missing, uint64_t lowest, uint64_t highest);
/* Returns -1 where memory ran out. */
int prepare_sources(Source *truth, Source *pred);
void free_source(Source *source);

/* `into` has room for n symbols. Returns it, or the values themselves where those serve. */
const void *as_symbols(const Source *source, const Loops *loops, const char *values,
                       ptrdiff_t stride, size_t n, char *native, void *into);

/* Adds the counts of all pixels to the table; the axes may be reordered and merged. Returns
 * whether its last row or column holds anything now; -1 where memory ran out, with nothing
 * counted. */
int count_all(const Loops *loops, Axes *axes, Source *truth, Source *pred, int64_t *table,
              size_t rows, size_t cols);

#endif
