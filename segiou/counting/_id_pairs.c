/* Pixels of each pair of ids: a table of the pairs that occur, filled run by run.
 *
 * Objects are large, so most pixels have the pair of the pixel before them, and most time is spent
 * on finding where a run of equal pairs ends. Each run is then added to a hash table. In noise,
 * runs are too short to be worth finding, so pixels are counted one by one in a dense table, if the
 * ids span few enough values. If there are very many pairs, the caller sorts. Ids are compared as
 * bits, regardless of their sign.
 */
#include "../_support/_python.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 2048              /* bytes of the wider side that are counted at once: AHEAD, so
                                 * that each side's next ones are fetched before the other's */
#define FEW_PAIRS 2048          /* more of them leave the caches */
#define DENSE ((size_t)1 << 23) /* cells of four bytes */
#define OUTSIDE (2 * DENSE)     /* no cell, also when another place is added */

/* A side as the caller passed it, and the range of its ids. */
typedef struct {
    const char *ids;
    size_t size;         /* bytes of an id */
    uint64_t sign, mask; /* its bit, if ids have one; and all bits of an id */
    uint64_t low, last;  /* the lowest id, and how far the highest is from it */
} Side;

static const void *ids_from(const Side *side, size_t at) { return side->ids + at * side->size; }

/* Functions for the instruction set at hand; those of one side for ids of 1, 2, 4 and 8 bytes. */
typedef struct {
    const char *name;
    /* Sets bits of n pixels: of the last of each run of equal pairs. */
    void (*mark_ends)(const Side *truth, const Side *pred, size_t at, size_t n, uint64_t *marks);
    /* Adds scale times how far an id is from the lowest, or OUTSIDE if it is past the highest. */
    void (*place[9])(const void *ids, size_t n, const Side *side, uint32_t scale,
                     uint32_t *restrict cells);
    /* Finds the lowest and the highest id. */
    void (*span[9])(const void *ids, size_t n, Side *side);
} Loops;

#define LOOPS_FILE "../counting/_id_pairs_loops.h"
#include "../_support/_loops.h"

typedef struct {
    uint64_t truth, pred, pixels; /* no pixels: a free slot */
} Slot;

typedef struct {
    Slot *slots;
    size_t size, used, most; /* a power of two; pairs: now, and before there must be more slots */
    int shift;
} Hash;

typedef struct {
    Side truth, pred;
    size_t length, noise; /* pixels: all, and those of noisy blocks until the ids are measured */
    const Loops *loops;
    Hash hash;              /* of the pairs that have no cell */
    uint32_t *dense;        /* pixels of (truth - low, pred - low), if there is noise */
    size_t cells, cols;
    int is_noise, is_measured; /* the last block; the lowest and highest ids are known */
} Table;

typedef enum { DONE, NO_MEMORY, SORT } Outcome;

static Slot *find_slot(const Hash *hash, uint64_t truth, uint64_t pred)
{
    uint64_t mixed = truth * 0x9E3779B97F4A7C15u ^ pred * 0xD6E8FEB86659FD93u;
    Slot *slot = &hash->slots[mixed >> hash->shift];
    while (((slot->truth ^ truth) | (slot->pred ^ pred)) && slot->pixels)
        slot = slot + 1 < hash->slots + hash->size ? slot + 1 : hash->slots;
    return slot;
}

/* The cell of a pair; NULL if there is none. */
static uint32_t *find_cell(const Table *table, uint64_t truth, uint64_t pred)
{
    if (!table->dense)
        return NULL;
    uint64_t row = (truth - table->truth.low) & table->truth.mask;
    uint64_t col = (pred - table->pred.low) & table->pred.mask;
    if (row > table->truth.last || col > table->pred.last)
        return NULL;
    return table->dense + (size_t)row * table->cols + (size_t)col;
}

/* False if there should be more slots now. */
static int put(Table *table, uint64_t truth, uint64_t pred, uint64_t pixels)
{
    uint32_t *cell = find_cell(table, truth, pred);
    if (cell) {
        *cell += (uint32_t)pixels;
        return 1;
    }
    Slot *slot = find_slot(&table->hash, truth, pred);
    if (slot->pixels) {
        slot->pixels += pixels;
        return 1;
    }
    *slot = (Slot){truth, pred, pixels};
    return ++table->hash.used < table->hash.most;
}

/* Moves the pairs to so many slots, or to their cells; false if memory does not suffice. */
static int rehash(Table *table, size_t size)
{
    Hash old = table->hash;
    Slot *slots = calloc(size, sizeof(Slot));
    if (!slots)
        return 0;
    table->hash = (Hash){slots, size, 0, size > 4096 ? size / 2 : size / 4, 64};
    for (; size > 1; size /= 2)
        table->hash.shift--;
    for (size_t i = 0; i < old.size; i++)
        if (old.slots[i].pixels)
            put(table, old.slots[i].truth, old.slots[i].pred, old.slots[i].pixels);
    free(old.slots);
    return 1;
}

static int add(Table *table, uint64_t truth, uint64_t pred, uint64_t pixels)
{
    return put(table, truth, pred, pixels) || rehash(table, 4 * table->hash.size);
}

/* Counts n pixels run by run; false if memory does not suffice. */
static int count_runs(Table *table, size_t at, size_t n)
{
    uint64_t marks[BLOCK / 64 + 1] = {0};
    size_t runs = 0, start = at;
    const Side truth = table->truth, pred = table->pred; /* copies stay in registers */
    table->loops->mark_ends(&truth, &pred, at, n, marks);
    for (size_t i = 0; i < n; i += 64)
        for (uint64_t bits = marks[i / 64]; bits; bits &= bits - 1) {
            size_t last = at + i + lowest_bit(bits);
            if (!add(table, load_number(truth.ids, last, truth.size),
                     load_number(pred.ids, last, pred.size), last + 1 - start))
                return 0;
            start = last + 1;
            runs++;
        }
    table->is_noise = runs > n / 2;
    table->noise += table->is_noise ? n : 0;
    return 1;
}

/* Counts n pixels one by one in the dense table. Another thread may change ids meanwhile, so the
 * cells are checked, which only this thread can change. */
static int count_noise(Table *table, size_t at, size_t n)
{
    const Side *truth = &table->truth, *pred = &table->pred;
    uint32_t cells[BLOCK + 1], before = OUTSIDE;
    memset(cells, 0, n * sizeof *cells);
    table->loops->place[truth->size](ids_from(truth, at), n, truth, (uint32_t)table->cols, cells);
    table->loops->place[pred->size](ids_from(pred, at), n, pred, 1, cells);
    size_t runs = 0;
    for (size_t i = 0; i < n; i++) {
        runs += cells[i] != before;
        before = cells[i];
        if (before < table->cells)
            table->dense[before]++;
        else if (!add(table, load_number(truth->ids, at + i, truth->size),
                      load_number(pred->ids, at + i, pred->size), 1))
            return 0;
    }
    table->is_noise = runs > n / 2;
    return 1;
}

/* Finds how far the ids span, and makes a dense table if that is little for so many pixels. False
 * if memory does not suffice for a hash. */
static int measure(Table *table)
{
    Side *truth = &table->truth, *pred = &table->pred;
    size_t most = table->length < DENSE / 4 ? 4 * table->length : DENSE;
    table->loops->span[truth->size](truth->ids, table->length, truth);
    table->loops->span[pred->size](pred->ids, table->length, pred);
    table->is_measured = 1;
    if (table->length >= UINT32_MAX || truth->last >= most ||
        pred->last >= most / (truth->last + 1))
        return 1;
    size_t cols = (size_t)pred->last + 1, cells = cols * ((size_t)truth->last + 1);
    table->dense = calloc(cells, sizeof(uint32_t));
    if (!table->dense)
        return 1;
    table->cols = cols;
    table->cells = cells;
    /* Of the same size, since pairs keep no cell if another thread has changed their ids. */
    return rehash(table, table->hash.size);
}

/* Whether a pair of ids, above the lowest, may need more than 64 bits. */
static int is_wide(const Table *table)
{
    return table->truth.last > UINT32_MAX || table->pred.last > UINT32_MAX;
}

/* Whether the pairs are so many that sorting is faster, after so many pixels. */
static int has_many_pairs(const Table *table, size_t pixels)
{
    size_t used = table->hash.used, few = FEW_PAIRS + table->length / 256;
    return used > (is_wide(table) ? 16 * few : few) && used > pixels / 8;
}

static Outcome count(Table *table)
{
    size_t n, size = table->truth.size > table->pred.size ? table->truth.size : table->pred.size;
    const size_t block = BLOCK / size + 1; /* the last pixel always ends a run */
    if (!rehash(table, 1024))
        return NO_MEMORY;
    for (size_t at = 0; at < table->length; at += n) {
        n = table->length - at < block ? table->length - at : block;
        if (!(table->dense && table->is_noise ? count_noise : count_runs)(table, at, n))
            return NO_MEMORY;
        int is_slow = table->noise > table->length / 32 || table->hash.used > FEW_PAIRS;
        if (is_slow && !table->is_measured && !measure(table))
            return NO_MEMORY;
        if (has_many_pairs(table, at))
            return SORT;
    }
    return DONE;
}

/* The pairs as bytes of slots: those with cells in order, then the others; and one that means
 * nothing: every cell is stored, and kept if it has pixels, as noise would mislead a branch. */
static PyObject *as_bytes(const Table *table)
{
    const Hash *hash = &table->hash;
    size_t room = hash->used + 1;
    for (size_t i = 0; i < table->cells; i++)
        room += table->dense[i] != 0;
    PyObject *found = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)(room * sizeof(Slot)));
    if (!found)
        return NULL;
    Slot *out = (Slot *)PyBytes_AsString(found);
    for (size_t row = 0, i = 0; i < table->cells; row++)
        for (size_t col = 0; col < table->cols; col++, i++) {
            *out = (Slot){table->truth.low + row, table->pred.low + col, table->dense[i]};
            out += table->dense[i] != 0;
        }
    for (size_t i = 0; i < hash->size; i++)
        if (hash->slots[i].pixels)
            *out++ = hash->slots[i];
    return found;
}

/* A side of aligned integers of a width that has loops; false if it is not. */
static int open_side(Side *side, const Py_buffer *view, Py_ssize_t size, int is_signed)
{
    if (size < 1 || size > 8 || size & (size - 1) || view->len % size ||
        (uintptr_t)view->buf % (size_t)size)
        return 0;
    *side = (Side){.ids = view->buf, .size = (size_t)size};
    side->sign = (uint64_t)is_signed << (8 * size - 1);
    side->mask = UINT64_MAX >> (64 - 8 * size);
    return 1;
}

/* The answer for a table, which is freed. */
static PyObject *finish(Table *table, Outcome outcome)
{
    PyObject *result = NULL;
    if (outcome == NO_MEMORY)
        PyErr_NoMemory();
    else if (outcome == SORT)
        result = is_wide(table) ? Py_BuildValue("")
                                : Py_BuildValue("KK", table->truth.low, table->pred.low);
    else
        result = Py_BuildValue("NO", as_bytes(table), table->hash.used ? Py_False : Py_True);
    free(table->hash.slots);
    free(table->dense);
    return result;
}

/* One side as runs: the first pixel and the id of each. */
typedef struct {
    Py_buffer starts, ids;
} Runs;

static size_t stop_of(const Runs *runs, size_t run, size_t length)
{
    const uint32_t *starts = runs->starts.buf;
    return run + 1 < (size_t)runs->starts.len / sizeof *starts ? starts[run + 1] : length;
}

/* Counts where runs of both sides overlap. Starts that do not ascend give wrong counts, but every
 * step ends a run. */
static Outcome overlap(Table *table, const Runs *truth, const Runs *pred)
{
    const uint32_t *truth_ids = truth->ids.buf, *pred_ids = pred->ids.buf;
    size_t counts[] = {(size_t)truth->ids.len / 4, (size_t)pred->ids.len / 4}, t = 0, p = 0;
    if (!rehash(table, 1024))
        return NO_MEMORY;
    for (size_t at = 0; t < counts[0] && p < counts[1];) {
        size_t truth_stop = stop_of(truth, t, table->length);
        size_t pred_stop = stop_of(pred, p, table->length);
        size_t stop = truth_stop < pred_stop ? truth_stop : pred_stop;
        if (stop > at && !add(table, truth_ids[t], pred_ids[p], stop - at))
            return NO_MEMORY;
        t += truth_stop == stop;
        p += pred_stop == stop;
        at = stop;
    }
    return DONE;
}

static PyObject *count_overlaps(PyObject *Py_UNUSED(module), PyObject *args)
{
    Runs truth, pred;
    Py_ssize_t length;
    if (!PyArg_ParseTuple(args, "y*y*y*y*n:count_overlaps", &truth.starts, &truth.ids, &pred.starts,
                          &pred.ids, &length))
        return NULL;
    PyObject *result = NULL;
    Table table = {.length = (size_t)length};
    if (truth.starts.len != truth.ids.len || pred.starts.len != pred.ids.len)
        PyErr_SetString(PyExc_ValueError, "each side must have as many first pixels as ids");
    else {
        Outcome outcome;
        Py_BEGIN_ALLOW_THREADS
        outcome = overlap(&table, &truth, &pred);
        Py_END_ALLOW_THREADS
        result = finish(&table, outcome);
    }
    PyBuffer_Release(&truth.starts);
    PyBuffer_Release(&truth.ids);
    PyBuffer_Release(&pred.starts);
    PyBuffer_Release(&pred.ids);
    return result;
}

static PyObject *count_pairs(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer views[2];
    Py_ssize_t sizes[2];
    int is_signed[2];
    const char *name = NULL;
    if (!PyArg_ParseTuple(args, "y*npy*np|z:count_pairs", &views[0], &sizes[0], &is_signed[0],
                          &views[1], &sizes[1], &is_signed[1], &name))
        return NULL;
    PyObject *result = NULL;
    Table table = {.loops = find_loops(name)};
    if (!table.loops)
        PyErr_SetString(PyExc_ValueError, "this processor has no such loops");
    else if (!open_side(&table.truth, &views[0], sizes[0], is_signed[0]) ||
             !open_side(&table.pred, &views[1], sizes[1], is_signed[1]) ||
             views[0].len / sizes[0] != views[1].len / sizes[1])
        PyErr_SetString(PyExc_ValueError, "both sides must hold as many aligned integers");
    else {
        table.length = (size_t)(views[0].len / sizes[0]);
        Outcome outcome;
        Py_BEGIN_ALLOW_THREADS
        outcome = count(&table);
        Py_END_ALLOW_THREADS
        result = finish(&table, outcome);
    }
    PyBuffer_Release(&views[0]);
    PyBuffer_Release(&views[1]);
    return result;
}

static PyMethodDef methods[] = {
    {"count_pairs", count_pairs, METH_VARARGS,
     "count_pairs(truth, truth_size, truth_is_signed, pred, pred_size, pred_is_signed, loops=None)"
     "\n--\n\n"
     "Count the pairs of ids of two buffers of integers. The answer is bytes, and whether the\n"
     "pairs are sorted: both ids of each as bits and the pixels, as 64-bit numbers; the last\n"
     "three mean nothing. If there are so many pairs that sorting is faster, it is the lowest id\n"
     "of either side, or None if an id is 2**32 or more above that."},
    {"count_overlaps", count_overlaps, METH_VARARGS,
     "count_overlaps(truth_starts, truth_ids, pred_starts, pred_ids, length)\n--\n\n"
     "As count_pairs(), from the first pixel and the id of each run, as uint32, and the number of\n"
     "pixels."},
    {NULL, NULL, 0, NULL},
};

DEFINE_MODULE(_id_pairs, "Pixels of each pair of ids.")
