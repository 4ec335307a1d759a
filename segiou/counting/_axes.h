/* The axes of one or two strided arrays of the same shape, walked row by row; and fetching ahead. */
#ifndef SEGIOU_AXES_H
#define SEGIOU_AXES_H

#include <stddef.h>

#define MAX_AXES 64
#define MAX_ARRAYS 2
#define CACHE_LINE 64

#if defined(__GNUC__)
/* Past the end of an array this is a hint at an address that is never read, and no access. */
#define FETCH(at) __builtin_prefetch((at), 0, 2)
#else
#define FETCH(at) ((void)(at))
#endif

/* The outermost axis first. */
typedef struct {
    int ndim, arrays;
    ptrdiff_t shape[MAX_AXES];
    ptrdiff_t strides[MAX_ARRAYS][MAX_AXES];
} Axes;

/* How many items each array has. */
static inline size_t count_items(const Axes *axes)
{
    size_t items = 1;
    for (int axis = 0; axis < axes->ndim; axis++)
        items *= (size_t)axes->shape[axis];
    return items;
}

static inline void move_axis(Axes *axes, int from, int to)
{
    axes->shape[to] = axes->shape[from];
    for (int i = 0; i < axes->arrays; i++)
        axes->strides[i][to] = axes->strides[i][from];
}

static inline int follows(const Axes *axes, int outer, int inner)
{
    int without_gap = 1;
    for (int i = 0; i < axes->arrays; i++)
        without_gap &= axes->strides[i][outer] == axes->strides[i][inner] * axes->shape[inner];
    return without_gap;
}

/* Neighbouring axes become one where they follow each other without a gap; axes of one item go.
 * At least one axis is left. */
static inline void merge_axes(Axes *axes)
{
    int kept = 0;
    for (int axis = 0; axis < axes->ndim; axis++) {
        if (axes->shape[axis] == 1)
            continue;
        ptrdiff_t length = axes->shape[axis];
        if (kept > 0 && follows(axes, kept - 1, axis))
            length *= axes->shape[--kept];
        move_axis(axes, axis, kept);
        axes->shape[kept++] = length;
    }
    if (kept == 0) {
        axes->shape[0] = 1;
        for (int i = 0; i < axes->arrays; i++)
            axes->strides[i][0] = 0;
    }
    axes->ndim = kept ? kept : 1;
}

static inline ptrdiff_t row_length(const Axes *axes) { return axes->shape[axes->ndim - 1]; }

/* From one item of a row to the next. */
static inline ptrdiff_t row_stride(const Axes *axes, int array)
{
    return axes->strides[array][axes->ndim - 1];
}

/* Moves each of `rows` to the next row. Returns 0 after the last one. */
static inline int next_row(const Axes *axes, ptrdiff_t *index, const char **rows)
{
    for (int axis = axes->ndim - 2; axis >= 0; axis--) {
        int is_inside = ++index[axis] < axes->shape[axis];
        for (int i = 0; i < axes->arrays; i++)
            rows[i] += axes->strides[i][axis] * (is_inside ? 1 : 1 - axes->shape[axis]);
        if (is_inside)
            return 1;
        index[axis] = 0;
    }
    return 0;
}

#endif
