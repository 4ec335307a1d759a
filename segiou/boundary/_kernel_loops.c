/* Loops over rows of bytes for each instruction set, and which this processor runs. */
#include "_kernel.h"

#include <string.h>

/* Up to so many classes are counted class by class. */
enum { few_classes_portable = 0, few_classes_avx2 = 16, few_classes_avx512 = 32 };

#define LOOPS_FILE "../boundary/_kernel_loops.h"
#include "../_support/_loops.h"
