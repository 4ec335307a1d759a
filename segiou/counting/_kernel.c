/* Python's entry point to the counting kernel: buffers in, nothing out.
 *
 * Everything that could write outside the table is checked here: shapes, dtypes, and that every
 * code lies inside. Codes are copied before they are checked, so that no other thread can change
 * them afterwards; the labels themselves may change meanwhile without harm.
 */
#include "../_support/_python.h"

#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

/* One label array as the caller gave it. */
typedef struct {
    const char *name;
    Py_buffer view;
    int is_signed;
    Source source;
} Labels;

/* The only character of a native NumPy format, behind an optional mark; '\0' for others. */
static char type_of(const Py_buffer *view)
{
    const uint16_t one = 1;
    const char *format = view->format ? view->format : "B";
    const char *marks = *(const uint8_t *)&one == 1 ? "@=^<" : "@=^>!";
    format += *format && strchr(marks, *format);
    return *format && format[1] == '\0' ? *format : '\0';
}

/* Whether two arrays can be read as they lie: native, with axes in the order of the truth's memory.
 * NumPy arranges others. */
static int is_arranged(const Py_buffer *truth, const Py_buffer *pred)
{
    const Py_buffer *views[] = {truth, pred};
    const uint16_t one = 1;
    const char *swapped = *(const uint8_t *)&one == 1 ? ">!" : "<";
    for (int i = 0; i < 2; i++)
        if (views[i]->itemsize > 1 && *views[i]->format && strchr(swapped, *views[i]->format))
            return 0;
    for (int axis = 0; axis < truth->ndim; axis++) {
        if (truth->strides[axis] < 0 && pred->strides[axis] < 0)
            return 0;
        if (axis > 0 && llabs(truth->strides[axis]) > llabs(truth->strides[axis - 1]))
            return 0;
    }
    return 1;
}

static int open_labels(Labels *labels)
{
    Py_buffer *view = &labels->view;
    char type = type_of(view);
    int is_size = view->itemsize == 1 || view->itemsize == 2 || view->itemsize == 4 ||
                  view->itemsize == 8;
    if (type == '\0' || !strchr("?bBhHiIlLqQnN", type) || !is_size)
        return refuse(PyExc_TypeError,
                      "%s must hold native integers or bool, not items of format '%s'",
                      labels->name, view->format ? view->format : "");
    if (view->ndim > MAX_AXES)
        return refuse(PyExc_ValueError, "%s has %d axes; at most %d can be counted", labels->name,
                      view->ndim, MAX_AXES);
    labels->is_signed = strchr("bhilqn", type) != NULL;
    labels->source.data = view->buf;
    labels->source.itemsize = (int)view->itemsize;
    labels->source.is_bool = type == '?';
    return 0;
}

/* Copies the codes and checks the copy. */
static int copy_codes(Labels *labels, PyObject *object, Py_ssize_t states)
{
    Py_buffer view;
    Source *source = &labels->source;
    if (PyObject_GetBuffer(object, &view, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    int is_row = type_of(&view) == 'H' && view.ndim == 1;
    source->length = is_row ? (uint64_t)view.shape[0] : 0;
    source->codes = source->memory = malloc((source->length + 1) * sizeof(uint16_t));
    if (source->memory != NULL)
        memcpy(source->memory, view.buf, source->length * sizeof(uint16_t));
    PyBuffer_Release(&view);
    if (!is_row)
        return refuse(PyExc_TypeError, "%s codes must be one row of native uint16", labels->name);
    if (source->memory == NULL)
        return refuse(PyExc_MemoryError, "no memory for the codes of %s", labels->name);
    source->states = (uint32_t)states;
    uint16_t highest = 0;
    for (uint64_t i = 0; i < source->length; i++)
        highest = source->codes[i] > highest ? source->codes[i] : highest;
    if (highest >= states)
        return refuse(PyExc_ValueError, "%s code %d is outside of the table, which has %zd",
                      labels->name, (int)highest, states);
    return 0;
}

/* Reads what the first code stands for, any integer of 64 bits. Codes for values that the dtype
 * cannot hold are cut off here; from then on arithmetic is modulo its width. */
static int read_low(Labels *labels, PyObject *low)
{
    Source *source = &labels->source;
    int bits = 8 * source->itemsize, is_large = 0;
    uint64_t highest = UINT64_MAX >> (64 - bits) >> labels->is_signed, missing = 0;
    int64_t lowest = labels->is_signed ? -(int64_t)highest - 1 : 0;
    int64_t start = PyLong_AsLongLongAndOverflow(low, &is_large);
    source->first = is_large ? PyLong_AsUnsignedLongLong(low) : (uint64_t)start;
    if (PyErr_Occurred())
        return -1;
    if ((is_large || start > 0) && source->first > highest)
        missing = UINT64_MAX;
    else if (!is_large && start < lowest)
        missing = (uint64_t)lowest - source->first;
    cut_range(source, missing, (uint64_t)lowest, highest);
    return 0;
}

static int open_table(Py_buffer *view, PyObject *object)
{
    if (PyObject_GetBuffer(object, view, PyBUF_FORMAT | PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) < 0)
        return -1;
    char type = type_of(view);
    if (type == '\0' || !strchr("lqn", type) || view->itemsize != 8 || view->ndim != 2)
        return refuse(PyExc_TypeError, "table must be a native int64 array of two axes");
    for (int axis = 0; axis < 2; axis++)
        if (view->shape[axis] < 1 || view->shape[axis] > MAX_CODES)
            return refuse(PyExc_ValueError, "table must be of 1 to %d rows and columns, not %zd",
                          MAX_CODES, view->shape[axis]);
    return 0;
}

static int check_shapes(const Py_buffer *truth, const Py_buffer *pred)
{
    int is_same = truth->ndim == pred->ndim;
    for (int axis = 0; is_same && axis < truth->ndim; axis++)
        is_same = truth->shape[axis] == pred->shape[axis];
    return is_same ? 0 : refuse(PyExc_ValueError, "truth and pred differ in shape");
}

/* As count_all. */
static int count_labels(const Loops *loops, Labels *truth, Labels *pred, const Py_buffer *table)
{
    int counted;
    Axes axes = {.ndim = truth->view.ndim, .arrays = 2};
    for (int axis = 0; axis < axes.ndim; axis++) {
        axes.shape[axis] = truth->view.shape[axis];
        axes.strides[0][axis] = truth->view.strides[axis];
        axes.strides[1][axis] = pred->view.strides[axis];
    }
    Py_BEGIN_ALLOW_THREADS
    counted = count_all(loops, &axes, &truth->source, &pred->source, table->buf);
    Py_END_ALLOW_THREADS
    if (counted < 0)
        PyErr_NoMemory();
    return counted;
}

PyDoc_STRVAR(count_coded_doc,
             "count_coded(truth, pred, truth_low, truth_codes, pred_low, pred_codes, table,\n"
             "            backend=None, /)\n--\n\n"
             "Add the counts of all label pairs to table, or return None for arrays that NumPy must\n"
             "arrange; see segiou.counting.encoding.");

static PyObject *count_coded(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t given)
{
    if (given != 7 && given != 8)
        return PyErr_Format(PyExc_TypeError, "count_coded takes 7 or 8 arguments, not %zd", given);
    const char *backend = given == 8 ? PyUnicode_AsUTF8AndSize(args[7], NULL) : NULL;
    if (given == 8 && backend == NULL)
        return NULL;
    const Loops *loops = find_loops(backend);
    if (loops == NULL)
        return PyErr_Format(PyExc_ValueError, "this processor cannot run the backend '%s'",
                            backend);
    Labels truth = {.name = "truth"}, pred = {.name = "pred"};
    Py_buffer table = {0};
    int any_last = 0, flags = PyBUF_FORMAT | PyBUF_STRIDES;
    int failed = PyObject_GetBuffer(args[0], &truth.view, flags) < 0 ||
                 PyObject_GetBuffer(args[1], &pred.view, flags) < 0 ||
                 check_shapes(&truth.view, &pred.view) < 0;
    int is_left = !failed && !is_arranged(&truth.view, &pred.view);
    if (!failed && !is_left)
        failed = open_labels(&truth) < 0 || open_labels(&pred) < 0 ||
                 open_table(&table, args[6]) < 0 ||
                 copy_codes(&truth, args[3], table.shape[0]) < 0 ||
                 copy_codes(&pred, args[5], table.shape[1]) < 0 ||
                 read_low(&truth, args[2]) < 0 || read_low(&pred, args[4]) < 0 ||
                 (any_last = count_labels(loops, &truth, &pred, &table)) < 0;
    free_source(&truth.source);
    free_source(&pred.source);
    PyBuffer_Release(&truth.view);
    PyBuffer_Release(&pred.view);
    PyBuffer_Release(&table);
    if (is_left)
        Py_RETURN_NONE;
    return failed ? NULL : PyBool_FromLong(any_last);
}

/* BACKENDS: the names of all loops that this processor can run, the best first. */
static int add_backends(PyObject *module)
{
    const char *const formats[] = {"(s)", "(ss)", "(sss)"}, *names[MAX_SETS] = {NULL};
    const Loops *loops[MAX_SETS];
    int found = list_loops(loops);
    for (int i = 0; i < found; i++)
        names[i] = loops[i]->name;
    PyObject *backends = Py_BuildValue(formats[found - 1], names[0], names[1], names[2]);
    int failed = backends == NULL || PyModule_AddObjectRef(module, "BACKENDS", backends) < 0;
    Py_XDECREF(backends);
    return failed ? -1 : 0;
}

static int start(PyObject *module)
{
    fill_position_lookup();
    return add_backends(module);
}

static PyMethodDef methods[] = {
    {"count_coded", (PyCFunction)(void (*)(void))count_coded, METH_FASTCALL, count_coded_doc},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE_WITH(start, _kernel, "Counting label pairs at memory speed.")
