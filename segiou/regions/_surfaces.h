/* Surfaces of labels in volumes: their points, and the distances between two surfaces.
 *
 * A point is one number: x in the lowest 16 bits, then y and z, then which of the 8 voxels around
 * it belong to the label. Points of a surface are in the order of z, y, x. */
#ifndef SEGIOU_SURFACES_H
#define SEGIOU_SURFACES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "rows of bits are read as little-endian numbers"
#endif

#define X_BITS 0
#define Y_BITS 16
#define Z_BITS 32
#define CODE_BITS 48
#define LONGEST_AXIS 65535
#define LABELS 256

/* A coordinate of a point, by its bits. */
static inline int coordinate(uint64_t point, int bits) { return (int)(point >> bits & 0xFFFF); }

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

/* An empty box, and a box extended to these points. */
#define NO_BOX ((Box){{LONGEST_AXIS, LONGEST_AXIS, LONGEST_AXIS}, {0, 0, 0}})
Box widened(Box box, const Axes *axes, Points points);

/* The points of each label, until there are more than the limit. */
typedef struct {
    uint64_t *at[LABELS];
    size_t count[LABELS], room[LABELS];
    size_t reserved, limit; /* of points */
    enum { GOOD, TOO_MANY, NO_MEMORY } status;
} Found;

typedef struct {
    const uint8_t *labels;
    size_t depth, height, width;
    int is_flat;              /* an image: nothing lies before or behind it */
    int ignored;              /* the label of voxels that are left out, or -1 */
    const uint8_t *is_wanted; /* of each label; not of label 0, which is outside */
} Volume;

/* Find the voxels with a face to another label, or the corners between voxels that differ. */
void find_surfaces(const Volume *volume, int elements, Found *found);
void free_found(Found *found);

#define ROWS 64     /* rows of bits that are searched around a point */
#define ROW_REACH 6 /* and how far they may lie away */
#define HALF 29     /* distances 0 to 28 along a row */
#define RANKS (ROWS * HALF)

/* The rows that are searched, nearest first, and the rank of each distance along them among all. */
typedef struct {
    Axes axes;
    int rows, certain;    /* nothing lies nearer than what is found up to this rank */
    const int32_t *row;   /* dz, dy of each */
    const uint16_t *rank; /* by row and distance along it */
} Table;

/* From each query to its nearest target. */
typedef struct {
    const double *areas;     /* of points, by code */
    uint16_t *ranks;         /* of the distances; one past `certain` where they are larger */
    double tally[RANKS + 1]; /* area of the points of each rank */
    double *squares;         /* of the larger ones, to be freed; NULL where memory did not suffice */
    size_t far;              /* how many those are */
} Distances;

void find_nearest(const Table *table, Points query, Points target, Distances *found);

/* Squares of the distances to the nearest target. */
int search_cells(const Axes *axes, Points query, Points target, double *squared);

#endif
