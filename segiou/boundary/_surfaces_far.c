/* Distances between surfaces that lie far from each other: cells against cells.
 *
 * Both surfaces are sorted into cells of about 8 voxels, as cubic as voxels allow, 8 x 8 x 8 of
 * which make a block. Bounds from box to box leave few cells of the target for each cell of
 * queries; only their points are compared. Bounds are rounded, so that they have margins; the
 * distances themselves are exact. */
#include "_surfaces.h"

#include <stdlib.h>

#define CELL 8                /* voxels along the shortest side of a cell */
#define ABOVE 1.00001f        /* of a square in float: more than its rounding */
#define BELOW 0.99999f
#define GROUP 64              /* cells of which a query sees the bounds at once */
/* Points and bounds compared for each voxel, until a transform is the faster way. */
#ifndef WORK_PER_VOXEL
#define WORK_PER_VOXEL 30
#endif
#define HUGE_SQUARE 1e30f

/* Cells, numbered block by block. */
typedef struct {
    int low[3], shift[3];
    int64_t blocks[3];
    size_t cells;
} Raster;

static Raster raster_of(const Axes *axes, Points points)
{
    Box box = empty_box();
    for (size_t i = 0; i < points.count; i++)
        include(&box, axes, points.at[i]);
    double least = axes->step[0];
    for (int k = 1; k < 3; k++)
        least = axes->step[k] < least ? axes->step[k] : least;
    Raster raster;
    raster.cells = CELL * CELL * CELL;
    for (int k = 0; k < 3; k++) {
        int shift = 0;
        /* The power of two that comes closest to a cube. */
        while (shift < 3 && (1 << (shift + 1)) * axes->step[k] <= 1.42 * CELL * least)
            shift++;
        raster.low[k] = box.low[k];
        raster.shift[k] = shift;
        raster.blocks[k] = ((box.high[k] - box.low[k]) >> (shift + 3)) + 1;
        raster.cells *= (size_t)raster.blocks[k];
    }
    return raster;
}

static inline size_t cell_of(const Raster *raster, const Axes *axes, uint64_t point)
{
    size_t block = 0, inside = 0;
    for (int k = 0; k < 3; k++) {
        int at = (coordinate(point, axes->bits[k]) - raster->low[k]) >> raster->shift[k];
        block = block * (size_t)raster->blocks[k] + (size_t)(at >> 3);
        inside = inside << 3 | (size_t)(at & 7);
    }
    return block << 9 | inside;
}

/* Boxes as bounds see them: in voxels, which floats hold exactly. */
typedef struct {
    float *low[3], *high[3];
} Boxes;

static void make_empty(Boxes *boxes, size_t i)
{
    for (int k = 0; k < 3; k++) {
        boxes->low[k][i] = LONGEST_AXIS + 1;
        boxes->high[k][i] = -1;
    }
}

static void widen(Boxes *boxes, size_t i, int k, float low, float high)
{
    boxes->low[k][i] = low < boxes->low[k][i] ? low : boxes->low[k][i];
    boxes->high[k][i] = high > boxes->high[k][i] ? high : boxes->high[k][i];
}

/* The points of a surface by occupied cell; cells of a block follow each other. */
typedef struct {
    size_t cells, blocks;
    uint32_t *start, *first_cell; /* first point of each cell, first cell of each block */
    uint32_t *order;              /* the points' places in the surface */
    float *at[3];                 /* their coordinates */
    Boxes cell, block;
    void *memory[4];
} Sorted;

static void free_sorted(Sorted *sorted)
{
    for (int i = 0; i < 4; i++)
        free(sorted->memory[i]);
}

static float *part(float **next, size_t count)
{
    float *here = *next;
    *next += count;
    return here;
}

static void place_boxes(Boxes *boxes, float **next, size_t count)
{
    for (int k = 0; k < 3; k++) {
        boxes->low[k] = part(next, count);
        boxes->high[k] = part(next, count);
    }
    for (size_t i = 0; i < count; i++)
        make_empty(boxes, i);
}

/* Turn the numbers of points of all cells into the numbers of the occupied ones, and count those. */
static void number_cells(const Raster *raster, uint32_t *cells, Sorted *sorted)
{
    uint32_t points = 0;
    size_t last_block = SIZE_MAX;
    for (size_t i = 0; i < raster->cells; i++) {
        if (!cells[i])
            continue;
        if (i >> 9 != last_block) {
            last_block = i >> 9;
            sorted->first_cell[sorted->blocks++] = (uint32_t)sorted->cells;
        }
        sorted->start[sorted->cells] = points;
        points += cells[i];
        cells[i] = (uint32_t)sorted->cells++;
    }
    sorted->start[sorted->cells] = points;
    sorted->first_cell[sorted->blocks] = (uint32_t)sorted->cells;
}

/* Sort points into cells; false where memory does not suffice, and then nothing is kept. */
static int sort_points(const Axes *axes, Points points, Sorted *sorted)
{
    memset(sorted, 0, sizeof *sorted);
    Raster raster = raster_of(axes, points);
    size_t most = points.count < raster.cells ? points.count : raster.cells;
    uint32_t *cells = calloc(raster.cells, sizeof *cells);
    sorted->memory[0] = sorted->start = malloc((most + 1) * sizeof(uint32_t));
    sorted->memory[1] = sorted->first_cell = malloc((most + 1) * sizeof(uint32_t));
    sorted->memory[2] = sorted->order = malloc(points.count * sizeof(uint32_t));
    float *next = NULL;
    if (cells && sorted->start && sorted->first_cell && sorted->order) {
        for (size_t i = 0; i < points.count; i++)
            cells[cell_of(&raster, axes, points.at[i])]++;
        number_cells(&raster, cells, sorted);
        size_t floats = 3 * points.count + 6 * (sorted->cells + sorted->blocks);
        sorted->memory[3] = next = malloc(floats * sizeof(float));
    }
    if (!next) {
        free(cells);
        free_sorted(sorted);
        return 0;
    }
    for (int k = 0; k < 3; k++)
        sorted->at[k] = part(&next, points.count);
    place_boxes(&sorted->cell, &next, sorted->cells);
    place_boxes(&sorted->block, &next, sorted->blocks);
    for (size_t i = 0; i < points.count; i++) {
        size_t cell = cells[cell_of(&raster, axes, points.at[i])], to = sorted->start[cell]++;
        sorted->order[to] = (uint32_t)i;
        for (int k = 0; k < 3; k++) {
            float at = (float)coordinate(points.at[i], axes->bits[k]);
            sorted->at[k][to] = at;
            widen(&sorted->cell, cell, k, at, at);
        }
    }
    free(cells);
    /* Filling has moved each start to the end of its cell. */
    memmove(sorted->start + 1, sorted->start, sorted->cells * sizeof(uint32_t));
    sorted->start[0] = 0;
    for (size_t b = 0; b < sorted->blocks; b++)
        for (size_t i = sorted->first_cell[b]; i < sorted->first_cell[b + 1]; i++)
            for (int k = 0; k < 3; k++)
                widen(&sorted->block, b, k, sorted->cell.low[k][i], sorted->cell.high[k][i]);
    return 1;
}

static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float smaller(float a, float b) { return a < b ? a : b; }

/* What bounds are asked from: a point, or the box of some. */
typedef struct {
    float low[3], high[3], step[3];
} From;

/* The least square from each of some boxes. */
static void bound_below(const From *from, const Boxes *boxes, size_t first, size_t count,
                        float *bounds)
{
    const float *l0 = boxes->low[0] + first, *h0 = boxes->high[0] + first;
    const float *l1 = boxes->low[1] + first, *h1 = boxes->high[1] + first;
    const float *l2 = boxes->low[2] + first, *h2 = boxes->high[2] + first;
    for (size_t i = 0; i < count; i++) {
        float a = from->step[0] * larger(0, larger(l0[i] - from->high[0], from->low[0] - h0[i]));
        float b = from->step[1] * larger(0, larger(l1[i] - from->high[1], from->low[1] - h1[i]));
        float c = from->step[2] * larger(0, larger(l2[i] - from->high[2], from->low[2] - h2[i]));
        bounds[i] = a * a + b * b + c * c;
    }
}

/* The least of the greatest squares from some boxes: no query's nearest point is farther. */
static float bound_above(const From *from, const Boxes *boxes, size_t first, size_t count)
{
    const float *l0 = boxes->low[0] + first, *h0 = boxes->high[0] + first;
    const float *l1 = boxes->low[1] + first, *h1 = boxes->high[1] + first;
    const float *l2 = boxes->low[2] + first, *h2 = boxes->high[2] + first;
    float least = HUGE_SQUARE;
    for (size_t i = 0; i < count; i++) {
        float a = from->step[0] * larger(from->high[0] - l0[i], h0[i] - from->low[0]);
        float b = from->step[1] * larger(from->high[1] - l1[i], h1[i] - from->low[1]);
        float c = from->step[2] * larger(from->high[2] - l2[i], h2[i] - from->low[2]);
        least = smaller(least, a * a + b * b + c * c);
    }
    return least * ABOVE;
}

typedef struct {
    float bound;
    uint32_t cell;
} Candidate;

static int by_bound(const void *a, const void *b)
{
    float one = ((const Candidate *)a)->bound, other = ((const Candidate *)b)->bound;
    return (one > other) - (one < other);
}

/* The cells of the target that may hold the nearest point of one cell's queries, nearest first. */
typedef struct {
    Candidate *list;
    size_t count;
    float *bounds, *block_bounds; /* of all cells, of all blocks */
    Boxes boxes;                  /* of the list */
    void *memory;
} Candidates;

static int make_candidates(Candidates *candidates, const Sorted *target)
{
    size_t floats = 7 * target->cells + target->blocks;
    candidates->list = malloc(target->cells * sizeof(Candidate));
    candidates->memory = malloc(floats * sizeof(float));
    if (!candidates->list || !candidates->memory)
        return 0;
    float *next = candidates->memory;
    candidates->bounds = part(&next, target->cells);
    candidates->block_bounds = part(&next, target->blocks);
    place_boxes(&candidates->boxes, &next, target->cells);
    return 1;
}

/* Add the cells of a block that are near enough; the limit falls with what is found. */
static void add_block(Candidates *candidates, const From *from, const Sorted *target, size_t block,
                      float *limit)
{
    size_t first = target->first_cell[block], count = target->first_cell[block + 1] - first;
    *limit = smaller(*limit, bound_above(from, &target->cell, first, count));
    bound_below(from, &target->cell, first, count, candidates->bounds);
    for (size_t i = 0; i < count; i++) {
        Candidate candidate = {candidates->bounds[i] * BELOW, (uint32_t)(first + i)};
        candidates->list[candidates->count] = candidate;
        candidates->count += candidate.bound <= *limit;
    }
}

/* Find the candidates of a box of queries; how many bounds that took. */
static size_t find_candidates(Candidates *candidates, const From *from, const Sorted *target)
{
    size_t nearest = 0, work = target->blocks;
    float limit = HUGE_SQUARE;
    bound_below(from, &target->block, 0, target->blocks, candidates->block_bounds);
    for (size_t b = 1; b < target->blocks; b++)
        if (candidates->block_bounds[b] < candidates->block_bounds[nearest])
            nearest = b;
    candidates->count = 0;
    add_block(candidates, from, target, nearest, &limit);
    for (size_t b = 0; b < target->blocks; b++)
        if (b != nearest && candidates->block_bounds[b] * BELOW <= limit) {
            add_block(candidates, from, target, b, &limit);
            work += target->first_cell[b + 1] - target->first_cell[b];
        }
    size_t kept = 0;
    for (size_t i = 0; i < candidates->count; i++) {
        candidates->list[kept] = candidates->list[i];
        kept += candidates->list[i].bound <= limit;
    }
    candidates->count = kept;
    qsort(candidates->list, kept, sizeof(Candidate), by_bound);
    for (int k = 0; k < 3; k++)
        for (size_t i = 0; i < kept; i++) {
            candidates->boxes.low[k][i] = target->cell.low[k][candidates->list[i].cell];
            candidates->boxes.high[k][i] = target->cell.high[k][candidates->list[i].cell];
        }
    return work + kept;
}

/* Bit i: bound i is below the limit. */
static inline uint64_t which_below(const float *bounds, size_t count, float limit)
{
    uint64_t bits = 0;
    for (size_t i = 0; i < count; i += 4) {
#if defined(__SSE2__)
        __m128 below = _mm_cmplt_ps(_mm_loadu_ps(bounds + i), _mm_set1_ps(limit));
        bits |= (uint64_t)(unsigned)_mm_movemask_ps(below) << i;
#else
        for (size_t j = i; j < i + 4; j++)
            bits |= (uint64_t)(bounds[j] < limit) << j;
#endif
    }
    return count < GROUP ? bits & ((UINT64_C(1) << count) - 1) : bits;
}

/* The nearest target so far, and the square of its distance. */
typedef struct {
    double square;
    size_t target;
} Nearest;

static inline double square_to(const Axes *axes, const Sorted *target, size_t i, const From *from)
{
    double a = ((double)from->low[0] - target->at[0][i]) * axes->step[0];
    double b = ((double)from->low[1] - target->at[1][i]) * axes->step[1];
    double c = ((double)from->low[2] - target->at[2][i]) * axes->step[2];
    return a * a + b * b + c * c;
}

/* Compare a query with the points of a cell: roughly with all, then exactly if one may be nearer. */
static void search_cell(const Axes *axes, const Sorted *target, size_t cell, const From *from,
                        Nearest *nearest)
{
    size_t first = target->start[cell], end = target->start[cell + 1];
    const float *x = target->at[0], *y = target->at[1], *z = target->at[2];
    float least = HUGE_SQUARE;
    for (size_t i = first; i < end; i++) {
        float a = (x[i] - from->low[0]) * from->step[0], b = (y[i] - from->low[1]) * from->step[1];
        float c = (z[i] - from->low[2]) * from->step[2];
        least = smaller(least, a * a + b * b + c * c);
    }
    if (least * BELOW >= nearest->square)
        return;
    for (size_t i = first; i < end; i++) {
        double square = square_to(axes, target, i, from);
        if (square < nearest->square) {
            nearest->square = square;
            nearest->target = i;
        }
    }
}

/* Compare a query with its candidates; how much was compared. */
static size_t search_candidates(const Axes *axes, const Sorted *target,
                                const Candidates *candidates, const From *from, Nearest *nearest)
{
    float bounds[GROUP + 4];
    size_t work = 0;
    for (size_t g = 0; g < candidates->count; g += GROUP) {
        if (candidates->list[g].bound >= nearest->square)
            break;
        size_t count = candidates->count - g < GROUP ? candidates->count - g : GROUP;
        bound_below(from, &candidates->boxes, g, count, bounds);
        work += count;
        uint64_t bits = which_below(bounds, count, (float)nearest->square * ABOVE);
        for (; bits; bits &= bits - 1) {
            int i = __builtin_ctzll(bits);
            if (bounds[i] * BELOW >= nearest->square)
                continue;
            size_t cell = candidates->list[g + (size_t)i].cell;
            search_cell(axes, target, cell, from, nearest);
            work += target->start[cell + 1] - target->start[cell];
        }
    }
    return work;
}

/* Search for the queries of one cell; how much was compared. */
static size_t search_for_cell(const Axes *axes, const Sorted *query, size_t cell,
                              const Sorted *target, Candidates *candidates, double *squared)
{
    From from;
    for (int k = 0; k < 3; k++) {
        from.low[k] = query->cell.low[k][cell];
        from.high[k] = query->cell.high[k][cell];
        from.step[k] = (float)axes->step[k];
    }
    size_t work = find_candidates(candidates, &from, target);
    /* The nearest of the query before is a good first guess. */
    size_t guess = target->start[candidates->list[0].cell];
    for (size_t i = query->start[cell]; i < query->start[cell + 1]; i++) {
        for (int k = 0; k < 3; k++)
            from.low[k] = from.high[k] = query->at[k][i];
        Nearest nearest = {square_to(axes, target, guess, &from), guess};
        work += search_candidates(axes, target, candidates, &from, &nearest);
        guess = nearest.target;
        squared[query->order[i]] = nearest.square;
    }
    return work;
}

int search_cells(const Axes *axes, Points query, Points target, double *squared)
{
    Sorted queries, targets;
    Candidates candidates = {0};
    Box box = empty_box();
    for (size_t i = 0; i < query.count; i++) {
        squared[i] = NOT_FOUND;
        include(&box, axes, query.at[i]);
    }
    for (size_t i = 0; i < target.count; i++)
        include(&box, axes, target.at[i]);
    double limit = WORK_PER_VOXEL * voxels_in(&box), work = 0;
    if (!sort_points(axes, query, &queries))
        return 0;
    if (!sort_points(axes, target, &targets)) {
        free_sorted(&queries);
        return 0;
    }
    int is_done = make_candidates(&candidates, &targets);
    for (size_t cell = 0; is_done && cell < queries.cells && work < limit; cell++)
        work += (double)search_for_cell(axes, &queries, cell, &targets, &candidates, squared);
    free(candidates.list);
    free(candidates.memory);
    free_sorted(&queries);
    free_sorted(&targets);
    return is_done;
}
