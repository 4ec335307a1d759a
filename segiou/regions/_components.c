/* Connected components of equal values, found run by run.
 *
 * A run is a sequence of equal neighbours in a row. Runs of one value that touch belong to one
 * component: each points to an earlier run of its component, or to itself if it is the first.
 * Objects are large, so runs are few, and nothing is done per pixel but to find where they end.
 */
#include "../_support/_python.h"

#include "../_support/_bytes.h"

#include <stdlib.h>

typedef struct {
    uint64_t value;
    uint32_t start; /* its first pixel */
    uint32_t first; /* an earlier run of its component, or itself */
} Run;

typedef struct {
    const char *values;
    size_t size; /* bytes of a value */
    size_t depth, height, width;
    int rank; /* along how many axes neighbours may differ */
} Map;

typedef struct {
    Run *runs;
    size_t used, room;
    size_t *rows; /* the first run of each row, and the end of the last */
} Found;

static uint64_t value_at(const Map *map, size_t at)
{
    return load_number(map->values, at, map->size);
}

/* Makes room for one run per pixel of a row; false if memory does not suffice. */
static int reserve(Found *found, size_t width)
{
    if (found->room - found->used >= width)
        return 1;
    size_t room = 2 * found->room + width;
    Run *runs = realloc(found->runs, room * sizeof(Run));
    if (!runs)
        return 0;
    found->runs = runs;
    found->room = room;
    return 1;
}

static void add_run(Found *found, const Map *map, size_t start)
{
    uint32_t own = (uint32_t)found->used++;
    found->runs[own] = (Run){value_at(map, start), (uint32_t)start, own};
}

/* Adds the runs of the row that begins at a pixel. */
static void find_runs(Found *found, const Map *map, size_t row)
{
    const size_t size = map->size, step = 64 / size, end = row + map->width;
    add_run(found, map, row);
    size_t at = row + 1;
    for (; at + step <= end; at += step) {
        const uint8_t *here = (const uint8_t *)map->values + at * size;
        uint64_t changes = differ64(here, here - size);
        if (changes)
            for (changes = join_bits(changes, size); changes; changes &= changes - 1)
                add_run(found, map, at + lowest_bit(changes));
    }
    for (; at < end; at++)
        if (value_at(map, at) != value_at(map, at - 1))
            add_run(found, map, at);
}

static uint32_t find_first(Run *runs, uint32_t run)
{
    while (runs[run].first != run)
        run = runs[run].first = runs[runs[run].first].first;
    return run;
}

static void unite(Run *runs, size_t one, size_t other)
{
    uint32_t a = find_first(runs, (uint32_t)one), b = find_first(runs, (uint32_t)other);
    if (a < b)
        runs[b].first = a;
    else
        runs[a].first = b;
}

/* Unites the runs of a row with the runs of an earlier row that they touch, also at corners if
 * reach is 1. */
static void unite_rows(Found *found, const Map *map, size_t row, size_t earlier, size_t reach)
{
    Run *runs = found->runs;
    const size_t shift = (row - earlier) * map->width, end = found->rows[row + 1];
    const size_t other_end = found->rows[earlier + 1];
    size_t other = found->rows[earlier];
    for (size_t run = found->rows[row]; run < end; run++) {
        size_t start = runs[run].start - shift;
        size_t stop = (run + 1 < end ? runs[run + 1].start : (row + 1) * map->width) - shift;
        while (other + 1 < other_end && runs[other + 1].start + reach <= start)
            other++;
        for (size_t i = other; i < other_end && runs[i].start < stop + reach; i++)
            if (runs[i].value == runs[run].value)
                unite(runs, i, run);
    }
}

/* Unites the runs of a row with those of all earlier neighbours of the row. */
static void unite_neighbours(Found *found, const Map *map, size_t plane, size_t row)
{
    static const int OFFSETS[][2] = {{0, -1}, {-1, -1}, {-1, 0}, {-1, 1}};
    for (size_t i = 0; i < sizeof OFFSETS / sizeof *OFFSETS; i++) {
        int back = -OFFSETS[i][0], down = OFFSETS[i][1];
        int left = map->rank - back - (down != 0);
        int is_inside = down < 0 ? row > 0 : row + (size_t)down < map->height;
        if (left < 0 || !is_inside || plane < (size_t)back)
            continue;
        size_t own = plane * map->height + row;
        size_t earlier = own - (size_t)back * map->height + (size_t)down;
        unite_rows(found, map, own, earlier, left > 0);
    }
}

static int find_all(Found *found, const Map *map)
{
    size_t rows = map->depth * map->height;
    found->rows = malloc((rows + 1) * sizeof *found->rows);
    if (!found->rows)
        return 0;
    for (size_t row = 0; row < rows; row++) {
        if (!reserve(found, map->width))
            return 0;
        found->rows[row] = found->used;
        find_runs(found, map, row * map->width);
        found->rows[row + 1] = found->used;
        unite_neighbours(found, map, row / map->height, row % map->height);
    }
    return 1;
}

/* Start and component of each run, and the first pixel of each component, as bytes of uint32. */
static PyObject *as_bytes(const Found *found)
{
    size_t count = 0;
    for (size_t i = 0; i < found->used; i++)
        count += found->runs[i].first == i;
    Py_ssize_t length = (Py_ssize_t)(found->used * sizeof(uint32_t));
    PyObject *starts = PyBytes_FromStringAndSize(NULL, length);
    PyObject *ids = PyBytes_FromStringAndSize(NULL, length);
    PyObject *firsts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint32_t)));
    if (!starts || !ids || !firsts) {
        Py_XDECREF(starts);
        Py_XDECREF(ids);
        Py_XDECREF(firsts);
        return NULL;
    }
    uint32_t *start = (uint32_t *)PyBytes_AsString(starts), *id = (uint32_t *)PyBytes_AsString(ids);
    uint32_t *first = (uint32_t *)PyBytes_AsString(firsts), next = 0;
    for (size_t i = 0; i < found->used; i++) {
        const Run *run = &found->runs[i];
        start[i] = run->start;
        if (run->first == i)
            first[next++] = run->start;
        id[i] = run->first == i ? next : id[run->first];
    }
    return Py_BuildValue("(NNN)", starts, ids, firsts);
}

static PyObject *find_components(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    Py_ssize_t size, depth, height, width;
    int rank;
    if (!PyArg_ParseTuple(args, "y*n(nnn)i:find_components", &view, &size, &depth, &height, &width,
                          &rank))
        return NULL;
    PyObject *result = NULL;
    int is_size = size == 1 || size == 2 || size == 4 || size == 8;
    /* Each product stays below 2^64. */
    int is_small = is_size && depth > 0 && height > 0 && width > 0 && depth <= UINT32_MAX &&
                   height <= UINT32_MAX && width <= UINT32_MAX &&
                   (uint64_t)height * (uint64_t)width <= UINT32_MAX &&
                   (uint64_t)depth * ((uint64_t)height * (uint64_t)width) <= UINT32_MAX;
    if (!is_small || view.len != size * depth * height * width ||
        (uintptr_t)view.buf % (size_t)size != 0) {
        refuse(PyExc_ValueError, "values must be aligned integers of fewer than 2^32 pixels");
    } else {
        Map map = {view.buf, (size_t)size, (size_t)depth, (size_t)height, (size_t)width, rank};
        Found found = {0};
        int is_done;
        Py_BEGIN_ALLOW_THREADS
        is_done = find_all(&found, &map);
        Py_END_ALLOW_THREADS
        result = is_done ? as_bytes(&found) : PyErr_NoMemory();
        free(found.runs);
        free(found.rows);
    }
    PyBuffer_Release(&view);
    return result;
}

static PyMethodDef methods[] = {
    {"find_components", find_components, METH_VARARGS,
     "find_components(values, size, shape, rank)\n--\n\n"
     "Find the connected components of equal integers of this size in bytes; neighbours differ\n"
     "along at most `rank` axes. The answer is three buffers of uint32: the first pixel of each\n"
     "run, the component of each run from 1 on, and the first pixel of each component."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_components, "Connected components of equal values.")
