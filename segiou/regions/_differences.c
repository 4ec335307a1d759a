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

/* Per run: both classes, and a run of the same object of the truth, of the prediction, and of the
 * same region. */
typedef struct {
    uint16_t *truth, *pred;
    uint32_t *truths, *preds, *regions;
    uint32_t classes;
} Found;

static uint16_t code_of(const Codes *codes, uint64_t value, uint64_t mask)
{
    uint64_t at = (value - codes->first) & mask;
    return codes->codes[at < codes->count ? at : codes->count];
}

static inline void touch_both(void *context, size_t earlier, size_t run)
{
    Found *found = context;
    int same_truth = found->truth[earlier] == found->truth[run];
    int same_pred = found->pred[earlier] == found->pred[run];
    if (same_truth && found->truth[run] < found->classes)
        unite(found->truths, earlier, run);
    if (same_pred && found->pred[run] < found->classes) {
        unite(found->preds, earlier, run);
        if (same_truth && found->truth[run] != found->pred[run])
            unite(found->regions, earlier, run);
    }
}

/* The classes of each run; pixels that are ignored belong to no object of the prediction. */
static void read_classes(Found *found, const Runs *runs, const Map *map, const Codes *codes)
{
    const uint64_t mask = map->size == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * map->size) - 1;
    for (size_t i = 0; i < runs->used; i++) {
        uint16_t truth = code_of(&codes[0], value_at(map, 0, runs->starts[i]), mask);
        uint16_t pred = code_of(&codes[1], value_at(map, 1, runs->starts[i]), mask);
        found->truth[i] = truth;
        found->pred[i] = truth < found->classes ? pred : (uint16_t)found->classes;
        found->truths[i] = found->preds[i] = found->regions[i] = (uint32_t)i;
    }
}

/* Neighbours in a row whose values differ may be of one class. */
static void unite_in_rows(Found *found, const Runs *runs, const Map *map)
{
    for (size_t row = 0; row < map->depth * map->height; row++)
        for (size_t i = runs->rows[row] + 1; i < runs->rows[row + 1]; i++)
            touch_both(found, i - 1, i);
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
                     size_t least, size_t most)
{
    size_t number = 0, chosen = 0, of_pair = 0;
    for (size_t i = 0; i < used; i++) {
        uint32_t a = found->truth[i], b = found->pred[i];
        int is_region = found->regions[i] == i && a != b && a < found->classes &&
                        b < found->classes && sizes[i] >= least;
        if (is_region)
            kept[number++] = (Region){a << 16 | b, sizes[i], (uint32_t)i};
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

static void widen(int64_t *box, size_t start, size_t length, const Map *map)
{
    int64_t row = (int64_t)(start / map->width), column = (int64_t)(start % map->width);
    int64_t height = (int64_t)map->height;
    int64_t begins[3] = {row / height, row % height, column};
    for (int axis = 0; axis < 3; axis++) {
        int64_t end = begins[axis] + (axis == 2 ? (int64_t)length : 1);
        if (begins[axis] < box[2 * axis])
            box[2 * axis] = begins[axis];
        if (end > box[2 * axis + 1])
            box[2 * axis + 1] = end;
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
    for (size_t i = 0; i < runs->used; i++)
        answer->run_count += numbers[found->regions[i]] > 0;
    answer->runs = malloc((3 * answer->run_count + 1) * sizeof *answer->runs);
    if (!answer->runs)
        return 0;
    uint32_t *next = answer->runs;
    for (size_t i = 0; i < runs->used; i++) {
        uint32_t number = numbers[found->regions[i]], start = runs->starts[i];
        if (!number)
            continue;
        uint32_t length = runs->starts[i + 1] - start;
        widen(answer->rows + (number - 1) * COLUMNS + 5, start, length, map);
        *next++ = start;
        *next++ = length;
        *next++ = number - 1;
    }
    return 1;
}

/* Finds the regions of all runs; false if memory does not suffice. */
static int find_regions(Answer *answer, Found *found, const Runs *runs, const Map *map,
                        size_t least, size_t most)
{
    uint32_t *sizes = malloc(runs->used * sizeof *sizes);
    Region *kept = malloc(runs->used * sizeof *kept);
    int is_done = sizes && kept;
    if (is_done) {
        unite_in_rows(found, runs, map);
        touch_all(runs, map, touch_both, found);
        sum_sizes(found->regions, sizes, runs);
        answer->count = choose(kept, found, sizes, runs->used, least, most);
        is_done = write_answer(answer, found, kept, sizes, runs, map);
    }
    uint32_t *objects[] = {found->truths, found->preds};
    for (int side = 0; is_done && side < 2; side++) {
        sum_sizes(objects[side], sizes, runs);
        for (size_t i = 0; i < answer->count; i++)
            answer->rows[i * COLUMNS + 3 + (size_t)side] = sizes[objects[side][kept[i].run]];
    }
    free(sizes);
    free(kept);
    return is_done;
}

static int find_all(Answer *answer, const Map *map, const Codes *codes, uint32_t classes,
                    size_t least, size_t most)
{
    Runs runs = {0};
    int is_done = 0;
    if (find_runs(&runs, map)) {
        uint16_t *both = malloc(2 * runs.used * sizeof *both);
        uint32_t *firsts = malloc(3 * runs.used * sizeof *firsts);
        if (both && firsts) {
            Found found = {both,
                           both + runs.used,
                           firsts,
                           firsts + runs.used,
                           firsts + 2 * runs.used,
                           classes};
            read_classes(&found, &runs, map, codes);
            is_done = find_regions(answer, &found, &runs, map, least, most);
        }
        free(both);
        free(firsts);
    }
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
