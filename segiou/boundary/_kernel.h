/* Counting at boundaries: what the files of the kernel share. None but the door knows Python. */
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

/* Boundary points class by class. */
typedef struct {
    const int32_t *points; /* row, column */
    const int64_t *starts; /* num_classes + 1 */
} Points;

#define NEAR 1  /* a valid pixel of another code lies within reach */
#define FRAME 2 /* the image border does */

/* Loops over rows of bytes, for the instruction set at hand. */
typedef struct {
    /* into[i] = max(into[i], from[i]) */
    void (*max_into)(uint8_t *restrict into, const uint8_t *restrict from, size_t n);
    /* into[i] = max(a[i], b[i]) */
    void (*max_of)(uint8_t *restrict into, const uint8_t *a, const uint8_t *b, size_t n);
    /* Codes and their complements, ignored ones as 0 in both. */
    void (*split)(uint8_t *restrict high, uint8_t *restrict low, const uint8_t *restrict codes,
                  size_t n);
    /* frame[i], and NEAR where high[i] and low[i] are no complements; 0 for ignored codes. */
    void (*mark)(uint8_t *restrict marks, const uint8_t *restrict high,
                 const uint8_t *restrict low, const uint8_t *restrict codes,
                 const uint8_t *restrict frame, size_t n);
    /* Labels as codes; where is_ignoring is 255, not 0, the truth value `ignored` makes both
     * IGNORED. */
    void (*encode)(uint8_t *restrict truth_codes, uint8_t *restrict pred_codes,
                   const uint8_t *restrict truth, const uint8_t *restrict pred, uint8_t ignored,
                   uint8_t is_ignoring, size_t n);
    /* highest[i % VECTOR] = max(itself, codes[i]), for codes that are not ignored. */
    void (*keep_highest)(uint8_t *restrict highest, const uint8_t *restrict codes, size_t n);
} Loops;

const Loops *find_loops(void);

/* Whether any code that is not IGNORED is `lowest` or above. */
int has_code_from(const Loops *loops, const uint8_t *codes, uint8_t lowest, size_t n);

/* Replaces rows i of `data` by the maximum of rows i to i + size - 1; the last size - 1 are lost. */
void max_over_rows(const Loops *loops, uint8_t *data, size_t rows, size_t stride, size_t size);
/* The same for the bytes of a row. The result lies in `row` or `spare`, which hold n bytes, are
 * both overwritten and have room for `size` more, that are read but matter to no other than the
 * last size - 1. */
uint8_t *max_along_row(const Loops *loops, uint8_t *row, uint8_t *spare, size_t n, size_t size);

/* Writes (C, 3), (C, 3) and (C, 2) counts. Returns -1 where memory ran out. */
int count_bands(const Pair *pair, const Band *band, int64_t *inner, int64_t *trimap,
                int64_t *outer);
int count_outer(const Loops *loops, const Pair *pair, size_t reach, int64_t *outer);

/* Writes the squared distance of each query point. Returns -1 where memory ran out. */
int find_nearest(const Points *query, const Points *target, size_t num_classes, double row_step,
                 double column_step, double *squared);

#endif
