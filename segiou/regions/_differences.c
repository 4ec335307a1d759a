/* Connected pixels of one class in the truth and another one in the prediction, and the objects of
 * both that contain them. All are found from the same runs, in which neither side changes. */
#include "_runs.h"

#define COLUMNS 11 /* of a region: see the documentation of the function */

/* Codes of the values of a side, from `first` on; the last is that of all others. */
typedef struct {
    uint64_t first, count;
    const uint16_t *codes;
} Codes;

/* A region and what decides whether it is kept. */
typedef struct {
    uint32_t pair, size, run;
} Region;

enum { TRUTH, PRED, REGION, KINDS };

/* What each run belongs to: an object of the truth, one of the prediction, and a region. Runs without
 * a class, or with the same class on both sides, also belong to some, but these are not used. */
typedef struct {
    uint32_t *pairs;         /* per run: the classes of truth and prediction, 16 bits each */
    uint32_t *firsts[KINDS]; /* per run: an earlier one of the same kind, or itself */
} Found;

static uint16_t code_of(const Codes *codes, uint64_t value, uint64_t mask)
{
    uint64_t at = (value - codes->first) & mask;
    return codes->codes[at < codes->count ? at : codes->count];
}

static inline void touch_both(void *context, size_t earlier, size_t run)
{
    const Found *found = context;
    uint32_t changes = found->pairs[earlier] ^ found->pairs[run];
    if (!(changes >> 16))
        unite(found->firsts[TRUTH], earlier, run);
    if (!(changes & UINT16_MAX))
        unite(found->firsts[PRED], earlier, run);
    if (!changes)
        unite(found->firsts[REGION], earlier, run);
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
        pairs[i] = truth << 16 | (truth < classes ? pred : classes);
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

/* Whether a run lies below one of the same classes and touches only this one and its neighbours, of
 * those from `above` to `begin`. Then it belongs to all that this one belongs to, and to nothing
 * else. */
static inline int is_like(const uint32_t *pairs, const uint32_t *starts, size_t run, size_t like,
                          size_t above, size_t begin, uint32_t shift)
{
    if (like >= begin || pairs[like] != pairs[run])
        return 0;
    uint32_t start = starts[run] - shift, end = starts[run + 1] - shift;
    return (starts[like] <= end) & (starts[like + 1] >= start) & (starts[like + 2] > end) &
           ((like == above) || (starts[like - 1] < start));
}

/* Unites the runs of a row with each other and with those of the row above. */
static void unite_row(Found *found, const Runs *runs, const Map *map, size_t row)
{
    const uint32_t *starts = runs->starts, *pairs = found->pairs, shift = (uint32_t)map->width;
    const size_t begin = runs->rows[row], end = runs->rows[row + 1];
    const size_t above = row % map->height ? runs->rows[row - 1] : begin;
    /* Runs above: the first touched one, one to compare, and the one after the last copied. */
    size_t touched = above, like = above, next = end;
    for (size_t run = begin; run < end; run++) {
        like += like < begin && pairs[like] != pairs[run];
        int is_copy = is_like(pairs, starts, run, like, above, begin, shift);
        int is_next = is_copy && like == next; /* then its neighbours are united already */
        for (int kind = 0; kind < KINDS; kind++)
            found->firsts[kind][run] = is_copy ? found->firsts[kind][like] : (uint32_t)run;
        next = is_copy ? ++like : end;
        while (!is_copy && touched + 1 < begin && starts[touched + 1] + shift < starts[run])
            touched++;
        for (size_t i = touched; !is_copy && i < begin && starts[i] + shift <= starts[run + 1]; i++)
            touch_both(found, like = i, run);
        if (!is_next && run > begin) /* neighbours whose values differ may be of one class */
            touch_both(found, run - 1, run);
    }
}

/* Lets every run point to the first one, and counts the pixels there. */
static void sum_sizes(uint32_t *firsts, uint32_t *sizes, const Runs *runs)
{
    memset(sizes, 0, runs->used * sizeof *sizes);
    for (size_t i = 0; i < runs->used; i++) {
        firsts[i] = firsts[firsts[i]];
        sizes[firsts[i]] += runs->starts[i + 1] - runs->starts[i];
    }
}

/* By pair of classes, the largest first, then by the first pixel. */
static int compare_regions(const void *one, const void *other)
{
    const Region *a = one, *b = other;
    if (a->pair != b->pair)
        return a->pair < b->pair ? -1 : 1;
    if (a->size != b->size)
        return a->size > b->size ? -1 : 1;
    return a->run < b->run ? -1 : a->run > b->run;
}

/* The regions that are kept, at the start of `kept`; their number. */
static size_t choose(Region *kept, const Found *found, const uint32_t *sizes, size_t used,
                     uint32_t classes, size_t least, size_t most)
{
    size_t number = 0, chosen = 0, of_pair = 0;
    for (size_t i = 0; i < used; i++) {
        if (found->firsts[REGION][i] != i || sizes[i] < least)
            continue;
        uint32_t pair = found->pairs[i], truth = pair >> 16, pred = pair & UINT16_MAX;
        if (truth != pred && truth < classes && pred < classes)
            kept[number++] = (Region){pair, sizes[i], (uint32_t)i};
    }
    qsort(kept, number, sizeof *kept, compare_regions);
    uint32_t pair = UINT32_MAX;
    for (size_t i = 0; i < number; i++) {
        of_pair = kept[i].pair == pair ? of_pair + 1 : 0;
        pair = kept[i].pair;
        if (of_pair < most)
            kept[chosen++] = kept[i];
    }
    return chosen;
}

/* Makes a box include columns of a row. */
static void widen(int64_t *box, size_t plane, size_t row, size_t column, size_t end)
{
    const size_t begins[] = {plane, row, column}, ends[] = {plane + 1, row + 1, end};
    for (int axis = 0; axis < 3; axis++, box += 2) {
        int64_t begin = (int64_t)begins[axis], end_of = (int64_t)ends[axis];
        box[0] = begin < box[0] ? begin : box[0];
        box[1] = end_of > box[1] ? end_of : box[1];
    }
}

typedef struct {
    int64_t *rows;  /* of the regions that are kept */
    uint32_t *runs; /* start, length and region of their runs */
    size_t count, run_count;
} Answer;

/* Writes the regions that are kept; `numbers` has room for a number per run. */
static int write_answer(Answer *answer, const Found *found, const Region *kept, uint32_t *numbers,
                        const Runs *runs, const Map *map)
{
    answer->rows = malloc((answer->count + !answer->count) * COLUMNS * sizeof *answer->rows);
    memset(numbers, 0, runs->used * sizeof *numbers);
    if (!answer->rows)
        return 0;
    for (size_t i = 0; i < answer->count; i++) {
        int64_t *row = answer->rows + i * COLUMNS;
        numbers[kept[i].run] = (uint32_t)i + 1;
        row[0] = kept[i].pair >> 16;
        row[1] = kept[i].pair & UINT16_MAX;
        row[2] = kept[i].size;
        for (int column = 5; column < COLUMNS; column += 2) {
            row[column] = INT64_MAX;
            row[column + 1] = 0;
        }
    }
    answer->runs = malloc(3 * runs->used * sizeof *answer->runs);
    if (!answer->runs)
        return 0;
    uint32_t *next = answer->runs;
    for (size_t row = 0; row < map->depth * map->height; row++) {
        const size_t plane = row / map->height, line = row % map->height;
        for (size_t i = runs->rows[row]; i < runs->rows[row + 1]; i++) {
            uint32_t number = numbers[found->firsts[REGION][i]], start = runs->starts[i];
            if (!number)
                continue;
            uint32_t length = runs->starts[i + 1] - start;
            size_t column = start - row * map->width;
            widen(answer->rows + (number - 1) * COLUMNS + 5, plane, line, column, column + length);
            *next++ = start;
            *next++ = length;
            *next++ = number - 1;
        }
    }
    answer->run_count = (size_t)(next - answer->runs) / 3;
    return 1;
}

/* Finds the regions of all runs; false if memory does not suffice. */
static int find_regions(Answer *answer, Found *found, const Runs *runs, const Map *map,
                        uint32_t classes, size_t least, size_t most)
{
    uint32_t *sizes = malloc(runs->used * sizeof *sizes);
    Region *kept = malloc(runs->used * sizeof *kept);
    int is_done = sizes && kept;
    for (size_t row = 0; is_done && row < map->depth * map->height; row++) {
        unite_row(found, runs, map, row);
        touch_earlier(runs, map, row, 0, touch_both, found);
    }
    if (is_done) {
        sum_sizes(found->firsts[REGION], sizes, runs);
        answer->count = choose(kept, found, sizes, runs->used, classes, least, most);
        is_done = write_answer(answer, found, kept, sizes, runs, map);
    }
    for (int side = TRUTH; is_done && side <= PRED; side++) {
        sum_sizes(found->firsts[side], sizes, runs);
        for (size_t i = 0; i < answer->count; i++)
            answer->rows[i * COLUMNS + 3 + (size_t)side] =
                sizes[found->firsts[side][kept[i].run]];
    }
    free(sizes);
    free(kept);
    return is_done;
}

static int find_all(Answer *answer, const Map *map, const Codes *codes, uint32_t classes,
                    size_t least, size_t most)
{
    Runs runs = {0};
    uint32_t *memory = NULL;
    int is_done = find_runs(&runs, map) &&
                  (memory = malloc((1 + KINDS) * runs.used * sizeof *memory)) != NULL;
    if (is_done) {
        Found found = {.pairs = memory};
        for (size_t kind = 0; kind < KINDS; kind++)
            found.firsts[kind] = memory + (kind + 1) * runs.used;
        read_all_pairs(found.pairs, &runs, map, codes, classes);
        is_done = find_regions(answer, &found, &runs, map, classes, least, most);
    }
    free(memory);
    free_runs(&runs);
    return is_done;
}

static PyObject *as_bytes(const Answer *answer)
{
    size_t rows = answer->count * COLUMNS * sizeof *answer->rows;
    size_t runs = 3 * answer->run_count * sizeof *answer->runs;
    return Py_BuildValue("(y#y#)", (const char *)answer->rows, (Py_ssize_t)rows,
                         (const char *)answer->runs, (Py_ssize_t)runs);
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
    int classes;
    if (!PyArg_ParseTuple(args, "y*y*n(nnn)(Ky*)(Ky*)inn:find_differences", &views[0], &views[1],
                          &size, &shape[0], &shape[1], &shape[2], &firsts[0], &tables[0],
                          &firsts[1], &tables[1], &classes, &least, &most))
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
        Answer answer = {0};
        int is_done;
        Py_BEGIN_ALLOW_THREADS
        is_done = find_all(&answer, &map, codes, (uint32_t)classes, (size_t)least, (size_t)most);
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
