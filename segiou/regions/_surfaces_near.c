/* Distances between surfaces that are near each other: rows of bits around each point.
 *
 * The target is a box of bits. Around each query up to 64 rows are searched, the nearest first; one
 * unaligned word contains 28 voxels of a row to either side. The result is the rank of the distance
 * among all possible ones, and ranks are only counted, so percentiles need no sorting. */
#include "_surfaces.h"

#include <stdlib.h>

#define MARGIN 32 /* bits before and after each row */
#define MIDDLE (HALF - 1)

Box widened(Box box, const Axes *axes, Points points)
{
    uint16_t now[16], low[16], high[16]; /* four points at once, each as four numbers: vectors */
    for (int j = 0; j < 16; j++) {
        low[j] = UINT16_MAX;
        high[j] = 0;
    }
    size_t many = points.count / 4 * 4;
    for (size_t i = 0; i < many; i += 4) {
        memcpy(now, points.at + i, sizeof now);
        for (int j = 0; j < 16; j++) {
            low[j] = now[j] < low[j] ? now[j] : low[j];
            high[j] = now[j] > high[j] ? now[j] : high[j];
        }
    }
    for (size_t i = many; i < points.count; i++)
        for (int j = 0; j < 4; j++) {
            uint16_t at = (uint16_t)coordinate(points.at[i], 16 * j);
            low[j] = at < low[j] ? at : low[j];
            high[j] = at > high[j] ? at : high[j];
        }
    for (int k = 0; k < 3; k++)
        for (int j = axes->bits[k] / 16; j < 16; j += 4) {
            box.low[k] = low[j] < box.low[k] ? low[j] : box.low[k];
            box.high[k] = high[j] > box.high[k] ? high[j] : box.high[k];
        }
    return box;
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

/* Set the bits of the target in a box that also contains the queries. */
static int set_bits(Bits *bits, Points query, Points target)
{
    const Axes axes = {{Z_BITS, Y_BITS, X_BITS}, {1, 1, 1}};
    Box box = widened(widened(NO_BOX, &axes, query), &axes, target);
    int64_t size[3];
    for (int k = 0; k < 3; k++) {
        box.low[k] -= k == 2 ? MARGIN : ROW_REACH;
        size[k] = box.high[k] - box.low[k] + 1 + (k == 2 ? MARGIN : ROW_REACH);
    }
    bits->row = (size[2] + 7) / 8 * 8;
    bits->plane = bits->row * size[1];
    bits->origin = box.low[0] * bits->plane + box.low[1] * bits->row + box.low[2];
    bits->bytes = calloc((size_t)(bits->plane * size[0] / 8) + sizeof(uint64_t), 1);
    for (size_t i = 0; bits->bytes && i < target.count; i++) {
        int64_t bit = bit_of(bits, target.at[i]);
        bits->bytes[bit >> 3] |= (uint8_t)(1 << (bit & 7));
    }
    return bits->bytes != NULL;
}

/* Steps from the middle of a word that is not 0 to its nearest bit. */
static inline unsigned steps_to_bit(uint64_t word)
{
    unsigned after = (unsigned)__builtin_ctzll(word >> MIDDLE | UINT64_C(1) << HALF);
    unsigned before = (unsigned)__builtin_clzll(word << (64 - MIDDLE) | UINT64_C(1) << (63 - HALF));
    return after < before + 1 ? after : before + 1;
}

/* Rank of the nearest bit around a bit; RANKS if there is none. */
static inline int search_rows(const Table *table, const Bits *bits, const int64_t *offset,
                              int64_t bit)
{
    const uint8_t *first = bits->bytes + ((bit - MIDDLE) >> 3);
    int shift = (int)((bit - MIDDLE) & 7), best = RANKS;
    for (int k = 0; k < table->rows && table->rank[k * HALF] < best; k++) {
        uint64_t word;
        memcpy(&word, first + offset[k], sizeof word);
        word = word >> shift & ((UINT64_C(1) << (2 * MIDDLE + 1)) - 1);
        if (!word)
            continue;
        int rank = table->rank[k * HALF + (int)steps_to_bit(word)];
        best = rank < best ? rank : best;
    }
    return best;
}

/* Rank the queries; those with a larger distance than is certain are moved to far. */
static void rank_near(const Table *table, Points query, const Bits *bits, Distances *found,
                      uint64_t *far)
{
    int64_t offset[ROWS];
    size_t count = 0;
    for (int k = 0; k < table->rows; k++)
        offset[k] = (table->row[2 * k] * bits->plane + table->row[2 * k + 1] * bits->row) / 8;
    for (size_t i = 0; i < query.count; i++) {
        int rank = search_rows(table, bits, offset, bit_of(bits, query.at[i]));
        far[count] = query.at[i];
        count += rank > table->certain;
        rank = rank > table->certain ? table->certain + 1 : rank;
        found->ranks[i] = (uint16_t)rank;
        found->tally[rank] += found->areas[query.at[i] >> CODE_BITS & 0xFF];
    }
    found->far = count;
}

void find_nearest(const Table *table, Points query, Points target, Distances *found)
{
    Bits bits;
    uint64_t *far = malloc((query.count + 1) * sizeof *far);
    if (far && set_bits(&bits, query, target)) {
        rank_near(table, query, &bits, found, far);
        free(bits.bytes);
        found->squares = malloc((found->far + 1) * sizeof *found->squares);
        Points rest = {far, found->far};
        if (found->squares && found->far &&
            !search_cells(&table->axes, rest, target, found->squares)) {
            free(found->squares);
            found->squares = NULL;
        }
    }
    free(far);
}
