/* What the values of an array mean: from codes to the tables that the inner loops read. */
#include "_kernel.h"

#include <stdlib.h>
#include <string.h>

void cut_range(Meaning *meaning, uint64_t first, uint64_t missing, uint64_t lowest,
               uint64_t highest)
{
    if (missing > 0) {
        uint64_t dropped = missing < meaning->length ? missing : meaning->length;
        meaning->codes += dropped;
        meaning->length -= dropped;
        first = lowest;
    }
    uint64_t room = highest - first;
    if (meaning->length > 0 && meaning->length - 1 > room)
        meaning->length = room + 1;
    /* What comes last and means the same as having no code may go; it makes room for 8 bits. */
    while (meaning->length > 0 && meaning->codes[meaning->length - 1] == meaning->states - 1)
        meaning->length--;
    meaning->first = first;
}

/* A symbol below 256 that can stand for all values without a code, or -1. */
static int find_outside(const Meaning *meaning)
{
    if (meaning->length < 256)
        return (int)meaning->length;
    for (int symbol = 0; symbol < 256 && meaning->length == 256; symbol++)
        if (meaning->codes[symbol] == meaning->states - 1)
            return symbol;
    return -1;
}

static SymbolKind choose_kind(const Source *source, const Meaning *meaning)
{
    if (source->itemsize == 1)
        return SYMBOL_IS_BYTE;
    if (find_outside(meaning) >= 0)
        return SYMBOL_IS_SHIFT;
    return meaning->states <= 256 ? SYMBOL_IS_CODE8 : SYMBOL_IS_CODE16;
}

/* Likewise, where symbols have 16 bits. */
static SymbolKind choose_wide_kind(const Source *source, const Meaning *meaning)
{
    int fits = source->itemsize == 1 || meaning->length < MAX_CODES;
    return fits ? SYMBOL_IS_SHIFT16 : SYMBOL_IS_CODE16;
}

static size_t count_symbols(const Source *source, const Meaning *meaning)
{
    if (source->kind == SYMBOL_IS_CODE8 || source->kind == SYMBOL_IS_CODE16)
        return meaning->states;
    int is_wide = source->kind == SYMBOL_IS_SHIFT16 && source->itemsize > 1;
    return is_wide ? (size_t)meaning->length + 1 : 256;
}

/* step: how far apart the counters of neighbouring codes lie. */
static void fill_offsets(Source *source, const Meaning *meaning, size_t symbols, uint32_t step)
{
    int is_byte = source->itemsize == 1;
    size_t known = meaning->length < symbols ? (size_t)meaning->length : symbols;
    for (size_t symbol = 0; symbol < symbols; symbol++)
        source->offsets[symbol] = (meaning->states - 1) * step;
    for (size_t i = 0; i < known; i++)
        source->offsets[is_byte ? (uint8_t)(meaning->first + i) : i] = meaning->codes[i] * step;
    /* Any byte that is not zero is True. */
    for (size_t symbol = 2; source->is_bool && symbol < symbols; symbol++)
        source->offsets[symbol] = source->offsets[1];
}

static int copy_codes(Source *source, const Meaning *meaning)
{
    size_t count = (size_t)source->length + 1;
    source->codes = malloc(count * sizeof(uint16_t));
    if (source->codes == NULL)
        return -1;
    for (size_t i = 0; i < count; i++) {
        uint32_t code = i < meaning->length ? meaning->codes[i] : meaning->states - 1;
        if (source->kind == SYMBOL_IS_CODE8)
            ((uint8_t *)source->codes)[i] = (uint8_t)code;
        else
            ((uint16_t *)source->codes)[i] = (uint16_t)code;
    }
    return 0;
}

static int prepare(Source *source, const Meaning *meaning, uint32_t step)
{
    size_t symbols = count_symbols(source, meaning);
    source->first = meaning->first;
    source->length = meaning->length;
    source->offsets = symbols > 256 ? malloc(symbols * sizeof(uint32_t)) : source->few_offsets;
    if (source->offsets == NULL)
        return -1;
    if (source->kind == SYMBOL_IS_CODE8 || source->kind == SYMBOL_IS_CODE16) {
        for (size_t symbol = 0; symbol < symbols; symbol++)
            source->offsets[symbol] = (uint32_t)symbol * step;
        return copy_codes(source, meaning);
    }
    fill_offsets(source, meaning, symbols, step);
    if (source->kind == SYMBOL_IS_SHIFT)
        source->outside = (uint8_t)find_outside(meaning);
    return 0;
}

int prepare_sources(Source *truth, const Meaning *truth_meaning, Source *pred,
                    const Meaning *pred_meaning)
{
    truth->kind = choose_kind(truth, truth_meaning);
    pred->kind = choose_kind(pred, pred_meaning);
    if (truth->kind == SYMBOL_IS_CODE16 || pred->kind == SYMBOL_IS_CODE16) {
        truth->kind = choose_wide_kind(truth, truth_meaning);
        pred->kind = choose_wide_kind(pred, pred_meaning);
    }
    if (prepare(truth, truth_meaning, pred_meaning->states) < 0)
        return -1;
    return prepare(pred, pred_meaning, 1);
}

void free_source(Source *source)
{
    free(source->codes);
    if (source->offsets != source->few_offsets)
        free(source->offsets);
}
