/* An exact distance transform of a box, evaluated along its last axis only where it is asked.
 *
 * Slower than cells on real surfaces, but its time hardly depends on how they lie. */
#include "_surfaces.h"

#include <stdlib.h>

#define NOTHING 1e300 /* the square of no distance */

/* A box whose rows lie along the first axis, planes along the first two. */
typedef struct {
    const Axes *axes;
    Box box;
    size_t row, rows, planes;
    double *squares; /* then the copy of a plane */
    uint8_t *is_used;
} Transform;

static size_t offset_of(const Transform *transform, uint64_t point, int axis)
{
    return (size_t)(coordinate(point, transform->axes->bits[axis]) - transform->box.low[axis]);
}

static double square_of(double steps, double size) { return steps * size * (steps * size); }

/* Along a row whose points are 0: the squares to the nearest of them. */
static void transform_row(double *row, size_t length, double size)
{
    size_t last = length; /* none yet */
    for (size_t x = 0; x < length; x++) {
        last = row[x] == 0 ? x : last;
        row[x] = last < length ? square_of((double)(x - last), size) : NOTHING;
    }
    last = length;
    for (size_t x = length; x-- > 0;) {
        last = row[x] == 0 ? x : last;
        double square = last < length ? square_of((double)(last - x), size) : NOTHING;
        row[x] = square < row[x] ? square : row[x];
    }
}

/* Lower the squares of one row to those through another, so many steps across. */
static void lower(double *row, const double *other, size_t length, double across)
{
    for (size_t x = 0; x < length; x++)
        row[x] = other[x] + across < row[x] ? other[x] + across : row[x];
}

/* Across the rows of a plane, outwards from each. */
static void transform_plane(const Transform *transform, double *plane)
{
    size_t row = transform->row, rows = transform->rows;
    double *copy = transform->squares + transform->planes * rows * row;
    memcpy(copy, plane, rows * row * sizeof *copy);
    for (size_t y = 0; y < rows; y++)
        for (size_t steps = 1; steps <= y || y + steps < rows; steps++) {
            double across = square_of((double)steps, transform->axes->step[1]), worst = 0;
            for (size_t x = 0; x < row; x++)
                worst = plane[y * row + x] > worst ? plane[y * row + x] : worst;
            if (across >= worst)
                break;
            if (steps <= y)
                lower(plane + y * row, copy + (y - steps) * row, row, across);
            if (y + steps < rows)
                lower(plane + y * row, copy + (y + steps) * row, row, across);
        }
}

/* The least square for a query, over the planes outwards from its own. */
static double search_planes(const Transform *transform, uint64_t point)
{
    size_t plane = transform->rows * transform->row, z = offset_of(transform, point, 2);
    size_t at = offset_of(transform, point, 1) * transform->row + offset_of(transform, point, 0);
    double best = NOTHING;
    for (size_t steps = 0; steps <= z || z + steps < transform->planes; steps++) {
        double across = square_of((double)steps, transform->axes->step[2]);
        if (across >= best)
            break;
        if (steps <= z && transform->is_used[z - steps])
            lower(&best, transform->squares + (z - steps) * plane + at, 1, across);
        if (z + steps < transform->planes && transform->is_used[z + steps])
            lower(&best, transform->squares + (z + steps) * plane + at, 1, across);
    }
    return best;
}

int transform_box(const Axes *axes, Points query, Points target, double *squared)
{
    Transform transform = {.axes = axes, .box = box_of(axes, query, target)};
    const Box *box = &transform.box;
    transform.row = (size_t)(box->high[0] - box->low[0]) + 1;
    transform.rows = (size_t)(box->high[1] - box->low[1]) + 1;
    transform.planes = (size_t)(box->high[2] - box->low[2]) + 1;
    size_t plane = transform.row * transform.rows, squares = plane * (transform.planes + 1);
    transform.squares = malloc(squares * sizeof(double));
    transform.is_used = calloc(transform.planes, 1);
    int is_done = transform.squares && transform.is_used;
    for (size_t i = 0; is_done && i < squares; i++)
        transform.squares[i] = NOTHING;
    for (size_t i = 0; is_done && i < target.count; i++) {
        size_t z = offset_of(&transform, target.at[i], 2);
        size_t y = offset_of(&transform, target.at[i], 1);
        transform.is_used[z] = 1;
        transform.squares[z * plane + y * transform.row + offset_of(&transform, target.at[i], 0)] = 0;
    }
    for (size_t z = 0; is_done && z < transform.planes; z++) {
        for (size_t y = 0; transform.is_used[z] && y < transform.rows; y++)
            transform_row(transform.squares + z * plane + y * transform.row, transform.row,
                          axes->step[0]);
        if (transform.is_used[z])
            transform_plane(&transform, transform.squares + z * plane);
    }
    for (size_t i = 0; is_done && i < query.count; i++)
        if (squared[i] == NOT_FOUND)
            squared[i] = search_planes(&transform, query.at[i]);
    free(transform.squares);
    free(transform.is_used);
    return is_done;
}
