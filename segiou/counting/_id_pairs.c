/* Pixels of each pair of ids: a table of the pairs that occur, filled run by run.
 *
 * Objects are large, so most pixels have the pair of the pixel before them, and the time goes into
 * finding where a run of equal pairs ends. Only then is the table asked: a small hash first. Noise
 * has many pairs: then a dense table takes over, if the ids span few enough values, or the caller
 * sorts. Ids are compared as bits, whatever their sign.
 */
#include "../_support/_python.h"

#include "../_support/_bytes.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PART 32768              /* ids between looks at the number of pairs */
#define MANY_PAIRS 2048         /* more of them leave the caches */
#define TOO_MANY 30000          /* without a dense table, sorting is faster */
#define DENSE ((size_t)1 << 23) /* cells of four bytes */

typedef struct {
    uint64_t truth, pred, pixels; /* no pixels: a free slot */
} Slot;

typedef struct {
    Slot *slots;
    size_t mask, used; /* slots are a power of two: mask is one less */
    int shift;
} Hash;

/* A side as the caller gave it. */
typedef struct {
    const char *ids;
    int size, is_signed;
} Side;

typedef struct {
    Hash hash;
    uint32_t *dense; /* once there are many pairs: pixels of (truth - low, pred - low) */
    uint32_t low[2];
    size_t rows, cols;
    int is_dense_tried, has_large; /* ids of more than 32 bits */
    const Side *truth, *pred;
} Table;

typedef enum { DONE, NO_MEMORY, TOO_LARGE, SORT } Outcome;

static size_t slot_of(const Hash *hash, uint64_t truth, uint64_t pred)
{
    uint64_t mixed = truth * 0x9E3779B97F4A7C15u ^ pred * 0xD6E8FEB86659FD93u;
    size_t at = (size_t)(mixed >> hash->shift);
    while (hash->slots[at].pixels &&
           (hash->slots[at].truth != truth || hash->slots[at].pred != pred))
        at = (at + 1) & hash->mask;
    return at;
}

/* Four times as many slots; false if memory does not suffice, and then nothing has changed. */
static int grow(Hash *hash)
{
    size_t count = hash->slots ? 4 * (hash->mask + 1) : 1024;
    Hash larger = {calloc(count, sizeof(Slot)), count - 1, hash->used, 64};
    if (!larger.slots)
        return 0;
    for (size_t rest = count; rest > 1; rest /= 2)
        larger.shift--;
    for (size_t i = 0; hash->slots && i <= hash->mask; i++) {
        const Slot *slot = &hash->slots[i];
        if (slot->pixels)
            larger.slots[slot_of(&larger, slot->truth, slot->pred)] = *slot;
    }
    free(hash->slots);
    *hash = larger;
    return 1;
}

/* The dense counter of a pair; NULL outside its span, which another thread may have changed. */
static uint32_t *dense_cell(const Table *table, uint64_t truth, uint64_t pred)
{
    size_t row = (uint32_t)truth - table->low[0], col = (uint32_t)pred - table->low[1];
    if (row >= table->rows || col >= table->cols)
        return NULL;
    return table->dense + row * table->cols + col;
}

/* Whether an id needs more than 32 bits. */
static int is_large(const Side *side, uint64_t id)
{
    return side->size == 8 && (id + ((uint64_t)side->is_signed << 31)) >> 32 != 0;
}

static int add_dense(Table *table, uint64_t truth, uint64_t pred, size_t pixels)
{
    uint32_t *cell = table->has_large ? NULL : dense_cell(table, truth, pred);
    table->has_large |= cell == NULL;
    if (cell)
        *cell += (uint32_t)pixels;
    return cell != NULL;
}

static int add(Table *table, uint64_t truth, uint64_t pred, size_t pixels)
{
    table->has_large |= is_large(table->truth, truth) || is_large(table->pred, pred);
    if (table->dense)
        return add_dense(table, truth, pred, pixels);
    Hash *hash = &table->hash;
    Slot *slot = &hash->slots[slot_of(hash, truth, pred)];
    hash->used += slot->pixels == 0;
    slot->truth = truth;
    slot->pred = pred;
    slot->pixels += pixels;
    return 2 * hash->used <= hash->mask || grow(hash);
}

#define DEFINE_SPAN(BITS)                                                                          \
    static void span_##BITS(const void *ids, size_t length, uint32_t *low, size_t *span)           \
    {                                                                                              \
        const uint##BITS##_t *from = ids;                                                          \
        uint32_t least = UINT32_MAX, most = 0;                                                     \
        for (size_t i = 0; i < length; i++) {                                                      \
            uint32_t id = (uint32_t)from[i];                                                       \
            least = id < least ? id : least;                                                       \
            most = id > most ? id : most;                                                          \
        }                                                                                          \
        *low = least;                                                                              \
        *span = (size_t)(most - least) + 1;                                                        \
    }

DEFINE_SPAN(8)
DEFINE_SPAN(16)
DEFINE_SPAN(32)
DEFINE_SPAN(64)

static void find_span(const Side *side, size_t length, uint32_t *low, size_t *span)
{
    switch (side->size) {
    case 1: span_8(side->ids, length, low, span); break;
    case 2: span_16(side->ids, length, low, span); break;
    case 4: span_32(side->ids, length, low, span); break;
    default: span_64(side->ids, length, low, span); break;
    }
}

/* Moves the hash into a dense table if the ids span few enough values; false if it is in vain. */
static int make_dense(Table *table, size_t length)
{
    table->is_dense_tried = 1;
    if (length >= UINT32_MAX || table->has_large)
        return 1;
    find_span(table->truth, length, &table->low[0], &table->rows);
    find_span(table->pred, length, &table->low[1], &table->cols);
    if (table->rows > DENSE || table->cols > DENSE || table->rows * table->cols > DENSE)
        return 1;
    table->dense = calloc(table->rows * table->cols, sizeof(uint32_t));
    if (!table->dense)
        return 1;
    Hash *hash = &table->hash;
    int done = 1;
    for (size_t i = 0; done && i <= hash->mask; i++)
        if (hash->slots[i].pixels)
            done = add_dense(table, hash->slots[i].truth, hash->slots[i].pred,
                             (size_t)hash->slots[i].pixels);
    hash->used = 0;
    return done;
}

static inline uint64_t load_id(const char *ids, size_t i, size_t size)
{
    switch (size) {
    case 1: return ((const uint8_t *)ids)[i];
    case 2: return ((const uint16_t *)ids)[i];
    case 4: return ((const uint32_t *)ids)[i];
    default: return ((const uint64_t *)ids)[i];
    }
}

/* A bit for each of 64 / least ids from the i-th on that differs from the one before it. */
ALWAYS_INLINED uint64_t changed_ids(const char *ids, size_t i, size_t size, size_t least,
                                    int fetches)
{
    const uint8_t *at = (const uint8_t *)ids + i * size;
    uint64_t changes = 0;
    for (size_t k = 0; k < size / least; k++, at += 64) {
        if (fetches)
            FETCH_AHEAD(at);
        uint64_t bytes = differ64(at, at - size);
        if (bytes)
            changes |= join_bits(bytes, size) << (64 / size * k);
    }
    return changes;
}

/* In noise, most blocks are taken for one change per pixel: finding the changes takes longer. */
ALWAYS_INLINED int count_runs(Table *table, const char *truth, size_t truth_size,
                              const char *pred, size_t pred_size, size_t length)
{
    const size_t least = truth_size < pred_size ? truth_size : pred_size, step = 64 / least;
    const int fetches = FETCHES_AHEAD;
    uint64_t t = load_id(truth, 0, truth_size), p = load_id(pred, 0, pred_size);
    size_t start = 0;
    unsigned noisy_blocks = 0; /* from here on, presumably */
    for (size_t i = 1; i < length; i += step) {
        uint64_t changes = UINT64_MAX >> (64 - step);
        if (i + step > length) {
            changes >>= i + step - length;
        } else if (noisy_blocks) {
            noisy_blocks--;
        } else {
            changes = changed_ids(truth, i, truth_size, least, fetches) |
                      changed_ids(pred, i, pred_size, least, fetches);
            noisy_blocks = changes && count_ones(changes) > step / 2 ? 7 : 0;
        }
        for (; changes; changes &= changes - 1) {
            size_t at = i + lowest_bit(changes);
            if (!add(table, t, p, at - start))
                return 0;
            t = load_id(truth, at, truth_size);
            p = load_id(pred, at, pred_size);
            start = at;
        }
    }
    return add(table, t, p, length - start);
}

#define DEFINE_COUNT(T, P)                                                                         \
    static int count_##T##_##P(Table *table, const char *truth, const char *pred, size_t length)    \
    {                                                                                              \
        return count_runs(table, truth, T, pred, P, length);                                       \
    }
#define DEFINE_COUNTS(T) DEFINE_COUNT(T, 1) DEFINE_COUNT(T, 2) DEFINE_COUNT(T, 4) DEFINE_COUNT(T, 8)
DEFINE_COUNTS(1)
DEFINE_COUNTS(2)
DEFINE_COUNTS(4)
DEFINE_COUNTS(8)

typedef int (*Count)(Table *, const char *, const char *, size_t);

#define ROW(T) {count_##T##_1, count_##T##_2, count_##T##_4, count_##T##_8}
static const Count COUNTS[4][4] = {ROW(1), ROW(2), ROW(4), ROW(8)};

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

static Outcome count(Table *table, size_t length)
{
    const Side *truth = table->truth, *pred = table->pred;
    Count count_part = COUNTS[width_index(truth->size)][width_index(pred->size)];
    if (!grow(&table->hash))
        return NO_MEMORY;
    for (size_t at = 0; at < length; at += PART) {
        size_t n = length - at < PART ? length - at : PART;
        if (!count_part(table, truth->ids + at * (size_t)truth->size,
                        pred->ids + at * (size_t)pred->size, n))
            return table->dense ? TOO_LARGE : NO_MEMORY;
        if (table->hash.used > MANY_PAIRS && !table->is_dense_tried && !make_dense(table, length))
            return TOO_LARGE;
        if (table->hash.used > TOO_MANY && table->hash.used > at / 8)
            return table->has_large ? TOO_LARGE : SORT;
    }
    return DONE;
}

/* An id of a dense table as its side has it: 32 bits, extended by the sign of 64-bit ids. */
static uint64_t whole_id(const Side *side, uint32_t id)
{
    if (side->size == 8 && side->is_signed)
        return (uint64_t)(int64_t)(int32_t)id;
    return id;
}

/* The pairs as bytes: truth, pred and pixels of each. */
static PyObject *as_bytes(const Table *table)
{
    const Hash *hash = &table->hash;
    size_t cells = table->dense ? table->rows * table->cols : 0, used = hash->used;
    for (size_t i = 0; i < cells; i++)
        used += table->dense[i] != 0;
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(used * sizeof(Slot)));
    if (!found)
        return NULL;
    Slot *out = (Slot *)PyBytes_AsString(found);
    for (size_t i = 0; i < cells; i++)
        if (table->dense[i]) {
            uint32_t truth = table->low[0] + (uint32_t)(i / table->cols);
            uint32_t pred = table->low[1] + (uint32_t)(i % table->cols);
            *out++ = (Slot){whole_id(table->truth, truth), whole_id(table->pred, pred),
                            table->dense[i]};
        }
    for (size_t i = 0; !cells && i <= hash->mask; i++)
        if (hash->slots[i].pixels)
            *out++ = hash->slots[i];
    return found;
}

static int is_side(const Py_buffer *view, Py_ssize_t size)
{
    return width_index(size) >= 0 && view->len % size == 0 &&
           (uintptr_t)view->buf % (size_t)size == 0;
}

static PyObject *count_pairs(PyObject *self, PyObject *args)
{
    (void)self;
    Py_buffer views[2];
    Py_ssize_t sizes[2];
    int is_signed[2];
    if (!PyArg_ParseTuple(args, "y*npy*np:count_pairs", &views[0], &sizes[0], &is_signed[0],
                          &views[1], &sizes[1], &is_signed[1]))
        return NULL;
    PyObject *result = NULL;
    if (!is_side(&views[0], sizes[0]) || !is_side(&views[1], sizes[1]) ||
        views[0].len / sizes[0] != views[1].len / sizes[1])
        PyErr_SetString(PyExc_ValueError, "both sides must hold as many aligned integers");
    else {
        Side truth = {views[0].buf, (int)sizes[0], is_signed[0]};
        Side pred = {views[1].buf, (int)sizes[1], is_signed[1]};
        Table table = {.truth = &truth, .pred = &pred};
        Outcome outcome;
        Py_BEGIN_ALLOW_THREADS
        outcome = count(&table, (size_t)(views[0].len / sizes[0]));
        Py_END_ALLOW_THREADS
        if (outcome == DONE)
            result = as_bytes(&table);
        else if (outcome == NO_MEMORY)
            PyErr_NoMemory();
        else
            result = PyBool_FromLong(outcome == SORT);
        free(table.hash.slots);
        free(table.dense);
    }
    PyBuffer_Release(&views[0]);
    PyBuffer_Release(&views[1]);
    return result;
}

static PyMethodDef methods[] = {
    {"count_pairs", count_pairs, METH_VARARGS,
     "count_pairs(truth, truth_size, truth_is_signed, pred, pred_size, pred_is_signed)\n--\n\n"
     "Count the pairs of ids of two buffers of integers. The answer is bytes of three 64-bit\n"
     "numbers for each pair that occurs: both ids as bits, and the pixels. If there are so many\n"
     "pairs that sorting is faster, it is True, or False if an id needs more than 32 bits."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_id_pairs, "Pixels of each pair of ids.")
