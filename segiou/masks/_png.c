/* Python's entry point to the decoder of plain PNG files. */
#include "../_support/_python.h"

#include "_png_file.h"

static PyObject *
decode_file(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer file, memory;
    PngImage image;
    int done;
    if (!PyArg_ParseTuple(args, "y*w*:read_png", &file, &memory)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    PngReader *reader = open_reader();
    done = reader != NULL
        && read_png(reader, file.buf, (size_t)file.len, (size_t)memory.len, memory.buf, &image);
    close_reader(reader);
    Py_END_ALLOW_THREADS
    PyBuffer_Release(&file);
    PyBuffer_Release(&memory);
    if (!done) {
        return Py_NewRef(Py_None);
    }
    return Py_BuildValue("nns", (Py_ssize_t)image.height, (Py_ssize_t)image.width, image.mode);
}

PyDoc_STRVAR(read_png_doc,
"read_png(file, memory, /)\n--\n\n"
"Decode a plain PNG file at the beginning of memory: one byte per pixel, an aligned uint16\n"
"for 16 bits, or for colours an aligned uint32, red + 256 green + 65536 blue.\n\n"
"Height, width and Pillow's mode; None where the file is not plain, is damaged, or\n"
"needs more memory: for its pixels and 64 bytes.");

static PyMethodDef methods[] = {
    {"read_png", decode_file, METH_VARARGS, read_png_doc},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE_WITH(fill_checksums, _png, "Plain PNG files, decoded in C.")
