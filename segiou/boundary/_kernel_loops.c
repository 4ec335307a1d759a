/* Loops over rows of bytes for each instruction set, and which this processor runs. */
#include "_kernel.h"

#define LOOPS_FILE "../boundary/_kernel_loops.h"
#include "../_support/_loops.h"
