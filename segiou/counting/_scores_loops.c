/* The loops over scores of every width, for each instruction set. */
#include "_scores.h"

#define TYPE_(prefix, width) prefix##width##_t
#define TYPE(prefix, width) TYPE_(prefix, width)
#define SIZED(x) PASTE(PASTE(x, WIDTH), SET)
#define UP_TO_AVX2 /* AVX-512 makes transposing up to five times slower */
#define LOOPS_FILE "../counting/_scores_loops.h"
#include "../_support/_loops.h"
