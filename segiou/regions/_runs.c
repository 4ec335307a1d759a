/* Where the runs of label maps begin. */
#include "_runs.h"

/* Makes room for one run per pixel of a row; false if memory does not suffice. */
static int reserve(Runs *runs, size_t width)
{
    if (runs->room - runs->used > width)
        return 1;
    size_t room = 2 * runs->room + width + 1;
    uint32_t *starts = realloc(runs->starts, room * sizeof *starts);
    if (!starts)
        return 0;
    runs->starts = starts;
    runs->room = room;
    return 1;
}

/* Which of the next 64 bytes of values differ from the value before, a bit per value. */
ALWAYS_INLINED uint64_t changes_at(const Map *map, int maps, size_t at)
{
    const size_t size = map->size;
    uint64_t changes = 0;
    for (int side = 0; side < maps; side++) {
        const uint8_t *here = (const uint8_t *)map->values[side] + at * size;
        changes |= differ64(here, here - size);
    }
    return changes ? join_bits(changes, size) : 0;
}

/* Adds the runs of the row that begins at a pixel. */
ALWAYS_INLINED void find_row(Runs *runs, const Map *map, int maps, size_t row)
{
    const size_t step = 64 / map->size, end = row + map->width;
    uint32_t *starts = runs->starts;
    size_t used = runs->used;
    starts[used++] = (uint32_t)row;
    size_t at = row + 1;
    for (; at + step <= end; at += step)
        for (uint64_t changes = changes_at(map, maps, at); changes; changes &= changes - 1)
            starts[used++] = (uint32_t)(at + lowest_bit(changes));
    if (at < end && at > row + 1) { /* the last 64 bytes, without those that were seen */
        size_t last = end - step;
        uint64_t changes = changes_at(map, maps, last) >> (at - last);
        for (; changes; changes &= changes - 1)
            starts[used++] = (uint32_t)(at + lowest_bit(changes));
        at = end;
    }
    for (; at < end; at++) {
        int differs = 0;
        for (int side = 0; side < maps; side++)
            differs |= value_at(map, side, at) != value_at(map, side, at - 1);
        if (differs)
            starts[used++] = (uint32_t)at;
    }
    runs->used = used;
}

/* Finds the runs of all rows; false if memory does not suffice. */
int find_runs(Runs *runs, const Map *map)
{
    size_t rows = map->depth * map->height;
    runs->rows = malloc((rows + 1) * sizeof *runs->rows);
    if (!runs->rows)
        return 0;
    for (size_t row = 0; row < rows; row++) {
        if (!reserve(runs, map->width))
            return 0;
        runs->rows[row] = runs->used;
        if (map->maps == 1)
            find_row(runs, map, 1, row * map->width);
        else
            find_row(runs, map, 2, row * map->width);
    }
    runs->rows[rows] = runs->used;
    runs->starts[runs->used] = (uint32_t)(rows * map->width);
    return 1;
}

void free_runs(Runs *runs)
{
    free(runs->starts);
    free(runs->rows);
}

/* Reads the arrays of a map and their depth, height and width; −1 with an error. */
int read_map(Map *map, const Py_buffer *views, const Py_ssize_t *shape)
{
    const Py_ssize_t depth = shape[0], height = shape[1], width = shape[2];
    const Py_ssize_t size = (Py_ssize_t)map->size;
    int is_size = size == 1 || size == 2 || size == 4 || size == 8;
    /* Each product stays below 2^64. */
    int is_small = is_size && depth > 0 && height > 0 && width > 0 && depth <= UINT32_MAX &&
                   height <= UINT32_MAX && width <= UINT32_MAX &&
                   (uint64_t)height * (uint64_t)width <= UINT32_MAX &&
                   (uint64_t)depth * ((uint64_t)height * (uint64_t)width) <= UINT32_MAX;
    for (int side = 0; is_small && side < map->maps; side++) {
        const Py_buffer *view = &views[side];
        is_small = view->len == size * depth * height * width &&
                   (uintptr_t)view->buf % (size_t)size == 0;
        map->values[side] = view->buf;
    }
    if (!is_small)
        return refuse(PyExc_ValueError, "values must be aligned integers of fewer than 2^32 pixels");
    map->depth = (size_t)depth;
    map->height = (size_t)height;
    map->width = (size_t)width;
    return 0;
}
