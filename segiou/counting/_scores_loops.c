/* The loops over scores: for whatever the compiler is told to build for, and with AVX2, as nearly
 * every processor since 2013 has it. */
#include "../_support/_bytes.h"
#include "_scores.h"

#include <string.h>

#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define NAME(x) PASTE(x##_, WIDTH, SUFFIX)

#define OF(x, suffix) {x##_8##suffix, x##_16##suffix, x##_32##suffix, x##_64##suffix}
#ifdef HAS_SHUFFLES
#define ROWS_OF(suffix) OF(argmax_rows, suffix)
#else
#define ROWS_OF(suffix) {NULL}
#endif
#define LOOPS(suffix)                                                                         \
    {                                                                                         \
        .argmax = OF(argmax, suffix),                                                         \
        .argmax_rows = ROWS_OF(suffix),                                                       \
        .above = {NULL, above_16##suffix, above_32##suffix, above_64##suffix},                \
        .transpose = OF(transpose, suffix),                                                   \
    }

#define TARGET
#define SUFFIX portable
#define WIDTH 8
#include "_scores_loops.h"
#define WIDTH 16
#include "_scores_loops.h"
#define WIDTH 32
#include "_scores_loops.h"
#define WIDTH 64
#include "_scores_loops.h"
static const ScoreLoops portable_loops = LOOPS(portable);
#undef TARGET
#undef SUFFIX

#ifdef HAS_X86_LOOPS
#define TARGET AVX2
#define SUFFIX avx2
#define WIDTH 8
#include "_scores_loops.h"
#define WIDTH 16
#include "_scores_loops.h"
#define WIDTH 32
#include "_scores_loops.h"
#define WIDTH 64
#include "_scores_loops.h"
static const ScoreLoops avx2_loops = LOOPS(avx2);
#endif

const ScoreLoops *find_score_loops(int is_portable)
{
#ifdef HAS_X86_LOOPS
    __builtin_cpu_init();
    if (!is_portable && __builtin_cpu_supports("avx2"))
        return &avx2_loops;
#endif
    (void)is_portable;
    return &portable_loops;
}
