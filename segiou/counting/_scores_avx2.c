/* The loops over scores with AVX2, as nearly every processor since 2013 has it. */
#include "_scores.h"

#ifdef HAS_X86_LOOPS

#include <string.h>

#define TARGET __attribute__((target("avx2")))
#define WIDTH 8
#define NAME(x) x##_8
#include "_scores_loops.h"
#undef WIDTH
#undef NAME
#define WIDTH 16
#define NAME(x) x##_16
#include "_scores_loops.h"
#undef WIDTH
#undef NAME
#define WIDTH 32
#define NAME(x) x##_32
#include "_scores_loops.h"
#undef WIDTH
#undef NAME
#define WIDTH 64
#define NAME(x) x##_64
#include "_scores_loops.h"
#undef WIDTH
#undef NAME

const ScoreLoops avx2_score_loops = {
    .argmax = {{argmax_integers_8, argmax_integers_16, argmax_integers_32, argmax_integers_64},
               {NULL, argmax_floats_16, argmax_floats_32, argmax_floats_64}},
    .argmax_rows = {{argmax_rows_integers_8, argmax_rows_integers_16, argmax_rows_integers_32,
                     argmax_rows_integers_64},
                    {NULL, argmax_rows_floats_16, argmax_rows_floats_32, argmax_rows_floats_64}},
    .above = {NULL, above_16, above_32, above_64},
    .turn = {turn_8, turn_16, turn_32, turn_64},
};

#endif
