/* Runs of a label map, or of two: pixels of a row in sequence without a change; and which touch.
 *
 * Objects are large, so runs are few, and nothing is done per pixel but to find where they end. */
#ifndef SEGIOU_RUNS_H
#define SEGIOU_RUNS_H

#include "../_support/_python.h"

#include "../_support/_bytes.h"

#include <stdlib.h>

typedef struct {
    const char *values[2]; /* one map, or two of the same size */
    int maps;
    size_t size; /* bytes of a value */
    size_t depth, height, width;
    int rank; /* along how many axes neighbours may differ */
} Map;

typedef struct {
    uint32_t *starts; /* the first pixel of each run, and the end of the last */
    size_t used, room;
    size_t *rows; /* the first run of each row, and the end of the last */
} Runs;

int find_runs(Runs *runs, const Map *map);
void free_runs(Runs *runs);
int read_map(Map *map, const Py_buffer *views, const Py_ssize_t *shape);

static inline uint64_t value_at(const Map *map, int side, size_t at)
{
    return load_number(map->values[side], at, map->size);
}

/* Each run of a component points to an earlier one, or to itself if it is the first. */
static inline uint32_t first_of(uint32_t *firsts, uint32_t run)
{
    while (firsts[run] != run)
        run = firsts[run] = firsts[firsts[run]];
    return run;
}

static inline void unite(uint32_t *firsts, size_t one, size_t other)
{
    if (firsts[one] == firsts[other]) /* most are united already */
        return;
    uint32_t a = first_of(firsts, (uint32_t)one), b = first_of(firsts, (uint32_t)other);
    if (a < b)
        firsts[b] = a;
    else
        firsts[a] = b;
}

/* What to do with a run and an earlier one that it touches. */
typedef void Touch(void *found, size_t earlier, size_t run);

/* The runs of a row, and those of an earlier row that they touch, also at corners if reach is 1. */
ALWAYS_INLINED void touch_rows(const Runs *runs, const Map *map, size_t row, size_t earlier,
                               size_t reach, Touch touch, void *found)
{
    const uint32_t *starts = runs->starts;
    const size_t shift = (row - earlier) * map->width, end = runs->rows[row + 1];
    const size_t other_end = runs->rows[earlier + 1];
    size_t other = runs->rows[earlier];
    for (size_t run = runs->rows[row]; run < end; run++) {
        size_t start = starts[run] - shift, stop = starts[run + 1] - shift;
        while (other + 1 < other_end && starts[other + 1] + reach <= start)
            other++;
        for (size_t i = other; i < other_end && starts[i] < stop + reach; i++)
            touch(found, i, run);
    }
}

/* The runs of a row, and the earlier ones of other rows that they touch; of the row above only if
 * `above`. */
ALWAYS_INLINED void touch_earlier(const Runs *runs, const Map *map, size_t own, int above,
                                  Touch touch, void *found)
{
    static const int OFFSETS[][2] = {{0, -1}, {-1, -1}, {-1, 0}, {-1, 1}};
    size_t plane = own / map->height, row = own % map->height;
    for (size_t i = !above; i < sizeof OFFSETS / sizeof *OFFSETS; i++) {
        int back = -OFFSETS[i][0], down = OFFSETS[i][1];
        int left = map->rank - back - (down != 0);
        int is_inside = down < 0 ? row > 0 : row + (size_t)down < map->height;
        if (left < 0 || !is_inside || plane < (size_t)back)
            continue;
        size_t earlier = own - (size_t)back * map->height + (size_t)down;
        touch_rows(runs, map, own, earlier, left > 0, touch, found);
    }
}

#endif
