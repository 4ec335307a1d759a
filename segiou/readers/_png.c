/* The door from Python to the row filters of PNG. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "_png_decode.h"

/* Do both buffers have exactly the size that the header promises? */
static int
sizes_agree(const Py_buffer *raw, const Py_buffer *out, Raster raster)
{
    size_t raw_size = (size_t)raw->len, out_size = (size_t)out->len;
    return raw_size / raster.height == count_row_bytes(raster) + 1 && raw_size % raster.height == 0
        && out_size / raster.height == raster.width && out_size % raster.height == 0;
}

static PyObject *
unfilter(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer raw, out;
    Py_ssize_t width, height;
    int depth, scale, done;
    if (!PyArg_ParseTuple(args, "y*w*nnii:unfilter", &raw, &out, &width, &height,
                          &depth, &scale)) {
        return NULL;
    }
    Raster raster = {(size_t)width, (size_t)height, (unsigned)depth, (unsigned)scale};
    int known_depth = depth == 1 || depth == 2 || depth == 4 || depth == 8;
    if (!known_depth || width < 1 || height < 1 || width > INT32_MAX
        || height > INT32_MAX || scale < 1 || scale > 255
        || !sizes_agree(&raw, &out, raster)) {
        PyErr_SetString(PyExc_ValueError, "the buffers do not fit the width, height and depth");
        done = -2;
    }
    else {
        Py_BEGIN_ALLOW_THREADS
        done = decode(raw.buf, out.buf, raster);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&raw);
    PyBuffer_Release(&out);
    if (done == -1) {
        return PyErr_NoMemory();
    }
    return done == -2 ? NULL : PyBool_FromLong(done);
}

PyDoc_STRVAR(unfilter_doc,
"unfilter(raw, out, width, height, depth, scale)\n--\n\n"
"Undo the filters of every row of raw and write one byte per pixel to out.\n\n"
"raw: height rows of a filter byte and ceil(width * depth / 8) bytes. out:\n"
"height * width writable bytes. Packed samples (depth below 8) are multiplied\n"
"by scale. False where a row names no filter; out is then unfinished.");

static PyMethodDef methods[] = {
    {"unfilter", unfilter, METH_VARARGS, unfilter_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef_Slot slots[] = {{0, NULL}};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_png", "The row filters of PNG, undone in C.", 0,
    methods, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC
PyInit__png(void)
{
    return PyModuleDef_Init(&module);
}
