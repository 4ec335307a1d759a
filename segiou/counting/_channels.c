/* Sums over binary channels: TP, truth and predicted pixels of each channel in one pass.
 *
 * Bytes are 0 or 1. A stream of bytes is walked in rows of `width` bytes; column j belongs to
 * channel j % period. Up to 255 rows are added byte by byte, which cannot overflow and which
 * compilers turn into vector additions; then the columns are folded into 64-bit totals.
 */
#include "../_support/_python.h"

#include <stdint.h>
#include <string.h>

#define ROW_BYTES 512 /* at least this many columns, so that a row is worth its loop */
#define MAX_WIDTH 4096
#define MAX_ROWS 255

typedef struct {
    uint8_t both[MAX_WIDTH], truth[MAX_WIDTH], pred[MAX_WIDTH];
} Columns;

/* Adds whole rows to the columns; returns the union of all bytes. */
static uint8_t add_rows(const uint8_t *restrict truth, const uint8_t *restrict pred, size_t rows,
                        size_t width, Columns *restrict columns)
{
    uint8_t seen = 0;
    for (size_t row = 0; row < rows; row++, truth += width, pred += width)
        for (size_t j = 0; j < width; j++) {
            uint8_t t = truth[j], p = pred[j];
            columns->both[j] += t & p;
            columns->truth[j] += t;
            columns->pred[j] += p;
            seen |= t | p;
        }
    return seen;
}

static void fold(const Columns *columns, size_t width, size_t period, int64_t *totals,
                 size_t channels)
{
    for (size_t j = 0; j < width; j++) {
        size_t channel = j % period;
        totals[channel] += columns->both[j];
        totals[channels + channel] += columns->truth[j];
        totals[2 * channels + channel] += columns->pred[j];
    }
}

/* Pixel by pixel, straight into the totals: few pixels, or more channels than columns. */
static uint8_t add_pixels(const uint8_t *truth, const uint8_t *pred, size_t pixels, size_t period,
                          int64_t *totals, size_t channels)
{
    uint8_t seen = 0;
    for (size_t pixel = 0; pixel < pixels; pixel++, truth += period, pred += period)
        for (size_t c = 0; c < period; c++) {
            totals[c] += truth[c] & pred[c];
            totals[channels + c] += truth[c];
            totals[2 * channels + c] += pred[c];
            seen |= truth[c] | pred[c];
        }
    return seen;
}

/* A stream of whole pixels, whose bytes belong to `period` channels in turn. */
static uint8_t add_stream(const uint8_t *truth, const uint8_t *pred, size_t length, size_t period,
                          int64_t *totals, size_t channels)
{
    size_t width = period * ((ROW_BYTES + period - 1) / period), rows = length / width;
    uint8_t seen = 0;
    Columns columns;
    while (rows > 0) {
        size_t now = rows < MAX_ROWS ? rows : MAX_ROWS;
        memset(columns.both, 0, width);
        memset(columns.truth, 0, width);
        memset(columns.pred, 0, width);
        seen |= add_rows(truth, pred, now, width, &columns);
        fold(&columns, width, period, totals, channels);
        truth += now * width;
        pred += now * width;
        length -= now * width;
        rows -= now;
    }
    return seen | add_pixels(truth, pred, length / period, period, totals, channels);
}

static uint8_t add_planes(const uint8_t *truth, const uint8_t *pred, size_t outer, size_t channels,
                          size_t inner, int64_t *totals)
{
    if (inner == 1 && channels > MAX_WIDTH - ROW_BYTES)
        return add_pixels(truth, pred, outer, channels, totals, channels);
    if (inner == 1)
        return add_stream(truth, pred, outer * channels, channels, totals, channels);
    uint8_t seen = 0;
    for (size_t plane = 0; plane < outer * channels; plane++)
        seen |= add_stream(truth + plane * inner, pred + plane * inner, inner, 1,
                           totals + plane % channels, channels);
    return seen;
}

/* Whether length == outer * channels * inner, without overflow. */
static int fits(Py_ssize_t length, Py_ssize_t outer, Py_ssize_t channels, Py_ssize_t inner)
{
    if (outer < 0 || channels < 1 || inner < 0)
        return 0;
    if (outer == 0 || inner == 0)
        return length == 0;
    if (length % outer || (length / outer) % channels)
        return 0;
    return length / outer / channels == inner;
}

static PyObject *count_bytes(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer truth, pred, totals;
    Py_ssize_t outer, channels, inner;
    PyObject *result = NULL;
    if (!PyArg_ParseTuple(args, "y*y*nnnw*:count_bytes", &truth, &pred, &outer, &channels, &inner,
                          &totals))
        return NULL;
    if (!fits(truth.len, outer, channels, inner) || pred.len != truth.len)
        PyErr_SetString(PyExc_ValueError, "truth and pred must hold outer * channels * inner bytes");
    else if (totals.len / 3 / (Py_ssize_t)sizeof(int64_t) != channels ||
             totals.len % (3 * (Py_ssize_t)sizeof(int64_t)) ||
             (uintptr_t)totals.buf % sizeof(int64_t))
        PyErr_SetString(PyExc_ValueError, "totals must hold 3 * channels integers of 64 bits");
    else {
        uint8_t seen;
        Py_BEGIN_ALLOW_THREADS
        seen = add_planes(truth.buf, pred.buf, (size_t)outer, (size_t)channels, (size_t)inner,
                          totals.buf);
        Py_END_ALLOW_THREADS
        result = PyBool_FromLong(seen <= 1);
    }
    PyBuffer_Release(&truth);
    PyBuffer_Release(&pred);
    PyBuffer_Release(&totals);
    return result;
}

static PyMethodDef methods[] = {
    {"count_bytes", count_bytes, METH_VARARGS,
     "count_bytes(truth, pred, outer, channels, inner, totals) -> bool\n--\n\n"
     "Add the sums of truth & pred, truth and pred to the (3, channels) totals; the bytes, in the\n"
     "order (outer, channels, inner), must be 0 or 1, or the answer is False and totals garbage."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_channels, "Sums over binary channels.")
