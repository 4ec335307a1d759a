/* Python's entry point to the kernel that makes labels of scores: buffers in, labels out.
 *
 * Scores come as unsigned integers of their width, beside the name of what their bits mean:
 * Python's buffers know no bfloat16.
 */
#include "../_support/_python.h"

#include "_scores.h"

#include <string.h>

static const struct {
    const char *name;
    int width; /* -1: any */
    Key key;
} kinds[] = {
    {"float16", 1, {1, 0x7C00}},
    {"bfloat16", 1, {1, 0x7F80}},
    {"float32", 2, {1, 0x7F800000}},
    {"float64", 3, {1, 0x7FF0000000000000}},
    {"int", -1, {0, 0}},
    {"uint", -1, {0, 0x8000000000000000}},
};

static int read_kind(Scores *scores, const char *name, Py_ssize_t size)
{
    while (scores->width < WIDTHS && size != (Py_ssize_t)1 << scores->width)
        scores->width++;
    for (size_t i = 0; scores->width < WIDTHS && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) != 0)
            continue;
        if (kinds[i].width != -1 && kinds[i].width != scores->width)
            break;
        scores->key = kinds[i].key;
        if (!scores->key.is_float) /* the topmost bit of the width */
            scores->key.constant >>= 64 - 8 * size;
        return 0;
    }
    return refuse(PyExc_TypeError, "scores of %zd bytes are not '%s'", size, name);
}

/* The classes are along the first axis; the others are those of the pixels, and of the labels. */
static int read_axes(Scores *scores, const Py_buffer *view, const Py_buffer *labels)
{
    if (view->ndim < 1 || view->shape[0] < 1 || view->shape[0] > MAX_CLASSES)
        return refuse(PyExc_ValueError, "scores must have 1 to %d classes along the first axis",
                      MAX_CLASSES);
    int ndim = view->ndim - 1, fits = ndim == labels->ndim;
    scores->is_wide = view->shape[0] > 256;
    fits = fits && labels->itemsize == 1 + scores->is_wide;
    fits = fits && (!scores->is_wide || view->itemsize > 1);
    for (int axis = 0; fits && axis < ndim; axis++)
        fits = view->shape[1 + axis] == labels->shape[axis];
    if (!fits || ndim > MAX_AXES)
        return refuse(PyExc_ValueError,
                      "labels must have one byte per pixel, or two for more than 256 classes");
    scores->data = view->buf;
    scores->classes = (size_t)view->shape[0];
    scores->class_stride = view->strides[0];
    scores->axes.ndim = ndim;
    scores->axes.arrays = 1;
    for (int axis = 0; axis < ndim; axis++) {
        scores->axes.shape[axis] = view->shape[1 + axis];
        scores->axes.strides[0][axis] = view->strides[1 + axis];
    }
    return 0;
}

/* The bits of a threshold, or None where the largest score decides. */
static int read_threshold(Scores *scores, PyObject *bits)
{
    scores->has_threshold = bits != Py_None;
    if (!scores->has_threshold)
        return 0;
    if (!scores->key.is_float || scores->classes != 1)
        return refuse(PyExc_TypeError, "only floats of one class are compared with a threshold");
    scores->threshold = PyLong_AsUnsignedLongLong(bits);
    return PyErr_Occurred() ? -1 : 0;
}

static PyObject *decide_into(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given_scores, *bits, *given_labels;
    const char *kind, *name = NULL;
    int has_nan = -1;
    if (!PyArg_ParseTuple(args, "OsOO|z:decide_into", &given_scores, &kind, &bits, &given_labels,
                          &name))
        return NULL;
    const Loops *loops = find_loops(name);
    if (loops == NULL)
        return PyErr_Format(PyExc_ValueError, "this processor has no such loops");
    Py_buffer view = {0}, labels = {0};
    Scores scores = {0};
    if (PyObject_GetBuffer(given_scores, &view, PyBUF_STRIDES) == 0 &&
        PyObject_GetBuffer(given_labels, &labels, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) == 0 &&
        read_kind(&scores, kind, view.itemsize) == 0 && read_axes(&scores, &view, &labels) == 0 &&
        read_threshold(&scores, bits) == 0) {
        Py_BEGIN_ALLOW_THREADS
        has_nan = decide_all(loops, &scores, labels.buf);
        Py_END_ALLOW_THREADS
        if (has_nan < 0)
            PyErr_NoMemory();
    }
    PyBuffer_Release(&view);
    PyBuffer_Release(&labels);
    return has_nan < 0 ? NULL : PyBool_FromLong(!has_nan);
}

static PyMethodDef methods[] = {
    {"decide_into", decide_into, METH_VARARGS,
     "decide_into(scores, kind, threshold_bits, labels, loops=None, /) -> bool\n--\n\n"
     "Write the position of the first largest score along the first axis of scores, or, where\n"
     "threshold_bits are not None, whether the only one is above. False, and labels of no\n"
     "meaning, if a score is NaN."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_scores, "Labels from scores at memory speed.")
