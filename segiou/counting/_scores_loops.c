/* The loops over scores: for whatever the compiler is told to build for, and with AVX2, as nearly
 * every processor since 2013 has it. */
#include "_scores.h"

#include <string.h>

#define TARGET
#define SUFFIX portable
#include "_scores_widths.h"
#undef TARGET
#undef SUFFIX

#ifdef HAS_X86_LOOPS
#define TARGET __attribute__((target("avx2")))
#define SUFFIX avx2
#include "_scores_widths.h"
#endif

/* The best loops that this processor can run, or the portable ones. */
const ScoreLoops *find_score_loops(int is_portable)
{
#ifdef HAS_X86_LOOPS
    __builtin_cpu_init();
    if (!is_portable && __builtin_cpu_supports("avx2"))
        return &loops_avx2;
#endif
    (void)is_portable;
    return &loops_portable;
}
