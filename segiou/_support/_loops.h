/* Loops that are built once for each instruction set, and the choice among them.
 *
 * The file that includes this one defines before:
 *
 *   Loops        a table of functions, and the `name` of the set, which is NAME(name)
 *   LOOPS_FILE   the file of the functions, which ends with a table NAME(loops). They have the
 *                attribute TARGET, and names NAME(x), which end with that of the set
 *   USES_VBMI2   if those for AVX-512 need what it has since Ice Lake and Zen 4
 *   UP_TO_AVX2   if there are none for AVX-512
 */
#ifndef SEGIOU_LOOPS_H
#define SEGIOU_LOOPS_H

#include "_bytes.h"

#include <string.h>

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)
#define NAME(x) PASTE(x, SET)
#define name_portable "c"
#define name_avx2 "c-avx2"
#define name_avx512 "c-avx512"

#define differ64_portable differ64
#define differ64_from_portable differ64_from
#define count_ones_portable (int64_t)count_ones
#define SET portable
#define TARGET
#include LOOPS_FILE
#undef SET
#undef TARGET

#ifdef HAS_X86_LOOPS
#define SET avx2
#define TARGET __attribute__((target("avx2,bmi,popcnt")))
#include LOOPS_FILE
#undef SET
#undef TARGET

#ifndef UP_TO_AVX2
#ifdef USES_VBMI2
#define VBMI2 ",avx512vbmi2"
#define HAS_VBMI2 __builtin_cpu_supports("avx512vbmi2")
#else
#define VBMI2
#define HAS_VBMI2 1
#endif
#define SET avx512
#define TARGET __attribute__((target("avx512bw,avx512vl,avx2,bmi,popcnt" VBMI2)))
#include LOOPS_FILE
#undef SET
#undef TARGET
#endif
#endif

/* The sets that this processor runs, the best first. Returns how many. */
int list_loops(const Loops **found)
{
    int n = 0;
#ifdef HAS_X86_LOOPS
    __builtin_cpu_init();
    int has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                   __builtin_cpu_supports("popcnt");
#ifndef UP_TO_AVX2
    if (has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
        HAS_VBMI2)
        found[n++] = &loops_avx512;
#endif
    if (has_avx2)
        found[n++] = &loops_avx2;
#endif
    found[n++] = &loops_portable;
    return n;
}

/* Those of this name, or the best where it is NULL; NULL if this processor does not run them. */
const Loops *find_loops(const char *name)
{
    const Loops *found[3];
    int n = list_loops(found);
    for (int i = 0; i < n; i++)
        if (name == NULL || strcmp(name, found[i]->name) == 0)
            return found[i];
    return NULL;
}

#endif
