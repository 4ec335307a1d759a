/* Everything else is inlined into these: included once for each instruction set by _loops.h. */
TARGET static void NAME(walk_floats)(Work *work, float *planes) { walk_float(work, planes); }

TARGET static void NAME(walk_doubles)(Work *work, float *planes) { walk_double(work, planes); }

static const Loops NAME(loops) = {NAME(name), {NAME(walk_floats), NAME(walk_doubles)}};
