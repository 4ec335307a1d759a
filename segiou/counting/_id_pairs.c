/* How often each pair of ids occurs: a table of the pairs that do, filled run by run.
 *
 * Objects are large, so that most pixels have the pair of the pixel before them: what costs is
 * finding where a run of equal pairs ends. Only then is the table asked. Ids are compared as
 * bits, whatever their sign.
 */
#include "../_support/_python.h"

#include <stdint.h>
#include <stdlib.h>

#define BLOCK 32 /* ids that are compared at once */

typedef struct {
    uint64_t truth, pred, pixels; /* no pixels: a free slot */
} Slot;

typedef struct {
    Slot *slots;
    size_t mask, used; /* slots are a power of two: mask is one less */
} Table;

static size_t slot_of(const Table *table, uint64_t truth, uint64_t pred)
{
    uint64_t hash = (truth * 0x9E3779B97F4A7C15u) ^ (pred + 0x632BE59BD9B4E019u);
    hash *= 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93u;
    size_t at = (size_t)(hash >> 16) & table->mask;
    while (table->slots[at].pixels &&
           (table->slots[at].truth != truth || table->slots[at].pred != pred))
        at = (at + 1) & table->mask;
    return at;
}

/* Twice as many slots; false where memory does not suffice, and then nothing has changed. */
static int grow(Table *table)
{
    size_t count = table->slots ? 2 * (table->mask + 1) : 1024;
    Table larger = {calloc(count, sizeof(Slot)), count - 1, table->used};
    if (!larger.slots)
        return 0;
    for (size_t i = 0; table->slots && i <= table->mask; i++) {
        const Slot *slot = &table->slots[i];
        if (slot->pixels)
            larger.slots[slot_of(&larger, slot->truth, slot->pred)] = *slot;
    }
    free(table->slots);
    *table = larger;
    return 1;
}

static int add(Table *table, uint64_t truth, uint64_t pred, uint64_t pixels)
{
    if ((!table->slots || 2 * table->used > table->mask) && !grow(table))
        return 0;
    Slot *slot = &table->slots[slot_of(table, truth, pred)];
    table->used += slot->pixels == 0;
    slot->truth = truth;
    slot->pred = pred;
    slot->pixels += pixels;
    return 1;
}

/* Defines the count of two arrays of given types. */
#define DEFINE_COUNT(NAME, T, P)                                                                   \
    static int NAME(Table *table, const void *truth_ids, const void *pred_ids, size_t length)      \
    {                                                                                              \
        const T *truth = truth_ids;                                                                \
        const P *pred = pred_ids;                                                                  \
        size_t start = 0;                                                                          \
        while (start < length) {                                                                   \
            T t = truth[start];                                                                    \
            P p = pred[start];                                                                     \
            size_t i = start + 1, near = i + 8 < length ? i + 8 : length;                          \
            while (i < near && truth[i] == t && pred[i] == p)                                      \
                i++;                                                                               \
            if (i == near) {                                                                       \
                for (; i + BLOCK <= length; i += BLOCK) {                                          \
                    T in_truth = 0;                                                                \
                    P in_pred = 0;                                                                 \
                    for (size_t k = 0; k < BLOCK; k++)                                             \
                        in_truth |= truth[i + k] ^ t;                                              \
                    for (size_t k = 0; k < BLOCK; k++)                                             \
                        in_pred |= pred[i + k] ^ p;                                                \
                    if (in_truth | in_pred)                                                        \
                        break;                                                                     \
                }                                                                                  \
                while (i < length && truth[i] == t && pred[i] == p)                                \
                    i++;                                                                           \
            }                                                                                      \
            if (!add(table, t, p, i - start))                                                      \
                return 0;                                                                          \
            start = i;                                                                             \
        }                                                                                          \
        return 1;                                                                                  \
    }

#define DEFINE_COUNTS(BITS)                                                                        \
    DEFINE_COUNT(count_##BITS##_8, uint##BITS##_t, uint8_t)                                        \
    DEFINE_COUNT(count_##BITS##_16, uint##BITS##_t, uint16_t)                                      \
    DEFINE_COUNT(count_##BITS##_32, uint##BITS##_t, uint32_t)                                      \
    DEFINE_COUNT(count_##BITS##_64, uint##BITS##_t, uint64_t)

DEFINE_COUNTS(8)
DEFINE_COUNTS(16)
DEFINE_COUNTS(32)
DEFINE_COUNTS(64)

typedef int (*Count)(Table *, const void *, const void *, size_t);

#define ROW(BITS) {count_##BITS##_8, count_##BITS##_16, count_##BITS##_32, count_##BITS##_64}
static const Count COUNTS[4][4] = {ROW(8), ROW(16), ROW(32), ROW(64)};

/* 1, 2, 4, 8 bytes: 0, 1, 2, 3; anything else: -1. */
static int width_index(Py_ssize_t itemsize)
{
    switch (itemsize) {
    case 1: return 0;
    case 2: return 1;
    case 4: return 2;
    case 8: return 3;
    default: return -1;
    }
}

/* The used slots as bytes: truth, pred and pixels of each. */
static PyObject *as_bytes(const Table *table)
{
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(table->used * sizeof(Slot)));
    if (!found)
        return NULL;
    Slot *out = (Slot *)PyBytes_AsString(found);
    for (size_t i = 0; table->slots && i <= table->mask; i++)
        if (table->slots[i].pixels)
            *out++ = table->slots[i];
    return found;
}

static PyObject *count_pairs(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer truth, pred;
    Py_ssize_t truth_size, pred_size;
    if (!PyArg_ParseTuple(args, "y*ny*n:count_pairs", &truth, &truth_size, &pred, &pred_size))
        return NULL;
    PyObject *result = NULL;
    int row = width_index(truth_size), column = width_index(pred_size);
    if (row < 0 || column < 0 || truth.len % truth_size || pred.len % pred_size ||
        truth.len / truth_size != pred.len / pred_size || (uintptr_t)truth.buf % (size_t)truth_size ||
        (uintptr_t)pred.buf % (size_t)pred_size)
        PyErr_SetString(PyExc_ValueError, "both sides must hold as many aligned integers");
    else {
        Table table = {NULL, 0, 0};
        int done;
        Py_BEGIN_ALLOW_THREADS
        done = COUNTS[row][column](&table, truth.buf, pred.buf, (size_t)(truth.len / truth_size));
        Py_END_ALLOW_THREADS
        result = done ? as_bytes(&table) : PyErr_NoMemory();
        free(table.slots);
    }
    PyBuffer_Release(&truth);
    PyBuffer_Release(&pred);
    return result;
}

static PyMethodDef methods[] = {
    {"count_pairs", count_pairs, METH_VARARGS,
     "count_pairs(truth, truth_size, pred, pred_size) -> bytes\n--\n\n"
     "Count the pairs of ids of two buffers of integers of so many bytes; the answer holds, for\n"
     "each pair that occurs, three 64-bit numbers: both ids as bits, and the pixels."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef_Slot slots[] = {SLOTS_WITHOUT_STATE};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, .m_name = "_id_pairs",
    .m_doc = "Pixels of each pair of ids.", .m_size = 0,
    .m_methods = methods, .m_slots = slots,
};

PyMODINIT_FUNC PyInit__id_pairs(void) { return PyModuleDef_Init(&module); }
