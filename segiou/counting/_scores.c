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

static int width_of(Py_ssize_t size)
{
    for (int width = 0; width < WIDTHS; width++)
        if (size == (Py_ssize_t)1 << width)
            return width;
    return -1;
}

static int read_kind(Scores *scores, const char *name, Py_ssize_t size)
{
    scores->width = width_of(size);
    for (size_t i = 0; scores->width >= 0 && i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strcmp(kinds[i].name, name) != 0)
            continue;
        if (kinds[i].width != -1 && kinds[i].width != scores->width)
            break;
        scores->key = kinds[i].key;
        if (!scores->key.is_float) /* the topmost bit of the width */
            scores->key.constant >>= 64 - 8 * size;
        return 0;
    }
    PyErr_Format(PyExc_TypeError, "scores of %zd bytes are not '%s'", size, name);
    return -1;
}

/* Axes from `first` on are those of the pixels, and of the labels. */
static int read_axes(Scores *scores, const Py_buffer *view, int first, const Py_buffer *labels)
{
    int ndim = view->ndim - first;
    int fits = ndim >= 0 && ndim == labels->ndim && labels->itemsize == 1;
    for (int axis = 0; fits && axis < ndim; axis++)
        fits = view->shape[first + axis] == labels->shape[axis];
    if (!fits || ndim > MAX_AXES) {
        PyErr_SetString(PyExc_ValueError, "labels must be bytes, one for each pixel of the scores");
        return -1;
    }
    scores->data = view->buf;
    scores->axes.ndim = ndim;
    scores->axes.arrays = 1;
    for (int axis = 0; axis < ndim; axis++) {
        scores->axes.shape[axis] = view->shape[first + axis];
        scores->axes.strides[0][axis] = view->strides[first + axis];
    }
    return 0;
}

static int read_classes(Scores *scores, const Py_buffer *view)
{
    if (view->ndim < 1 || view->shape[0] < 1 || view->shape[0] > MAX_CLASSES) {
        PyErr_Format(PyExc_ValueError, "scores must have 1 to %d classes along the first axis",
                     MAX_CLASSES);
        return -1;
    }
    scores->classes = (size_t)view->shape[0];
    scores->class_stride = view->strides[0];
    return 0;
}

static int read_threshold(Scores *scores, PyObject *bits)
{
    scores->classes = 1;
    scores->threshold = PyLong_AsUnsignedLongLong(bits);
    if (PyErr_Occurred())
        return -1;
    if (!scores->key.is_float) {
        PyErr_SetString(PyExc_TypeError, "only floats are compared with a threshold");
        return -1;
    }
    return 0;
}

/* `bits` is NULL where the largest score decides. */
static PyObject *decide(PyObject *given_scores, const char *kind, PyObject *bits,
                        PyObject *given_labels, int is_portable)
{
    const ScoreLoops *loops = find_score_loops(is_portable);
    Py_buffer view = {0}, labels = {0};
    Scores scores = {0};
    int has_nan = -1;
    if (PyObject_GetBuffer(given_scores, &view, PyBUF_STRIDES) == 0 &&
        PyObject_GetBuffer(given_labels, &labels, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) == 0 &&
        read_kind(&scores, kind, view.itemsize) == 0 &&
        (bits ? read_threshold(&scores, bits) : read_classes(&scores, &view)) == 0 &&
        read_axes(&scores, &view, bits == NULL, &labels) == 0) {
        Py_BEGIN_ALLOW_THREADS
        has_nan = (bits ? above_all : argmax_all)(loops, &scores, labels.buf);
        Py_END_ALLOW_THREADS
        if (has_nan < 0)
            PyErr_NoMemory();
    }
    PyBuffer_Release(&view);
    PyBuffer_Release(&labels);
    return has_nan < 0 ? NULL : PyBool_FromLong(!has_nan);
}

static PyObject *argmax_into(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *scores, *labels;
    const char *kind;
    int is_portable = 0;
    if (!PyArg_ParseTuple(args, "OsO|p:argmax_into", &scores, &kind, &labels, &is_portable))
        return NULL;
    return decide(scores, kind, NULL, labels, is_portable);
}

static PyObject *above_into(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *scores, *bits, *labels;
    const char *kind;
    int is_portable = 0;
    if (!PyArg_ParseTuple(args, "OsO!O|p:above_into", &scores, &kind, &PyLong_Type, &bits, &labels,
                          &is_portable))
        return NULL;
    return decide(scores, kind, bits, labels, is_portable);
}

static PyMethodDef methods[] = {
    {"argmax_into", argmax_into, METH_VARARGS,
     "argmax_into(scores, kind, labels, portable=False, /) -> bool\n--\n\n"
     "Write the position of the first largest score along the first axis of scores. False, and\n"
     "labels of no meaning, if a score is NaN."},
    {"above_into", above_into, METH_VARARGS,
     "above_into(scores, kind, threshold_bits, labels, portable=False, /) -> bool\n--\n\n"
     "Write whether each score is above the threshold. False, and labels of no meaning, if a\n"
     "score is NaN."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {SLOTS_WITHOUT_STATE};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "segiou.counting._scores",
    .m_doc = "Labels from scores at memory speed.", .m_size = 0,
    .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scores(void) { return PyModuleDef_Init(&module); }
