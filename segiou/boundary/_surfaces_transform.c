/* An exact distance transform of a box, evaluated along its last axis only where it is asked.
 *
 * Each plane of the target is transformed over the rows and columns of the queries; the third
 * axis is searched outwards from each query. Slower than cells on real surfaces, but its time
 * does not depend on how they lie. Points are turned, so that rows lie along the first axis: squares
 * are summed in the order of the axes here, too. */
#include "_surfaces.h"

#include <math.h>
#include <stdlib.h>

#define WIDE 16          /* columns at once */
#define NONE 1e300       /* the square of no distance */

typedef struct {
    Box query, target; /* of turned points, in the order z, y, x */
    double step[3];
    size_t rows, columns; /* of a transformed plane; columns are padded */
    double *planes;       /* transformed; of those without points only `is_used` says so */
    double *along;        /* squares along the rows of one plane of the target */
    int *row_of;          /* where those rows lie */
    uint8_t *is_used;
} Transform;

/* Squares from each column of the queries to the nearest of a row's points. */
static void transform_row(const Transform *transform, const uint64_t *points, size_t count,
                          double *squares)
{
    size_t x = 0;
    int low = transform->query.low[2];
    for (size_t i = 0; i < count; i++) {
        int at = coordinate(points[i], X_BITS);
        /* Up to the middle between this point and the next. */
        size_t end = transform->columns;
        if (i + 1 < count) {
            int middle = ((at + coordinate(points[i + 1], X_BITS)) >> 1) - low;
            end = middle < 0 ? 0 : (size_t)middle + 1 < end ? (size_t)middle + 1 : end;
        }
        for (; x < end; x++) {
            double distance = ((int)x + low - at) * transform->step[2];
            squares[x] = distance * distance;
        }
    }
}

/* The least sums of a square along the row and one across it, for some columns of one row. */
static void search_across(const Transform *transform, int y, int rows, int middle, size_t x,
                          double *best)
{
    for (int i = 0; i < WIDE; i++)
        best[i] = NONE;
    double worst = NONE;
    int before = middle, behind = middle + 1;
    while (before >= 0 || behind < rows) {
        int to_before = before >= 0 ? abs(y - transform->row_of[before]) : LONGEST_AXIS + 1;
        int to_behind = behind < rows ? abs(y - transform->row_of[behind]) : LONGEST_AXIS + 1;
        int row = to_before <= to_behind ? before-- : behind++;
        double across = (to_before <= to_behind ? to_before : to_behind) * transform->step[1];
        across *= across;
        if (across >= worst)
            return;
        const double *along = transform->along + (size_t)row * transform->columns + x;
        worst = 0;
        for (int i = 0; i < WIDE; i++) {
            double square = along[i] + across;
            best[i] = square < best[i] ? square : best[i];
            worst = best[i] > worst ? best[i] : worst;
        }
    }
}

/* Transform one plane of the target; how many of the points belong to it. */
static size_t transform_plane(Transform *transform, Points points)
{
    int z = coordinate(points.at[0], Z_BITS), rows = 0, middle = 0;
    size_t i = 0, plane = (size_t)(z - transform->target.low[0]);
    while (i < points.count && coordinate(points.at[i], Z_BITS) == z) {
        size_t first = i;
        int y = coordinate(points.at[i], Y_BITS);
        while (i < points.count && coordinate(points.at[i], Z_BITS) == z &&
               coordinate(points.at[i], Y_BITS) == y)
            i++;
        transform_row(transform, points.at + first, i - first,
                      transform->along + (size_t)rows * transform->columns);
        transform->row_of[rows++] = y;
    }
    transform->is_used[plane] = 1;
    double *to = transform->planes + plane * transform->rows * transform->columns;
    for (size_t r = 0; r < transform->rows; r++) {
        int y = (int)r + transform->query.low[1];
        while (middle + 1 < rows &&
               abs(transform->row_of[middle + 1] - y) <= abs(transform->row_of[middle] - y))
            middle++;
        for (size_t x = 0; x < transform->columns; x += WIDE)
            search_across(transform, y, rows, middle, x, to + r * transform->columns + x);
    }
    return i;
}

/* The least square for a query, over the planes outwards from its own. */
static double search_planes(const Transform *transform, uint64_t point)
{
    int z = coordinate(point, Z_BITS) - transform->target.low[0];
    int planes = transform->target.high[0] - transform->target.low[0] + 1;
    size_t row = (size_t)(coordinate(point, Y_BITS) - transform->query.low[1]);
    size_t at = row * transform->columns + (size_t)(coordinate(point, X_BITS) - transform->query.low[2]);
    size_t plane = transform->rows * transform->columns;
    double best = NONE;
    for (int steps = 0; z - steps >= 0 || z + steps < planes; steps++) {
        double across = steps * transform->step[0] * (steps * transform->step[0]);
        if (across >= best)
            break;
        int sides[] = {z - steps, z + steps};
        for (int side = 0; side < 2; side++) {
            int there = sides[side];
            if (there < 0 || there >= planes || !transform->is_used[there])
                continue;
            double square = transform->planes[(size_t)there * plane + at] + across;
            best = square < best ? square : best;
        }
    }
    return best;
}

/* A point with its axes in another order: the first of them is then X_BITS. */
static uint64_t turned(const Axes *axes, uint64_t point)
{
    uint64_t moved = 0;
    for (int k = 0; k < 3; k++)
        moved |= (uint64_t)coordinate(point, axes->bits[k]) << 16 * k;
    return moved;
}

static int by_place(const void *a, const void *b)
{
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* Transform the planes of the target, and look up the queries that are left. */
static int transform_points(Transform *transform, const Axes *axes, Points query, Points target,
                            double *squared)
{
    size_t planes = (size_t)(transform->target.high[0] - transform->target.low[0] + 1);
    size_t rows = (size_t)(transform->target.high[1] - transform->target.low[1] + 1);
    transform->rows = (size_t)(transform->query.high[1] - transform->query.low[1] + 1);
    transform->columns =
        ((size_t)(transform->query.high[2] - transform->query.low[2]) / WIDE + 1) * WIDE;
    transform->planes = malloc(planes * transform->rows * transform->columns * sizeof(double));
    transform->along = malloc(rows * transform->columns * sizeof(double));
    transform->row_of = malloc(rows * sizeof(int));
    transform->is_used = calloc(planes, 1);
    if (!transform->planes || !transform->along || !transform->row_of || !transform->is_used)
        return 0;
    for (size_t i = 0; i < target.count;) {
        Points rest = {target.at + i, target.count - i};
        i += transform_plane(transform, rest);
    }
    for (size_t i = 0; i < query.count; i++)
        if (squared[i] == NOT_FOUND)
            squared[i] = search_planes(transform, turned(axes, query.at[i]));
    return 1;
}

int transform_box(const Axes *axes, Points query, Points target, double *squared)
{
    const Axes order = {{Z_BITS, Y_BITS, X_BITS}, {1, 1, 1}};
    Transform transform = {empty_box(), empty_box(), {0}, 0, 0, NULL, NULL, NULL, NULL};
    size_t missing = 0;
    for (size_t i = 0; i < query.count; i++)
        if (squared[i] == NOT_FOUND) {
            include(&transform.query, &order, turned(axes, query.at[i]));
            missing++;
        }
    if (!missing)
        return 1;
    uint64_t *sorted = malloc(target.count * sizeof *sorted);
    if (!sorted)
        return 0;
    for (size_t i = 0; i < target.count; i++) {
        sorted[i] = turned(axes, target.at[i]);
        include(&transform.target, &order, sorted[i]);
    }
    if (axes->bits[0] != X_BITS)
        qsort(sorted, target.count, sizeof *sorted, by_place);
    for (int k = 0; k < 3; k++)
        transform.step[k] = axes->step[2 - k];
    Points targets = {sorted, target.count};
    int is_done = transform_points(&transform, axes, query, targets, squared);
    free(transform.planes);
    free(transform.along);
    free(transform.row_of);
    free(transform.is_used);
    free(sorted);
    return is_done;
}
