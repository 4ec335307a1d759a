/* The loops over scores of every width: included once for each instruction set, with
 *
 *   TARGET   the attribute of its functions
 *   SUFFIX   what its names end with
 */
#define PASTE_(a, b, c) a##b##c
#define PASTE(a, b, c) PASTE_(a, b, c)
#define NAME(x) PASTE(x##_, WIDTH, SUFFIX)

#define WIDTH 8
#include "_scores_loops.h"
#undef WIDTH
#define WIDTH 16
#include "_scores_loops.h"
#undef WIDTH
#define WIDTH 32
#include "_scores_loops.h"
#undef WIDTH
#define WIDTH 64
#include "_scores_loops.h"
#undef WIDTH

#define OF_WIDTH(x, width) PASTE(x##_, width, SUFFIX)
#define ALL_WIDTHS(x) {OF_WIDTH(x, 8), OF_WIDTH(x, 16), OF_WIDTH(x, 32), OF_WIDTH(x, 64)}
#define FLOAT_WIDTHS(x) {NULL, OF_WIDTH(x, 16), OF_WIDTH(x, 32), OF_WIDTH(x, 64)}

static const ScoreLoops PASTE(loops, _, SUFFIX) = {
    .argmax = {ALL_WIDTHS(argmax_integers), FLOAT_WIDTHS(argmax_floats)},
    .argmax_rows = {ALL_WIDTHS(argmax_rows_integers), FLOAT_WIDTHS(argmax_rows_floats)},
    .above = FLOAT_WIDTHS(above),
    .transpose = ALL_WIDTHS(transpose),
};

#undef FLOAT_WIDTHS
#undef ALL_WIDTHS
#undef OF_WIDTH
#undef NAME
#undef PASTE
#undef PASTE_
