/* Values of any integer dtype, stride and byte order as symbols of 8 or 16 bits; and the tables
 * of what the symbols mean. */
#include "../_support/_bytes.h"
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
}

/* A symbol below 256 that can stand for all values without a code, or -1. */
static int find_outside(const Source *source)
{
    if (source->length < 256)
        return (int)source->length;
    for (int symbol = 0; symbol < 256 && source->length == 256; symbol++)
        if (source->codes[symbol] == source->states - 1)
            return symbol;
    return -1;
}

static SymbolKind choose_kind(const Source *source)
{
    if (source->itemsize == 1)
        return SYMBOL_IS_BYTE;
    if (find_outside(source) >= 0)
        return SYMBOL_IS_SHIFT;
    return source->states <= 256 ? SYMBOL_IS_CODE8 : SYMBOL_IS_CODE16;
}

/* Likewise, where symbols have 16 bits. */
static SymbolKind choose_wide_kind(const Source *source)
{
    int fits = source->itemsize == 1 || source->length < MAX_CODES;
    return fits ? SYMBOL_IS_SHIFT16 : SYMBOL_IS_CODE16;
}

static size_t count_symbols(const Source *source)
{
    if (source->kind == SYMBOL_IS_CODE8 || source->kind == SYMBOL_IS_CODE16)
        return source->states;
    int is_wide = source->kind == SYMBOL_IS_SHIFT16 && source->itemsize > 1;
    return is_wide ? (size_t)source->length + 1 : 256;
}

/* step: how far apart the counters of neighbouring codes lie. */
static void fill_offsets(Source *source, size_t symbols, uint32_t step)
{
    int is_byte = source->itemsize == 1;
    size_t known = source->length < symbols ? (size_t)source->length : symbols;
    for (size_t symbol = 0; symbol < symbols; symbol++)
        source->offsets[symbol] = (source->states - 1) * step;
    for (size_t i = 0; i < known; i++)
        source->offsets[is_byte ? (uint8_t)(source->first + i) : i] = source->codes[i] * step;
    /* Any byte that is not zero is True. */
    for (size_t symbol = 2; source->is_bool && symbol < symbols; symbol++)
        source->offsets[symbol] = source->offsets[1];
}

static int copy_codes(Source *source)
{
    size_t count = (size_t)source->length + 1;
    uint8_t *narrow = source->looked_up = malloc(count * sizeof(uint16_t));
    uint16_t *wide = source->looked_up;
    for (size_t i = 0; wide != NULL && i < count; i++) {
        uint32_t code = i < source->length ? source->codes[i] : source->states - 1;
        if (source->kind == SYMBOL_IS_CODE8)
            narrow[i] = (uint8_t)code;
        else
            wide[i] = (uint16_t)code;
    }
    return wide != NULL ? 0 : -1;
}

static int prepare(Source *source, uint32_t step)
{
    size_t symbols = count_symbols(source);
    source->offsets = symbols > 256 ? malloc(symbols * sizeof(uint32_t)) : source->few_offsets;
    if (source->offsets == NULL)
        return -1;
    if (source->kind == SYMBOL_IS_CODE8 || source->kind == SYMBOL_IS_CODE16) {
        for (size_t symbol = 0; symbol < symbols; symbol++)
            source->offsets[symbol] = (uint32_t)symbol * step;
        return copy_codes(source);
    }
    fill_offsets(source, symbols, step);
    if (source->kind == SYMBOL_IS_SHIFT)
        source->outside = (uint8_t)find_outside(source);
    return 0;
}

int prepare_sources(Source *truth, Source *pred)
{
    truth->kind = choose_kind(truth);
    pred->kind = choose_kind(pred);
    if (truth->kind == SYMBOL_IS_CODE16 || pred->kind == SYMBOL_IS_CODE16) {
        truth->kind = choose_wide_kind(truth);
        pred->kind = choose_wide_kind(pred);
    }
    return prepare(truth, pred->states) < 0 ? -1 : prepare(pred, 1);
}

void free_source(Source *source)
{
    free(source->memory);
    free(source->looked_up);
    if (source->offsets != source->few_offsets)
        free(source->offsets);
}

/* The index of what exists for 2, 4 and 8 bytes. */
static int width_of(const Source *source) { return source->itemsize == 8 ? 2 : source->itemsize / 4; }

/* Strided or byte-swapped values as contiguous native ones. Values that are merely swapped have
 * a loop of their own, which compilers vectorise. */
#define DEFINE_PACK(BITS)                                                                     \
    static void swap_row##BITS(const char *values, size_t n, char *native)                    \
    {                                                                                         \
        uint##BITS##_t value;                                                                 \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            value = swap##BITS(value);                                                        \
            memcpy(native + i * sizeof value, &value, sizeof value);                          \
        }                                                                                     \
    }                                                                                         \
    static void pack##BITS(const char *values, ptrdiff_t stride, int is_swapped, size_t n,    \
                           char *native)                                                      \
    {                                                                                         \
        for (size_t i = 0; i < n && stride != BITS / 8; i++)                                  \
            memcpy(native + i * (BITS / 8), values + (ptrdiff_t)i * stride, BITS / 8);        \
        if (is_swapped)                                                                       \
            swap_row##BITS(stride == BITS / 8 ? values : native, n, native);                  \
    }

static uint8_t swap8(uint8_t v) { return v; }

static uint16_t swap16(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }

static uint32_t swap32(uint32_t v)
{
    return v << 24 | (v & 0xFF00u) << 8 | (v >> 8 & 0xFF00u) | v >> 24;
}

static uint64_t swap64(uint64_t v)
{
    return (uint64_t)swap32((uint32_t)v) << 32 | swap32((uint32_t)(v >> 32));
}

DEFINE_PACK(8)
DEFINE_PACK(16)
DEFINE_PACK(32)
DEFINE_PACK(64)

static const char *as_native(const Source *source, const char *values, ptrdiff_t stride, size_t n,
                             char *native)
{
    if (stride == source->itemsize && !source->is_swapped)
        return values;
    switch (source->itemsize) {
    case 1: pack8(values, stride, 0, n, native); break;
    case 2: pack16(values, stride, source->is_swapped, n, native); break;
    case 4: pack32(values, stride, source->is_swapped, n, native); break;
    default: pack64(values, stride, source->is_swapped, n, native); break;
    }
    return native;
}

/* The difference is taken modulo the width of the dtype, so that one unsigned comparison checks
 * both ends of the range, for signed and unsigned values alike. */
#define DEFINE_LOOK(BITS, WIDTH)                                                              \
    static void look##BITS##_##WIDTH(const Source *source, const char *values, size_t n,      \
                                     void *into)                                              \
    {                                                                                         \
        const uint##WIDTH##_t *codes = source->looked_up;                                     \
        uint##WIDTH##_t *symbols = into;                                                      \
        uint##BITS##_t value, first = (uint##BITS##_t)source->first;                          \
        for (size_t i = 0; i < n; i++) {                                                      \
            memcpy(&value, values + i * sizeof value, sizeof value);                          \
            uint64_t index = (uint##BITS##_t)(value - first);                                 \
            symbols[i] = codes[index < source->length ? index : source->length];              \
        }                                                                                     \
    }

DEFINE_LOOK(16, 8)
DEFINE_LOOK(32, 8)
DEFINE_LOOK(64, 8)
DEFINE_LOOK(16, 16)
DEFINE_LOOK(32, 16)
DEFINE_LOOK(64, 16)

typedef void (*Look)(const Source *source, const char *values, size_t n, void *into);
static const Look looks8[] = {look16_8, look32_8, look64_8};
static const Look looks16[] = {look16_16, look32_16, look64_16};

static void shift(const Source *source, const Loops *loops, const char *values, size_t n,
                  uint8_t *symbols)
{
    size_t bytes = FETCHES_AHEAD ? n * (size_t)source->itemsize : 0;
    for (size_t at = 0; at < bytes; at += 64)
        FETCH_AHEAD(values + at);
    loops->shift[width_of(source)](values, n, source->first, source->outside, symbols);
}

static void wide_shift(const Source *source, const Loops *loops, const char *values, size_t n,
                       uint16_t *symbols)
{
    if (source->itemsize == 1) {
        for (size_t i = 0; i < n; i++)
            symbols[i] = (uint8_t)values[i];
        return;
    }
    loops->wide[width_of(source)](values, n, source->first, source->length, symbols);
}

const void *as_symbols(const Source *source, const Loops *loops, const char *values,
                       ptrdiff_t stride, size_t n, char *native, void *into)
{
    if (source->kind == SYMBOL_IS_BYTE)
        return as_native(source, values, stride, n, into);
    values = as_native(source, values, stride, n, native);
    switch (source->kind) {
    case SYMBOL_IS_SHIFT: shift(source, loops, values, n, into); break;
    case SYMBOL_IS_CODE8: looks8[width_of(source)](source, values, n, into); break;
    case SYMBOL_IS_SHIFT16: wide_shift(source, loops, values, n, into); break;
    default: looks16[width_of(source)](source, values, n, into); break;
    }
    return into;
}
