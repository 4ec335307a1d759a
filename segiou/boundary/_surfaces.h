/* Surfaces of labels in volumes: their points, and how far those of two surfaces lie apart.
 *
 * A point is one number: x in the lowest 16 bits, then y and z, then which of the 8 voxels around
 * it belong to the label. Points of a surface stand in the order of z, y, x. */
#ifndef SEGIOU_SURFACES_H
#define SEGIOU_SURFACES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rows of bits are read as little-endian numbers"
#endif

#define X_BITS 0
#define Y_BITS 16
#define Z_BITS 32
#define CODE_BITS 48
#define LONGEST_AXIS 65535
#define PLACE ((UINT64_C(1) << CODE_BITS) - 1)

/* A coordinate of a point, by its bits. */
static inline int coordinate(uint64_t point, int bits) { return (int)(point >> bits & 0xFFFF); }

/* Which voxels belong to the label; 0 where points are voxels. */
static inline int code_of(uint64_t point) { return (int)(point >> CODE_BITS & 0xFF); }

typedef struct {
    const uint64_t *at;
    size_t count;
} Points;

/* The axes in the order in which squares are summed, and the size of a voxel along each. */
typedef struct {
    int bits[3];
    double step[3];
} Axes;

typedef struct {
    int low[3], high[3]; /* in the order of the axes; both belong to it */
} Box;

/* The box of no points. */
static inline Box empty_box(void)
{
    Box box = {{LONGEST_AXIS, LONGEST_AXIS, LONGEST_AXIS}, {0, 0, 0}};
    return box;
}

static inline void include(Box *box, const Axes *axes, uint64_t point)
{
    for (int k = 0; k < 3; k++) {
        int at = coordinate(point, axes->bits[k]);
        box->low[k] = at < box->low[k] ? at : box->low[k];
        box->high[k] = at > box->high[k] ? at : box->high[k];
    }
}

static inline double voxels_in(const Box *box)
{
    double product = 1;
    for (int k = 0; k < 3; k++)
        product *= box->high[k] - box->low[k] + 1.0;
    return product;
}

/* ---- finding: _surfaces_find.c ---- */

#define LABELS 256

/* The points of each label. Beyond the limit only their number is kept. */
typedef struct {
    uint64_t *at[LABELS];
    size_t count[LABELS], room[LABELS];
    size_t reserved, limit; /* of points */
    int is_full, has_failed;
} Found;

typedef struct {
    const uint8_t *labels;
    size_t depth, height, width;
    int is_flat;              /* an image: nothing lies before or behind it */
    int ignored;              /* the label of voxels that are left out, or -1 */
    const uint8_t *is_wanted; /* of each label; not of label 0, which is outside */
} Volume;

/* Find the voxels with a face to another label, or the corners between voxels that differ;
 * false where memory does not suffice. */
int find_surfaces(const Volume *volume, int elements, Found *found);
void free_found(Found *found);

/* ---- near: _surfaces_near.c ---- */

#define ROWS 64                   /* rows of bits that are searched */
#define HALF 29                   /* distances 0 to 28 along a row */
#define ROW_REACH 6               /* rows around that may be searched */
#define RANKS (ROWS * HALF)

/* All distances that a near search can find, in ascending order: a distance is its rank. */
typedef struct {
    Axes axes;
    int rows, ranks, certain; /* ranks up to this one are distances to the nearest point */
    int dz[ROWS], dy[ROWS];
    uint16_t rank[RANKS], nearest[ROWS]; /* of each row: by distance along it, the least */
    double distance[RANKS];
} Table;

void fill_table(Table *table, const Axes *axes);

/* Distances from one surface to another: how many points, and which area, of each rank; and one
 * by one those that are too far for the table. */
typedef struct {
    int64_t points[RANKS];
    double areas[RANKS];
    double *far, *far_areas;
    size_t far_count;
} Distances;

/* Nearest target of each query; areas by code, or NULL. False where memory does not suffice. */
int find_distances(const Table *table, Points query, Points target, const double *areas,
                   Distances *found);

/* ---- far: _surfaces_far.c, _surfaces_transform.c ---- */

#define NOT_FOUND (-1.0)

/* Squares of the distances to the nearest target; NOT_FOUND where the search took too long. */
int search_cells(const Axes *axes, Points query, Points target, double *squared);
/* The same for those that were not found, by a transform of the box around them. */
int transform_box(const Axes *axes, Points query, Points target, double *squared);

#endif
