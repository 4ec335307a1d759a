/* The loops over scores as floats or doubles; included by _scores_by_bin.c, with
 *
 *   REAL, BITS  float and uint32_t, or double and uint64_t: they hold scores exactly
 *   FRACTION    bits of a REAL after its leading one
 *   KINDS       the kinds of scores that are read as such, each as KIND(kind, type, value of x)
 */
#define LOST (FRACTION - 10) /* by half precision */
#define HALF_BIAS ((((BITS)1 << (8 * sizeof(REAL) - 2 - FRACTION)) - 16) << 10)

typedef struct {
    size_t n;          /* valid pixels */
    const char *first; /* the scores of the first pixel */
    ptrdiff_t step;
    int is_whole, is_row; /* all pixels are valid; and one score follows the other */
    int right;            /* all scores are in [0, 1] */
    int32_t at[BLOCK];    /* which pixels are valid, if not all */
    int32_t code[BLOCK], key[BLOCK], units[BLOCK];
    REAL score[BLOCK], best[BLOCK];
    BITS best_class[BLOCK];
    float total[BLOCK];
    uint8_t is_nan[BLOCK];
} TYPED(Block);

#define LOOP(type, place, value)     \
    for (size_t i = 0; i < n; i++) { \
        type x;                      \
        memcpy(&x, place, sizeof x); \
        to[i] = value;               \
    }
#define KIND(name, type, value)                           \
    case name:                                            \
        if (block->is_row)                                \
            LOOP(type, from + i * sizeof(type), value)    \
        else if (block->is_whole)                         \
            LOOP(type, from + (ptrdiff_t)i * step, value) \
        else                                              \
            LOOP(type, from + block->at[i] * step, value) \
        break;

/* The scores of one class; of integers, the largest is 1. */
INLINE void TYPED(load)(const Work *work, const TYPED(Block) *block, size_t c, REAL *to)
{
    const char *from = block->first + (ptrdiff_t)c * work->class_stride;
    size_t n = block->n, size = (size_t)sizes[work->kind];
    ptrdiff_t step = block->step;
    if (block->is_row && c + 1 < work->classes) /* fetch the next class */
        for (size_t line = 0; line < n * size; line += CACHE_LINE)
            FETCH(from + work->class_stride + line);
    switch (work->kind) {
        KINDS
    default:
        break;
    }
}
#undef KIND
#undef LOOP

/* The first of the highest scores so far and its class. */
INLINE void TYPED(keep_best)(TYPED(Block) *block, const REAL *scores, BITS own)
{
    for (size_t i = 0; i < block->n; i++) {
        REAL score = scores[i], best = block->best[i];
        BITS is_more = -(BITS)(score > best); /* no branch */
        block->best_class[i] = (own & is_more) | (block->best_class[i] & ~is_more);
        block->best[i] = score > best ? score : best;
    }
}

/* Clamps a scaled score to 0 and the last bin. NaN becomes 0. Counts of such scores are not used. */
INLINE REAL TYPED(scaled)(REAL score, REAL factor, REAL last)
{
    score = (score > 0 ? score : 0) * factor;
    return score < last ? score : last;
}

/* The nearest integer of a number from 0 on. */
INLINE int32_t TYPED(rounded)(REAL number)
{
    const REAL whole = (REAL)((BITS)1 << FRACTION); /* from here on, all numbers are */
    REAL found = (number + whole) - whole;
    return (int32_t)(number < whole ? found : number);
}

#if FRACTION == 52
/* Sets `near` if the product is so near an edge that rounding may have carried it across. */
INLINE double product_with(double bins, double score, int32_t *near)
{
    const double whole = (double)((uint64_t)1 << FRACTION);
    double product = scaled_double(score, bins, bins - 0.5);
    *near |= fabs((product + whole) - whole - product) < product * 0x1p-40;
    return product;
}

/* Compares the score with the nearest edge, which takes longer. */
INLINE double bin_between_edges(double bins, double score)
{
    const double whole = (double)((uint64_t)1 << FRACTION);
    double edge = (scaled_double(score, bins, bins) + whole) - whole;
    double bin = edge - (score < edge / bins);
    return bin < bins - 1 ? bin : bins - 1;
}
#endif

/* The bits of a half-precision number; small ones are multiples of 2^-24. Clamped before its bits
 * are read: the bits of NaN and of negative numbers are not an index. */
INLINE int32_t TYPED(half_bin)(REAL given)
{
    REAL score = TYPED(scaled)(given, 1, 1);
    BITS bits;
    memcpy(&bits, &score, sizeof bits);
    bits += ((BITS)1 << (LOST - 1)) - 1 + (bits >> LOST & 1);
    int32_t normal = (int32_t)((bits >> LOST) - HALF_BIAS);
    return score < SMALLEST_NORMAL ? TYPED(rounded)(score * UNITS) : normal;
}

/* Cells of the scores: twice their bins, plus one for pixels with this code. Returns whether all
 * scores are in [0, 1]. */
INLINE int TYPED(find_keys)(const Work *work, TYPED(Block) *block, const REAL *scores, int32_t code)
{
    int32_t *key = block->key, last = work->bins - 1, right = 1;
#define LOOP(bin)                                               \
    for (size_t i = 0; i < block->n; i++) {                     \
        REAL score = scores[i];                                 \
        key[i] = 2 * (int32_t)(bin) + (block->code[i] == code); \
        right &= (int32_t)(score >= 0) & (int32_t)(score <= 1); \
    }
    if (work->is_half)
        LOOP(TYPED(half_bin)(score))
    else if (!(work->bins & last)) /* products with powers of 2 are exact */
        LOOP(TYPED(scaled)(score, (REAL)work->bins, (REAL)last))
    else if (sizeof(REAL) == sizeof(float)) /* as are those of floats in double precision */
        LOOP(scaled_double(score, work->bins, last))
    else {
        int32_t near = 0;
        LOOP(product_with(work->bins, score, &near))
        if (near)
            LOOP(bin_between_edges(work->bins, score))
    }
#undef LOOP
    return right;
}

INLINE void TYPED(count_class)(Work *work, TYPED(Block) *block, const REAL *scores, size_t c)
{
    int right = TYPED(find_keys)(work, block, scores, (int32_t)c);
    if (!right)
        for (size_t i = 0; i < block->n; i++) {
            block->is_nan[i] |= scores[i] != scores[i];
            work->outside += scores[i] < 0 || scores[i] > 1;
        }
    add_keys(block->key, NULL, block->n, work->cells + c * 2 * (size_t)work->bins);
    block->right &= right;
}

/* Floats stay in their plane; doubles have a place of their own. */
INLINE REAL *TYPED(scores_of)(TYPED(Block) *block, float *plane)
{
    return sizeof(REAL) == sizeof(float) ? (void *)plane : block->score;
}

/* Logits → scores in float32; the planes become exp(logits - best). Doubles are read once more,
 * since float holds neither all of them nor their last digits. */
INLINE void TYPED(count_softmax)(Work *work, TYPED(Block) *block, float *planes)
{
    size_t n = block->n;
    for (size_t i = 0; i < n; i++)
        block->total[i] = 0;
    for (size_t c = 0; c < work->classes; c++) {
        float *plane = planes + c * BLOCK;
        REAL *logits = TYPED(scores_of)(block, plane);
        if (logits == block->score)
            TYPED(load)(work, block, c, logits);
        for (size_t i = 0; i < n; i++)
            block->total[i] += plane[i] = raise((float)(logits[i] - block->best[i]));
    }
    for (size_t c = 0; c < work->classes; c++) {
        float *plane = planes + c * BLOCK;
        REAL *scores = TYPED(scores_of)(block, plane);
        for (size_t i = 0; i < n; i++)
            scores[i] = plane[i] / block->total[i];
        TYPED(count_class)(work, block, scores, c);
    }
    for (size_t i = 0; i < n; i++)
        block->best[i] = 1.0f / block->total[i];
}

INLINE void TYPED(apply_sigmoid)(REAL *score, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = (float)score[i], e = raise(x < 0.0f ? x : -x);
        score[i] = (x >= 0.0f ? 1.0f : e) / (1.0f + e);
    }
}

/* The highest score of each pixel: its bin, whether its class is right, and its sum. */
INLINE void TYPED(count_top)(Work *work, TYPED(Block) *block)
{
    size_t n = block->n, width = 2 * (size_t)work->bins;
    int64_t *top = work->cells + work->classes * width;
    for (size_t i = 0; i < n; i++) {
        block->units[i] = TYPED(rounded)(TYPED(scaled)(block->best[i], UNITS, UNITS));
        block->code[i] = (int32_t)block->best_class[i] == block->code[i];
    }
    TYPED(find_keys)(work, block, block->best, 1);
    add_keys(block->key, NULL, n, top);
    add_keys(block->key, block->units, n, top + width);
}

INLINE void TYPED(count_block)(Work *work, TYPED(Block) *block, float *planes)
{
    size_t n = block->n, step = work->activation == SOFTMAX ? BLOCK : 0;
    for (size_t i = 0; i < n; i++) {
        block->best[i] = -INFINITY;
        block->best_class[i] = 0;
    }
    memset(block->is_nan, 0, n);
    block->right = 1;
    for (size_t c = 0; c < work->classes; c++) {
        float *plane = planes + c * step;
        REAL *scores = TYPED(scores_of)(block, plane);
        TYPED(load)(work, block, c, scores);
        TYPED(keep_best)(block, scores, (BITS)c);
        if (work->activation == SOFTMAX)
            continue;
        if (work->activation == SIGMOID)
            TYPED(apply_sigmoid)(scores, n);
        TYPED(count_class)(work, block, scores, c);
    }
    if (work->activation == SOFTMAX)
        TYPED(count_softmax)(work, block, planes);
    else if (work->activation == SIGMOID)
        TYPED(apply_sigmoid)(block->best, n);
    TYPED(count_top)(work, block);
    for (size_t i = 0; i < n && !block->right; i++)
        work->nan += block->is_nan[i];
}

/* The codes of valid pixels, and which these are. */
INLINE void TYPED(keep_valid)(const Work *work, TYPED(Block) *block, const uint16_t *codes,
                              size_t n)
{
    size_t valid = 0;
    for (size_t i = 0; i < n; i++) {
        block->code[i] = codes[i];
        valid += codes[i] < work->limit;
    }
    block->n = valid;
    block->is_whole = valid == n;
    block->is_row = block->is_whole && block->step == sizes[work->kind];
    valid = 0;
    for (size_t i = 0; i < n && !block->is_whole; i++) {
        block->code[valid] = codes[i];
        block->at[valid] = (int32_t)i;
        valid += codes[i] < work->limit;
    }
}

INLINE void TYPED(walk)(Work *work, float *planes)
{
    TYPED(Block) block = {.step = row_stride(&work->axes, 0)};
    const char *row = work->scores;
    const uint16_t *codes = work->codes;
    ptrdiff_t index[MAX_AXES] = {0}, length = row_length(&work->axes);
    int64_t *ignored = work->cells + (work->classes + 1) * 2 * (size_t)work->bins + 1;
    do {
        for (ptrdiff_t start = 0; start < length; start += BLOCK) {
            size_t n = (size_t)(length - start < BLOCK ? length - start : BLOCK);
            block.first = row + start * block.step;
            TYPED(keep_valid)(work, &block, codes, n);
            TYPED(count_block)(work, &block, planes);
            *ignored += (int64_t)(n - block.n);
            codes += n;
        }
    } while (next_row(&work->axes, index, &row));
}

#undef LOST
#undef HALF_BIAS
#undef REAL
#undef BITS
#undef FRACTION
#undef KINDS
