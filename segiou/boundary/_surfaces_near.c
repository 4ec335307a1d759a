/* Distances between surfaces that lie near each other: rows of bits around each point.
 *
 * The target is a box of bits. Around each query the 64 nearest rows are looked at, the nearest
 * first; of each, one unaligned word holds 28 voxels to either side. What it finds is the rank of
 * the distance in a table, and ranks are only counted: percentiles need no sort. */
#include "_surfaces.h"

#include <math.h>
#include <stdlib.h>

#define MARGIN 32 /* bits before and after each row */
#define MIDDLE (HALF - 1)

typedef struct {
    double square;
    int dz, dy, place;
} Candidate;

static int by_square(const void *a, const void *b)
{
    double one = ((const Candidate *)a)->square, other = ((const Candidate *)b)->square;
    return (one > other) - (one < other);
}

static double square_of(const Axes *axes, int dz, int dy, int dx)
{
    double sum = 0;
    for (int k = 0; k < 3; k++) {
        int steps = axes->bits[k] == X_BITS ? dx : axes->bits[k] == Y_BITS ? dy : dz;
        sum += steps * axes->step[k] * (steps * axes->step[k]);
    }
    return sum;
}

static double step_along(const Axes *axes, int bits)
{
    return axes->step[axes->bits[0] == bits ? 0 : axes->bits[1] == bits ? 1 : 2];
}

/* The rows around a point that are searched, nearest first. */
static int nearest_rows(const Axes *axes, Candidate *rows)
{
    double least = fmin(step_along(axes, Z_BITS), step_along(axes, Y_BITS));
    double beyond = (ROW_REACH + 1) * least * ((ROW_REACH + 1) * least);
    int count = 0;
    for (int dz = -ROW_REACH; dz <= ROW_REACH; dz++)
        for (int dy = -ROW_REACH; dy <= ROW_REACH; dy++) {
            Candidate row = {square_of(axes, dz, dy, 0), dz, dy, 0};
            if (row.square < beyond)
                rows[count++] = row;
        }
    qsort(rows, (size_t)count, sizeof *rows, by_square);
    return count < ROWS ? count : ROWS;
}

void fill_table(Table *table, const Axes *axes)
{
    Candidate rows[(2 * ROW_REACH + 1) * (2 * ROW_REACH + 1)], places[RANKS];
    table->axes = *axes;
    table->rows = nearest_rows(axes, rows);
    int count = 0;
    for (int k = 0; k < table->rows; k++) {
        table->dz[k] = rows[k].dz;
        table->dy[k] = rows[k].dy;
        for (int dx = 0; dx < HALF; dx++, count++) {
            Candidate place = {square_of(axes, rows[k].dz, rows[k].dy, dx), 0, 0, count};
            places[count] = place;
        }
    }
    qsort(places, (size_t)count, sizeof *places, by_square);
    /* Nothing nearer than this lies outside the rows, or beyond the words. */
    double reach = HALF * step_along(axes, X_BITS);
    double certain = fmin(reach * reach, rows[table->rows - 1].square);
    table->ranks = table->certain = 0;
    for (int i = 0; i < count; i++) {
        if (i && places[i].square > places[i - 1].square)
            table->ranks++;
        table->rank[places[i].place] = (uint16_t)table->ranks;
        table->distance[table->ranks] = sqrt(places[i].square);
        if (places[i].square <= certain)
            table->certain = table->ranks;
    }
    table->ranks++;
    for (int k = 0; k < table->rows; k++)
        table->nearest[k] = table->rank[k * HALF];
}

/* A surface as a box of bits, with room around for every word that is read. */
typedef struct {
    uint8_t *bytes;
    int64_t row, plane, origin; /* in bits */
} Bits;

static inline int64_t bit_of(const Bits *bits, uint64_t point)
{
    return coordinate(point, Z_BITS) * bits->plane + coordinate(point, Y_BITS) * bits->row +
           coordinate(point, X_BITS) - bits->origin;
}

/* Set the bits of the target in a box that holds the queries, too. */
static int set_bits(Bits *bits, Points query, Points target)
{
    const Axes axes = {{Z_BITS, Y_BITS, X_BITS}, {1, 1, 1}};
    Box box = empty_box();
    for (size_t i = 0; i < query.count; i++)
        include(&box, &axes, query.at[i]);
    for (size_t i = 0; i < target.count; i++)
        include(&box, &axes, target.at[i]);
    int64_t size[3];
    for (int k = 0; k < 3; k++)
        size[k] = box.high[k] - box.low[k] + 1 + 2 * (k == 2 ? MARGIN : ROW_REACH);
    bits->row = (size[2] + 7) / 8 * 8;
    bits->plane = bits->row * size[1];
    bits->origin = (box.low[0] - ROW_REACH) * bits->plane + (box.low[1] - ROW_REACH) * bits->row +
                   (box.low[2] - MARGIN);
    bits->bytes = calloc((size_t)(bits->plane * size[0] / 8) + sizeof(uint64_t), 1);
    if (!bits->bytes)
        return 0;
    for (size_t i = 0; i < target.count; i++) {
        int64_t bit = bit_of(bits, target.at[i]);
        bits->bytes[bit >> 3] |= (uint8_t)(1 << (bit & 7));
    }
    return 1;
}

/* Steps along the row to the nearest bit of a word, whose middle is the point; HALF or more: none. */
static inline unsigned steps_to_bit(uint64_t word)
{
    unsigned after = (unsigned)__builtin_ctzll(word >> MIDDLE | UINT64_C(1) << HALF);
    unsigned before = (unsigned)__builtin_clzll(word << (64 - MIDDLE) | UINT64_C(1) << (63 - HALF)) + 1;
    return after < before ? after : before;
}

/* Rank of the nearest bit around a bit; more than there are, if there is none. */
static inline unsigned search_rows(const Table *table, const Bits *bits, const int64_t *offset,
                                   int64_t bit)
{
    const uint8_t *first = bits->bytes + ((bit - MIDDLE) >> 3);
    int shift = (int)((bit - MIDDLE) & 7);
    unsigned best = RANKS;
    for (int k = 0; k < table->rows && table->nearest[k] < best; k++) {
        uint64_t word;
        memcpy(&word, first + offset[k], sizeof word);
        word = word >> shift & ((UINT64_C(1) << (2 * MIDDLE + 1)) - 1);
        if (!word)
            continue;
        unsigned steps = steps_to_bit(word);
        unsigned rank = table->rank[k * HALF + steps];
        best = rank < best ? rank : best;
    }
    return best;
}

/* What lies too far for the rows. */
static int search_far(const Axes *axes, Points query, Points target, const double *areas,
                      Distances *found)
{
    size_t size = query.count * sizeof(double);
    found->far_count = query.count;
    found->far = malloc(size);
    found->far_areas = areas ? malloc(size) : NULL;
    if (!found->far || (areas && !found->far_areas) ||
        !search_cells(axes, query, target, found->far) ||
        !transform_box(axes, query, target, found->far))
        return 0;
    for (size_t i = 0; i < query.count; i++) {
        found->far[i] = sqrt(found->far[i]);
        if (areas)
            found->far_areas[i] = areas[code_of(query.at[i])];
    }
    return 1;
}

int find_distances(const Table *table, Points query, Points target, const double *areas,
                   Distances *found)
{
    Bits bits;
    uint64_t *far = NULL;
    size_t count = 0, room = 0;
    int is_done = 0;
    if (!set_bits(&bits, query, target))
        return 0;
    int64_t offset[ROWS];
    for (int k = 0; k < table->rows; k++)
        offset[k] = (table->dz[k] * bits.plane + table->dy[k] * bits.row) / 8;
    for (size_t i = 0; i < query.count; i++) {
        unsigned rank = search_rows(table, &bits, offset, bit_of(&bits, query.at[i]));
        if (rank <= (unsigned)table->certain) {
            found->points[rank]++;
            if (areas)
                found->areas[rank] += areas[code_of(query.at[i])];
            continue;
        }
        if (count == room) {
            room = 2 * room + 1024;
            uint64_t *more = realloc(far, room * sizeof *far);
            if (!more)
                goto end;
            far = more;
        }
        far[count++] = query.at[i];
    }
    free(bits.bytes);
    bits.bytes = NULL;
    Points rest = {far, count};
    is_done = count == 0 || search_far(&table->axes, rest, target, areas, found);
end:
    free(bits.bytes);
    free(far);
    return is_done;
}
