/* Loops over the ids of one side, for each width. */

#define DEFINE_LOOPS(BITS)                                                                         \
    TARGET static void NAME(mark_##BITS)(const void *ids, size_t n, uint64_t *restrict marks)      \
    {                                                                                              \
        const uint##BITS##_t *id = ids;                                                            \
        uint8_t differs[64];                                                                       \
        const int fetches = FETCHES_AHEAD;                                                         \
        for (; n >= 64; n -= 64, id += 64) {                                                       \
            for (size_t line = 0; fetches && line < BITS; line += 8)                               \
                FETCH_AHEAD((const char *)id + 8 * line);                                          \
            for (size_t i = 0; i < 64; i++)                                                        \
                differs[i] = id[i] != id[i + 1];                                                   \
            *marks++ |= NAME(differ64_from)(differs, 0);                                           \
        }                                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            *marks |= (uint64_t)(id[i] != id[i + 1]) << i;                                         \
    }                                                                                              \
    TARGET static void NAME(place_##BITS)(const void *ids, size_t n, const Side *side,             \
                                          uint32_t scale, uint32_t *restrict cells)                \
    {                                                                                              \
        const uint##BITS##_t *id = ids, low = (uint##BITS##_t)side->low;                           \
        const uint##BITS##_t last = (uint##BITS##_t)side->last;                                    \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##BITS##_t place = (uint##BITS##_t)(id[i] - low);                                  \
            cells[i] += place <= last ? (uint32_t)place * scale : OUTSIDE;                         \
        }                                                                                          \
    }                                                                                              \
    TARGET static void NAME(span_##BITS)(const void *ids, size_t n, Side *side)                    \
    {                                                                                              \
        const uint##BITS##_t *id = ids, sign = (uint##BITS##_t)side->sign;                         \
        uint##BITS##_t least = UINT##BITS##_MAX, most = 0;                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            uint##BITS##_t rank = id[i] ^ sign; /* negative ids come first */                      \
            least = rank < least ? rank : least;                                                   \
            most = rank > most ? rank : most;                                                      \
        }                                                                                          \
        side->low = least ^ sign;                                                                  \
        side->last = (uint##BITS##_t)(most - least);                                               \
    }

DEFINE_LOOPS(8)
DEFINE_LOOPS(16)
DEFINE_LOOPS(32)
DEFINE_LOOPS(64)
#undef DEFINE_LOOPS

#define OF(x) {[1] = NAME(x##_8), [2] = NAME(x##_16), [4] = NAME(x##_32), [8] = NAME(x##_64)}
TARGET static void NAME(mark_ends)(const Side *truth, const Side *pred, size_t at, size_t n,
                                   uint64_t *marks)
{
    static void (*const mark[9])(const void *, size_t, uint64_t *restrict) = OF(mark);
    mark[truth->size](ids_from(truth, at), n - 1, marks);
    mark[pred->size](ids_from(pred, at), n - 1, marks);
    marks[(n - 1) / 64] |= UINT64_C(1) << (n - 1) % 64;
}

static const Loops NAME(loops) = {NAME(name), NAME(mark_ends), OF(place), OF(span)};
#undef OF
