/* Histograms of scores: the same integers as count_scores of score_bins.py.
 *
 * Blocks of valid pixels stay in cache: their scores are loaded class by class, turned into
 * probabilities if they are logits, and counted by bin and by whether the pixel is of the class.
 * All sums and products are rounded as NumPy's, so nothing here may be contracted or reordered.
 */
#include "../../_support/_python.h"

#include "../../_support/_bytes.h"
#include "../../counting/_axes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 512 /* pixels that are counted at once */
#define HALF_ONE 0x3C00
#define SMALLEST_NORMAL 6.103515625e-05f /* of half precision */
#define UNITS 16777216.0f         /* of a top score: 2^24 */
#define ROUND_FLOAT 12582912.0f   /* 1.5 * 2^23 added and taken off rounds to an integer */

/* From FLOAT64 on, scores are read as doubles. */
typedef enum { FLOAT16, BFLOAT16, FLOAT32, BOOL, FLOAT64, UINT8, UINT16 } Kind;
typedef enum { NONE, SOFTMAX, SIGMOID } Activation;

static const char *const kinds[] = {"float16", "bfloat16", "float32", "bool",
                                    "float64", "uint8",    "uint16"};
static const Py_ssize_t sizes[] = {2, 2, 4, 1, 8, 1, 2};

typedef struct {
    Axes axes; /* of the scores of a class, and of the codes */
    const char *scores;
    const uint16_t *codes;
    ptrdiff_t class_stride;
    size_t classes;
    unsigned limit; /* codes from here on are ignored */
    Kind kind;
    Activation activation;
    int32_t bins;
    int is_half;
    int64_t *cells;
    int64_t nan, outside; /* pixels with a NaN score; scores outside [0, 1] */
} Work;

#define INLINE ALWAYS_INLINED /* into the walk for each processor */

INLINE float float_of(uint32_t bits)
{
    float found;
    memcpy(&found, &bits, sizeof found);
    return found;
}

INLINE uint32_t bits_of(float number)
{
    uint32_t found;
    memcpy(&found, &number, sizeof found);
    return found;
}

INLINE float from_half(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = (uint32_t)(half & 0x7FFF) << 13;
    float scaled = float_of(rest) * 5.192296858534828e33f; /* 2^112; subnormals become normal */
    uint32_t bits = rest >= 0x0F800000 ? rest | 0x7F800000 : bits_of(scaled);
    return float_of(bits | sign);
}

/* As exp_of of score_bins.py, operation by operation. */
INLINE float raise(float x)
{
    x = x < -87.0f ? -87.0f : x;
    float shifted = x * 1.4426950408889634f + ROUND_FLOAT, n = shifted - ROUND_FLOAT;
    float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.98756915e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = (p * r + 0.50000001201f) * (r * r) + (r + 1.0f);
    uint32_t power = (bits_of(shifted) - bits_of(ROUND_FLOAT) + 127u) << 23;
    return p * float_of(power);
}

/* Adds one to the cell of each key; or units, to the first cell of its bin. Neighbours often share
 * a cell, and adding to it again and again would wait for itself. */
INLINE void add_keys(const int32_t *key, const int32_t *units, size_t n, int64_t *cells)
{
    const int32_t kept = units ? ~1 : ~0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        int32_t first = key[i], differ = 0, sum = 0; /* at most 8 * 2^24 */
        for (size_t k = 0; k < 8; k++) {
            differ |= key[i + k] ^ first;
            sum += units ? units[i + k] : 1;
        }
        if (!differ) {
            cells[first & kept] += sum;
            continue;
        }
        for (size_t k = 0; k < 8; k++)
            cells[key[i + k] & kept] += units ? units[i + k] : 1;
    }
    for (; i < n; i++)
        cells[key[i] & kept] += units ? units[i] : 1;
}

#define TYPED_(x, real) x##_##real
#define TYPED_OF(x, real) TYPED_(x, real)
#define TYPED(x) TYPED_OF(x, REAL)

#define REAL double /* first: floats use its functions */
#define BITS uint64_t
#define FRACTION 52
#define KINDS                       \
    KIND(FLOAT64, double, x)        \
    KIND(UINT8, uint8_t, x / 255.0) \
    KIND(UINT16, uint16_t, x / 65535.0)
#include "_scores_by_bin_loops.h"
#define REAL float
#define BITS uint32_t
#define FRACTION 23
#define KINDS                                             \
    KIND(FLOAT16, uint16_t, from_half(x))                 \
    KIND(BFLOAT16, uint16_t, float_of((uint32_t)x << 16)) \
    KIND(FLOAT32, float, x)                               \
    KIND(BOOL, uint8_t, (float)(x != 0))
#include "_scores_by_bin_loops.h"

typedef struct {
    const char *name;
    void (*walk[2])(Work *work, float *planes); /* through scores as floats, as doubles */
} Loops;

#define LOOPS_FILE "../accumulators/histograms/_scores_by_bin_walks.h"
#include "../../_support/_loops.h"

static int run(Work *work, const Loops *loops)
{
    size_t planes = work->activation == SOFTMAX ? work->classes : 1;
    float *memory = malloc(planes * BLOCK * sizeof(float));
    if (memory)
        loops->walk[work->kind >= FLOAT64](work, memory);
    free(memory);
    return memory != NULL;
}

/* Scores (C, pixels...), codes (pixels...) and cells (C + 2, bins, 2) must fit each other. */
static int read_arrays(Work *work, const Py_buffer *scores, const Py_buffer *codes,
                       const Py_buffer *cells, const char *kind)
{
    int found = -1, ndim = codes->ndim;
    for (int i = 0; i < (int)(sizeof kinds / sizeof kinds[0]); i++)
        if (strcmp(kinds[i], kind) == 0 && scores->itemsize == sizes[i])
            found = i;
    int fits = found >= 0 && scores->ndim == ndim + 1 && ndim < MAX_AXES;
    fits = fits && codes->itemsize == 2 && scores->shape[0] > 0 && cells->ndim == 3;
    fits = fits && cells->itemsize == 8 && cells->shape[0] == scores->shape[0] + 2;
    fits = fits && cells->shape[1] > 0 && cells->shape[1] <= 65536 && cells->shape[2] == 2;
    fits = fits && (!work->is_half || cells->shape[1] == HALF_ONE + 1);
    for (int axis = 0; fits && axis < ndim; axis++) {
        fits = scores->shape[1 + axis] == codes->shape[axis];
        work->axes.shape[axis] = codes->shape[axis];
        work->axes.strides[0][axis] = scores->strides[1 + axis];
    }
    if (!fits)
        return refuse(PyExc_ValueError, "scores, codes and cells do not fit each other");
    work->axes.ndim = ndim, work->axes.arrays = 1;
    work->kind = (Kind)found;
    work->scores = scores->buf, work->codes = codes->buf, work->cells = cells->buf;
    work->classes = (size_t)scores->shape[0];
    work->class_stride = scores->strides[0];
    work->bins = (int32_t)cells->shape[1];
    return 0;
}

static PyObject *count_scores(PyObject *Py_UNUSED(module), PyObject *args)
{
    PyObject *given[3], *found = NULL;
    const char *kind, *name = NULL;
    int activation;
    Work work = {0};
    if (!PyArg_ParseTuple(args, "OsOOIpi|z:count_scores", &given[0], &kind, &given[1], &given[2],
                          &work.limit, &work.is_half, &activation, &name))
        return NULL;
    const Loops *loops = find_loops(name);
    if (loops == NULL)
        return PyErr_Format(PyExc_ValueError, "this processor has no such loops");
    work.activation = (Activation)activation;
    Py_buffer scores = {0}, codes = {0}, cells = {0};
    if (PyObject_GetBuffer(given[0], &scores, PyBUF_STRIDES) == 0 &&
        PyObject_GetBuffer(given[1], &codes, PyBUF_C_CONTIGUOUS) == 0 &&
        PyObject_GetBuffer(given[2], &cells, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) == 0 &&
        read_arrays(&work, &scores, &codes, &cells, kind) == 0) {
        int is_done = 1;
        Py_BEGIN_ALLOW_THREADS
        if (count_items(&work.axes) > 0) {
            merge_axes(&work.axes);
            is_done = run(&work, loops);
        }
        Py_END_ALLOW_THREADS
        found = is_done ? Py_BuildValue("LL", (long long)work.nan, (long long)work.outside)
                        : PyErr_NoMemory();
    }
    PyBuffer_Release(&scores);
    PyBuffer_Release(&codes);
    PyBuffer_Release(&cells);
    return found;
}

static PyMethodDef methods[] = {
    {"count_scores", count_scores, METH_VARARGS,
     "count_scores(scores, kind, codes, cells, limit, is_half, activation, loops=None, /)\n--\n\n"
     "Add scores to cells; returns pixels with a NaN score, and scores outside [0, 1]."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_scores_by_bin, "Histograms of scores at memory speed.")
