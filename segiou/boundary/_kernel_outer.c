/* Pixels outside a class but within reach of it, class by class, each in its own box. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
    size_t top, bottom, left, right; /* bottom and right are one past the last */
} Box;

static size_t less(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The boxes of all codes; a code that does not occur has bottom 0. */
static void find_boxes(const Pair *pair, Box *boxes)
{
    for (size_t c = 0; c < 256; c++)
        boxes[c] = (Box){0, 0, pair->width, 0};
    for (size_t y = 0; y < pair->height; y++) {
        const uint8_t *row = pair->truth + y * pair->width;
        for (size_t x = 0; x < pair->width; x++) {
            Box *box = &boxes[row[x]];
            if (box->bottom == 0)
                box->top = y;
            box->bottom = y + 1;
            box->left = less(box->left, x);
            size_t run = x + 1;
            while (run < pair->width && row[run] == row[x])
                run++;
            box->right = box->right > run ? box->right : run;
            x = run - 1;
        }
    }
}

static Box widened(const Pair *pair, Box box, size_t reach)
{
    return (Box){box.top - less(box.top, reach), less(box.bottom + reach, pair->height),
                 box.left - less(box.left, reach), less(box.right + reach, pair->width)};
}

static void count_row(const Pair *pair, size_t y, Box box, uint8_t c, const uint8_t *is_near,
                      int64_t *counts)
{
    const uint8_t *t = pair->truth + y * pair->width + box.left;
    const uint8_t *p = pair->pred + y * pair->width + box.left;
    uint32_t near = 0, taken = 0;
    for (size_t x = 0; x < box.right - box.left; x++) {
        uint32_t counted = is_near[x] & (t[x] != c) & (t[x] != IGNORED);
        near += counted;
        taken += counted & (p[x] == c);
    }
    counts[0] += taken;
    counts[1] += near;
}

/* `plane` has room for a padded box, and `spare` for one row and a window. */
static void count_class(const Loops *loops, const Pair *pair, Box own, uint8_t c, size_t reach,
                        uint8_t *plane, uint8_t *spare, int64_t *counts)
{
    Box box = widened(pair, own, reach);
    size_t rows = box.bottom - box.top, stride = box.right - box.left + 2 * reach;
    memset(plane, 0, (rows + 2 * reach) * stride);
    for (size_t y = own.top; y < own.bottom; y++) {
        const uint8_t *t = pair->truth + y * pair->width + own.left;
        uint8_t *row = plane + (y - box.top + reach) * stride + own.left - box.left + reach;
        for (size_t x = 0; x < own.right - own.left; x++)
            row[x] = t[x] == c;
    }
    max_over_rows(loops, plane, rows + 2 * reach, stride, 2 * reach + 1);
    for (size_t y = 0; y < rows; y++) {
        const uint8_t *is_near =
            max_along_row(loops, plane + y * stride, spare, stride, 2 * reach + 1);
        count_row(pair, box.top + y, box, c, is_near, counts);
    }
}

int count_outer(const Loops *loops, const Pair *pair, size_t reach, int64_t *outer)
{
    size_t stride = pair->width + 2 * reach, window = 2 * reach + 1;
    size_t room = (pair->height + 2 * reach) * stride + window;
    uint8_t *plane = calloc(room + stride + window, 1);
    Box *boxes = malloc(256 * sizeof *boxes);
    int status = plane == NULL || boxes == NULL ? -1 : 0;
    if (status == 0) {
        find_boxes(pair, boxes);
        for (size_t c = 0; c < pair->num_classes; c++)
            if (boxes[c].bottom > 0)
                count_class(loops, pair, boxes[c], (uint8_t)c, reach, plane, plane + room,
                            outer + 2 * c);
    }
    free(plane);
    free(boxes);
    return status;
}
