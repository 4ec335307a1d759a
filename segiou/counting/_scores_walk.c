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

/* How the scores of a block come to the loops. */
typedef enum { PLANES, ROWS, BUFFERED } Layout;

typedef struct {
    const Loops *loops;
    const Scores *scores;
    Layout layout;
    size_t pixels; /* that are decided at once */
    char *planes;  /* the buffer, and from plane to plane in it: */
    size_t room;
} Work;

static ptrdiff_t size_of(const Scores *scores) { return (ptrdiff_t)1 << scores->width; }

static ptrdiff_t pixel_stride(const Scores *scores) { return row_stride(&scores->axes, 0); }

static int is_aligned(const Scores *scores)
{
    uintptr_t all = (uintptr_t)scores->data | (uintptr_t)scores->class_stride;
    for (int axis = 0; axis < scores->axes.ndim; axis++)
        all |= (uintptr_t)scores->axes.strides[0][axis];
    return all % (uintptr_t)size_of(scores) == 0;
}

static int decide_block(const Work *work, const char *from, size_t n, char *labels)
{
    const Scores *scores = work->scores;
    const Loops *loops = work->loops;
    int width = scores->width;
    ptrdiff_t stride = scores->class_stride;
    if (work->layout == ROWS)
        return loops->argmax_rows[width](from, pixel_stride(scores), scores->classes, n,
                                         scores->key, labels, scores->is_wide);
    if (work->layout == BUFFERED) {
        loops->transpose[width](from, pixel_stride(scores), stride, scores->classes, n,
                                work->planes, work->room);
        from = work->planes;
        stride = (ptrdiff_t)work->room * size_of(scores);
    }
    if (scores->has_threshold)
        return loops->above[width](from, n, scores->key.constant, scores->threshold,
                                   (uint8_t *)labels);
    return loops->argmax[width](from, stride, scores->classes, n, scores->key, labels,
                                scores->is_wide);
}

static int decide_rows(const Work *work, char *labels)
{
    const Axes *axes = &work->scores->axes;
    const char *row = work->scores->data;
    size_t length = (size_t)row_length(axes);
    ptrdiff_t stride = pixel_stride(work->scores), index[MAX_AXES] = {0};
    do {
        for (size_t done = 0; done < length;) {
            size_t n = length - done < work->pixels ? length - done : work->pixels;
            if (decide_block(work, row + (ptrdiff_t)done * stride, n, labels))
                return 1;
            labels += n << work->scores->is_wide;
            done += n;
        }
    } while (next_row(axes, index, &row));
    return 0;
}

static int decide_buffered(Work *work, char *labels)
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

int decide_all(const Loops *loops, Scores *scores, char *labels)
{
    if (count_items(&scores->axes) == 0)
        return 0;
    merge_axes(&scores->axes);
    if (row_length(&scores->axes) == 1) /* a single pixel is a row without gaps */
        scores->axes.strides[0][0] = size_of(scores);
    Work work = {.loops = loops, .scores = scores, .layout = BUFFERED, .pixels = BLOCK};
    int is_row = !scores->has_threshold && scores->class_stride == size_of(scores);
    int is_long = scores->classes << scores->width >= FEWEST_BYTES_OF_ROW;
    if (is_aligned(scores) && pixel_stride(scores) == size_of(scores))
        work.layout = PLANES;
    else if (is_row && is_long && loops->argmax_rows[scores->width])
        work.layout = ROWS;
    return work.layout == BUFFERED ? decide_buffered(&work, labels) : decide_rows(&work, labels);
}
