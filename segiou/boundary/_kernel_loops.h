/* Loops over rows of bytes: included once for each instruction set by _loops.h. */
TARGET static inline void NAME(extend_half)(uint8_t *restrict into, const uint8_t *restrict rows,
                                            const uint8_t *restrict codes, uint8_t flip, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint8_t code = codes[i] == IGNORED ? 0 : codes[i] ^ flip;
        into[i] = rows[i] > code ? rows[i] : code;
    }
}

TARGET static void NAME(extend)(uint8_t *into, const uint8_t *rows, const uint8_t *codes,
                                size_t half, size_t n)
{
    NAME(extend_half)(into, rows, codes, 0, n);
    NAME(extend_half)(into + half, rows + half, codes, 255, n);
}

TARGET static void NAME(join)(uint8_t *restrict rows, const uint8_t *restrict a,
                              const uint8_t *restrict b, size_t half)
{
    for (size_t i = 0; i < half; i++)
        rows[i] = a[i] > b[i] ? a[i] : b[i];
    for (size_t i = half; i < 2 * half; i++)
        rows[i] = (uint8_t)~(a[i] > b[i] ? a[i] : b[i]);
}

TARGET static void NAME(differ)(uint64_t *bits, const uint8_t *a, const uint8_t *b, size_t words)
{
    for (size_t w = 0; w < words; w++)
        bits[w] = NAME(differ64)(a + 64 * w, b + 64 * w);
}

TARGET static void NAME(differ_from)(uint64_t *bits, const uint8_t *a, uint8_t value, size_t words)
{
    for (size_t w = 0; w < words; w++)
        bits[w] = NAME(differ64_from)(a + 64 * w, value);
}

/* Bit x of `edges`: columns x and x + 1 hold two codes. `mixed` is used on the way. */
TARGET static void NAME(find_edges)(uint64_t *restrict edges, uint64_t *restrict filled,
                                    uint64_t *restrict mixed, const uint8_t *rows, size_t words)
{
    const uint8_t *largest = rows, *smallest = rows + 64 * words;
    for (size_t w = 0; w < words; w++) {
        filled[w] = NAME(differ64_from)(smallest + 64 * w, IGNORED);
        mixed[w] = NAME(differ64)(largest + 64 * w, smallest + 64 * w) & filled[w];
        edges[w] = NAME(differ64)(largest + 64 * w, largest + 64 * w + 1) & filled[w];
    }
    for (size_t w = 0; w < words; w++) {
        uint64_t next_filled = filled[w] >> 1 | filled[w + 1] << 63;
        uint64_t next_mixed = mixed[w] >> 1 | mixed[w + 1] << 63;
        edges[w] = (edges[w] & next_filled) | mixed[w] | next_mixed;
    }
}

/* marks: any of the three, where `inside` is and the code is valid. */
TARGET static void NAME(finish_marks)(uint64_t *marks, const uint64_t *bridged,
                                      const uint64_t *near, const uint64_t *frame,
                                      const uint64_t *inside, const uint8_t *codes, size_t words)
{
    for (size_t w = 0; w < words; w++) {
        uint64_t valid = NAME(differ64_from)(codes + 64 * w, IGNORED) & inside[w];
        marks[w] = (bridged[w] | near[w] | frame[w]) & valid;
    }
}

/* Returns how many marked pixels are of the class, in the truth and in the prediction. */
TARGET static inline int64_t NAME(tally_class)(int64_t *counts, const MarkedRow *row, uint8_t c,
                                               const uint8_t *chosen, size_t n)
{
    const uint64_t *truth = row->truth, *pred = row->pred;
    const uint8_t *t = row->t, *p = row->p;
    int64_t in_truth = 0, in_pred = 0, in_both = 0;
    for (size_t i = 0; i < n; i++) {
        size_t w = chosen[i];
        uint64_t of_truth = truth[w] & ~NAME(differ64_from)(t + 64 * w, c);
        uint64_t of_pred = pred[w] & ~NAME(differ64_from)(p + 64 * w, c);
        in_truth += NAME(count_ones)(of_truth);
        in_pred += NAME(count_ones)(of_pred);
        in_both += NAME(count_ones)(of_truth & of_pred);
    }
    counts[0] += in_truth;
    counts[1] += in_pred;
    counts[2] += in_both;
    return in_truth + in_pred;
}

/* Takes the recent classes first, and the others only if some marks are left then. */
TARGET static void NAME(tally_chosen)(Tally *tally, const MarkedRow *row, const uint8_t *chosen,
                                      size_t n, int64_t left)
{
    uint8_t others[256];
    size_t recent = 0, gone = 0, i = 0;
    for (; i < tally->num_classes && (i < tally->recent || left > 0); i++) {
        uint8_t c = tally->order[i];
        int64_t found = NAME(tally_class)(tally->counts[c], row, c, chosen, n);
        left -= found;
        if (found)
            tally->order[recent++] = c;
        else
            others[gone++] = c;
    }
    memcpy(tally->order + recent, others, gone);
    tally->recent = recent;
}

/* Class by class: more looks at each pixel than runs take, but few branches to guess wrong. */
TARGET static void NAME(tally_classes)(Tally *tally, const MarkedRow *row, size_t words)
{
    uint8_t chosen[64];
    for (size_t start = 0; start < words; start += 64) {
        MarkedRow part = {row->t + 64 * start, row->p + 64 * start, row->truth + start,
                          row->pred + start};
        int64_t marked = 0;
        size_t n = 0;
        for (size_t w = 0; w < 64 && start + w < words; w++) {
            chosen[n] = (uint8_t)w;
            n += (part.truth[w] | part.pred[w]) != 0;
            marked += NAME(count_ones)(part.truth[w]) + NAME(count_ones)(part.pred[w]);
        }
        if (n > 0)
            NAME(tally_chosen)(tally, &part, chosen, n, marked);
    }
}

TARGET static void NAME(tally_runs)(Tally *tally, const MarkedRow *row, size_t words)
{
    int64_t(*counts)[3] = tally->counts;
    const uint8_t *t = row->t, *p = row->p;
    for (size_t w = 0; w < words; w++, t += 64, p += 64) {
        uint64_t truth = row->truth[w], pred = row->pred[w], left = truth | pred;
        if (left == 0)
            continue;
        uint64_t ends = NAME(differ64)(t, t + 1) | NAME(differ64)(p, p + 1) | UINT64_C(1) << 63;
        while (left) {
            unsigned at = trailing_zeros(left);
            uint64_t end = ends & ~((UINT64_C(1) << at) - 1);
            uint64_t run = (end ^ (end - 1)) & left; /* what is left up to the end */
            counts[t[at]][0] += NAME(count_ones)(truth & run);
            counts[p[at]][1] += NAME(count_ones)(pred & run);
            if (t[at] == p[at])
                counts[t[at]][2] += NAME(count_ones)(truth & pred & run);
            left &= ~run;
        }
    }
}

/* bits[x] |= bits[x + step], into another row */
TARGET static void NAME(or_ahead)(uint64_t *restrict into, const uint64_t *restrict bits,
                                  size_t words, size_t step)
{
    const uint64_t *ahead = bits + step / 64;
    unsigned right = step % 64, left = 63 - right;
    for (size_t w = 0; w < words; w++) /* a shift by 64 is none: one by 1, and the rest */
        into[w] = bits[w] | ahead[w] >> right | ahead[w + 1] << 1 << left;
}

TARGET static size_t NAME(count_others)(const uint8_t *codes, uint8_t value, size_t words)
{
    int64_t found = 0;
    for (size_t w = 0; w < words; w++)
        found += NAME(count_ones)(NAME(differ64_from)(codes + 64 * w, value));
    return (size_t)found;
}

TARGET static void NAME(tally_outer)(int64_t *counts, const uint8_t *t, const uint8_t *p,
                                     uint8_t c, const uint64_t *marks, size_t words)
{
    for (size_t w = 0; w < words; w++) {
        if (marks[w] == 0)
            continue;
        uint64_t is_other = NAME(differ64_from)(t + 64 * w, c);
        uint64_t near = marks[w] & is_other & NAME(differ64_from)(t + 64 * w, IGNORED);
        counts[0] += NAME(count_ones)(near & ~NAME(differ64_from)(p + 64 * w, c));
        counts[1] += NAME(count_ones)(near);
    }
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
    .few_classes = NAME(few_classes),
    .extend = NAME(extend),
    .join = NAME(join),
    .differ = NAME(differ),
    .differ_from = NAME(differ_from),
    .find_edges = NAME(find_edges),
    .finish_marks = NAME(finish_marks),
    .or_ahead = NAME(or_ahead),
    .count_others = NAME(count_others),
    .tally_classes = NAME(tally_classes),
    .tally_runs = NAME(tally_runs),
    .tally_outer = NAME(tally_outer),
    .encode = NAME(encode),
};
