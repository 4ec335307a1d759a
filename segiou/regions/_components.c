/* Connected components of equal values, found run by run: runs of one value that touch belong to
 * one component. */
#include "_runs.h"

typedef struct {
    const uint64_t *values;
    uint32_t *firsts;
} Found;

static inline void touch_equal(void *context, size_t earlier, size_t run)
{
    Found *found = context;
    if (found->values[earlier] == found->values[run])
        unite(found->firsts, earlier, run);
}

/* The first run of the component of each run, or one on the way to it; NULL without memory. */
static uint32_t *unite_all(const Runs *runs, const Map *map)
{
    uint64_t *values = malloc(runs->used * sizeof *values);
    uint32_t *firsts = malloc(runs->used * sizeof *firsts);
    if (!values || !firsts) {
        free(values);
        free(firsts);
        return NULL;
    }
    for (size_t i = 0; i < runs->used; i++) {
        values[i] = value_at(map, 0, runs->starts[i]);
        firsts[i] = (uint32_t)i;
    }
    Found found = {values, firsts};
    for (size_t row = 0; row < map->depth * map->height; row++)
        touch_earlier(runs, map, row, 1, touch_equal, &found);
    free(values);
    return firsts;
}

/* Start and component of each run, and the first pixel of each component, as bytes of uint32. */
static PyObject *as_bytes(const Runs *runs, const uint32_t *own)
{
    size_t count = 0;
    for (size_t i = 0; i < runs->used; i++)
        count += own[i] == i;
    Py_ssize_t length = (Py_ssize_t)(runs->used * sizeof(uint32_t));
    PyObject *starts = PyBytes_FromStringAndSize((const char *)runs->starts, length);
    PyObject *ids = PyBytes_FromStringAndSize(NULL, length);
    PyObject *firsts = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(count * sizeof(uint32_t)));
    if (!starts || !ids || !firsts) {
        Py_XDECREF(starts);
        Py_XDECREF(ids);
        Py_XDECREF(firsts);
        return NULL;
    }
    uint32_t *id = (uint32_t *)PyBytes_AsString(ids);
    uint32_t *first = (uint32_t *)PyBytes_AsString(firsts), next = 0;
    for (size_t i = 0; i < runs->used; i++) {
        if (own[i] == i)
            first[next++] = runs->starts[i];
        id[i] = own[i] == i ? next : id[own[i]];
    }
    return Py_BuildValue("(NNN)", starts, ids, firsts);
}

static PyObject *find_components(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer view;
    Py_ssize_t size, shape[3];
    int rank;
    if (!PyArg_ParseTuple(args, "y*n(nnn)i:find_components", &view, &size, &shape[0], &shape[1],
                          &shape[2], &rank))
        return NULL;
    PyObject *result = NULL;
    Map map = {.maps = 1, .size = (size_t)size, .rank = rank};
    if (read_map(&map, &view, shape) == 0) {
        Runs runs = {0};
        uint32_t *firsts = NULL;
        Py_BEGIN_ALLOW_THREADS
        if (find_runs(&runs, &map))
            firsts = unite_all(&runs, &map);
        Py_END_ALLOW_THREADS
        result = firsts ? as_bytes(&runs, firsts) : PyErr_NoMemory();
        free(firsts);
        free_runs(&runs);
    }
    PyBuffer_Release(&view);
    return result;
}

extern PyObject *find_differences(PyObject *module, PyObject *args);

static PyMethodDef methods[] = {
    {"find_components", find_components, METH_VARARGS,
     "find_components(values, size, shape, rank)\n--\n\n"
     "Find the connected components of equal integers of this size in bytes; neighbours differ\n"
     "along at most `rank` axes. The answer is three buffers of uint32: the first pixel of each\n"
     "run, the component of each run from 1 on, and the first pixel of each component."},
    {"find_differences", find_differences, METH_VARARGS,
     "find_differences(truth, pred, size, shape, truth_codes, pred_codes, classes, least, most,\n"
     "                 with_runs)\n"
     "--\n\n"
     "Find the connected pixels of one class of the truth and another of the prediction. A side\n"
     "has integers of this size in bytes; `(first, codes)` has the class, as uint16, of each\n"
     "value from `first` on, and last that of all others. Of each pair of classes the `most`\n"
     "largest regions of at least `least` pixels are kept. The answer is two buffers: per region\n"
     "11 times int64, namely both classes, its pixels, those outside it of the objects of truth\n"
     "and prediction that contain it, begin and length along rows, columns and planes; and, if\n"
     "wanted, per run of a region three times uint32: its first pixel, its length and the place\n"
     "of the region."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_components, "Connected components of equal values, and of different ones.")
