/* The nearest boundary point of the same class: rows as bits, searched outwards from the query.
 *
 * Predicted boundaries mostly lie near those of the truth, and the search ends at the first row
 * that is farther away than what was found.
 */
#include "_kernel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#ifdef _MSC_VER
#include <intrin.h>
static int lowest_bit(uint64_t word)
{
    int place = 0;
    while (!(word & 1)) {
        word >>= 1;
        place++;
    }
    return place;
}
static int highest_bit(uint64_t word)
{
    int place = 0;
    while (word >>= 1)
        place++;
    return place;
}
#else
static int lowest_bit(uint64_t word)
{
    return __builtin_ctzll(word);
}
static int highest_bit(uint64_t word)
{
    return 63 - __builtin_clzll(word);
}
#endif

/* The target points of one class. */
typedef struct {
    int64_t top, left;
    int64_t rows, words;
    uint64_t *bits;   /* rows x words */
    uint8_t *is_used; /* whether a row has a point */
} Grid;

typedef struct {
    double row_step, column_step;
} Steps;

static void find_range(const int32_t *points, int64_t n, int axis, int32_t *low, int32_t *high)
{
    *low = *high = points[axis];
    for (int64_t i = 1; i < n; i++) {
        int32_t place = points[2 * i + axis];
        *low = place < *low ? place : *low;
        *high = place > *high ? place : *high;
    }
}

static Grid make_grid(const int32_t *points, int64_t n, uint64_t *bits, uint8_t *is_used)
{
    int32_t top, bottom, left, right;
    find_range(points, n, 0, &top, &bottom);
    find_range(points, n, 1, &left, &right);
    Grid grid = {top, left, bottom - top + 1, (right - left) / 64 + 1, bits, is_used};
    memset(bits, 0, (size_t)(grid.rows * grid.words) * sizeof *bits);
    memset(is_used, 0, (size_t)grid.rows);
    for (int64_t i = 0; i < n; i++) {
        int64_t y = points[2 * i] - grid.top, x = points[2 * i + 1] - left;
        bits[y * grid.words + x / 64] |= UINT64_C(1) << (x % 64);
        is_used[y] = 1;
    }
    return grid;
}

/* `best`, or the squared distance to the nearest point of the row where that is less. */
static double search_row(const Grid *grid, int64_t y, int64_t x, double apart, Steps steps,
                         double best)
{
    const uint64_t *row = grid->bits + y * grid->words;
    int64_t last = grid->words * 64 - 1, from = x < 0 ? 0 : x > last ? last : x;
    int64_t word = from / 64;
    uint64_t left = row[word] & (~UINT64_C(0) >> (63 - from % 64));
    for (int64_t w = word;; left = row[--w]) {
        if (left != 0) {
            double gap = (double)llabs(x - (w * 64 + highest_bit(left))) * steps.column_step;
            best = fmin(best, apart + gap * gap);
            break;
        }
        double gap = (double)llabs(x - w * 64 + 1) * steps.column_step;
        if (w == 0 || apart + gap * gap >= best)
            break;
    }
    uint64_t right = row[word] & (~UINT64_C(0) << (from % 64));
    for (int64_t w = word;; right = row[++w]) {
        if (right != 0) {
            double gap = (double)llabs(w * 64 + lowest_bit(right) - x) * steps.column_step;
            return fmin(best, apart + gap * gap);
        }
        double gap = (double)llabs(w * 64 + 64 - x) * steps.column_step;
        if (w == grid->words - 1 || apart + gap * gap >= best)
            return best;
    }
}

static double search(const Grid *grid, int64_t y, int64_t x, Steps steps)
{
    double best = HUGE_VAL;
    int64_t last = grid->rows - 1;
    int64_t nearest_row = y < 0 ? -y : y > last ? y - last : 0;
    int64_t farthest_row = llabs(y) > llabs(last - y) ? llabs(y) : llabs(last - y);
    for (int64_t k = nearest_row; k <= farthest_row; k++) {
        double apart = (double)k * steps.row_step;
        apart *= apart;
        if (apart >= best)
            break;
        if (y - k >= 0 && y - k <= last && grid->is_used[y - k])
            best = search_row(grid, y - k, x, apart, steps, best);
        if (k > 0 && y + k >= 0 && y + k <= last && grid->is_used[y + k])
            best = search_row(grid, y + k, x, apart, steps, best);
    }
    return best;
}

static void find_in_class(const int32_t *query, int64_t n, const Grid *grid, Steps steps,
                          double *squared)
{
    for (int64_t i = 0; i < n; i++)
        squared[i] =
            search(grid, query[2 * i] - grid->top, query[2 * i + 1] - grid->left, steps);
}

int find_nearest(const Points *query, const Points *target, size_t num_classes, double row_step,
                 double column_step, double *squared)
{
    int32_t low, bottom = 0, right = 0;
    if (target->starts[num_classes] > 0) {
        find_range(target->points, target->starts[num_classes], 0, &low, &bottom);
        find_range(target->points, target->starts[num_classes], 1, &low, &right);
    }
    uint64_t *bits = malloc(((size_t)bottom + 1) * ((size_t)right / 64 + 1) * sizeof *bits);
    uint8_t *is_used = malloc((size_t)bottom + 1);
    int status = bits == NULL || is_used == NULL ? -1 : 0;
    for (size_t c = 0; status == 0 && c < num_classes; c++) {
        int64_t first = query->starts[c], n = query->starts[c + 1] - first;
        int64_t known = target->starts[c], m = target->starts[c + 1] - known;
        for (int64_t i = 0; m == 0 && i < n; i++)
            squared[first + i] = HUGE_VAL;
        if (n == 0 || m == 0)
            continue;
        Grid grid = make_grid(target->points + 2 * known, m, bits, is_used);
        Steps steps = {row_step, column_step};
        find_in_class(query->points + 2 * first, n, &grid, steps, squared + first);
    }
    free(bits);
    free(is_used);
    return status;
}
