/* Distances between surfaces that are far from each other: cells against cells.
 *
 * Both surfaces are sorted into cells of about 8 voxels, as cubic as voxels allow, 8 x 8 x 8 of
 * which make a block. Bounds from box to box leave few cells of the target for each cell of
 * queries. Their distance from the middle of the queries' cell bounds the distance from a query,
 * and only points of cells that may be nearest are compared. Bounds are rounded and therefore have
 * margins; the distances themselves are exact. */
#include "_surfaces.h"

#include <stdlib.h>

#define CELL 8          /* voxels along the shortest side of a cell */
#define ABOVE 1.00001f  /* of a square in float: more than its rounding */
#define BELOW 0.99999f
#define NOTHING_YET 1e30f
#define LANES 8         /* points of a target's cell are filled up to a multiple of this */
#define NOWHERE (4.0f * LONGEST_AXIS)
#define FEW 16 /* from this ratio of targets to queries, most targets are excluded first */

/* Also builds a function for wider vectors if the loader can choose between the two. It chooses
   before the thread sanitizer is ready, which would crash. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_THREAD__)
#define WITH_AVX2 __attribute__((flatten, target_clones("avx2", "default")))
#else
#define WITH_AVX2
#endif

/* Boxes of points in voxels, which are exact as floats. */
typedef struct {
    size_t count;
    float *low[3], *high[3];
    uint32_t *first; /* the first point of a cell, or cell of a block; and the end of the last */
} Boxes;

static float *take(float **memory, size_t count)
{
    *memory += count;
    return *memory - count;
}

static Boxes make_boxes(float **memory, size_t most)
{
    Boxes boxes = {0};
    boxes.first = (uint32_t *)take(memory, most + 1);
    for (int k = 0; k < 3; k++) {
        boxes.low[k] = take(memory, most);
        boxes.high[k] = take(memory, most);
    }
    return boxes;
}

static void add_box(Boxes *boxes, size_t first)
{
    for (int k = 0; k < 3; k++) {
        boxes->low[k][boxes->count] = LONGEST_AXIS + 1;
        boxes->high[k][boxes->count] = -1;
    }
    boxes->first[boxes->count++] = (uint32_t)first;
}

static void widen(Boxes *boxes, size_t i, int k, float low, float high)
{
    boxes->low[k][i] = low < boxes->low[k][i] ? low : boxes->low[k][i];
    boxes->high[k][i] = high > boxes->high[k][i] ? high : boxes->high[k][i];
}

/* Cells of a box, numbered block by block. */
typedef struct {
    const Axes *axes;
    int low[3], shift[3];
    size_t blocks[3], cells;
} Raster;

static Raster raster_of(const Axes *axes, Points points)
{
    Box box = widened(NO_BOX, axes, points);
    Raster raster = {.axes = axes, .cells = CELL * CELL * CELL};
    double least = axes->step[0];
    for (int k = 1; k < 3; k++)
        least = axes->step[k] < least ? axes->step[k] : least;
    for (int k = 0; k < 3; k++) {
        int shift = 0; /* the power of two that comes closest to a cube */
        while (shift < 3 && (1 << (shift + 1)) * axes->step[k] <= 1.42 * CELL * least)
            shift++;
        raster.low[k] = box.low[k];
        raster.shift[k] = shift;
        raster.blocks[k] = (size_t)((box.high[k] - box.low[k]) >> (shift + 3)) + 1;
        raster.cells *= raster.blocks[k];
    }
    return raster;
}

static inline size_t cell_of(const Raster *raster, uint64_t point)
{
    size_t block = 0, inside = 0;
    for (int k = 0; k < 3; k++) {
        int at = (coordinate(point, raster->axes->bits[k]) - raster->low[k]) >> raster->shift[k];
        block = block * raster->blocks[k] + (size_t)(at >> 3);
        inside = inside << 3 | (size_t)(at & 7);
    }
    return block << 9 | inside;
}

static inline void locate(const Axes *axes, uint64_t point, float *at)
{
    for (int k = 0; k < 3; k++)
        at[k] = (float)coordinate(point, axes->bits[k]);
}

/* A surface by occupied cell; cells of a block follow each other. */
typedef struct {
    Boxes cells, blocks;
    uint32_t *order; /* of queries: the places of the points in the surface */
    float *at[3];    /* of targets: their coordinates */
    float *memory;
} Sorted;

/* Number the occupied cells; points becomes, of each cell, its number. */
static void number_cells(Sorted *sorted, const Raster *raster, uint32_t *points, size_t lanes)
{
    size_t before = 0, last_block = SIZE_MAX;
    for (size_t i = 0; i < raster->cells; i++) {
        if (!points[i])
            continue;
        if (i >> 9 != last_block)
            add_box(&sorted->blocks, sorted->cells.count);
        last_block = i >> 9;
        add_box(&sorted->cells, before);
        before += (points[i] + lanes - 1) / lanes * lanes;
        points[i] = (uint32_t)sorted->cells.count - 1;
    }
    sorted->blocks.first[sorted->blocks.count] = (uint32_t)sorted->cells.count;
    sorted->cells.first[sorted->cells.count] = (uint32_t)before;
}

/* Sort points into cells; false where memory does not suffice. */
static int sort_points(Sorted *sorted, const Axes *axes, Points points, int is_target)
{
    Raster raster = raster_of(axes, points);
    uint32_t *cells = calloc(raster.cells, sizeof *cells);
    size_t most = 0, lanes = is_target ? LANES : 1;
    for (size_t i = 0; cells && i < points.count; i++)
        most += !cells[cell_of(&raster, points.at[i])]++;
    size_t room = points.count + (lanes - 1) * most;
    size_t numbers = (is_target ? 3 : 1) * room + 14 * (most + 1);
    float *memory = sorted->memory = malloc(numbers * sizeof(float));
    if (!cells || !memory) {
        free(cells);
        return 0;
    }
    if (!is_target)
        sorted->order = (uint32_t *)take(&memory, room);
    for (int k = 0; is_target && k < 3; k++) {
        sorted->at[k] = take(&memory, room);
        for (size_t i = 0; i < room; i++)
            sorted->at[k][i] = NOWHERE;
    }
    sorted->cells = make_boxes(&memory, most);
    sorted->blocks = make_boxes(&memory, most);
    number_cells(sorted, &raster, cells, lanes);
    uint32_t *first = sorted->cells.first;
    for (size_t i = 0; i < points.count; i++) {
        size_t cell = cells[cell_of(&raster, points.at[i])], to = first[cell]++;
        float at[3];
        locate(axes, points.at[i], at);
        if (!is_target)
            sorted->order[to] = (uint32_t)i;
        for (int k = 0; k < 3; k++) {
            widen(&sorted->cells, cell, k, at[k], at[k]);
            if (is_target)
                sorted->at[k][to] = at[k];
        }
    }
    for (size_t i = 0; i < points.count; i++)
        first[cells[cell_of(&raster, points.at[i])]]--; /* back to where its cell begins */
    free(cells);
    for (size_t b = 0; b < sorted->blocks.count; b++)
        for (size_t i = sorted->blocks.first[b]; i < sorted->blocks.first[b + 1]; i++)
            for (int k = 0; k < 3; k++)
                widen(&sorted->blocks, b, k, sorted->cells.low[k][i], sorted->cells.high[k][i]);
    return 1;
}

/* Either a point or the box of several. */
typedef struct {
    float low[3], high[3], step[3];
} From;

static inline float larger(float a, float b) { return a > b ? a : b; }

/* The least square from each of some boxes. */
static void bound_below(const From *from, const Boxes *boxes, size_t first, size_t end,
                        float *bounds)
{
    for (size_t i = first; i < end; i++) {
        float sum = 0;
        for (int k = 0; k < 3; k++) {
            float before = boxes->low[k][i] - from->high[k], behind = from->low[k] - boxes->high[k][i];
            float gap = from->step[k] * larger(0, larger(before, behind));
            sum += gap * gap;
        }
        bounds[i - first] = sum * BELOW;
    }
}

/* The least of the greatest squares from some boxes: an upper bound of every distance. */
static float bound_above(const From *from, const Boxes *boxes, size_t first, size_t end)
{
    float least = NOTHING_YET;
    for (size_t i = first; i < end; i++) {
        float sum = 0;
        for (int k = 0; k < 3; k++) {
            float before = from->high[k] - boxes->low[k][i], behind = boxes->high[k][i] - from->low[k];
            float across = from->step[k] * larger(before, behind);
            sum += across * across;
        }
        least = sum < least ? sum : least;
    }
    return least * ABOVE;
}

/* The targets that may be nearest to one of few queries: none that lies farther from all of them
 * than another from any. */
static Points crop(const Axes *axes, Points query, Points target, uint64_t *kept)
{
    Box box = widened(NO_BOX, axes, query);
    float at[3], limit = NOTHING_YET, bound;
    Boxes point = {1, {&at[0], &at[1], &at[2]}, {&at[0], &at[1], &at[2]}, NULL};
    From from;
    for (int k = 0; k < 3; k++) {
        from.low[k] = (float)box.low[k];
        from.high[k] = (float)box.high[k];
        from.step[k] = (float)axes->step[k];
    }
    /* Some targets give the limit, and then all are held against it. */
    for (size_t i = 0; i < target.count; i += FEW) {
        locate(axes, target.at[i], at);
        bound = bound_above(&from, &point, 0, 1);
        limit = bound < limit ? bound : limit;
    }
    Points cropped = {kept, 0};
    for (size_t i = 0; i < target.count; i++) {
        locate(axes, target.at[i], at);
        bound_below(&from, &point, 0, 1, &bound);
        kept[cropped.count] = target.at[i];
        cropped.count += bound <= limit;
    }
    return cropped;
}

/* A search for the queries of one cell after another. */
typedef struct {
    const Axes *axes;
    const Sorted *target;
    Boxes near;                   /* cells that may hold the nearest point; first: their number */
    float *bounds, *block_bounds; /* of cells, of blocks */
    float *squares;               /* from the middle of the queries to the near cells */
    float *memory;
} Search;

static int start_search(Search *search, const Axes *axes, const Sorted *target)
{
    size_t cells = target->cells.count, blocks = target->blocks.count;
    float *memory = malloc((9 * cells + 1 + blocks) * sizeof(float));
    Search new = {.axes = axes, .target = target, .memory = memory};
    *search = new;
    if (!memory)
        return 0;
    search->bounds = take(&memory, cells);
    search->squares = take(&memory, cells);
    search->block_bounds = take(&memory, blocks);
    search->near = make_boxes(&memory, cells);
    return 1;
}

/* Find the cells of the target that may contain the nearest point of a query in a box. */
static void find_near_cells(Search *search, const From *from)
{
    const Boxes *cells = &search->target->cells, *blocks = &search->target->blocks;
    const uint32_t *first = blocks->first;
    Boxes *near = &search->near;
    float limit = NOTHING_YET;
    bound_below(from, blocks, 0, blocks->count, search->block_bounds);
    for (size_t b = 0; b < blocks->count; b++)
        if (search->block_bounds[b] <= limit) {
            float other = bound_above(from, cells, first[b], first[b + 1]);
            limit = other < limit ? other : limit;
        }
    near->count = 0;
    for (size_t b = 0; b < blocks->count; b++) {
        if (search->block_bounds[b] > limit)
            continue;
        bound_below(from, cells, first[b], first[b + 1], search->bounds);
        for (uint32_t i = first[b]; i < first[b + 1]; i++) {
            if (search->bounds[i - first[b]] > limit)
                continue;
            near->first[near->count] = i;
            for (int k = 0; k < 3; k++) {
                near->low[k][near->count] = cells->low[k][i];
                near->high[k][near->count] = cells->high[k][i];
            }
            near->count++;
        }
    }
}

/* The nearest target so far, and the square of its distance. */
typedef struct {
    double square;
    size_t target;
} Nearest;

/* Compare a query with one target, exactly. */
static inline void compare(const Search *search, const From *from, size_t i, Nearest *nearest)
{
    double square = 0;
    for (int k = 0; k < 3; k++) {
        double gap = ((double)from->low[k] - search->target->at[k][i]) * search->axes->step[k];
        square += gap * gap;
    }
    if (square < nearest->square) {
        nearest->square = square;
        nearest->target = i;
    }
}

static inline float least_of(const float *values)
{
    float least = values[0];
    for (int i = 1; i < LANES; i++)
        least = values[i] < least ? values[i] : least;
    return least;
}

/* Compare a query with the points of a cell: roughly with all, which gives the least square, then
 * exactly with those that may be nearest. */
static float search_cell(Search *search, const From *from, size_t cell, Nearest *nearest)
{
    const Sorted *target = search->target;
    const uint32_t *first = target->cells.first + cell;
    size_t count = (first[1] - first[0]) / LANES * LANES; /* the compiler sees whole vectors */
    float squares[CELL * CELL * CELL], least = NOTHING_YET;
    for (size_t i = 0; i < count; i++) {
        float sum = 0;
        for (int k = 0; k < 3; k++) {
            float gap = (target->at[k][first[0] + i] - from->low[k]) * from->step[k];
            sum += gap * gap;
        }
        squares[i] = sum;
        least = sum < least ? sum : least;
    }
    for (size_t i = 0; least * BELOW < nearest->square && i < count; i += LANES)
        if (least_of(squares + i) <= least * ABOVE)
            for (size_t j = i; j < i + LANES; j++)
                if (squares[j] <= least * ABOVE)
                    compare(search, from, first[0] + j, nearest);
    return least;
}

/* The least squares from a point to the near cells, by those from the middle of the queries: a step
 * along an axis takes no more from them than to the farthest points of a cell on that side. */
static void bound_from_middle(Search *search, const From *middle, const float *at)
{
    float scale[3], between[3], *edge[3];
    for (int k = 0; k < 3; k++) {
        float step = at[k] - middle->low[k];
        scale[k] = 2 * step * middle->step[k] * middle->step[k];
        between[k] = (at[k] + middle->low[k]) / 2;
        edge[k] = step > 0 ? search->near.high[k] : search->near.low[k];
    }
    for (size_t j = 0; j < search->near.count; j++) {
        float sum = search->squares[j];
        for (int k = 0; k < 3; k++)
            sum += scale[k] * (between[k] - edge[k][j]);
        search->bounds[j] = sum * BELOW;
    }
}

/* Search for the queries of one cell. */
static void search_for_cell(Search *search, const Sorted *query, const uint64_t *points,
                            size_t cell, double *squared)
{
    From from, middle;
    for (int k = 0; k < 3; k++) {
        from.low[k] = query->cells.low[k][cell];
        from.high[k] = query->cells.high[k][cell];
        middle.low[k] = (from.low[k] + from.high[k]) / 2;
        middle.step[k] = from.step[k] = (float)search->axes->step[k];
    }
    find_near_cells(search, &from);
    Nearest nearest = {0, search->target->cells.first[search->near.first[0]]};
    for (size_t j = 0; j < search->near.count; j++)
        search->squares[j] = BELOW * search_cell(search, &middle, search->near.first[j], &nearest);
    for (size_t i = query->cells.first[cell]; i < query->cells.first[cell + 1]; i++) {
        locate(search->axes, points[query->order[i]], from.low);
        nearest.square = NOTHING_YET; /* the nearest of the query before is a good first guess */
        compare(search, &from, nearest.target, &nearest);
        bound_from_middle(search, &middle, from.low);
        float limit = (float)nearest.square * ABOVE;
        for (size_t j = 0; j < search->near.count; j++)
            if (search->bounds[j] < limit) {
                search_cell(search, &from, search->near.first[j], &nearest);
                limit = (float)nearest.square * ABOVE;
            }
        squared[query->order[i]] = nearest.square;
    }
}

WITH_AVX2 int search_cells(const Axes *axes, Points query, Points target, double *squared)
{
    Sorted queries = {0}, targets = {0};
    Search search = {0};
    uint64_t *kept = query.count < target.count / FEW ? malloc(target.count * sizeof *kept) : NULL;
    if (kept)
        target = crop(axes, query, target, kept);
    int is_done = sort_points(&queries, axes, query, 0) &&
                  sort_points(&targets, axes, target, 1) && start_search(&search, axes, &targets);
    for (size_t cell = 0; is_done && cell < queries.cells.count; cell++)
        search_for_cell(&search, &queries, query.at, cell, squared);
    free(search.memory);
    free(queries.memory);
    free(targets.memory);
    free(kept);
    return is_done;
}
