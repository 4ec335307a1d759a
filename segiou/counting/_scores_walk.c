/* Scores of any strides, block by block.
 *
 * Planes whose pixels are contiguous, and long rows of contiguous classes, are read where they
 * are. Everything else goes through a small buffer that stays in cache, so that no second copy
 * of the scores is made.
 */
#include "_scores.h"

#include <stdlib.h>
#include <string.h>

#define BUFFER 8192 /* bytes, for as long as that makes at least so many pixels: */
#define FEWEST_PIXELS 64

typedef struct Work Work;
struct Work {
    const ScoreLoops *loops;
    const Scores *scores;
    int (*decide)(const Work *work, const char *from, size_t n, uint8_t *labels);
    size_t pixels; /* that are decided at once */
    char *planes;  /* the buffer, and from plane to plane in it: */
    size_t room;
};

static ptrdiff_t size_of(const Scores *scores) { return (ptrdiff_t)1 << scores->width; }

static ptrdiff_t pixel_stride(const Scores *scores) { return row_stride(&scores->axes, 0); }

static int is_aligned(const Scores *scores)
{
    uintptr_t all = (uintptr_t)scores->data | (uintptr_t)scores->class_stride;
    for (int axis = 0; axis < scores->axes.ndim; axis++)
        all |= (uintptr_t)scores->axes.strides[0][axis];
    return all % (uintptr_t)size_of(scores) == 0;
}

static int argmax_planes(const Work *work, const char *first, size_t n, uint8_t *labels)
{
    const Scores *scores = work->scores;
    Argmax argmax = work->loops->argmax[scores->key.is_float][scores->width];
    return argmax(first, scores->class_stride, scores->classes, n, scores->key.constant, labels);
}

static int argmax_rows(const Work *work, const char *from, size_t n, uint8_t *labels)
{
    const Scores *scores = work->scores;
    Argmax argmax = work->loops->argmax_rows[scores->key.is_float][scores->width];
    return argmax(from, pixel_stride(scores), scores->classes, n, scores->key.constant, labels);
}

static int argmax_buffer(const Work *work, size_t n, uint8_t *labels)
{
    const Scores *scores = work->scores;
    Argmax argmax = work->loops->argmax[scores->key.is_float][scores->width];
    return argmax(work->planes, (ptrdiff_t)work->room * size_of(scores), scores->classes, n,
                  scores->key.constant, labels);
}

static int argmax_transposed(const Work *work, const char *from, size_t n, uint8_t *labels)
{
    const Scores *scores = work->scores;
    work->loops->transpose[scores->width](from, pixel_stride(scores), scores->classes, n, work->planes,
                                     work->room);
    return argmax_buffer(work, n, labels);
}

/* Scores of n pixels, one by one, into the buffer. */
static void gather(const Work *work, const char *from, size_t n)
{
    const Scores *scores = work->scores;
    ptrdiff_t stride = pixel_stride(scores);
    for (size_t k = 0; k < scores->classes; k++, from += scores->class_stride)
        for (size_t i = 0; i < n; i++) {
            char *to = work->planes + ((k * work->room + i) << scores->width);
            const char *at = from + (ptrdiff_t)i * stride;
            switch (scores->width) {
            case 0: memcpy(to, at, 1); break;
            case 1: memcpy(to, at, 2); break;
            case 2: memcpy(to, at, 4); break;
            default: memcpy(to, at, 8);
            }
        }
}

static int argmax_gathered(const Work *work, const char *from, size_t n, uint8_t *labels)
{
    gather(work, from, n);
    return argmax_buffer(work, n, labels);
}

static int above_row(const Work *work, const char *from, size_t n, uint8_t *labels)
{
    const Scores *scores = work->scores;
    Above above = work->loops->above[scores->width];
    return above(from, n, scores->key.constant, scores->threshold, labels);
}

static int above_gathered(const Work *work, const char *from, size_t n, uint8_t *labels)
{
    gather(work, from, n);
    return above_row(work, work->planes, n, labels);
}

static int decide_rows(const Work *work, uint8_t *labels)
{
    const Axes *axes = &work->scores->axes;
    const char *row = work->scores->data;
    size_t length = (size_t)row_length(axes);
    ptrdiff_t stride = pixel_stride(work->scores), index[MAX_AXES] = {0};
    do {
        for (size_t done = 0; done < length;) {
            size_t n = length - done < work->pixels ? length - done : work->pixels;
            if (work->decide(work, row + (ptrdiff_t)done * stride, n, labels))
                return 1;
            labels += n;
            done += n;
        }
    } while (next_row(axes, index, &row));
    return 0;
}

static int decide_buffered(Work *work, uint8_t *labels)
{
    size_t size = (size_t)size_of(work->scores), of_pixel = work->scores->classes * size;
    while (work->pixels > FEWEST_PIXELS && work->pixels * of_pixel > BUFFER)
        work->pixels /= 2;
    /* Planes that began a power of two apart would share few lines of the cache. */
    work->room = work->pixels + CACHE_LINE / size;
    char *allocated = malloc(work->room * of_pixel + CACHE_LINE);
    if (allocated == NULL)
        return -1;
    work->planes = allocated + (CACHE_LINE - (uintptr_t)allocated % CACHE_LINE);
    int has_nan = decide_rows(work, labels);
    free(allocated);
    return has_nan;
}

/* Merges the axes; a single pixel is a row without gaps. */
static void simplify(Scores *scores)
{
    merge_axes(&scores->axes);
    if (row_length(&scores->axes) == 1)
        scores->axes.strides[0][0] = size_of(scores);
}

int argmax_all(const ScoreLoops *loops, Scores *scores, uint8_t *labels)
{
    if (is_empty(&scores->axes))
        return 0;
    simplify(scores);
    Work work = {.loops = loops, .scores = scores, .decide = argmax_gathered, .pixels = BLOCK};
    int is_row = scores->class_stride == size_of(scores);
    if (is_aligned(scores) && pixel_stride(scores) == size_of(scores))
        work.decide = argmax_planes;
    else if (is_row && scores->classes << scores->width >= FEWEST_BYTES_OF_ROW)
        work.decide = argmax_rows;
    else if (is_row)
        work.decide = argmax_transposed;
    int is_in_place = work.decide == argmax_planes || work.decide == argmax_rows;
    return is_in_place ? decide_rows(&work, labels) : decide_buffered(&work, labels);
}

int above_all(const ScoreLoops *loops, Scores *scores, uint8_t *labels)
{
    if (is_empty(&scores->axes))
        return 0;
    simplify(scores);
    Work work = {.loops = loops, .scores = scores, .decide = above_gathered, .pixels = BLOCK};
    if (is_aligned(scores) && pixel_stride(scores) == size_of(scores)) {
        work.decide = above_row;
        return decide_rows(&work, labels);
    }
    return decide_buffered(&work, labels);
}
