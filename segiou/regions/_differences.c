/* Connected pixels of one class in the truth and another one in the prediction, and the objects of
 * both that contain them. All are found from the same runs, in which neither side changes. */
#include "_runs.h"

#define COLUMNS 11 /* of a region: see the documentation of the function */

/* Codes of the values of a side, from `first` on; the last is that of all others. */
typedef struct {
    uint64_t first, count;
    const uint16_t *codes;
} Codes;

/* A region and what decides whether it is kept: its classes and the complement of its pixels. */
typedef struct {
    uint64_t order;
    uint32_t strip;
} Region;

enum { TRUTH, PRED, REGION, KINDS };

/* Runs of the same classes of which each touches the one above it, so that all belong to one object
 * of the truth, one of the prediction, and one region: those of an earlier strip, or of this one.
 * Strips without a class, or with the same class on both sides, also belong to some, but these are
 * not used. There are a sixth as many strips as runs. */
typedef struct {
    uint32_t firsts[KINDS], sizes[KINDS];
    uint32_t pair; /* the classes of truth and prediction, 16 bits each */
    uint32_t begins[3], ends[3];
} Strip;

typedef struct {
    Strip *strips;
    size_t used, room;
    uint32_t *pairs, *strips_of; /* per run */
} Found;

static uint16_t code_of(const Codes *codes, uint64_t value, uint64_t mask)
{
    uint64_t at = (value - codes->first) & mask;
    return codes->codes[at < codes->count ? at : codes->count];
}

/* The classes of each run; pixels that are ignored belong to no object of the prediction. */
ALWAYS_INLINED void read_pairs(uint32_t *pairs, const Runs *runs, const Map *map, size_t size,
                               const Codes *codes, uint32_t classes)
{
    const uint64_t mask = UINT64_MAX >> (64 - 8 * size);
    for (size_t i = 0; i < runs->used; i++) {
        size_t at = runs->starts[i];
        uint32_t truth = code_of(&codes[0], load_number(map->values[0], at, size), mask);
        uint32_t pred = code_of(&codes[1], load_number(map->values[1], at, size), mask);
        uint32_t has_class = 0 - (uint32_t)(truth < classes); /* without a branch */
        pairs[i] = truth << 16 | (pred & has_class) | (classes & ~has_class);
    }
}

static void read_all_pairs(uint32_t *pairs, const Runs *runs, const Map *map, const Codes *codes,
                           uint32_t classes)
{
    switch (map->size) {
    case 1: read_pairs(pairs, runs, map, 1, codes, classes); break;
    case 2: read_pairs(pairs, runs, map, 2, codes, classes); break;
    case 4: read_pairs(pairs, runs, map, 4, codes, classes); break;
    default: read_pairs(pairs, runs, map, 8, codes, classes);
    }
}

static inline uint32_t first_strip(Strip *strips, int kind, uint32_t strip)
{
    while (strips[strip].firsts[kind] != strip)
        strip = strips[strip].firsts[kind] = strips[strips[strip].firsts[kind]].firsts[kind];
    return strip;
}

static inline void unite_strips(Strip *strips, int kind, uint32_t one, uint32_t other)
{
    if (strips[one].firsts[kind] == strips[other].firsts[kind]) /* most are united already */
        return;
    uint32_t a = first_strip(strips, kind, one), b = first_strip(strips, kind, other);
    strips[a < b ? b : a].firsts[kind] = a < b ? a : b;
}

static inline void touch_both(void *context, size_t earlier, size_t run)
{
    Found *found = context;
    const uint32_t one = found->strips_of[earlier], other = found->strips_of[run];
    const uint32_t changes = found->pairs[earlier] ^ found->pairs[run];
    const int is_truth = !(changes >> 16), is_pred = !(changes & UINT16_MAX);
    if (is_truth | is_pred) /* mostly one of them, and which one is not predictable */
        unite_strips(found->strips, is_truth ? TRUTH : PRED, one, other);
    if (!changes) {
        unite_strips(found->strips, PRED, one, other);
        unite_strips(found->strips, REGION, one, other);
    }
}

/* A new strip that begins with a run in some place. */
static inline uint32_t add_strip(Found *found, uint32_t pair, uint32_t plane, uint32_t row,
                                 uint32_t column)
{
    const uint32_t own = (uint32_t)found->used++;
    found->strips[own] = (Strip){.firsts = {own, own, own},
                                 .pair = pair,
                                 .begins = {plane, row, column},
                                 .ends = {plane + 1, 0, 0}};
    return own;
}

/* The strips of the runs of a row, united with those that they touch in this row and in the row
 * above. */
static void find_strips(Found *found, const Runs *runs, const Map *map, size_t row)
{
    const uint32_t *starts = runs->starts, *pairs = found->pairs, shift = (uint32_t)map->width;
    const size_t begin = runs->rows[row], end = runs->rows[row + 1];
    const size_t above = row % map->height ? runs->rows[row - 1] : begin;
    const uint32_t plane = (uint32_t)(row / map->height), line = (uint32_t)(row % map->height);
    /* Runs above: the first touched one, one to compare, and the one after the last that was alike. */
    size_t touched = above, like = above, next = end;
    for (size_t run = begin; run < end; run++) {
        const uint32_t start = starts[run], stop = starts[run + 1];
        const uint32_t left = start - starts[begin], right = stop - starts[begin];
        like += like < begin && pairs[like] != pairs[run];
        const int is_below = like < begin && ((pairs[like] == pairs[run]) &
                                              (starts[like] + shift <= stop) &
                                              (starts[like + 1] + shift >= start));
        const int is_next = is_below & (like == next); /* neighbours above are united already */
        const uint32_t own = is_below ? found->strips_of[like]
                                      : add_strip(found, pairs[run], plane, line, left);
        found->strips_of[run] = own;
        Strip *strip = &found->strips[own];
        strip->sizes[REGION] += stop - start;
        strip->begins[2] = left < strip->begins[2] ? left : strip->begins[2];
        strip->ends[2] = right > strip->ends[2] ? right : strip->ends[2];
        strip->ends[1] = line + 1;
        size_t i = touched, last = like;
        if (is_below) { /* the neighbours of the one above are united with it already */
            for (; i + 1 < like; i++)
                touch_both(found, i, run);
            i = like + 2;
        }
        for (; i < begin && starts[i] + shift <= stop; i++)
            touch_both(found, last = i, run);
        if (last < begin) /* the next run touches this one, or one beside it */
            touched = last + (starts[last + 1] + shift < stop) - (starts[last] + shift == stop);
        like = is_below ? like + 1 : last;
        next = is_below ? like : end;
        if (!is_next && run > begin) /* neighbours whose values differ may be of one class */
            touch_both(found, run - 1, run);
    }
}

/* Makes room for one strip per run of a row; false if memory does not suffice. */
static int reserve_strips(Found *found, const Runs *runs, size_t row)
{
    size_t needed = found->used + runs->rows[row + 1] - runs->rows[row];
    if (needed <= found->room)
        return 1;
    size_t room = needed + (found->room ? found->room : runs->used / 4);
    Strip *strips = realloc(found->strips, room * sizeof *strips);
    if (!strips)
        return 0;
    found->strips = strips;
    found->room = room;
    return 1;
}

/* Adds a strip to the first one of its region, and of its objects, of which it has none before. */
static void add_to_firsts(Strip *strips, uint32_t own)
{
    Strip *strip = &strips[own];
    const uint32_t size = strip->sizes[REGION];
    strip->sizes[TRUTH] = strip->sizes[PRED] = size;
    for (int kind = 0; kind < KINDS; kind++) {
        uint32_t first = strip->firsts[kind] = strips[strip->firsts[kind]].firsts[kind];
        strips[first].sizes[kind] += first != own ? size : 0;
    }
    Strip *region = &strips[strip->firsts[REGION]];
    for (int axis = 0; axis < 3; axis++) {
        uint32_t begin = strip->begins[axis], end = strip->ends[axis];
        region->begins[axis] = begin < region->begins[axis] ? begin : region->begins[axis];
        region->ends[axis] = end > region->ends[axis] ? end : region->ends[axis];
    }
}

/* By pair of classes, the largest first, then by the first pixel. */
static int compare_regions(const void *one, const void *other)
{
    const Region *a = one, *b = other;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->strip < b->strip ? -1 : a->strip > b->strip;
}

/* The regions that are kept, at the start of `kept`, which has room for all strips and one more;
 * their number. */
static size_t choose(Region *kept, const Found *found, uint32_t classes, size_t least, size_t most)
{
    size_t number = 0, chosen = 0, of_pair = 0;
    for (size_t i = 0; i < found->used; i++) {
        const Strip *strip = &found->strips[i];
        uint32_t pair = strip->pair, truth = pair >> 16, pred = pair & UINT16_MAX;
        uint32_t size = strip->sizes[REGION];
        kept[number] = (Region){(uint64_t)pair << 32 | (UINT32_MAX - size), (uint32_t)i};
        number += (strip->firsts[REGION] == i) & (size >= least) & (truth != pred) &
                  (truth < classes) & (pred < classes); /* without a branch */
    }
    qsort(kept, number, sizeof *kept, compare_regions);
    uint64_t pair = UINT64_MAX;
    for (size_t i = 0; i < number; i++) {
        of_pair = kept[i].order >> 32 == pair ? of_pair + 1 : 0;
        pair = kept[i].order >> 32;
        if (of_pair < most)
            kept[chosen++] = kept[i];
    }
    return chosen;
}

typedef struct {
    int64_t *rows;  /* of the regions that are kept */
    uint32_t *runs; /* start, length and region of their runs */
    size_t count, run_count;
} Answer;

/* Writes the regions that are kept. */
static int write_rows(Answer *answer, const Strip *strips, const Region *kept)
{
    int64_t *row = malloc((answer->count + !answer->count) * COLUMNS * sizeof *row);
    answer->rows = row;
    for (size_t i = 0; row && i < answer->count; i++, row += COLUMNS) {
        const Strip *strip = &strips[kept[i].strip];
        row[0] = strip->pair >> 16;
        row[1] = strip->pair & UINT16_MAX;
        row[2] = strip->sizes[REGION];
        row[3] = (int64_t)strips[strip->firsts[TRUTH]].sizes[TRUTH] - row[2];
        row[4] = (int64_t)strips[strip->firsts[PRED]].sizes[PRED] - row[2];
        for (int axis = 0; axis < 3; axis++) {
            int64_t *side = row + 5 + 2 * ((axis + 2) % 3); /* planes last */
            side[0] = strip->begins[axis];
            side[1] = (int64_t)strip->ends[axis] - strip->begins[axis];
        }
    }
    return answer->rows != NULL;
}

/* Writes the runs of the regions that are kept. */
static int write_runs(Answer *answer, const Found *found, const Region *kept, const Runs *runs)
{
    uint32_t *numbers = calloc(found->used, sizeof *numbers);
    uint32_t *next = answer->runs = malloc(3 * runs->used * sizeof *answer->runs);
    for (size_t i = 0; numbers && i < answer->count; i++)
        numbers[kept[i].strip] = (uint32_t)i + 1;
    for (size_t i = 0; numbers && next && i < runs->used; i++) {
        uint32_t number = numbers[found->strips[found->strips_of[i]].firsts[REGION]];
        if (!number)
            continue;
        *next++ = runs->starts[i];
        *next++ = runs->starts[i + 1] - runs->starts[i];
        *next++ = number - 1;
    }
    int is_done = numbers && answer->runs;
    if (is_done)
        answer->run_count = (size_t)(next - answer->runs) / 3;
    free(numbers);
    return is_done;
}

/* What is kept, and how. */
typedef struct {
    uint32_t classes;
    size_t least, most;
    int with_runs;
} Choice;

/* Finds the regions of all strips; false if memory does not suffice. */
static int find_regions(Answer *answer, Found *found, const Runs *runs, const Map *map,
                        const Choice *choice)
{
    for (size_t row = 0; row < map->depth * map->height; row++) {
        if (!reserve_strips(found, runs, row))
            return 0;
        find_strips(found, runs, map, row);
        touch_earlier(runs, map, row, 0, touch_both, found);
    }
    for (uint32_t i = 0; i < found->used; i++)
        add_to_firsts(found->strips, i);
    Region *kept = malloc((found->used + 1) * sizeof *kept);
    if (!kept)
        return 0;
    answer->count = choose(kept, found, choice->classes, choice->least, choice->most);
    int is_done = write_rows(answer, found->strips, kept) &&
                  (!choice->with_runs || write_runs(answer, found, kept, runs));
    free(kept);
    return is_done;
}

static int find_all(Answer *answer, const Map *map, const Codes *codes, const Choice *choice)
{
    Runs runs = {0};
    Found found = {0};
    int is_done = find_runs(&runs, map) &&
                  (found.pairs = malloc(2 * runs.used * sizeof *found.pairs)) != NULL;
    if (is_done) {
        found.strips_of = found.pairs + runs.used;
        read_all_pairs(found.pairs, &runs, map, codes, choice->classes);
        is_done = find_regions(answer, &found, &runs, map, choice);
    }
    free(found.pairs);
    free(found.strips);
    free_runs(&runs);
    return is_done;
}

static PyObject *as_bytes(const Answer *answer)
{
    size_t rows = answer->count * COLUMNS * sizeof *answer->rows;
    size_t runs = 3 * answer->run_count * sizeof *answer->runs;
    return Py_BuildValue("(y#y#)", (const char *)answer->rows, (Py_ssize_t)rows,
                         answer->runs ? (const char *)answer->runs : "", (Py_ssize_t)runs);
}

/* Reads the codes of a side; −1 with an error. */
static int read_codes(Codes *codes, uint64_t first, const Py_buffer *view)
{
    if (view->len < 2 || view->len % 2 || (uintptr_t)view->buf % 2)
        return refuse(PyExc_ValueError, "codes must be aligned uint16, at least one");
    *codes = (Codes){first, (uint64_t)view->len / 2 - 1, view->buf};
    return 0;
}

PyObject *find_differences(PyObject *Py_UNUSED(module), PyObject *args)
{
    Py_buffer views[2], tables[2];
    unsigned long long firsts[2];
    Py_ssize_t size, shape[3], least, most;
    int classes, with_runs;
    if (!PyArg_ParseTuple(args, "y*y*n(nnn)(Ky*)(Ky*)innp:find_differences", &views[0], &views[1],
                          &size, &shape[0], &shape[1], &shape[2], &firsts[0], &tables[0],
                          &firsts[1], &tables[1], &classes, &least, &most, &with_runs))
        return NULL;
    PyObject *result = NULL;
    Map map = {.maps = 2, .size = (size_t)size, .rank = 3};
    Codes codes[2];
    int is_read = read_map(&map, views, shape) == 0;
    for (int side = 0; is_read && side < 2; side++)
        is_read = read_codes(&codes[side], firsts[side], &tables[side]) == 0;
    if (is_read && (classes < 1 || classes >= UINT16_MAX || least < 0 || most < 0)) {
        refuse(PyExc_ValueError, "classes must be 1 to 65534; least and most at least 0");
        is_read = 0;
    }
    if (is_read) {
        const Choice choice = {(uint32_t)classes, (size_t)least, (size_t)most, with_runs};
        Answer answer = {0};
        int is_done;
        Py_BEGIN_ALLOW_THREADS
        is_done = find_all(&answer, &map, codes, &choice);
        Py_END_ALLOW_THREADS
        result = is_done ? as_bytes(&answer) : PyErr_NoMemory();
        free(answer.rows);
        free(answer.runs);
    }
    for (int side = 0; side < 2; side++) {
        PyBuffer_Release(&views[side]);
        PyBuffer_Release(&tables[side]);
    }
    return result;
}
