/* Inflate a zlib stream into memory of a known size.
 *
 * Whatever zlib refuses is refused here, and whatever is rare as well, such as a code that is not
 * complete: then the usual reader has the last word. What is accepted gives the bytes that zlib
 * gives.
 *
 * Definitions: RFC 1950 (the stream and its checksum), RFC 1951 (blocks, codes, matches).
 */
#ifndef SEGIOU_PNG_INFLATE_H
#define SEGIOU_PNG_INFLATE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SPARE 16         /* bytes behind the output that may be written as well */
#define FAST_BITS 10     /* codes up to this length are found by one look into a table */
#define LONGEST_CODE 15
#define MOST_BITS 48     /* of a match: two codes, 5 and 13 bits more */
#define MOST_SYMBOLS 288
#define NO_SYMBOL 0xFFFFu

/* Bits, the first one lowest. Behind the end of the input bits are 0, and `count` falls below 0
 * once such bits are taken. */
typedef struct {
    const uint8_t *next, *end;
    uint64_t bits;
    int count;
} BitReader;

/* Afterwards at least 56 bits are there, or all that are left. */
static inline void
refill(BitReader *in)
{
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (in->count >= 0 && in->end - in->next >= 8) {
        uint64_t word;
        memcpy(&word, in->next, 8);
        in->bits |= word << in->count;
        in->next += (63 - in->count) >> 3;
        in->count |= 56;
        return;
    }
#endif
    while (in->count >= 0 && in->count <= 56 && in->next < in->end) {
        in->bits |= (uint64_t)*in->next++ << in->count;
        in->count += 8;
    }
}

/* At most 25 bits, which have been refilled. */
static inline unsigned
take_bits(BitReader *in, unsigned n)
{
    unsigned value = (unsigned)(in->bits & ((UINT64_C(1) << n) - 1));
    in->bits >>= n;
    in->count -= (int)n;
    return value;
}

/* To the next whole byte, which becomes `next`. 0 where there were no such bits. */
static int
give_back(BitReader *in)
{
    if (in->count < 0) {
        return 0;
    }
    in->next -= in->count / 8;
    in->bits = 0;
    in->count = 0;
    return 1;
}

/* A canonical Huffman code. */
typedef struct {
    uint16_t fast[1 << FAST_BITS];      /* symbol * 16 + length, or 0 where the code is longer */
    uint16_t symbols[MOST_SYMBOLS];     /* sorted by their codes */
    uint16_t counts[LONGEST_CODE + 1];  /* codes of each length */
} Code;

/* Whether every sequence of bits starts with exactly one code. */
static int
is_complete(const uint16_t *counts)
{
    int left = 1;
    for (int length = 1; length <= LONGEST_CODE; length++) {
        left = 2 * left - counts[length];
        if (left < 0) {
            return 0;
        }
    }
    return left == 0;
}

static unsigned
reverse_bits(unsigned code, unsigned length)
{
    unsigned reversed = 0;
    for (unsigned i = 0; i < length; i++) {
        reversed |= (code >> i & 1) << (length - 1 - i);
    }
    return reversed;
}

/* From the length of each symbol's code. 0 where the code is not complete. */
static int
build_code(Code *code, const uint8_t *lengths, unsigned symbols)
{
    uint16_t places[LONGEST_CODE + 2] = {0};
    unsigned next_codes[LONGEST_CODE + 2] = {0};
    memset(code->counts, 0, sizeof code->counts);
    memset(code->fast, 0, sizeof code->fast);
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        code->counts[lengths[symbol]]++;
    }
    code->counts[0] = 0;
    if (!is_complete(code->counts)) {
        return 0;
    }
    for (unsigned length = 1; length <= LONGEST_CODE; length++) {
        places[length + 1] = (uint16_t)(places[length] + code->counts[length]);
        next_codes[length + 1] = (next_codes[length] + code->counts[length]) << 1;
    }
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        unsigned length = lengths[symbol];
        if (length == 0) {
            continue;
        }
        code->symbols[places[length]++] = (uint16_t)symbol;
        unsigned reversed = reverse_bits(next_codes[length]++, length);
        for (; length <= FAST_BITS && reversed < 1u << FAST_BITS; reversed += 1u << length) {
            code->fast[reversed] = (uint16_t)(symbol << 4 | length);
        }
    }
    return 1;
}

/* Bit by bit: first and place are those of the codes of the length that is looked at. */
static unsigned
take_long_symbol(BitReader *in, const Code *code)
{
    unsigned bits = 0, first = 0, place = 0;
    for (unsigned length = 1; length <= LONGEST_CODE; length++) {
        bits = bits << 1 | take_bits(in, 1);
        unsigned count = code->counts[length];
        if (bits - first < count) {
            return code->symbols[place + (bits - first)];
        }
        place += count;
        first = (first + count) << 1;
    }
    return NO_SYMBOL;
}

static inline unsigned
take_symbol(BitReader *in, const Code *code)
{
    unsigned entry = code->fast[in->bits & ((1u << FAST_BITS) - 1)];
    if (entry == 0) {
        return take_long_symbol(in, code);
    }
    take_bits(in, entry & 15);
    return entry >> 4;
}

/* The codes of one block: literals with lengths of matches, and their distances. */
typedef struct {
    Code literals, distances;
} Codes;

static int
build_fixed_codes(Codes *codes)
{
    uint8_t lengths[MOST_SYMBOLS];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    int done = build_code(&codes->literals, lengths, 288);
    memset(lengths, 5, 32);
    return done && build_code(&codes->distances, lengths, 32);
}

/* The lengths of both codes, which are coded themselves. 0 where they are wrong. */
static int
take_lengths(BitReader *in, const Code *code, uint8_t *lengths, unsigned symbols)
{
    unsigned n = 0;
    while (n < symbols) {
        refill(in);
        unsigned symbol = take_symbol(in, code), repeats = 1, length = symbol;
        if (symbol == 16) {
            if (n == 0) {
                return 0;
            }
            length = lengths[n - 1];
            repeats = 3 + take_bits(in, 2);
        } else if (symbol == 17) {
            length = 0;
            repeats = 3 + take_bits(in, 3);
        } else if (symbol == 18) {
            length = 0;
            repeats = 11 + take_bits(in, 7);
        }
        if (symbol > 18 || in->count < 0 || repeats > symbols - n) {
            return 0;
        }
        memset(lengths + n, (int)length, repeats);
        n += repeats;
    }
    return 1;
}

static int
build_dynamic_codes(BitReader *in, Codes *codes)
{
    static const uint8_t order[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14,
                                      1, 15};
    uint8_t lengths[MOST_SYMBOLS + 32] = {0}, code_lengths[19] = {0};
    refill(in);
    unsigned literals = 257 + take_bits(in, 5), distances = 1 + take_bits(in, 5);
    unsigned known = 4 + take_bits(in, 4);
    for (unsigned i = 0; i < known; i++) {
        refill(in);
        code_lengths[order[i]] = (uint8_t)take_bits(in, 3);
    }
    return literals <= 286 && distances <= 30 && build_code(&codes->literals, code_lengths, 19)
        && take_lengths(in, &codes->literals, lengths, literals + distances)
        && lengths[256] != 0 && build_code(&codes->literals, lengths, literals)
        && build_code(&codes->distances, lengths + literals, distances);
}

/* Where the bytes go. */
typedef struct {
    uint8_t *start, *next, *end;
    size_t window; /* no match reaches further back */
} Output;

/* May write SPARE bytes more. */
static inline void
copy_match(uint8_t *to, size_t distance, size_t length)
{
    const uint8_t *from = to - distance;
    if (distance == 1) {
        memset(to, *from, length);
    } else if (distance >= SPARE) {
        for (size_t i = 0; i < length; i += SPARE) {
            memcpy(to + i, from + i, SPARE);
        }
    } else {
        for (size_t i = 0; i < length; i++) {
            to[i] = from[i];
        }
    }
}

/* The match whose length has this symbol. 0 where it cannot be. */
static inline int
take_match(BitReader *in, const Code *distances, Output *out, unsigned symbol)
{
    static const uint16_t lengths[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,
                                         15, 17, 19, 23, 27, 31, 35, 43, 51,  59,
                                         67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t length_bits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                            2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const uint16_t starts[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                        33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                        1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385,
                                        24577};
    if (symbol > 285) {
        return 0;
    }
    size_t length = lengths[symbol - 257] + take_bits(in, length_bits[symbol - 257]);
    unsigned far = take_symbol(in, distances);
    if (far >= 30) {
        return 0;
    }
    size_t distance = starts[far] + take_bits(in, far < 2 ? 0 : far / 2 - 1);
    if (distance > (size_t)(out->next - out->start) || distance > out->window
        || length > (size_t)(out->end - out->next)) {
        return 0;
    }
    copy_match(out->next, distance, length);
    out->next += length;
    return 1;
}

static int
inflate_coded(BitReader *in, const Codes *codes, Output *out)
{
    while (in->count >= 0) {
        if (in->count < MOST_BITS) {
            refill(in);
        }
        unsigned symbol = take_symbol(in, &codes->literals);
        if (symbol < 256) {
            if (out->next == out->end) {
                return 0;
            }
            *out->next++ = (uint8_t)symbol;
        } else if (symbol == 256) {
            return in->count >= 0;
        } else if (!take_match(in, &codes->distances, out, symbol)) {
            return 0;
        }
    }
    return 0;
}

static int
copy_stored(BitReader *in, Output *out)
{
    if (!give_back(in) || in->end - in->next < 4) {
        return 0;
    }
    size_t size = in->next[0] | (size_t)in->next[1] << 8;
    size_t inverse = in->next[2] | (size_t)in->next[3] << 8;
    in->next += 4;
    if ((size ^ inverse) != 0xFFFF || size > (size_t)(in->end - in->next)
        || size > (size_t)(out->end - out->next)) {
        return 0;
    }
    memcpy(out->next, in->next, size);
    in->next += size;
    out->next += size;
    return 1;
}

/* 0 where a block is wrong, or the output too short for it. */
static int
inflate_blocks(BitReader *in, Codes *codes, Output *out)
{
    unsigned is_last = 0;
    while (!is_last) {
        refill(in);
        is_last = take_bits(in, 1);
        unsigned kind = take_bits(in, 2);
        int done = in->count >= 0;
        if (done && kind == 0) {
            done = copy_stored(in, out);
        } else if (done && kind < 3) {
            done = (kind == 1 ? build_fixed_codes(codes) : build_dynamic_codes(in, codes))
                && inflate_coded(in, codes, out);
        }
        if (!done || kind == 3) {
            return 0;
        }
    }
    return 1;
}

#define COLUMNS 32
#define ROWS 23 /* sums of sums of so many bytes fit 16 bits */
#define MODULUS 65521

/* Adler-32, by columns, so that compilers turn it into vector additions: every byte counts once
 * in the low sum, and in the high one as often as there are bytes from it on. Inside a larger
 * function GCC keeps the sums in memory, which takes twice as long. */
#ifdef __GNUC__
__attribute__((noinline))
#endif
static uint32_t
checksum(const uint8_t *bytes, size_t size)
{
    uint64_t low = 1, high = 0;
    while (size >= COLUMNS) {
        size_t rows = size / COLUMNS < ROWS ? size / COLUMNS : ROWS;
        uint16_t sums[COLUMNS] = {0};
        uint16_t sums_of_rows[COLUMNS] = {0}; /* of each row, the sums before it */
        for (size_t row = 0; row < rows; row++, bytes += COLUMNS) {
            for (size_t i = 0; i < COLUMNS; i++) {
                sums_of_rows[i] = (uint16_t)(sums_of_rows[i] + sums[i]);
                sums[i] = (uint16_t)(sums[i] + bytes[i]);
            }
        }
        uint32_t total = 0, weighted = 0;
        for (size_t i = 0; i < COLUMNS; i++) {
            total += sums[i];
            weighted += COLUMNS * (uint32_t)sums_of_rows[i] + (uint32_t)(COLUMNS - i) * sums[i];
        }
        high = (high + low * rows * COLUMNS + weighted) % MODULUS;
        low = (low + total) % MODULUS;
        size -= rows * COLUMNS;
    }
    for (size_t i = 0; i < size; i++) {
        low += bytes[i];
        high += low;
    }
    return (uint32_t)(high % MODULUS) << 16 | (uint32_t)(low % MODULUS);
}

/* Inflate a stream that gives at most `most` bytes; `bytes` has room for SPARE more. 0 where it
 * gives more, is damaged or goes on afterwards. */
static int
inflate(const uint8_t *stream, size_t size, Codes *codes, uint8_t *bytes, size_t most,
        size_t *found)
{
    if (size < 6 || (stream[0] & 15) != 8 || stream[0] >> 4 > 7 || stream[1] & 32
        || (stream[0] * 256u + stream[1]) % 31) {
        return 0;
    }
    BitReader in = {stream + 2, stream + size, 0, 0};
    Output out = {bytes, bytes, bytes + most, (size_t)1 << (8 + (stream[0] >> 4))};
    if (!inflate_blocks(&in, codes, &out) || !give_back(&in) || in.end - in.next != 4) {
        return 0;
    }
    *found = (size_t)(out.next - bytes);
    uint32_t expected = (uint32_t)in.next[0] << 24 | (uint32_t)in.next[1] << 16
        | (uint32_t)in.next[2] << 8 | in.next[3];
    return expected == checksum(bytes, *found);
}

#endif
