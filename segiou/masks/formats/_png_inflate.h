/* Inflate a zlib stream piece by piece, so that each piece is still in the cache when it is used.
 *
 * Streams that zlib rejects are rejected here, as are rare features such as an incomplete code; the
 * usual reader then decides. Accepted streams give the same bytes as zlib.
 *
 * Definitions: RFC 1950 (the stream and its checksum), RFC 1951 (blocks, codes, matches).
 */
#ifndef SEGIOU_PNG_INFLATE_H
#define SEGIOU_PNG_INFLATE_H

#include "../../_support/_bytes.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define READ_BEHIND 64    /* bytes behind a stream that may be read; any content */
#define WRITTEN_BEHIND 64 /* bytes behind a match that may be written */
#define MOST_PER_STEP (258 + WRITTEN_BEHIND) /* a match */
#define WINDOW_BYTES 32768 /* no match reaches further back */
#define PIECE_BYTES 131072  /* with the window, fits into the second cache */

#define LITERAL_BITS 11 /* codes up to this length are found by one look into a table */
#define DISTANCE_BITS 8
#define LENGTH_BITS 7
#define LONGEST_CODE 15
#define MOST_SYMBOLS 288
/* Entries of a table and those of its longer codes, by the program `enough` of zlib. */
#define LITERAL_ENTRIES 2342
#define DISTANCE_ENTRIES 402

/* Little-endian on all machines; compilers turn it into one load. */
static inline uint64_t
load_word(const uint8_t *bytes)
{
    return bytes[0] | (uint64_t)bytes[1] << 8 | (uint64_t)bytes[2] << 16
        | (uint64_t)bytes[3] << 24 | (uint64_t)bytes[4] << 32 | (uint64_t)bytes[5] << 40
        | (uint64_t)bytes[6] << 48 | (uint64_t)bytes[7] << 56;
}

static inline uint32_t
read_big_endian(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8
        | bytes[3];
}

/* Bits, the first one lowest; `next` may run ahead of `end`, which is checked now and then. */
typedef struct {
    const uint8_t *next, *end;
    uint64_t bits;
    unsigned count;
} BitReader;

/* Afterwards at least 56 bits are there. */
static inline void
refill(BitReader *in)
{
    in->bits |= load_word(in->next) << in->count;
    in->next += (63 - in->count) >> 3;
    in->count |= 56;
}

static inline unsigned
take_bits(BitReader *in, unsigned n)
{
    unsigned value = (unsigned)(in->bits & ((UINT64_C(1) << n) - 1));
    in->bits >>= n;
    in->count -= n;
    return value;
}

/* Whether bits behind the end were taken: fewer than eight bytes are held back. */
static inline int
has_overrun(const BitReader *in)
{
    return in->next > in->end + 8;
}

/* To the next whole byte, which becomes `next`. */
static void
give_back(BitReader *in)
{
    in->next -= in->count / 8;
    in->bits = 0;
    in->count = 0;
}

/* An entry holds all that a code means, so that one look decodes it. Its lowest 8 bits are always
 * the bits to take:
 *   LITERAL      byte << 16
 *   a match      base << 16 | bits of the code << 8; the other bits to take add to the base
 *   UNUSUAL      end of block; with WRONG << 16, a symbol that must not occur
 *   SUBTABLE     its first entry << 16 | the bits that select one << 8 | UNUSUAL */
enum { UNUSUAL = 0x8000, SUBTABLE = 0x4000, WRONG = 1 };
#define LITERAL UINT32_C(0x80000000)

typedef struct {
    uint32_t literals[LITERAL_ENTRIES]; /* with lengths of matches */
    uint32_t distances[DISTANCE_ENTRIES];
} Codes;

/* The entry of one of a sequence of symbols for numbers from `least` on: per count of further bits,
 * there are 1 << group symbols; the first two such groups have none. */
static inline uint32_t
number_entry(unsigned symbol, unsigned group, unsigned least)
{
    unsigned bits = symbol >> group > 1 ? (symbol >> group) - 1 : 0;
    return (((symbol - (bits << group)) << bits) + least) << 16 | bits;
}

static uint32_t
literal_entry(unsigned symbol)
{
    if (symbol < 256) {
        return LITERAL | symbol << 16;
    }
    if (symbol == 256) {
        return UNUSUAL;
    }
    if (symbol == 285) { /* the longest match, without further bits */
        return 258 << 16;
    }
    return symbol < 285 ? number_entry(symbol - 257, 2, 3) : UNUSUAL | WRONG << 16;
}

static uint32_t
distance_entry(unsigned symbol)
{
    return symbol < 30 ? number_entry(symbol, 1, 1) : UNUSUAL | WRONG << 16;
}

/* The entry of a symbol whose code has `length` bits in its table. */
static inline uint32_t
with_length(uint32_t entry, unsigned length)
{
    return entry & (LITERAL | UNUSUAL) ? entry | length : (entry | length << 8) + length;
}

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

/* The code behind one of `length` bits, whose first bit is lowest: a carry from the other end. */
static inline unsigned
next_reversed(unsigned code, unsigned length)
{
    unsigned bit = 1u << (length - 1);
    while (code & bit) {
        code ^= bit;
        bit >>= 1;
    }
    return code | bit;
}

/* Bits that select an entry of the subtable whose first code has `length` more bits; `counts`
 * are those of the codes that are left. */
static unsigned
subtable_bits(const uint16_t *counts, unsigned length, unsigned table_bits)
{
    int left = 1 << length;
    while (length + table_bits < LONGEST_CODE
           && (left -= counts[length + table_bits]) > 0) {
        length++;
        left <<= 1;
    }
    return length;
}

/* The table of a canonical code, from the length of each symbol's code. 0 where the code is not
 * complete. */
static NOT_INLINED int
build_table(uint32_t *table, size_t room, unsigned table_bits, const uint8_t *lengths,
            unsigned symbols, uint32_t (*entry_of)(unsigned))
{
    uint16_t counts[LONGEST_CODE + 1] = {0}, places[LONGEST_CODE + 2] = {0};
    uint16_t order[MOST_SYMBOLS];
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        counts[lengths[symbol]]++;
    }
    counts[0] = 0;
    if (!is_complete(counts)) {
        return 0;
    }
    for (unsigned length = 1; length <= LONGEST_CODE; length++) {
        places[length + 1] = (uint16_t)(places[length] + counts[length]);
    }
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        if (lengths[symbol]) {
            order[places[lengths[symbol]]++] = (uint16_t)symbol;
        }
    }
    const uint16_t *symbol = order;
    unsigned code = 0;
    size_t table_size = (size_t)1 << table_bits;
    /* Short codes fill the front of the table, which is doubled for each further bit. */
    for (unsigned length = 1; length <= table_bits; length++) {
        if (symbol > order) {
            size_t filled = (size_t)1 << (length - 1);
            memcpy(table + filled, table, filled * sizeof *table);
        }
        for (; counts[length] > 0; counts[length]--) {
            table[code] = with_length(entry_of(*symbol++), length);
            code = next_reversed(code, length);
        }
    }
    size_t used = table_size, start = 0;
    unsigned prefix = ~0u, bits = 0;
    for (unsigned length = table_bits + 1; length <= LONGEST_CODE; length++) {
        for (; counts[length] > 0; counts[length]--) {
            unsigned own = length - table_bits;
            if ((code & (table_size - 1)) != prefix) {
                prefix = code & (unsigned)(table_size - 1);
                bits = subtable_bits(counts, own, table_bits);
                start = used;
                used += (size_t)1 << bits;
                if (used > room) {
                    return 0;
                }
                table[prefix] = (uint32_t)start << 16 | UNUSUAL | SUBTABLE | bits << 8
                    | table_bits;
            }
            uint32_t entry = with_length(entry_of(*symbol++), own);
            for (size_t i = code >> table_bits; i < (size_t)1 << bits; i += (size_t)1 << own) {
                table[start + i] = entry;
            }
            code = next_reversed(code, length);
        }
    }
    return 1;
}

static int
build_codes(Codes *codes, const uint8_t *lengths, unsigned literals, unsigned distances)
{
    return build_table(codes->literals, LITERAL_ENTRIES, LITERAL_BITS, lengths, literals,
                       literal_entry)
        && build_table(codes->distances, DISTANCE_ENTRIES, DISTANCE_BITS, lengths + literals,
                       distances, distance_entry);
}

static int
build_fixed_codes(Codes *codes)
{
    uint8_t lengths[MOST_SYMBOLS + 32];
    memset(lengths, 8, 144);
    memset(lengths + 144, 9, 112);
    memset(lengths + 256, 7, 24);
    memset(lengths + 280, 8, 8);
    memset(lengths + MOST_SYMBOLS, 5, 32);
    return build_codes(codes, lengths, MOST_SYMBOLS, 32);
}

static inline uint32_t
look_up(const BitReader *in, const uint32_t *table, unsigned bits)
{
    return table[in->bits & ((1u << bits) - 1)];
}

/* The lengths of both codes, which are coded themselves. 0 where they are wrong. */
static int
take_lengths(BitReader *in, const uint32_t *table, uint8_t *lengths, unsigned symbols)
{
    unsigned n = 0;
    while (n < symbols) {
        refill(in);
        uint32_t entry = look_up(in, table, LENGTH_BITS);
        take_bits(in, entry & 255);
        unsigned symbol = entry >> 16 & 255, length = symbol < 16 ? symbol : 0, repeats = 1;
        if (symbol == 16 && n > 0) {
            length = lengths[n - 1];
        }
        if (symbol >= 16) {
            repeats = symbol == 18 ? 11 + take_bits(in, 7) : 3 + take_bits(in, symbol - 14);
        }
        if (has_overrun(in) || (symbol == 16 && n == 0) || repeats > symbols - n) {
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
    return literals <= 286 && distances <= 30
        && build_table(codes->literals, LITERAL_ENTRIES, LENGTH_BITS, code_lengths, 19,
                       literal_entry)
        && take_lengths(in, codes->literals, lengths, literals + distances)
        && lengths[256] != 0 && build_codes(codes, lengths, literals, distances);
}

#define MODULUS 65521

/* Adler-32: the sum of all bytes, and that of each as often as there are bytes from it on. Zeros
 * add nothing, so that they need not be seen. */
typedef struct {
    uint64_t low, high;
} Checksum;

/* Count up to 64 bytes, the first of `left`. Compilers turn two loops over numbers of 16 bits into
 * the fewest vector instructions. */
ALWAYS_INLINED void
count_bytes(Checksum *sum, const uint8_t *bytes, size_t count, size_t left)
{
    uint16_t total = 0;
    uint32_t weighted = 0;
    for (size_t i = 0; i < count; i++) {
        total = (uint16_t)(total + bytes[i]);
    }
    for (size_t i = 0; i < count; i++) {
        weighted += (uint32_t)((int16_t)bytes[i] * (int16_t)(count - i));
    }
    sum->low += total;
    sum->high += (left - count) * total + weighted;
}

/* Append the sums of `size` bytes. */
static inline void
append_sums(Checksum *sum, Checksum behind, size_t size)
{
    sum->high = (sum->high + size * sum->low + behind.high) % MODULUS;
    sum->low = (sum->low + behind.low) % MODULUS;
}

/* Takes bytes and returns where those start that it needs again, with more behind them; appends
 * the sums of the others. NULL where they are wrong. */
typedef const uint8_t *Consumer(void *sink, const uint8_t *from, const uint8_t *to,
                                Checksum *sum);

/* A buffer of bytes on their way to a consumer, with the window before them. */
typedef struct {
    uint8_t *start, *next, *end;
    const uint8_t *rest; /* the first byte that was not consumed */
    Consumer *consume;
    void *sink;
    Checksum sum;
} Output;

/* Make room by moving the window and the unread bytes to the start. */
static NOT_INLINED int
flush_output(Output *out)
{
    int is_full = out->next - out->start > WINDOW_BYTES;
    const uint8_t *kept = is_full ? out->next - WINDOW_BYTES : out->start;
    out->rest = out->consume(out->sink, out->rest, out->next, &out->sum);
    if (out->rest == NULL) {
        return 0;
    }
    kept = out->rest < kept ? out->rest : kept;
    size_t gone = (size_t)(kept - out->start);
    memmove(out->start, kept, (size_t)(out->next - kept));
    out->next -= gone;
    out->rest -= gone;
    return gone > 0;
}

/* A match of a distance below 16, whose bytes are a pattern. */
static NOT_INLINED void
copy_near_match(uint8_t *to, size_t distance, const uint8_t *end)
{
    const uint8_t *from = to - distance;
    uint8_t pattern[16];
    for (size_t i = 0, j = 0; i < 16; i++, j = j + 1 == distance ? 0 : j + 1) {
        pattern[i] = from[j];
    }
    for (; to < end; to += 16 - 16 % distance) {
        memcpy(to, pattern, 16);
    }
}

/* Writes less than WRITTEN_BEHIND bytes more. Steps are long, because processors cannot foresee
 * how many a match takes. */
static inline void
copy_match(uint8_t *to, size_t distance, size_t length)
{
    const uint8_t *from = to - distance, *end = to + length;
    if (distance == 1) { /* most matches of masks, as long as can be */
        uint8_t value = *from;
        for (; to < end; to += WRITTEN_BEHIND) {
            memset(to, value, WRITTEN_BEHIND);
        }
    } else if (distance >= 16) {
        for (; to < end; to += WRITTEN_BEHIND, from += WRITTEN_BEHIND) {
            for (int i = 0; i < WRITTEN_BEHIND; i += 16) {
                memcpy(to + i, from + i, 16);
            }
        }
    } else {
        copy_near_match(to, distance, end);
    }
}

/* The number encoded by a match's entry and the bits after its code. */
static inline size_t
take_number(BitReader *in, uint32_t entry)
{
    uint64_t bits = in->bits & ((UINT64_C(1) << (entry & 255)) - 1);
    take_bits(in, entry & 255);
    return (entry >> 16) + (size_t)(bits >> (entry >> 8 & 15));
}

static inline uint32_t
look_further(BitReader *in, const uint32_t *table, uint32_t entry)
{
    take_bits(in, entry & 255);
    return table[(entry >> 16) + (in->bits & ((1u << (entry >> 8 & 15)) - 1))];
}

/* The next code is looked up before a match is copied, so that neither waits for the other. Both
 * structures are copied, so that the compiler keeps them in registers. */
static NOT_INLINED int
inflate_coded(BitReader *reader, const Codes *codes, Output *output, size_t window)
{
    BitReader in = *reader;
    uint8_t *next = output->next;
    refill(&in);
    uint32_t entry = look_up(&in, codes->literals, LITERAL_BITS);
    for (;;) {
        if (has_overrun(&in)) {
            return 0;
        }
        if (output->end - next < MOST_PER_STEP) {
            output->next = next;
            if (!flush_output(output)) {
                return 0;
            }
            next = output->next;
        }
        if (entry & UNUSUAL) {
            if (entry & SUBTABLE) {
                entry = look_further(&in, codes->literals, entry);
            }
            if (entry & UNUSUAL) {
                take_bits(&in, entry & 255);
                *reader = in;
                output->next = next;
                return entry >> 16 != WRONG;
            }
        }
        if (entry & LITERAL) {
            take_bits(&in, entry & 255);
            *next++ = (uint8_t)(entry >> 16);
            entry = look_up(&in, codes->literals, LITERAL_BITS);
            refill(&in);
            continue;
        }
        size_t length = take_number(&in, entry);
        entry = look_up(&in, codes->distances, DISTANCE_BITS);
        if (entry & SUBTABLE) {
            entry = look_further(&in, codes->distances, entry);
        }
        if (entry & UNUSUAL) {
            return 0;
        }
        size_t distance = take_number(&in, entry);
        if (distance > (size_t)(next - output->start) || distance > window) {
            return 0;
        }
        refill(&in);
        entry = look_up(&in, codes->literals, LITERAL_BITS);
        copy_match(next, distance, length);
        next += length;
    }
}

static int
copy_stored(BitReader *in, Output *out)
{
    give_back(in);
    if (in->end - in->next < 4) {
        return 0;
    }
    size_t size = in->next[0] | (size_t)in->next[1] << 8;
    size_t inverse = in->next[2] | (size_t)in->next[3] << 8;
    in->next += 4;
    if ((size ^ inverse) != 0xFFFF || size > (size_t)(in->end - in->next)) {
        return 0;
    }
    while (size > 0) {
        size_t room = (size_t)(out->end - out->next), count = room < size ? room : size;
        memcpy(out->next, in->next, count);
        in->next += count;
        out->next += count;
        size -= count;
        if (size > 0 && !flush_output(out)) {
            return 0;
        }
    }
    return 1;
}

/* Bytes of the buffer of a consumer that needs at most `again` bytes again. */
static inline size_t
buffer_bytes(size_t again)
{
    return WINDOW_BYTES + PIECE_BYTES + again + MOST_PER_STEP;
}

/* Inflate a stream, through a buffer of `room` bytes, for a consumer. 0 where it is damaged or goes
 * on afterwards, or the consumer refuses or has not consumed all. READ_BEHIND bytes can be read
 * behind the stream. */
static int
inflate(const uint8_t *stream, size_t size, Codes *codes, uint8_t *buffer, size_t room,
        Consumer *consume, void *sink)
{
    if (size < 6 || (stream[0] & 15) != 8 || stream[0] >> 4 > 7 || stream[1] & 32
        || (stream[0] * 256u + stream[1]) % 31) {
        return 0;
    }
    size_t window = (size_t)1 << (8 + (stream[0] >> 4));
    BitReader in = {stream + 2, stream + size, 0, 0};
    Output out = {buffer, buffer, buffer + room, buffer, consume, sink, {1, 0}};
    unsigned is_last = 0;
    while (!is_last) {
        if (has_overrun(&in)) {
            return 0;
        }
        refill(&in);
        is_last = take_bits(&in, 1);
        unsigned kind = take_bits(&in, 2);
        int done = kind == 0 ? copy_stored(&in, &out)
            : kind == 3 ? 0
            : (kind == 1 ? build_fixed_codes(codes) : build_dynamic_codes(&in, codes))
                && inflate_coded(&in, codes, &out, window);
        if (!done) {
            return 0;
        }
    }
    give_back(&in);
    if (in.end - in.next != 4 || consume(sink, out.rest, out.next, &out.sum) != out.next) {
        return 0;
    }
    return (out.sum.high << 16 | out.sum.low) == read_big_endian(in.next);
}

#endif
