/* Counts of images as LEB128 bytes: numbers of 7 bits per byte, the lowest first, and a set high bit
 * where more follow. Each count is the step from the cell before it, and its value. */
#include "../_support/_python.h"

#include <stdlib.h>
#include <string.h>

#define MOST_BYTES 9 /* of 63 bits */

/* The counts of several images, and what is wrong with their bytes; NULL if nothing is. */
typedef struct {
    int64_t *sizes, *cells, *values;
    size_t used;
    const char *problem;
} Decoded;

/* Reads a number; the place behind it, or NULL if it is truncated or too long. */
static const uint8_t *read_number(const uint8_t *at, const uint8_t *end, uint64_t *number)
{
    uint64_t sum = 0;
    for (unsigned bits = 0; at < end && bits < 7 * MOST_BYTES; bits += 7) {
        sum |= (uint64_t)(*at & 0x7F) << bits;
        if (*at++ < 0x80) {
            *number = sum;
            return at;
        }
    }
    return NULL;
}

/* Decodes one image; the number of its cells. */
static size_t decode_one(Decoded *found, const uint8_t *at, const uint8_t *end, uint64_t num_cells)
{
    uint64_t cell = 0, step, value;
    size_t first = found->used;
    while (at < end) {
        const uint8_t *next = read_number(at, end, &step);
        if (!next) {
            found->problem = end - at > MOST_BYTES ? "a number of its counts is too long"
                                                   : "a number of its counts is truncated";
            break;
        }
        if (next == end) {
            found->problem = "a count has no cell";
            break;
        }
        at = read_number(next, end, &value);
        if (!at) {
            found->problem = end - next > MOST_BYTES ? "a number of its counts is too long"
                                                     : "a number of its counts is truncated";
            break;
        }
        if (step < 1 || step > num_cells || (cell += step) > num_cells) {
            found->problem = "a cell of its counts lies outside the table";
            break;
        }
        if (value < 1) {
            found->problem = "a count is not positive";
            break;
        }
        found->cells[found->used] = (int64_t)(cell - 1);
        found->values[found->used++] = (int64_t)value;
    }
    return found->used - first;
}

static void decode_all(Decoded *found, const uint8_t *data, const int64_t *lengths, size_t images,
                       uint64_t num_cells)
{
    for (size_t i = 0; i < images && !found->problem; i++) {
        found->sizes[i] = (int64_t)decode_one(found, data, data + lengths[i], num_cells);
        data += lengths[i];
    }
}

/* Whether lengths are not negative and add up to the size of the data. */
static int fits(const int64_t *lengths, size_t images, Py_ssize_t size)
{
    for (size_t i = 0; i < images; i++) {
        if (lengths[i] < 0 || lengths[i] > size)
            return 0;
        size -= (Py_ssize_t)lengths[i];
    }
    return size == 0;
}

static int is_of_integers(const Py_buffer *view)
{
    return view->len % (Py_ssize_t)sizeof(int64_t) == 0 &&
           (uintptr_t)view->buf % sizeof(int64_t) == 0;
}

static PyObject *as_bytes(const int64_t *numbers, size_t count)
{
    return PyBytes_FromStringAndSize((const char *)numbers, (Py_ssize_t)(count * sizeof *numbers));
}

static PyObject *decode(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer data, lengths;
    Py_ssize_t num_cells;
    if (!PyArg_ParseTuple(args, "y*y*n:decode", &data, &lengths, &num_cells))
        return NULL;
    PyObject *result = NULL;
    size_t images = (size_t)lengths.len / sizeof(int64_t);
    if (!is_of_integers(&lengths) || num_cells < 0 || !fits(lengths.buf, images, data.len)) {
        PyErr_SetString(PyExc_ValueError, "lengths must be integers of 64 bits that add up");
    } else {
        size_t most = (size_t)data.len / 2 + 1;
        Decoded found = {malloc((images + 1) * sizeof(int64_t)), malloc(most * sizeof(int64_t)),
                         malloc(most * sizeof(int64_t)), 0, NULL};
        if (!found.sizes || !found.cells || !found.values) {
            PyErr_NoMemory();
        } else {
            Py_BEGIN_ALLOW_THREADS
            decode_all(&found, data.buf, lengths.buf, images, (uint64_t)num_cells);
            Py_END_ALLOW_THREADS
            if (found.problem)
                PyErr_SetString(PyExc_ValueError, found.problem);
            else
                result = Py_BuildValue("(NNN)", as_bytes(found.sizes, images),
                                       as_bytes(found.cells, found.used),
                                       as_bytes(found.values, found.used));
        }
        free(found.sizes);
        free(found.cells);
        free(found.values);
    }
    PyBuffer_Release(&data);
    PyBuffer_Release(&lengths);
    return result;
}

static uint8_t *write_number(uint8_t *at, uint64_t number)
{
    for (; number > 0x7F; number >>= 7)
        *at++ = (uint8_t)(number | 0x80);
    *at++ = (uint8_t)number;
    return at;
}

/* Writes the counts of an image; the place behind them. */
static uint8_t *write_counts(uint8_t *at, const int64_t *cells, const int64_t *values, int64_t size)
{
    int64_t before = -1;
    for (int64_t i = 0; i < size; before = cells[i++]) {
        at = write_number(at, (uint64_t)(cells[i] - before));
        at = write_number(at, (uint64_t)values[i]);
    }
    return at;
}

/* The same of all cells of a table, with a number added to each, that are not 0 then. */
static uint8_t *write_table(uint8_t *at, const int64_t *values, int64_t size, int64_t added)
{
    int64_t before = -1;
    for (int64_t i = 0; i < size; i++) {
        if (values[i] + added == 0)
            continue;
        at = write_number(at, (uint64_t)(i - before));
        at = write_number(at, (uint64_t)(values[i] + added));
        before = i;
    }
    return at;
}

/* Encodes the counts of images of so many cells each, or tables of such sizes if there are no
 * cells. */
static PyObject *encoded(const Py_buffer *sizes, const int64_t *cells, const Py_buffer *values,
                         int64_t added)
{
    const size_t images = (size_t)sizes->len / sizeof(int64_t);
    const int64_t *size = sizes->buf, *value = values->buf;
    size_t room = (size_t)values->len / sizeof(int64_t) * 2 * (MOST_BYTES + 1) + 1;
    uint8_t *data = malloc(room), *at = data;
    int64_t *ends = malloc((images + 1) * sizeof *ends);
    PyObject *result = NULL;
    if (!data || !ends) {
        PyErr_NoMemory();
    } else {
        Py_BEGIN_ALLOW_THREADS
        for (size_t i = 0; i < images; value += size[i++]) {
            at = cells ? write_counts(at, cells, value, size[i])
                       : write_table(at, value, size[i], added);
            cells = cells ? cells + size[i] : NULL;
            ends[i] = at - data;
        }
        Py_END_ALLOW_THREADS
        result = Py_BuildValue("(y#N)", (const char *)data, (Py_ssize_t)(at - data),
                               as_bytes(ends, images));
    }
    free(data);
    free(ends);
    return result;
}

static int are_of_images(const Py_buffer *sizes, const Py_buffer *values)
{
    return is_of_integers(sizes) && is_of_integers(values) &&
           fits(sizes->buf, (size_t)sizes->len / sizeof(int64_t),
                values->len / (Py_ssize_t)sizeof(int64_t));
}

static PyObject *encode(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer sizes, cells, values;
    if (!PyArg_ParseTuple(args, "y*y*y*:encode", &sizes, &cells, &values))
        return NULL;
    PyObject *result = NULL;
    if (are_of_images(&sizes, &values) && is_of_integers(&cells) && cells.len == values.len)
        result = encoded(&sizes, cells.buf, &values, 0);
    else
        PyErr_SetString(PyExc_ValueError, "arrays must be integers of 64 bits that match");
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&cells);
    PyBuffer_Release(&values);
    return result;
}

static PyObject *encode_tables(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer sizes, values;
    int added;
    if (!PyArg_ParseTuple(args, "y*y*p:encode_tables", &sizes, &values, &added))
        return NULL;
    PyObject *result = NULL;
    if (are_of_images(&sizes, &values))
        result = encoded(&sizes, NULL, &values, added);
    else
        PyErr_SetString(PyExc_ValueError, "arrays must be integers of 64 bits that match");
    PyBuffer_Release(&sizes);
    PyBuffer_Release(&values);
    return result;
}

static PyMethodDef methods[] = {
    {"decode", decode, METH_VARARGS,
     "decode(data, lengths, num_cells)\n--\n\n"
     "Decode the counts of images of so many bytes each, a buffer of int64. The answer is three\n"
     "such buffers: the number of cells of each image, the cells and their values."},
    {"encode", encode, METH_VARARGS,
     "encode(sizes, cells, values)\n--\n\n"
     "Encode such counts. The answer is the data, and a buffer of int64 with the end of each image\n"
     "in it."},
    {"encode_tables", encode_tables, METH_VARARGS,
     "encode_tables(sizes, values, add_one)\n--\n\n"
     "The same from all cells of the tables of images, of which 0 is left out; or each plus 1."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_varints, "Counts of images as LEB128 bytes.")
