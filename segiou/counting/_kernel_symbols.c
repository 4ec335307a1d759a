/* Values of any integer dtype, stride and byte order as symbols of 8 or 16 bits. */
#include "_kernel.h"

#include <string.h>

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

static uint16_t swap16(uint16_t v) { return (uint16_t)(v << 8 | v >> 8); }

static uint32_t swap32(uint32_t v)
{
    return v << 24 | (v & 0xFF00u) << 8 | (v >> 8 & 0xFF00u) | v >> 24;
}

static uint64_t swap64(uint64_t v)
{
    return (uint64_t)swap32((uint32_t)v) << 32 | swap32((uint32_t)(v >> 32));
}

DEFINE_PACK(16)
DEFINE_PACK(32)
DEFINE_PACK(64)

static void pack8(const char *values, ptrdiff_t stride, size_t n, char *native)
{
    for (size_t i = 0; i < n; i++)
        native[i] = values[(ptrdiff_t)i * stride];
}

static const char *as_native(const Source *source, const char *values, ptrdiff_t stride, size_t n,
                             char *native)
{
    if (stride == source->itemsize && !source->is_swapped)
        return values;
    switch (source->itemsize) {
    case 1: pack8(values, stride, n, native); break;
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
                                     uint##WIDTH##_t *symbols)                                \
    {                                                                                         \
        const uint##WIDTH##_t *codes = source->codes;                                         \
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

static void look_up8(const Source *source, const char *values, size_t n, uint8_t *symbols)
{
    switch (source->itemsize) {
    case 2: look16_8(source, values, n, symbols); break;
    case 4: look32_8(source, values, n, symbols); break;
    default: look64_8(source, values, n, symbols); break;
    }
}

static void look_up16(const Source *source, const char *values, size_t n, uint16_t *symbols)
{
    switch (source->itemsize) {
    case 2: look16_16(source, values, n, symbols); break;
    case 4: look32_16(source, values, n, symbols); break;
    default: look64_16(source, values, n, symbols); break;
    }
}

static void shift(const Source *source, const Loops *loops, const char *values, size_t n,
                  uint8_t *symbols)
{
    Shift narrow = source->itemsize == 2   ? loops->shift16
                   : source->itemsize == 4 ? loops->shift32
                                           : loops->shift64;
#ifdef HAS_X86_LOOPS
    size_t bytes = FETCHES_AHEAD ? n * (size_t)source->itemsize : 0;
    for (size_t at = 0; at < bytes; at += 64)
        FETCH_AHEAD(values + at);
#endif
    narrow(values, n, source->first, source->outside, symbols);
}

static void wide_shift(const Source *source, const Loops *loops, const char *values, size_t n,
                       uint16_t *symbols)
{
    if (source->itemsize == 1) {
        for (size_t i = 0; i < n; i++)
            symbols[i] = (uint8_t)values[i];
        return;
    }
    WideShift narrow = source->itemsize == 2   ? loops->wide16
                       : source->itemsize == 4 ? loops->wide32
                                               : loops->wide64;
    narrow(values, n, source->first, source->length, symbols);
}

const void *as_symbols(const Source *source, const Loops *loops, const char *values,
                       ptrdiff_t stride, size_t n, char *native, void *into)
{
    if (source->kind == SYMBOL_IS_BYTE)
        return as_native(source, values, stride, n, into);
    values = as_native(source, values, stride, n, native);
    switch (source->kind) {
    case SYMBOL_IS_SHIFT: shift(source, loops, values, n, into); break;
    case SYMBOL_IS_CODE8: look_up8(source, values, n, into); break;
    case SYMBOL_IS_SHIFT16: wide_shift(source, loops, values, n, into); break;
    default: look_up16(source, values, n, into); break;
    }
    return into;
}
