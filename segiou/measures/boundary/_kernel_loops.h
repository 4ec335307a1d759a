/* Loops over rows of bytes: included once for each instruction set by _loops.h. */

/* Choices without branches, which compilers turn into vector instructions. */
#define DEFINE_TAKE_ROW(BITS)                                                                      \
    TARGET static void NAME(take_row##BITS)(const Columns *columns, const uint8_t *restrict codes, \
                                            size_t height, size_t n)                               \
    {                                                                                              \
        uint8_t *restrict latest = columns->latest, *restrict seen = columns->seen;                \
        uint##BITS##_t *restrict left = columns->left, *restrict left_other = columns->left_other; \
        const uint##BITS##_t whole = (uint##BITS##_t)height;                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##BITS##_t code = codes[i], last = latest[i], none = code == IGNORED;              \
            uint##BITS##_t own = left[i] - (left[i] != 0);                                         \
            uint##BITS##_t other = left_other[i] - (left_other[i] != 0);                           \
            other = (none | (code == last)) ? other : own;                                         \
            own = none ? own : whole;                                                              \
            left[i] = own;                                                                         \
            left_other[i] = other;                                                                 \
            latest[i] = (uint8_t)(none ? last : code);                                             \
            seen[i] = (uint8_t)((own != 0) + (other != 0));                                        \
        }                                                                                          \
    }

DEFINE_TAKE_ROW(8)
DEFINE_TAKE_ROW(16)
DEFINE_TAKE_ROW(32)
#undef DEFINE_TAKE_ROW

TARGET static void NAME(differ_from)(uint64_t *bits, const uint8_t *a, uint8_t value, size_t words)
{
    for (size_t w = 0; w < words; w++)
        bits[w] = NAME(differ64_from)(a + 64 * w, value);
}

/* `mixed` is used on the way: columns of several codes. */
TARGET static void NAME(find_edges)(uint64_t *restrict edges, uint64_t *restrict filled,
                                    uint64_t *restrict mixed, const Columns *columns,
                                    size_t words)
{
    const uint8_t *latest = columns->latest, *seen = columns->seen;
    for (size_t w = 0; w < words; w++) {
        filled[w] = NAME(differ64_from)(seen + 64 * w, 0);
        mixed[w] = ~NAME(differ64_from)(seen + 64 * w, 2);
        edges[w] = NAME(differ64)(latest + 64 * w, latest + 64 * w + 1) & filled[w];
    }
    for (size_t w = 0; w < words; w++) {
        uint64_t next_filled = filled[w] >> 1 | filled[w + 1] << 63;
        uint64_t next_mixed = mixed[w] >> 1 | mixed[w + 1] << 63;
        edges[w] = (edges[w] & next_filled) | mixed[w] | next_mixed;
    }
}

TARGET static void NAME(tally)(Tally *tally, const MarkedRow *row, size_t words)
{
    int64_t(*counts)[3] = tally->counts;
    const uint8_t *t = row->t, *p = row->p;
    for (size_t w = 0; w < words; w++, t += 64, p += 64) {
        uint64_t truth = row->truth[w], pred = row->pred[w], left = truth | pred;
        if (left == 0)
            continue;
        uint64_t ends = NAME(differ64)(t, t + 1) | NAME(differ64)(p, p + 1) | UINT64_C(1) << 63;
        while (left) {
            unsigned at = lowest_bit(left);
            uint64_t end = ends & (left | (0 - left)); /* at or after the next pixel */
            uint64_t run = (end ^ (end - 1)) & left;   /* its pixels up to the end */
            counts[t[at]][0] += NAME(count_ones)(truth & run);
            counts[p[at]][1] += NAME(count_ones)(pred & run);
            if (t[at] == p[at])
                counts[t[at]][2] += NAME(count_ones)(truth & pred & run);
            Rows *rows = &tally->rows[t[at]];
            rows->start = rows->end ? rows->start : row->y;
            rows->end = row->y + 1;
            left &= ~run;
        }
    }
}

/* bits[x] |= bits[x + step], into another row */
TARGET static void NAME(or_ahead)(uint64_t *restrict into, const uint64_t *restrict bits,
                                  size_t words, size_t step)
{
    const uint64_t *ahead = bits + step / 64;
    unsigned right = step % 64;
    for (size_t w = 0; right == 0 && w < words; w++)
        into[w] = bits[w] | ahead[w];
    for (size_t w = 0; right > 0 && w < words; w++)
        into[w] = bits[w] | ahead[w] >> right | ahead[w + 1] << (64 - right);
}

TARGET static void NAME(tally_outer)(int64_t *counts, const MarkedRow *row, uint8_t c,
                                     size_t words)
{
    const uint64_t *marks = row->truth;
    const uint8_t *t = row->t, *p = row->p;
    int64_t all = 0, predicted = 0;
    for (size_t w = 0; w < words; w++) {
        uint64_t near = marks[w] ? marks[w] & NAME(differ64_from)(t + 64 * w, c) : 0;
        if (near == 0)
            continue;
        predicted += NAME(count_ones)(near & ~NAME(differ64_from)(p + 64 * w, c));
        all += NAME(count_ones)(near);
    }
    counts[0] += predicted;
    counts[1] += all;
}

TARGET static void NAME(encode)(uint8_t *restrict truth_codes, uint8_t *restrict pred_codes,
                                const uint8_t *restrict truth, const uint8_t *restrict pred,
                                uint8_t ignored, uint8_t is_ignoring, uint8_t *highest, size_t n)
{
    uint8_t highest_truth = 0, highest_pred = 0;
    for (size_t i = 0; i < n; i++) {
        uint8_t dropped = truth[i] == ignored ? is_ignoring : 0;
        uint8_t t = truth[i] == 255 ? UNASSIGNED : truth[i];
        uint8_t p = pred[i] == 255 ? UNASSIGNED : pred[i];
        truth_codes[i] = t | dropped;
        pred_codes[i] = p | dropped;
        t &= (uint8_t)~dropped;
        p &= (uint8_t)~dropped;
        highest_truth = t > highest_truth ? t : highest_truth;
        highest_pred = p > highest_pred ? p : highest_pred;
    }
    highest[0] = highest_truth;
    highest[1] = highest_pred;
}

static const Loops NAME(loops) = {
    .name = NAME(name),
    .take_row = {NAME(take_row8), NAME(take_row16), NAME(take_row32)},
    .find_edges = NAME(find_edges),
    .differ_from = NAME(differ_from),
    .or_ahead = NAME(or_ahead),
    .tally = NAME(tally),
    .tally_outer = NAME(tally_outer),
    .encode = NAME(encode),
};
