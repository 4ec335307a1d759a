/* Python's entry point to the surfaces of volumes: labels in, points and distances out.
 *
 * Everything that could read or write outside a buffer is checked here. */
#include "../_support/_python.h"

#include "_surfaces.h"

#include <stdlib.h>

/* The points of each label that has any, as bytes; None where there are too many. */
static PyObject *as_dict(Found *found)
{
    if (found->status == NO_MEMORY)
        return PyErr_NoMemory();
    if (found->status == TOO_MANY)
        Py_RETURN_NONE;
    PyObject *dict = PyDict_New();
    for (int label = 1; dict && label < LABELS; label++) {
        if (!found->count[label])
            continue;
        PyObject *key = PyLong_FromLong(label);
        PyObject *value = PyBytes_FromStringAndSize(
            (const char *)found->at[label], (Py_ssize_t)(found->count[label] * sizeof(uint64_t)));
        if (!key || !value || PyDict_SetItem(dict, key, value))
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
        free(found->at[label]); /* as early as possible: there are two of it now */
        found->at[label] = NULL;
    }
    return dict;
}

static PyObject *py_find(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer labels, wanted;
    Py_ssize_t depth, height, width, limit;
    int is_flat, elements, ignored;
    if (!PyArg_ParseTuple(args, "y*nnnpy*ipn:find", &labels, &depth, &height, &width, &is_flat,
                          &wanted, &ignored, &elements, &limit))
        return NULL;
    PyObject *answer = NULL;
    Found *found = calloc(1, sizeof *found);
    if (!found)
        PyErr_NoMemory();
    else if (depth < 1 || height < 1 || width < 1 || depth > LONGEST_AXIS ||
             height > LONGEST_AXIS || width > LONGEST_AXIS || (is_flat && depth != 1) ||
             labels.len != depth * height * width || wanted.len != LABELS || ignored < -1 ||
             ignored >= LABELS || limit < 0)
        PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not suit each other");
    else {
        Volume volume = {labels.buf, (size_t)depth, (size_t)height, (size_t)width,
                         is_flat, ignored, wanted.buf};
        found->limit = (size_t)limit;
        Py_BEGIN_ALLOW_THREADS;
        find_surfaces(&volume, elements, found);
        Py_END_ALLOW_THREADS;
        answer = as_dict(found);
        free_found(found);
    }
    free(found);
    PyBuffer_Release(&labels);
    PyBuffer_Release(&wanted);
    return answer;
}

/* Whether there are points; targets each after the one before it, so that none is there twice. */
static int read_points(const Py_buffer *view, Points *points, int is_target)
{
    points->at = view->buf;
    points->count = (size_t)view->len / sizeof(uint64_t);
    if (!points->count || view->len % (Py_ssize_t)sizeof(uint64_t) || points->count > UINT32_MAX)
        return 0;
    for (size_t i = 1; is_target && i < points->count; i++)
        if (points->at[i] << (64 - CODE_BITS) <= points->at[i - 1] << (64 - CODE_BITS))
            return 0;
    return 1;
}

/* Tests the bits as well, because the compiler assumes that all numbers are finite. */
static int is_length(double step)
{
    uint64_t bits;
    memcpy(&bits, &step, sizeof bits);
    return bits >> 52 < 0x7FF && step >= 1e-9 && step <= 1e9;
}

/* Whether the table's rows are near enough and its ranks few enough; steps are of z, y, x. */
static int read_table(Table *table, const Py_buffer *rows, const Py_buffer *ranks,
                      const double *steps, int is_reversed)
{
    table->rows = (int)(rows->len / (2 * (Py_ssize_t)sizeof(int32_t)));
    table->row = rows->buf;
    table->rank = ranks->buf;
    int is_good = table->rows > 0 && table->rows <= ROWS && table->certain >= 0 && table->certain < RANKS &&
                  ranks->len == table->rows * HALF * (Py_ssize_t)sizeof(uint16_t);
    for (int i = 0; is_good && i < 2 * table->rows; i++)
        is_good = table->row[i] >= -ROW_REACH && table->row[i] <= ROW_REACH;
    for (int k = 0; k < 3; k++) {
        is_good &= is_length(steps[k]);
        table->axes.step[is_reversed ? 2 - k : k] = steps[k];
        table->axes.bits[is_reversed ? 2 - k : k] = 16 * (2 - k);
    }
    return is_good;
}

static PyObject *py_nearest(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer views[5]; /* query, target, rows, ranks, areas */
    Points query, target;
    Table table;
    double steps[3];
    int is_reversed;
    if (!PyArg_ParseTuple(args, "y*y*y*y*idddpy*:nearest", &views[0], &views[1], &views[2],
                          &views[3], &table.certain, &steps[0], &steps[1], &steps[2], &is_reversed,
                          &views[4]))
        return NULL;
    PyObject *answer = NULL, *ranks = NULL;
    if (!read_points(&views[0], &query, 0) || !read_points(&views[1], &target, 1))
        PyErr_SetString(PyExc_ValueError, "there must be points, targets one after the other");
    else if (!read_table(&table, &views[2], &views[3], steps, is_reversed) ||
             views[4].len != LABELS * (Py_ssize_t)sizeof(double))
        PyErr_SetString(PyExc_ValueError, "the table does not suit the search");
    else
        ranks = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(query.count * sizeof(uint16_t)));
    if (ranks) {
        Distances found = {.areas = views[4].buf, .ranks = (uint16_t *)PyBytes_AsString(ranks)};
        Py_BEGIN_ALLOW_THREADS;
        find_nearest(&table, query, target, &found);
        Py_END_ALLOW_THREADS;
        answer = found.squares
                     ? Py_BuildValue("Oy#y#", ranks, (const char *)found.tally,
                                     (Py_ssize_t)((size_t)(table.certain + 1) * sizeof(double)),
                                     (const char *)found.squares,
                                     (Py_ssize_t)(found.far * sizeof(double)))
                     : PyErr_NoMemory();
        free(found.squares);
        Py_DECREF(ranks);
    }
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&views[i]);
    return answer;
}

static PyMethodDef methods[] = {
    {"find", py_find, METH_VARARGS,
     "find(labels, depth, height, width, is_flat, wanted, ignored, elements, limit) -> dict\n--\n\n"
     "The points of the surface of each wanted label, as bytes; None if they pass the limit."},
    {"nearest", py_nearest, METH_VARARGS,
     "nearest(query, target, rows, ranks, certain, *steps, is_reversed, areas) -> bytes\n--\n\n"
     "From each query to its nearest target: the rank of the distance, one past `certain` where it\n"
     "is larger; the area of each rank; the squares of the larger ones."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_surfaces, NULL)
