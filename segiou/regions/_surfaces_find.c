/* The points of the surfaces of all labels, in one pass over a volume.
 *
 * Planes are copied into frames of zeros, so that everything outside the volume is another label.
 * Vectors of 64 voxels are compared with their neighbours at once; the bits that differ are rare,
 * and only they are looked at one by one. */
#include "../_support/_bytes.h"
#include "_surfaces.h"

#include <stdlib.h>

#define VECTOR 64 /* voxels compared at once: the width of the frame */

void free_found(Found *found)
{
    for (int label = 0; label < LABELS; label++)
        free(found->at[label]);
}

/* Make room for more points of a label; false where the limit or memory forbids it. */
static int make_room(Found *found, int label)
{
    size_t room = found->room[label] ? 2 * found->room[label] : 256;
    found->reserved += room - found->room[label];
    int is_allowed = found->reserved <= found->limit;
    uint64_t *at = is_allowed ? realloc(found->at[label], room * sizeof *at) : NULL;
    if (!at) {
        found->status = is_allowed ? NO_MEMORY : TOO_MANY;
        return 0;
    }
    found->at[label] = at;
    found->room[label] = room;
    return 1;
}

static inline void keep(Found *found, int label, uint64_t point)
{
    if (found->count[label] < found->room[label] || make_room(found, label))
        found->at[label][found->count[label]++] = point;
}

/* The bits of a vector that are within a row of this length. */
static inline uint64_t bits_within(size_t x, size_t length)
{
    return length - x < VECTOR ? ~UINT64_C(0) >> (VECTOR - (length - x)) : ~UINT64_C(0);
}

/* Whether a voxel beside this one belongs to another label and is not left out. */
static int has_valid_face(const uint8_t *const *around, size_t x, int label, int ignored)
{
    int before = around[0][x - 1], behind = around[0][x + 1];
    int found = (before != label && before != ignored) || (behind != label && behind != ignored);
    for (int k = 1; k < 5; k++)
        found |= around[k][x] != label && around[k][x] != ignored;
    return found;
}

/* Voxels of a row that have a face to another label; around: the row, and the four beside it. */
static void find_voxels(const Volume *volume, const uint8_t *const *around, uint64_t place,
                        const uint8_t *zeros, Found *found)
{
    const uint8_t *row = around[0];
    for (size_t x = 0; x < volume->width; x += VECTOR) {
        uint64_t bits = differ64(row + x, zeros) & bits_within(x, volume->width);
        if (!bits)
            continue;
        uint64_t border = differ64(row + x, row + x - 1) | differ64(row + x, row + x + 1);
        for (int k = 1; k < 5; k++)
            border |= differ64(row + x, around[k] + x);
        for (bits &= border; bits; bits &= bits - 1) {
            size_t at = x + lowest_bit(bits);
            if (volume->is_wanted[row[at]] &&
                (volume->ignored < 0 || has_valid_face(around, at, row[at], volume->ignored)))
                keep(found, row[at], place | at);
        }
    }
}

/* Keep a corner for each label of the eight voxels around it; voxel i is byte i. */
static inline void keep_corner(const Volume *volume, uint64_t voxels, uint64_t place, Found *found)
{
    unsigned rest = (unsigned)nonzero_bytes(voxels);
    if (volume->ignored >= 0 &&
        nonzero_bytes(voxels ^ (uint64_t)volume->ignored * EACH_BYTE) != 0xFF)
        return;
    while (rest) {
        int label = (int)(voxels >> 8 * lowest_bit(rest) & 0xFF);
        uint64_t code = nonzero_bytes(voxels ^ (uint64_t)label * EACH_BYTE) ^ 0xFF;
        rest &= ~(unsigned)code;
        if (volume->is_wanted[label])
            keep(found, label, place | code << CODE_BITS);
    }
}

/* Corners of a row between voxels that differ; around: two rows, and the two behind them. */
static void find_corners(const Volume *volume, const uint8_t *const *around, uint64_t place,
                         Found *found)
{
    const uint8_t *row = around[0];
    uint64_t left = 0; /* bit 0: the column left of this vector differs in itself */
    for (size_t x = 0; x <= volume->width; x += VECTOR) {
        uint64_t column = differ64(row + x, around[1] + x) | differ64(row + x, around[2] + x) |
                          differ64(row + x, around[3] + x);
        uint64_t bits = column | column << 1 | left | differ64(row + x, row + x - 1);
        left = column >> (VECTOR - 1);
        for (bits &= bits_within(x, volume->width + 1); bits; bits &= bits - 1) {
            size_t at = x + lowest_bit(bits);
            uint64_t voxels = 0;
            for (int k = 0; k < 4; k++) {
                uint16_t two;
                memcpy(&two, around[k] + at - 1, 2);
                voxels |= (uint64_t)two << 16 * k;
            }
            keep_corner(volume, voxels, place | at, found);
        }
    }
}

/* What lies in a plane, or between it and the one before; planes: before, this one, behind, zeros.
 * Meanwhile the labels of the next plane are fetched. */
static void find_in_plane(const Volume *volume, int elements, size_t row_size, uint64_t place,
                          uint8_t *const *planes, const uint8_t *next_labels, Found *found)
{
    for (size_t y = 0; y < volume->height + (elements ? 1 : 0); y++) {
        for (size_t x = 0; next_labels && y < volume->height && x < volume->width; x += VECTOR)
            __builtin_prefetch(next_labels + y * volume->width + x);
        const uint8_t *before = planes[0] + y * row_size, *at = planes[1] + y * row_size;
        const uint8_t *next = at + row_size, *behind = planes[2] + (y + 1) * row_size;
        uint64_t row_place = place | (uint64_t)y << Y_BITS;
        if (elements) {
            const uint8_t *around[] = {before, before + row_size, at, next};
            find_corners(volume, around, row_place, found);
        } else {
            const uint8_t *around[] = {next, at, next + row_size, before + row_size, behind};
            find_voxels(volume, around, row_place, planes[3], found);
        }
    }
}

void find_surfaces(const Volume *volume, int elements, Found *found)
{
    /* Three planes in frames; each row has a vector of zeros before and after it. */
    size_t row = volume->width + 2 * VECTOR, plane = row * (volume->height + 2);
    uint8_t *memory = calloc(3 * plane + 2 * VECTOR, 1);
    if (!memory)
        found->status = NO_MEMORY;
    /* Planes are numbered from 1; those before and behind the volume are empty. */
    for (size_t z = 1; z <= volume->depth + !volume->is_flat && found->status == GOOD; z++) {
        const uint8_t *labels = volume->labels + (z - 1) * volume->height * volume->width;
        uint8_t *to = memory + z % 3 * plane + VECTOR;
        memset(to - VECTOR, 0, z > volume->depth ? plane : 0);
        for (size_t y = 0; z <= volume->depth && y < volume->height; y++)
            memcpy(to + (y + 1) * row, labels + y * volume->width, volume->width);
        size_t middle = elements || volume->is_flat ? z : z - 1;
        size_t before = volume->is_flat ? z : middle + 2;
        uint8_t *planes[] = {memory + before % 3 * plane + VECTOR,
                             memory + middle % 3 * plane + VECTOR, to, memory};
        if (middle)
            find_in_plane(volume, elements, row, (uint64_t)(middle - 1) << Z_BITS, planes,
                          z < volume->depth ? labels + volume->height * volume->width : NULL, found);
    }
    free(memory);
}
