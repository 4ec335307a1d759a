/* Python's entry point to the boundary kernel: contiguous buffers in, counts out.
 *
 * Everything that could read or write outside a buffer is checked here.
 */
#include "../_support/_python.h"

#include "_kernel.h"

#include <string.h>

#define MAX_BUFFERS 5

static void release(Py_buffer *views, int n)
{
    for (int i = 0; i < n; i++)
        PyBuffer_Release(&views[i]);
}

static PyObject *finish(Py_buffer *views, int n, int status)
{
    release(views, n);
    if (status < 0)
        return PyErr_NoMemory();
    Py_RETURN_NONE;
}

static PyObject *refuse(Py_buffer *views, int n, const char *what)
{
    release(views, n);
    PyErr_SetString(PyExc_ValueError, what);
    return NULL;
}

static int has_size(const Py_buffer *view, Py_ssize_t items, size_t itemsize)
{
    return view->len == items * (Py_ssize_t)itemsize;
}

/* count_bands(truth, pred, height, width, num_classes, reach, band_border, trimap_border,
 *             inner, trimap, outer, loops=None)
 *
 * loops: "c-avx512", "c-avx2" or "c", by default the best that there are. */
static PyObject *py_count_bands(PyObject *module, PyObject *args)
{
    Py_buffer views[MAX_BUFFERS];
    Py_ssize_t height, width, num_classes, reach;
    Band band;
    const char *name = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nnnniiw*w*w*|z", &views[0], &views[1], &height, &width,
                          &num_classes, &reach, &band.band_border, &band.trimap_border, &views[2],
                          &views[3], &views[4], &name))
        return NULL;
    const Loops *loops = find_loops(name);
    if (loops == NULL)
        return refuse(views, MAX_BUFFERS, "this processor has no such loops");
    Py_ssize_t longest = height > width ? height : width;
    if (height < 1 || width < 1 || height > PY_SSIZE_T_MAX / 8 / width || reach < 1 ||
        num_classes < 1 || num_classes > 253 || views[0].len != height * width ||
        views[1].len != height * width || !has_size(&views[2], 3 * num_classes, sizeof(int64_t)) ||
        !has_size(&views[3], 3 * num_classes, sizeof(int64_t)) ||
        !has_size(&views[4], 2 * num_classes, sizeof(int64_t)))
        return refuse(views, MAX_BUFFERS, "the sizes of the arrays do not suit each other");
    /* A window that reaches past the whole image sees nothing more. */
    band.reach = (size_t)(reach < longest ? reach : longest);
    Pair pair = {views[0].buf, views[1].buf, (size_t)height, (size_t)width, (size_t)num_classes};
    int status;
    Py_BEGIN_ALLOW_THREADS;
    status = count_bands(loops, &pair, &band, views[2].buf, views[3].buf, views[4].buf);
    Py_END_ALLOW_THREADS;
    return finish(views, MAX_BUFFERS, status);
}

/* encode(truth, pred, ignored, num_classes, truth_codes, pred_codes) -> (truth, pred): whether a
 * label of either side is no class. ignored = -1: no value is */
static PyObject *py_encode(PyObject *module, PyObject *args)
{
    Py_buffer views[4];
    Py_ssize_t ignored, num_classes;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*y*nnw*w*", &views[0], &views[1], &ignored, &num_classes,
                          &views[2], &views[3]))
        return NULL;
    Py_ssize_t n = views[0].len;
    if (views[1].len != n || views[2].len != n || views[3].len != n || ignored < -1 ||
        ignored > 255 || num_classes < 1 || num_classes > 253)
        return refuse(views, 4, "the sizes of the arrays do not suit each other");
    const Loops *loops = find_loops(NULL);
    uint8_t highest[2];
    Py_BEGIN_ALLOW_THREADS;
    loops->encode(views[2].buf, views[3].buf, views[0].buf, views[1].buf, (uint8_t)ignored,
                  ignored < 0 ? 0 : 255, highest, (size_t)n);
    Py_END_ALLOW_THREADS;
    release(views, 4);
    return Py_BuildValue("ii", highest[0] >= num_classes, highest[1] >= num_classes);
}

/* count_valid(codes) -> pixels that are not ignored */
static PyObject *py_count_valid(PyObject *module, PyObject *args)
{
    Py_buffer view;
    (void)module;
    if (!PyArg_ParseTuple(args, "y*", &view))
        return NULL;
    size_t found = count_others(find_loops(NULL), view.buf, IGNORED, (size_t)view.len);
    PyBuffer_Release(&view);
    return PyLong_FromSize_t(found);
}

static PyMethodDef methods[] = {
    {"encode", py_encode, METH_VARARGS, NULL},
    {"count_valid", py_count_valid, METH_VARARGS, NULL},
    {"count_bands", py_count_bands, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_kernel, NULL)
