/* The loops over scores as floats or doubles; included by _scores_by_bin.c, with
 *
 *   REAL    float or double: it holds scores exactly
 *   KINDS   the kinds of scores that are read as such, each as KIND(kind, type, value of x)
 */
typedef struct {
    size_t n;
    ptrdiff_t at[BLOCK], step; /* where the scores of valid pixels are; their distance, or 0 */
    int32_t code[BLOCK], key[BLOCK];
    REAL score[BLOCK], best[BLOCK], best_class[BLOCK];
    float total[BLOCK];
    uint8_t is_nan[BLOCK];
} NAME(Block);

#define LOOP(type, place, value)     \
    for (size_t i = 0; i < n; i++) { \
        type x;                      \
        memcpy(&x, place, sizeof x); \
        to[i] = value;               \
    }
#define KIND(name, type, value)                                                  \
    case name:                                                                   \
        if (block->step == sizeof(type))                                         \
            LOOP(type, first + i * sizeof(type), value)                          \
        else                                                                     \
            LOOP(type, from + block->at[i], value)                               \
        break;

/* The scores of one class; of integers, the largest is 1. */
INLINE void NAME(load)(const Work *work, NAME(Block) *block, const char *row, size_t c)
{
    const char *from = row + (ptrdiff_t)c * work->class_stride, *first = from + block->at[0];
    REAL *to = block->score;
    size_t n = block->n, size = (size_t)sizes[work->kind];
    if (block->step == sizes[work->kind] && c + 1 < work->classes) /* fetch the next class */
        for (size_t line = 0; line < n * size; line += CACHE_LINE)
            FETCH(first + work->class_stride + line);
    switch (work->kind) {
        KINDS
    default:
        break;
    }
}
#undef KIND
#undef LOOP

/* The first of the highest scores so far and its class. */
INLINE void NAME(keep_best)(NAME(Block) *block, size_t c)
{
    REAL own = (REAL)c;
    if (c == 0)
        memcpy(block->best, block->score, sizeof block->best);
    for (size_t i = 0; i < block->n; i++) {
        REAL score = block->score[i], best = block->best[i];
        block->best_class[i] = score > best ? own : c == 0 ? 0 : block->best_class[i];
        block->best[i] = score > best ? score : best;
    }
}

/* Scores outside [0, 1] and NaN become 0: their counts are not used. */
INLINE int64_t NAME(check)(NAME(Block) *block)
{
    int64_t outside = 0;
    int32_t right = 1;
    for (size_t i = 0; i < block->n; i++)
        right &= (int32_t)(block->score[i] >= 0) & (int32_t)(block->score[i] <= 1);
    for (size_t i = 0; !right && i < block->n; i++) {
        REAL score = block->score[i];
        block->is_nan[i] |= score != score;
        outside += score < 0 || score > 1;
        block->score[i] = score >= 0 && score <= 1 ? score : 0;
    }
    return outside;
}

/* Cells of the scores: twice their bins, plus one for pixels with this code. */
INLINE void NAME(find_keys)(const Work *work, NAME(Block) *block, int32_t code)
{
    const REAL *score = block->score;
    int32_t *key = block->key, last = work->bins - 1;
    if (work->is_half) {
        for (size_t i = 0; i < block->n; i++) {
            double wide = (double)score[i];
            uint64_t bits;
            memcpy(&bits, &wide, sizeof bits);
            bits += 0x1FFFFFFFFFF + (bits >> 42 & 1);
            int32_t normal = (int32_t)(bits >> 42) - (1008 << 10);
            int32_t small = (int32_t)((wide * UNITS + ROUND_DOUBLE) - ROUND_DOUBLE);
            key[i] = wide < 6.103515625e-05 ? small : normal;
        }
    } else if (work->bins & last) {
        double bins = work->bins;
        for (size_t i = 0; i < block->n; i++)
            key[i] = (int32_t)((double)score[i] * bins);
    } else { /* products with powers of 2 are exact */
        REAL bins = (REAL)work->bins;
        for (size_t i = 0; i < block->n; i++)
            key[i] = (int32_t)(score[i] * bins);
    }
    for (size_t i = 0; i < block->n; i++)
        key[i] = 2 * (key[i] < last ? key[i] : last) + (block->code[i] == code);
}

INLINE void NAME(count_class)(Work *work, NAME(Block) *block, size_t c)
{
    work->outside += NAME(check)(block);
    NAME(find_keys)(work, block, (int32_t)c);
    add_keys(block->key, block->n, work->cells + c * 2 * (size_t)work->bins);
}

/* Logits → scores in float32: those of the planes in `raised`, which becomes exp(logits - best). */
INLINE void NAME(count_softmax)(Work *work, NAME(Block) *block)
{
    size_t n = block->n;
    memset(block->total, 0, sizeof block->total);
    for (size_t c = 0; c < work->classes; c++)
        for (size_t i = 0; i < n; i++) {
            float *logit = work->raised + c * BLOCK + i;
            block->total[i] += *logit = raise(*logit - (float)block->best[i]);
        }
    for (size_t c = 0; c < work->classes; c++) {
        for (size_t i = 0; i < n; i++)
            block->score[i] = work->raised[c * BLOCK + i] / block->total[i];
        NAME(count_class)(work, block, c);
    }
    for (size_t i = 0; i < n; i++)
        block->best[i] = 1.0f / block->total[i];
}

INLINE void NAME(apply_sigmoid)(REAL *score, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = (float)score[i], e = raise(x < 0.0f ? x : -x);
        score[i] = (x >= 0.0f ? 1.0f : e) / (1.0f + e);
    }
}

INLINE void NAME(count_block)(Work *work, NAME(Block) *block, const char *row)
{
    size_t n = block->n, width = 2 * (size_t)work->bins;
    memset(block->is_nan, 0, sizeof block->is_nan);
    for (size_t c = 0; c < work->classes; c++) {
        NAME(load)(work, block, row, c);
        NAME(keep_best)(block, c);
        if (work->activation == SOFTMAX) {
            for (size_t i = 0; i < n; i++)
                work->raised[c * BLOCK + i] = (float)block->score[i];
            continue;
        }
        if (work->activation == SIGMOID)
            NAME(apply_sigmoid)(block->score, n);
        NAME(count_class)(work, block, c);
    }
    if (work->activation == SOFTMAX)
        NAME(count_softmax)(work, block);
    else if (work->activation == SIGMOID)
        NAME(apply_sigmoid)(block->best, n);
    int64_t *top = work->cells + work->classes * width, *sums = top + width;
    memcpy(block->score, block->best, sizeof block->score);
    NAME(check)(block); /* counted above */
    for (size_t i = 0; i < n; i++)
        block->code[i] = (int32_t)block->best_class[i] == block->code[i];
    NAME(find_keys)(work, block, 1);
    for (size_t i = 0; i < n; i++) {
        double units = ((double)block->score[i] * UNITS + ROUND_DOUBLE) - ROUND_DOUBLE;
        sums[block->key[i] & ~1] += (int64_t)units;
        work->nan += block->is_nan[i];
    }
    add_keys(block->key, n, top);
}

INLINE void NAME(walk_blocks)(Work *work)
{
    NAME(Block) block = {0};
    const char *rows[2] = {work->scores, work->codes};
    ptrdiff_t index[MAX_AXES] = {0}, length = row_length(&work->axes);
    ptrdiff_t steps[2] = {row_stride(&work->axes, 0), row_stride(&work->axes, 1)};
    int64_t *ignored = work->cells + (work->classes + 1) * 2 * (size_t)work->bins + 1;
    do {
        for (ptrdiff_t start = 0; start < length; start += BLOCK) {
            ptrdiff_t n = length - start < BLOCK ? length - start : BLOCK;
            block.n = 0;
            for (ptrdiff_t i = start; i < start + n; i++) {
                uint16_t code;
                memcpy(&code, rows[1] + i * steps[1], sizeof code);
                block.code[block.n] = code;
                block.at[block.n] = i * steps[0];
                block.n += code < work->limit;
            }
            *ignored += n - (ptrdiff_t)block.n;
            block.step = block.n == (size_t)n ? steps[0] : 0;
            if (block.n)
                NAME(count_block)(work, &block, rows[0]);
        }
    } while (next_row(&work->axes, index, rows));
}

static void NAME(walk)(Work *work) { NAME(walk_blocks)(work); }

#ifdef HAS_AVX2
__attribute__((target("avx2"))) static void NAME(walk_avx2)(Work *work)
{
    NAME(walk_blocks)(work);
}
#endif
