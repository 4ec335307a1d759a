/* Converts integers of any width and stride to symbols of 8 or 16 bits, and builds the tables that
 * translate symbols back. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

void cut_range(Source *source, uint64_t missing, uint64_t lowest, uint64_t highest)
{
    if (missing > 0) {
        uint64_t dropped = missing < source->length ? missing : source->length;
        source->codes += dropped;
        source->length -= dropped;
        source->first = lowest;
    }
    uint64_t room = highest - source->first;
    if (source->length > 0 && source->length - 1 > room)
        source->length = room + 1;
    /* What comes last and means the same as having no code may go; it makes room for 8 bits. */
    while (source->length > 0 && source->codes[source->length - 1] == source->states - 1)
        source->length--;
    source->codes[source->length] = (uint16_t)(source->states - 1);
}

/* The first symbol that may stand for all values without a code; codes end with one of theirs. */
static uint64_t find_outside(const Source *source)
{
    uint64_t symbol = 0;
    while (source->codes[symbol] != source->states - 1)
        symbol++;
    return symbol;
}

/* Whether differences from `first` are symbols below a limit. */
static int fits(const Source *source, uint64_t limit)
{
    return source->length <= limit && find_outside(source) < limit;
}

/* step: how far apart the counters of neighbouring codes lie. */
static void fill_offsets(Source *source, size_t symbols, uint32_t step)
{
    int is_byte = source->itemsize == 1;
    for (size_t symbol = 0; symbol < symbols; symbol++)
        source->offsets[symbol] = (source->states - 1) * step;
    for (size_t i = 0; i < source->length && i < symbols; i++)
        source->offsets[is_byte ? (uint8_t)(source->first + i) : i] = source->codes[i] * step;
    /* Any byte that is not zero is True. */
    for (size_t symbol = 2; source->is_bool && symbol < symbols; symbol++)
        source->offsets[symbol] = source->offsets[1];
}

static int prepare(Source *source, int is_wide, uint32_t step)
{
    source->outside = (uint16_t)find_outside(source);
    source->mask = 255;
    while (is_wide && source->itemsize > 1 && source->mask < MAX_CODES - 1 &&
           (source->mask < source->outside || source->mask + UINT64_C(1) < source->length))
        source->mask = (uint16_t)(2 * source->mask + 1);
    source->kind = source->itemsize > 2 && !fits(source, MAX_CODES) ? LOOKED_UP : SHIFTED;
    size_t symbols = source->kind == LOOKED_UP ? source->states : source->mask + (size_t)1;
    source->offsets = symbols > 256 ? malloc(symbols * sizeof(uint32_t)) : source->few_offsets;
    if (source->offsets == NULL)
        return -1;
    for (size_t symbol = 0; source->kind == LOOKED_UP && symbol < symbols; symbol++)
        source->offsets[symbol] = (uint32_t)symbol * step;
    if (source->kind == SHIFTED)
        fill_offsets(source, symbols, step);
    if (source->itemsize == 1) {
        source->kind = is_wide ? SHIFTED : AS_IS;
        source->first = 0;
    }
    return 0;
}

int prepare_sources(Source *truth, Source *pred)
{
    int is_narrow = (truth->itemsize == 1 || fits(truth, 256)) &&
                    (pred->itemsize == 1 || fits(pred, 256));
    int failed = prepare(truth, !is_narrow, pred->states) < 0 || prepare(pred, !is_narrow, 1) < 0;
    return failed ? -1 : !is_narrow;
}

void free_source(Source *source)
{
    free(source->memory);
    if (source->offsets != source->few_offsets)
        free(source->offsets);
}

#define GATHER(BYTES)                                                                         \
    for (size_t i = 0; i < n; i++)                                                            \
        memcpy(into + i * BYTES, values + (ptrdiff_t)i * stride, BYTES);

static const char *gather(int itemsize, const char *values, ptrdiff_t stride, size_t n, char *into)
{
    switch (itemsize) {
    case 1: GATHER(1) break;
    case 2: GATHER(2) break;
    case 4: GATHER(4) break;
    default: GATHER(8) break;
    }
    return into;
}

/* The difference is taken modulo the width of the dtype, so that one unsigned comparison checks
 * both ends of the range, for signed and unsigned values alike. */
#define DEFINE_LOOK(BITS)                                                                     \
    static void look##BITS(const Source *source, const char *values, size_t n,                \
                           uint16_t *symbols)                                                 \
    {                                                                                         \
        uint##BITS##_t value;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            value -= (uint##BITS##_t)source->first;                                           \
            symbols[i] = source->codes[value < source->length ? value : source->length];      \
        }                                                                                     \
    }

DEFINE_LOOK(32)
DEFINE_LOOK(64)

const void *as_symbols(const Source *source, const Loops *loops, int is_wide, const char *values,
                       ptrdiff_t stride, size_t n, char *gathered, void *into)
{
    int size = source->itemsize, width = (size > 1) + (size > 2) + (size > 4);
    if (stride != size)
        values = gather(size, values, stride, n, source->kind == AS_IS ? into : gathered);
    if (source->kind == AS_IS)
        return values;
    if (source->kind == SHIFTED)
        loops->shift[is_wide][width](source, values, n, into);
    else
        (size == 4 ? look32 : look64)(source, values, n, into);
    return into;
}
