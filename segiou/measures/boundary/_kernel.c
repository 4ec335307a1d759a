/* Python's entry point to the boundary kernel: contiguous buffers in, counts out.
 *
 * Everything that could read or write outside a buffer is checked here.
 */
#include "../../_support/_python.h"

#include "_kernel.h"

#define MISFIT "the sizes of the arrays do not suit each other"
#define COUNT (Py_ssize_t)sizeof(int64_t)

/* count_bands(truth, pred, height, width, num_classes, reach, band_border, trimap_border,
 *             inner, trimap, outer, loops=None)
 *
 * loops: "c-avx512", "c-avx2" or "c", by default the best that there are. */
static PyObject *py_count_bands(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer views[5];
    Py_ssize_t height, width, num_classes, reach;
    int band_border, trimap_border;
    const char *name = NULL;
    int status = 0;
    if (!PyArg_ParseTuple(args, "y*y*nnnniiw*w*w*|z", &views[0], &views[1], &height, &width,
                          &num_classes, &reach, &band_border, &trimap_border, &views[2], &views[3],
                          &views[4], &name))
        return NULL;
    const Loops *loops = find_loops(name);
    if (loops == NULL)
        PyErr_SetString(PyExc_ValueError, "this processor has no such loops");
    else if (height < 1 || width < 1 || height > PY_SSIZE_T_MAX / 8 / width || reach < 1 ||
             height > INT32_MAX || num_classes < 1 || num_classes > 253 ||
             views[0].len != height * width || views[1].len != height * width ||
             views[2].len != 3 * num_classes * COUNT || views[3].len != 3 * num_classes * COUNT ||
             views[4].len != 2 * num_classes * COUNT)
        PyErr_SetString(PyExc_ValueError, MISFIT);
    else {
        /* A window that reaches past the whole image sees nothing more. */
        Work work = {.loops = loops, .truth = views[0].buf, .pred = views[1].buf,
                     .height = (size_t)height, .width = (size_t)width,
                     .num_classes = (size_t)num_classes,
                     .rows = (size_t)(reach < height ? reach : height),
                     .cols = (size_t)(reach < width ? reach : width),
                     .band_border = band_border, .trimap_border = trimap_border};
        Py_BEGIN_ALLOW_THREADS;
        status = count_bands(&work, views[2].buf, views[3].buf, views[4].buf);
        Py_END_ALLOW_THREADS;
        if (status < 0)
            PyErr_NoMemory();
    }
    for (int i = 0; i < 5; i++)
        PyBuffer_Release(&views[i]);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

/* encode(truth, pred, ignored, num_classes, truth_codes, pred_codes) -> (truth, pred): whether a
 * label of either side is undeclared. ignored = -1: no ignored value */
static PyObject *py_encode(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer views[4];
    Py_ssize_t ignored, num_classes;
    PyObject *answer = NULL;
    uint8_t highest[2];
    if (!PyArg_ParseTuple(args, "y*y*nnw*w*", &views[0], &views[1], &ignored, &num_classes,
                          &views[2], &views[3]))
        return NULL;
    Py_ssize_t n = views[0].len;
    if (views[1].len != n || views[2].len != n || views[3].len != n || ignored < -1 ||
        ignored > 255 || num_classes < 1 || num_classes > 253)
        PyErr_SetString(PyExc_ValueError, MISFIT);
    else {
        Py_BEGIN_ALLOW_THREADS;
        find_loops(NULL)->encode(views[2].buf, views[3].buf, views[0].buf, views[1].buf,
                                 (uint8_t)ignored, ignored < 0 ? 0 : 255, highest, (size_t)n);
        Py_END_ALLOW_THREADS;
        answer = Py_BuildValue("ii", highest[0] >= num_classes, highest[1] >= num_classes);
    }
    for (int i = 0; i < 4; i++)
        PyBuffer_Release(&views[i]);
    return answer;
}

static PyMethodDef methods[] = {
    {"encode", py_encode, METH_VARARGS, NULL},
    {"count_bands", py_count_bands, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_kernel, NULL)
