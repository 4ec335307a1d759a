/* Labels from scores: what the files of the kernel share.
 *
 * Scores are compared as integers that sort as they do, so that one set of loops serves every
 * type of one width, and compilers turn all of them into vector instructions. NaN sorts above
 * everything else and is found by looking at the largest score alone.
 */
#ifndef SEGIOU_SCORES_H
#define SEGIOU_SCORES_H

#include "_axes.h"

#include <stddef.h>
#include <stdint.h>

#define MAX_CLASSES 65536 /* labels are bytes, or 16 bits for more than 256 classes */
#define BLOCK 1024      /* pixels that are compared at once: their best scores stay in cache */
#define CHUNK 128       /* of them, for which is fetched ahead at once */
#define WIDTHS 4        /* of 1, 2, 4 and 8 bytes */

#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
#define HAS_SHUFFLES
#endif
#endif

/* How the bits of a score become an integer that sorts as the score does. */
typedef struct {
    int is_float;
    uint64_t constant; /* floats: the bits of infinity; integers: the bits to flip */
} Key;

/* The first largest of the scores of n <= BLOCK pixels, which are contiguous in each plane; or
 * whose classes are contiguous, and as many as FEWEST_BYTES_OF_ROW. The stride is from plane to
 * plane, or from pixel to pixel. Returns whether a score is NaN; then the labels mean nothing. */
typedef int (*Argmax)(const char *first, ptrdiff_t stride, size_t classes, size_t n, Key key,
                      void *labels, int is_wide);
#define FEWEST_BYTES_OF_ROW 192

/* Whether each score is above a threshold, given as its bits. */
typedef int (*Above)(const char *scores, size_t n, uint64_t infinity, uint64_t threshold,
                     uint8_t *labels);

/* Scores of n pixels into planes of `room` pixels. */
typedef void (*Transpose)(const char *scores, ptrdiff_t pixel_stride, ptrdiff_t class_stride,
                          size_t classes, size_t n, char *planes, size_t room);

/* The inner loops for one instruction set, each by the width of the scores. */
typedef struct {
    const char *name;
    Argmax argmax[WIDTHS], argmax_rows[WIDTHS]; /* of rows: NULL where planes are as fast */
    Above above[WIDTHS];
    Transpose transpose[WIDTHS];
} Loops;

/* The loops by name, or the best that this processor can run where name is NULL. */
const Loops *find_loops(const char *name);

/* Scores as the caller gave them. */
typedef struct {
    const char *data;
    int width; /* 0 to 3: of 1, 2, 4 or 8 bytes */
    Key key;
    Axes axes; /* of the pixels */
    size_t classes;
    ptrdiff_t class_stride;
    int has_threshold, is_wide; /* is_wide: labels of 16 bits */
    uint64_t threshold;
} Scores;

/* Labels of all pixels, contiguous in the order of the axes; the axes may be merged. Returns
 * whether a score is NaN, and then stops early, or -1 where memory ran out. */
int decide_all(const Loops *loops, Scores *scores, char *labels);

#endif
