/* The loops over scores for whatever the compiler is told to build for. */
#include "_scores.h"

#include <string.h>

#define TARGET
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

const ScoreLoops portable_score_loops = {
    .argmax = {{argmax_integers_8, argmax_integers_16, argmax_integers_32, argmax_integers_64},
               {NULL, argmax_floats_16, argmax_floats_32, argmax_floats_64}},
    .argmax_rows = {{argmax_rows_integers_8, argmax_rows_integers_16, argmax_rows_integers_32,
                     argmax_rows_integers_64},
                    {NULL, argmax_rows_floats_16, argmax_rows_floats_32, argmax_rows_floats_64}},
    .above = {NULL, above_16, above_32, above_64},
    .turn = {turn_8, turn_16, turn_32, turn_64},
};
