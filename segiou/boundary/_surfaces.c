/* Python's entry point to the surfaces of volumes: labels in, points and distances out.
 *
 * Everything that could read or write outside a buffer is checked here. */
#include "../_support/_python.h"

#include "_surfaces.h"

#include <math.h>
#include <stdlib.h>

#define CAPSULE "segiou.boundary._surfaces.table"

/* Points of each wanted label that has any, as bytes; or, beyond the limit, their numbers. */
static PyObject *as_dict(Found *found)
{
    PyObject *dict = PyDict_New();
    for (int label = 1; dict && label < LABELS; label++) {
        if (!found->count[label])
            continue;
        size_t bytes = found->count[label] * sizeof(uint64_t);
        PyObject *key = PyLong_FromLong(label);
        PyObject *value =
            found->is_full
                ? PyLong_FromSize_t(found->count[label])
                : PyBytes_FromStringAndSize((const char *)found->at[label], (Py_ssize_t)bytes);
        if (!key || !value || PyDict_SetItem(dict, key, value))
            Py_CLEAR(dict);
        Py_XDECREF(key);
        Py_XDECREF(value);
        free(found->at[label]); /* as early as possible: there are two of it now */
        found->at[label] = NULL;
    }
    return dict;
}

static PyObject *py_find(PyObject *module, PyObject *args)
{
    Py_buffer labels, wanted;
    Py_ssize_t depth, height, width, limit;
    int is_flat, elements, ignored;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*nnnpy*ipn:find", &labels, &depth, &height, &width, &is_flat,
                          &wanted, &ignored, &elements, &limit))
        return NULL;
    PyObject *answer = NULL;
    Found *found = calloc(1, sizeof *found);
    if (!found)
        PyErr_NoMemory();
    else if (depth < 1 || height < 1 || width < 1 || depth > LONGEST_AXIS ||
             height > LONGEST_AXIS || width > LONGEST_AXIS || (is_flat && depth != 1) ||
             labels.len / width / height != depth || labels.len % (width * height) ||
             wanted.len != LABELS || ignored < -1 || ignored >= LABELS || limit < 0)
        PyErr_SetString(PyExc_ValueError, "the sizes of the arrays do not suit each other");
    else {
        Volume volume = {labels.buf, (size_t)depth, (size_t)height, (size_t)width,
                         is_flat, ignored, wanted.buf};
        found->limit = (size_t)limit;
        int is_done;
        Py_BEGIN_ALLOW_THREADS;
        is_done = find_surfaces(&volume, elements, found);
        Py_END_ALLOW_THREADS;
        answer = is_done ? as_dict(found) : PyErr_NoMemory();
        free_found(found);
    }
    free(found);
    PyBuffer_Release(&labels);
    PyBuffer_Release(&wanted);
    return answer;
}

static void free_table(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, CAPSULE)); }

/* By the bits of a number too: the compiler takes every number for a finite one. */
static int is_length(double step)
{
    uint64_t bits;
    memcpy(&bits, &step, sizeof bits);
    return bits >> 52 < 0x7FF && step >= 1e-12 && step <= 1e12;
}

static PyObject *py_table(PyObject *module, PyObject *args)
{
    int is_reversed;
    Axes axes = {{Z_BITS, Y_BITS, X_BITS}, {0}};
    (void)module;
    if (!PyArg_ParseTuple(args, "dddp:table", &axes.step[0], &axes.step[1], &axes.step[2],
                          &is_reversed))
        return NULL;
    for (int k = 0; k < 3; k++)
        if (!is_length(axes.step[k])) {
            PyErr_SetString(PyExc_ValueError, "spacing must lie between 1e-12 and 1e12");
            return NULL;
        }
    if (is_reversed) {
        Axes other = {{X_BITS, Y_BITS, Z_BITS}, {axes.step[2], axes.step[1], axes.step[0]}};
        axes = other;
    }
    Table *table = malloc(sizeof *table);
    if (!table)
        return PyErr_NoMemory();
    fill_table(table, &axes);
    PyObject *capsule = PyCapsule_New(table, CAPSULE, free_table);
    if (!capsule)
        free(table);
    return capsule;
}

/* Whether there are points, each after the one before it. */
static int are_points(const Py_buffer *view, Points *points)
{
    points->at = view->buf;
    points->count = (size_t)view->len / sizeof(uint64_t);
    if (!points->count || view->len % (Py_ssize_t)sizeof(uint64_t) || view->len / 8 > UINT32_MAX)
        return 0;
    for (size_t i = 1; i < points->count; i++)
        if ((points->at[i] & PLACE) <= (points->at[i - 1] & PLACE))
            return 0;
    return 1;
}

static PyObject *as_bytes(const void *from, size_t count)
{
    return PyBytes_FromStringAndSize(from, (Py_ssize_t)(count * 8));
}

static PyObject *py_distances(PyObject *module, PyObject *args)
{
    PyObject *capsule, *answer = NULL;
    Py_buffer of_query, of_target, areas;
    Points query, target;
    (void)module;
    if (!PyArg_ParseTuple(args, "Oy*y*z*:distances", &capsule, &of_query, &of_target, &areas))
        return NULL;
    const Table *table = PyCapsule_GetPointer(capsule, CAPSULE);
    Distances *found = table ? calloc(1, sizeof *found) : NULL;
    if (!found) {
        if (table)
            PyErr_NoMemory();
    } else if (!are_points(&of_query, &query) || !are_points(&of_target, &target) ||
               (areas.buf && areas.len != LABELS * (Py_ssize_t)sizeof(double)))
        PyErr_SetString(PyExc_ValueError, "points must follow each other, and areas be 256");
    else {
        int is_done;
        Py_BEGIN_ALLOW_THREADS;
        is_done = find_distances(table, query, target, areas.buf, found);
        Py_END_ALLOW_THREADS;
        size_t ranks = (size_t)table->certain + 1, far = found->far_count;
        answer = !is_done ? PyErr_NoMemory()
                          : Py_BuildValue("NNNNN", as_bytes(table->distance, ranks),
                                          as_bytes(found->points, ranks),
                                          as_bytes(found->areas, areas.buf ? ranks : 0),
                                          as_bytes(found->far, far),
                                          as_bytes(found->far_areas, areas.buf ? far : 0));
        free(found->far);
        free(found->far_areas);
    }
    free(found);
    PyBuffer_Release(&of_query);
    PyBuffer_Release(&of_target);
    PyBuffer_Release(&areas);
    return answer;
}

static PyMethodDef methods[] = {
    {"find", py_find, METH_VARARGS,
     "find(labels, depth, height, width, is_flat, wanted, ignored, elements, limit) -> dict\n--\n\n"
     "The points of the surface of each wanted label, as bytes; or their numbers, if there are\n"
     "more than the limit."},
    {"table", py_table, METH_VARARGS,
     "table(depth, height, width, is_reversed)\n--\n\n"
     "What a spacing needs; squares are summed in the order of the axes, or in reverse."},
    {"distances", py_distances, METH_VARARGS,
     "distances(table, query, target, areas) -> five buffers of 64-bit numbers\n--\n\n"
     "From each query to the nearest target: distances in ascending order, the number of points\n"
     "at each, and their areas; then larger distances one by one, and their areas."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {SLOTS_WITHOUT_STATE};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "_surfaces", .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__surfaces(void)
{
    return PyModuleDef_Init(&definition);
}
