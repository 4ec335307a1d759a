/* Undo the row filters of a non-interlaced PNG with one channel.
 *
 * A mask is made of runs, so nearly every filtered byte (residual) is zero.
 * Sixteen residuals are looked at together; where they are all zero the row
 * is copied from the row above or filled with the pixel on the left, and only
 * the pixels where something changes are worked out one by one.
 *
 * Definitions: PNG (third edition), section 9 "Filtering".
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "_png_rows.h"

/* The three facts about a raster that the loops need. */
typedef struct {
    size_t width;
    size_t height;
    unsigned depth;   /* bits per pixel: 1, 2, 4 or 8 */
    unsigned scale;   /* what a packed sample is multiplied by */
} Raster;

/* Whole-byte pixels: the output row is the unfiltered row. */
static int
decode_bytes(const uint8_t *raw, uint8_t *out, const uint8_t *zeros, Raster raster)
{
    const uint8_t *above = zeros;
    for (size_t y = 0; y < raster.height; y++) {
        if (!unfilter_row(raw[0], raw + 1, above, out, raster.width)) {
            return 0;
        }
        above = out;
        raw += raster.width + 1;
        out += raster.width;
    }
    return 1;
}

/* Packed pixels: unfilter into one of two line buffers, then spread out. */
static int
decode_packed(const uint8_t *raw, uint8_t *out, uint8_t *lines, Raster raster)
{
    size_t row_bytes = (raster.width * raster.depth + 7) / 8;
    uint8_t *above = lines, *line = lines + row_bytes;
    uint8_t table[256 * 8];
    fill_spread_table(table, raster.depth, raster.scale);
    for (size_t y = 0; y < raster.height; y++) {
        if (!unfilter_row(raw[0], raw + 1, above, line, row_bytes)) {
            return 0;
        }
        spread_row(line, out, raster.width, table, 8 / raster.depth);
        uint8_t *swap = above;
        above = line;
        line = swap;
        raw += row_bytes + 1;
        out += raster.width;
    }
    return 1;
}

/* 1: done. 0: a row names no filter. -1: no memory for the line buffers. */
static int
decode(const uint8_t *raw, uint8_t *out, Raster raster)
{
    size_t row_bytes = (raster.width * raster.depth + 7) / 8;
    uint8_t *lines = calloc(2, row_bytes);   /* above the first row all is zero */
    if (lines == NULL) {
        return -1;
    }
    int done = raster.depth == 8 ? decode_bytes(raw, out, lines, raster)
                                 : decode_packed(raw, out, lines, raster);
    free(lines);
    return done;
}

/* Do both buffers have exactly the size that the header promises? */
static int
sizes_agree(const Py_buffer *raw, const Py_buffer *out, Raster raster)
{
    size_t row_bytes = (raster.width * raster.depth + 7) / 8;
    size_t raw_size = (size_t)raw->len, out_size = (size_t)out->len;
    return raw_size / raster.height == row_bytes + 1 && raw_size % raster.height == 0
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
