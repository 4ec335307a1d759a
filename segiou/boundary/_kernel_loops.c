/* Loops over rows of bytes for each instruction set, and which this processor runs. */
#include "../_support/_bytes.h"
#include "_kernel.h"

#include <string.h>

#define differ64_portable differ64

#define differ64_from_portable differ64_from
#define count_ones_portable (int64_t)count_ones

#define TARGET
#define LOOPS "portable"
#define FEW_CLASSES 0
#define NAME(x) x##_portable
#include "_kernel_loops.h"
#undef TARGET
#undef LOOPS
#undef FEW_CLASSES
#undef NAME

#ifdef HAS_X86_LOOPS
#define TARGET __attribute__((target("avx2,bmi,popcnt")))
#define LOOPS "avx2"
#define FEW_CLASSES 16
#define NAME(x) x##_avx2

TARGET static inline int64_t count_ones_avx2(uint64_t word)
{
    return __builtin_popcountll(word);
}

#include "_kernel_loops.h"
#undef TARGET
#undef LOOPS
#undef FEW_CLASSES
#undef NAME

/* GCC would take vectors of half the width; clang does not know the option. */
#ifdef __clang__
#define WIDEST_VECTORS
#else
#define WIDEST_VECTORS ",prefer-vector-width=512"
#endif
#define TARGET                                                                                \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx2,bmi,popcnt" WIDEST_VECTORS)))
#define LOOPS "avx512"
#define FEW_CLASSES 32
#define NAME(x) x##_avx512

TARGET static inline int64_t count_ones_avx512(uint64_t word)
{
    return __builtin_popcountll(word);
}

#include "_kernel_loops.h"

#endif

const Loops *find_loops(const char *name)
{
    const Loops *all[3];
    size_t n = 0;
#ifdef HAS_X86_LOOPS
    __builtin_cpu_init();
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("popcnt");
    if (has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        all[n++] = &loops_avx512;
    if (has_avx2)
        all[n++] = &loops_avx2;
#endif
    all[n++] = &loops_portable;
    for (size_t i = 0; i < n; i++)
        if (name == NULL || strcmp(name, all[i]->name) == 0)
            return all[i];
    return NULL;
}
