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

static ptrdiff_t pixel_stride(const Scores *scores) { return scores->strides[scores->ndim - 1]; }

/* The last axes as one, where they follow each other without a gap; at least one. */
static void merge_axes(Scores *scores)
{
    if (scores->ndim == 0) {
        scores->ndim = 1;
        scores->shape[0] = 1;
        scores->strides[0] = size_of(scores);
    }
    int last = 0;
    for (int axis = 1; axis < scores->ndim; axis++) {
        ptrdiff_t length = scores->shape[axis], stride = scores->strides[axis];
        if (length == 1)
            continue;
        if (scores->shape[last] == 1 || scores->strides[last] == stride * length)
            scores->shape[last] *= length;
        else
            scores->shape[++last] = length;
        scores->strides[last] = stride;
    }
    scores->ndim = last + 1;
}

/* Steps to the next row of pixels. Returns NULL after the last one. */
static const char *next_row(const Scores *scores, ptrdiff_t *index, const char *row)
{
    for (int axis = scores->ndim - 2; axis >= 0; axis--) {
        if (++index[axis] < scores->shape[axis])
            return row + scores->strides[axis];
        row -= scores->strides[axis] * (scores->shape[axis] - 1);
        index[axis] = 0;
    }
    return NULL;
}

static int is_aligned(const Scores *scores)
{
    uintptr_t all = (uintptr_t)scores->data | (uintptr_t)scores->class_stride;
    for (int axis = 0; axis < scores->ndim; axis++)
        all |= (uintptr_t)scores->strides[axis];
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

static int argmax_turned(const Work *work, const char *from, size_t n, uint8_t *labels)
{
    const Scores *scores = work->scores;
    work->loops->turn[scores->width](from, pixel_stride(scores), scores->classes, n, work->planes,
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
    const Scores *scores = work->scores;
    size_t length = (size_t)scores->shape[scores->ndim - 1];
    ptrdiff_t stride = pixel_stride(scores), index[MAX_AXES] = {0};
    for (const char *row = scores->data; row != NULL; row = next_row(scores, index, row))
        for (size_t done = 0; done < length;) {
            size_t n = length - done < work->pixels ? length - done : work->pixels;
            if (work->decide(work, row + (ptrdiff_t)done * stride, n, labels))
                return 1;
            labels += n;
            done += n;
        }
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

static int is_empty(const Scores *scores)
{
    int found = 0;
    for (int axis = 0; axis < scores->ndim; axis++)
        found |= scores->shape[axis] == 0;
    return found;
}

int argmax_all(const ScoreLoops *loops, Scores *scores, uint8_t *labels)
{
    if (is_empty(scores))
        return 0;
    merge_axes(scores);
    Work work = {.loops = loops, .scores = scores, .decide = argmax_gathered, .pixels = BLOCK};
    int is_row = scores->class_stride == size_of(scores);
    if (is_aligned(scores) && pixel_stride(scores) == size_of(scores))
        work.decide = argmax_planes;
    else if (is_row && scores->classes << scores->width >= FEWEST_BYTES_OF_ROW)
        work.decide = argmax_rows;
    else if (is_row)
        work.decide = argmax_turned;
    int is_in_place = work.decide == argmax_planes || work.decide == argmax_rows;
    return is_in_place ? decide_rows(&work, labels) : decide_buffered(&work, labels);
}

int above_all(const ScoreLoops *loops, Scores *scores, uint8_t *labels)
{
    if (is_empty(scores))
        return 0;
    merge_axes(scores);
    Work work = {.loops = loops, .scores = scores, .decide = above_gathered, .pixels = BLOCK};
    if (is_aligned(scores) && pixel_stride(scores) == size_of(scores)) {
        work.decide = above_row;
        return decide_rows(&work, labels);
    }
    return decide_buffered(&work, labels);
}
