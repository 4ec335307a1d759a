/* The loops over scores, for each width: included once for each instruction set by _loops.h. */
#define WIDTH 8
#include "_scores_width.h"
#define WIDTH 16
#include "_scores_width.h"
#define WIDTH 32
#include "_scores_width.h"
#define WIDTH 64
#include "_scores_width.h"

#define OF(x) {NAME(x##_8), NAME(x##_16), NAME(x##_32), NAME(x##_64)}
static const Loops NAME(loops) = {
    .name = NAME(name),
    .argmax = OF(argmax),
#ifdef HAS_SHUFFLES
    .argmax_rows = OF(argmax_rows),
#endif
    .above = {NULL, NAME(above_16), NAME(above_32), NAME(above_64)},
    .transpose = OF(transpose),
};
#undef OF
