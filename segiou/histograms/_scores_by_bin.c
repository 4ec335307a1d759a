/* Histograms of scores: the same integers as count_scores of score_bins.py.
 *
 * Blocks of valid pixels stay in cache: their scores are loaded class by class, turned into
 * probabilities if they are logits, and counted by bin and by whether the pixel is of the class.
 * All sums and products are rounded as NumPy's, so nothing here may be contracted or reordered.
 */
#include "../_support/_python.h"

#include "../counting/_axes.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 256 /* pixels that are counted at once */
#define HALF_ONE 0x3C00
#define UNITS 16777216.0          /* of a top score: 2^24 */
#define ROUND_DOUBLE 4503599627370496.0 /* 2^52 added and taken off rounds to an integer */
#define ROUND_FLOAT 12582912.0f   /* as 1.5 * 2^23 does */

typedef enum { FLOAT16, BFLOAT16, FLOAT32, FLOAT64, UINT8, UINT16, BOOL } Kind;
typedef enum { NONE, SOFTMAX, SIGMOID } Activation;

static const char *const kinds[] = {"float16", "bfloat16", "float32", "float64",
                                    "uint8",   "uint16",   "bool"};
static const Py_ssize_t sizes[] = {2, 2, 4, 8, 1, 2, 1};

typedef struct {
    Axes axes; /* of the scores of a class, and of the codes */
    const char *scores, *codes;
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

typedef struct {
    size_t n;
    int is_dense;        /* all pixels are valid, and their scores lie side by side */
    ptrdiff_t at[BLOCK]; /* where the scores of the valid pixels are */
    int32_t code[BLOCK], bin[BLOCK], key[BLOCK];
    double score[BLOCK], best[BLOCK], best_class[BLOCK];
    float largest[BLOCK], total[BLOCK];
    uint8_t is_nan[BLOCK];
    float *raised; /* softmax: (C, BLOCK) */
} Block;

#if defined(__x86_64__) && defined(__GNUC__)
#define HAS_AVX2
#define INLINE static inline __attribute__((always_inline)) /* into walk_avx2 as well */
#else
#define INLINE static inline
#endif

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

#define LOOP(type, place, value)                                                               \
    for (size_t i = 0; i < n; i++) {                                                           \
        type x;                                                                                \
        memcpy(&x, place, sizeof x);                                                           \
        to[i] = (value);                                                                       \
    }
#define LOAD(type, value)                                                                      \
    if (block->is_dense)                                                                       \
        LOOP(type, first + i * sizeof x, value)                                                \
    else                                                                                       \
        LOOP(type, from + block->at[i], value)                                                 \
    break

/* The scores of one class as doubles; of integers, the largest is 1. */
INLINE void load(const Work *work, Block *block, const char *row, size_t c)
{
    const char *from = row + (ptrdiff_t)c * work->class_stride, *first = from + block->at[0];
    double *to = block->score;
    size_t n = block->n;
    switch (work->kind) {
    case FLOAT16: LOAD(uint16_t, (double)from_half(x));
    case BFLOAT16: LOAD(uint16_t, (double)float_of((uint32_t)x << 16));
    case FLOAT32: LOAD(float, (double)x);
    case FLOAT64: LOAD(double, x);
    case UINT8: LOAD(uint8_t, x / 255.0);
    case UINT16: LOAD(uint16_t, x / 65535.0);
    case BOOL: LOAD(uint8_t, (double)(x != 0));
    }
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

INLINE void find_bins(const Work *work, Block *block)
{
    const double *score = block->score;
    if (!work->is_half) {
        double bins = work->bins;
        int32_t last = work->bins - 1;
        for (size_t i = 0; i < block->n; i++) {
            int32_t found = (int32_t)(score[i] * bins);
            block->bin[i] = found < last ? found : last;
        }
        return;
    }
    for (size_t i = 0; i < block->n; i++) {
        uint64_t bits;
        memcpy(&bits, &score[i], sizeof bits);
        bits += 0x1FFFFFFFFFF + (bits >> 42 & 1);
        int32_t normal = (int32_t)(bits >> 42) - (1008 << 10);
        int32_t small = (int32_t)((score[i] * UNITS + ROUND_DOUBLE) - ROUND_DOUBLE);
        block->bin[i] = score[i] < 6.103515625e-05 ? small : normal;
    }
}

/* Neighbours often share a cell, and adding to it again and again would wait for itself. */
INLINE void add_keys(const int32_t *key, size_t n, int64_t *cells)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        int32_t first = key[i], differ = 0;
        for (size_t k = 1; k < 8; k++)
            differ |= key[i + k] ^ first;
        if (!differ) {
            cells[first] += 8;
            continue;
        }
        for (size_t k = 0; k < 8; k++)
            cells[key[i + k]]++;
    }
    for (; i < n; i++)
        cells[key[i]]++;
}

/* Scores outside [0, 1] and NaN become 0: their counts are not used. */
INLINE void check(Work *work, Block *block)
{
    int64_t right = 1;
    for (size_t i = 0; i < block->n; i++)
        right &= (int64_t)(block->score[i] >= 0.0) & (int64_t)(block->score[i] <= 1.0);
    if (right)
        return;
    for (size_t i = 0; i < block->n; i++) {
        double score = block->score[i];
        block->is_nan[i] |= score != score;
        work->outside += score < 0.0 || score > 1.0;
        block->score[i] = score >= 0.0 && score <= 1.0 ? score : 0.0;
    }
}

/* Logits → scores in float32, kept as doubles; `raised` are those of softmax before division. */
INLINE void activate(const Work *work, Block *block, const float *raised)
{
    if (work->activation == SIGMOID)
        for (size_t i = 0; i < block->n; i++) {
            float x = (float)block->score[i], e = raise(x < 0.0f ? x : -x);
            block->score[i] = (double)((x >= 0.0f ? 1.0f : e) / (1.0f + e));
        }
    else if (work->activation == SOFTMAX)
        for (size_t i = 0; i < block->n; i++)
            block->score[i] = (double)((raised ? raised[i] : 1.0f) / block->total[i]);
}

INLINE void raise_all(const Work *work, Block *block, const char *row)
{
    size_t n = block->n;
    memset(block->total, 0, sizeof block->total);
    for (size_t c = 0; c < work->classes; c++) {
        float *plane = block->raised + c * BLOCK;
        load(work, block, row, c);
        for (size_t i = 0; i < n; i++)
            plane[i] = (float)block->score[i];
        for (size_t i = 0; i < n; i++)
            block->largest[i] =
                c == 0 || plane[i] > block->largest[i] ? plane[i] : block->largest[i];
    }
    for (size_t c = 0; c < work->classes; c++) {
        float *plane = block->raised + c * BLOCK;
        for (size_t i = 0; i < n; i++)
            block->total[i] += plane[i] = raise(plane[i] - block->largest[i]);
    }
}

INLINE void count_block(Work *work, Block *block, const char *row)
{
    size_t n = block->n, width = 2 * (size_t)work->bins;
    memset(block->is_nan, 0, sizeof block->is_nan);
    if (work->activation == SOFTMAX)
        raise_all(work, block, row);
    for (size_t c = 0; c < work->classes; c++) {
        load(work, block, row, c);
        double own = (double)c, none = c == 0 ? 1.0 : 0.0;
        for (size_t i = 0; i < n; i++) { /* the first of the highest, before the activation */
            double score = block->score[i], best = block->best[i];
            int64_t is_best = (int64_t)(score > best) | (int64_t)(none > 0.0);
            block->best[i] = is_best ? score : best;
            block->best_class[i] = is_best ? own : block->best_class[i];
        }
        activate(work, block, block->raised + c * BLOCK);
        check(work, block);
        find_bins(work, block);
        for (size_t i = 0; i < n; i++)
            block->key[i] = 2 * block->bin[i] + (block->code[i] == (int32_t)c);
        add_keys(block->key, n, work->cells + c * width);
    }
    int64_t *top = work->cells + work->classes * width, *sums = top + width, outside = work->outside;
    memcpy(block->score, block->best, sizeof block->score);
    activate(work, block, NULL); /* the highest logit is raised to 1 */
    check(work, block);
    work->outside = outside; /* counted above */
    find_bins(work, block);
    for (size_t i = 0; i < n; i++) {
        block->key[i] = 2 * block->bin[i] + ((int32_t)block->best_class[i] == block->code[i]);
        double units = (block->score[i] * UNITS + ROUND_DOUBLE) - ROUND_DOUBLE;
        sums[2 * block->bin[i]] += (int64_t)units;
        work->nan += block->is_nan[i];
    }
    add_keys(block->key, n, top);
}

INLINE void walk(Work *work, Block *block)
{
    const char *rows[2] = {work->scores, work->codes};
    ptrdiff_t index[MAX_AXES] = {0}, length = row_length(&work->axes);
    ptrdiff_t steps[2] = {row_stride(&work->axes, 0), row_stride(&work->axes, 1)};
    int64_t *ignored = work->cells + (work->classes + 1) * 2 * (size_t)work->bins + 1;
    do {
        for (ptrdiff_t start = 0; start < length; start += BLOCK) {
            ptrdiff_t n = length - start < BLOCK ? length - start : BLOCK;
            block->n = 0;
            for (ptrdiff_t i = start; i < start + n; i++) {
                uint16_t code;
                memcpy(&code, rows[1] + i * steps[1], sizeof code);
                block->code[block->n] = code;
                block->at[block->n] = i * steps[0];
                block->n += code < work->limit;
            }
            *ignored += n - (ptrdiff_t)block->n;
            block->is_dense = block->n == (size_t)n && steps[0] == sizes[work->kind];
            if (block->n)
                count_block(work, block, rows[0]);
        }
    } while (next_row(&work->axes, index, rows));
}

#ifdef HAS_AVX2
__attribute__((target("avx2"))) static void walk_avx2(Work *work, Block *block)
{
    walk(work, block);
}
#endif

static void walk_any(Work *work, Block *block)
{
#ifdef HAS_AVX2
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        walk_avx2(work, block);
        return;
    }
#endif
    walk(work, block);
}

static int run(Work *work)
{
    Block *block = calloc(1, sizeof *block);
    float *raised = malloc((work->activation == SOFTMAX ? work->classes : 1) * BLOCK * sizeof(float));
    int is_there = block != NULL && raised != NULL;
    if (is_there) {
        block->raised = raised;
        walk_any(work, block);
    }
    free(raised);
    free(block);
    return is_there;
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
        work->axes.strides[1][axis] = codes->strides[axis];
    }
    if (!fits) {
        PyErr_SetString(PyExc_ValueError, "scores, codes and cells do not fit each other");
        return -1;
    }
    work->axes.ndim = ndim, work->axes.arrays = 2;
    work->kind = (Kind)found;
    work->scores = scores->buf, work->codes = codes->buf, work->cells = cells->buf;
    work->classes = (size_t)scores->shape[0];
    work->class_stride = scores->strides[0];
    work->bins = (int32_t)cells->shape[1];
    return 0;
}

static PyObject *count_scores(PyObject *self, PyObject *args)
{
    (void)self;
    PyObject *given[3], *found = NULL;
    const char *kind;
    int activation;
    Work work = {0};
    if (!PyArg_ParseTuple(args, "OsOOIpi:count_scores", &given[0], &kind, &given[1], &given[2],
                          &work.limit, &work.is_half, &activation))
        return NULL;
    work.activation = (Activation)activation;
    Py_buffer scores = {0}, codes = {0}, cells = {0};
    if (PyObject_GetBuffer(given[0], &scores, PyBUF_STRIDES) == 0 &&
        PyObject_GetBuffer(given[1], &codes, PyBUF_STRIDES) == 0 &&
        PyObject_GetBuffer(given[2], &cells, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) == 0 &&
        read_arrays(&work, &scores, &codes, &cells, kind) == 0) {
        int is_done = 1;
        Py_BEGIN_ALLOW_THREADS
        if (!is_empty(&work.axes)) {
            merge_axes(&work.axes);
            is_done = run(&work);
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
     "count_scores(scores, kind, codes, cells, limit, is_half, activation, /) -> (int, int)\n--\n\n"
     "Add scores to cells; returns pixels with a NaN score, and scores outside [0, 1]."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {SLOTS_WITHOUT_STATE};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "segiou.histograms._scores_by_bin",
    .m_doc = "Histograms of scores at memory speed.", .m_size = 0,
    .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__scores_by_bin(void) { return PyModuleDef_Init(&module); }
