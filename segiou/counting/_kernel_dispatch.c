/* Which inner loops this processor can run. */
#include "_kernel.h"

#include <string.h>

static int is_runnable(const Loops *loops)
{
    return loops->is_runnable == NULL || loops->is_runnable();
}

/* The best first. */
static const Loops *const all_loops[] = {
#ifdef HAS_X86_LOOPS
    &avx512_loops,
    &avx2_loops,
#endif
    &portable_loops,
};
static const size_t all_count = sizeof all_loops / sizeof all_loops[0];

const Loops *find_loops(const char *name)
{
    for (size_t i = 0; i < all_count; i++) {
        int is_wanted = name == NULL || strcmp(name, all_loops[i]->name) == 0;
        if (is_wanted && is_runnable(all_loops[i]))
            return all_loops[i];
    }
    return NULL;
}

int list_loops(const char **names)
{
    int found = 0;
    for (size_t i = 0; i < all_count; i++)
        if (is_runnable(all_loops[i]))
            names[found++] = all_loops[i]->name;
    return found;
}
