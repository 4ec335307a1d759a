/* Python's entry point to the row filters of PNG. */
#include "../_support/_python.h"

#include "_png_decode.h"

enum { RAW, OUT, ABOVE, BUFFERS };

/* Set the height that the buffers have room for. 0 where they do not fit each other. */
static int
fit_raster(const Py_buffer *buffers, Py_ssize_t width, int depth, int scale, Raster *raster)
{
    int known_depth = depth == 1 || depth == 2 || depth == 4 || depth == 8;
    if (!known_depth || width < 1 || width > INT32_MAX || scale < 1 || scale > 255) {
        return 0;
    }
    *raster = (Raster){(size_t)width, 0, (unsigned)depth, (unsigned)scale};
    size_t raw_size = (size_t)buffers[RAW].len, out_size = (size_t)buffers[OUT].len;
    size_t row_bytes = count_row_bytes(*raster);
    raster->height = out_size / raster->width;
    return out_size % raster->width == 0 && raw_size % (row_bytes + 1) == 0
        && raw_size / (row_bytes + 1) == raster->height
        && (size_t)buffers[ABOVE].len == row_bytes;
}

static PyObject *
unfilter(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer buffers[BUFFERS];
    Py_ssize_t width;
    int depth, scale, done = 0;
    Raster raster;
    if (!PyArg_ParseTuple(args, "y*w*w*nii:unfilter", &buffers[RAW], &buffers[OUT],
                          &buffers[ABOVE], &width, &depth, &scale)) {
        return NULL;
    }
    int fits = fit_raster(buffers, width, depth, scale, &raster);
    if (fits) {
        Py_BEGIN_ALLOW_THREADS
        done = decode(buffers[RAW].buf, buffers[OUT].buf, buffers[ABOVE].buf, raster);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < BUFFERS; i++) {
        PyBuffer_Release(&buffers[i]);
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "the buffers do not fit the width and depth");
        return NULL;
    }
    return done < 0 ? PyErr_NoMemory() : PyBool_FromLong(done);
}

PyDoc_STRVAR(unfilter_doc,
"unfilter(raw, out, above, width, depth, scale)\n--\n\n"
"Undo the filters of some rows of a PNG and write one byte per pixel to out.\n\n"
"raw: rows of a filter byte and ceil(width * depth / 8) bytes. out: as many rows\n"
"of width bytes. above: the bytes of the row before, unfiltered; zeros at first;\n"
"it becomes the last of the rows. Packed samples (depth below 8) are multiplied\n"
"by scale. False where a row names no filter; out and above are then unfinished.");

static PyMethodDef methods[] = {
    {"unfilter", unfilter, METH_VARARGS, unfilter_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {SLOTS_WITHOUT_STATE};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "segiou.masks._png", "The row filters of PNG, undone in C.", 0,
    methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__png(void)
{
    return PyModuleDef_Init(&module);
}
