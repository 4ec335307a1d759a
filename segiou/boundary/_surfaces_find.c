/* The points of the surfaces of all labels, in one pass over a volume.
 *
 * Planes are copied into frames of zeros, so that everything outside the volume is another label.
 * Vectors of 64 voxels are compared with their neighbours at once; the bits that differ are rare,
 * and only they are looked at one by one. */
#include "_surfaces.h"

#include <stdlib.h>

#define VECTOR 64 /* voxels compared at once: the width of the frame */
#define EACH_BYTE UINT64_C(0x0101010101010101)

/* Bit i: byte i is not zero. */
static inline unsigned nonzero_bytes(uint64_t bytes)
{
    uint64_t low = bytes & 0x7F * EACH_BYTE;
    uint64_t high = ((low + 0x7F * EACH_BYTE) | bytes) & 0x80 * EACH_BYTE;
    return (unsigned)((high >> 7) * UINT64_C(0x0102040810204080) >> 56);
}

/* Bit i: a[i] and b[i] differ. */
static inline uint64_t differ(const uint8_t *a, const uint8_t *b)
{
    uint64_t bits = 0;
#if defined(__SSE2__)
    for (int i = 0; i < VECTOR; i += 16) {
        __m128i one = _mm_loadu_si128((const __m128i *)(a + i));
        __m128i other = _mm_loadu_si128((const __m128i *)(b + i));
        bits |= (uint64_t)(uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(one, other)) << i;
    }
    return ~bits;
#else
    for (int i = 0; i < VECTOR; i += 8) {
        uint64_t one, other;
        memcpy(&one, a + i, 8);
        memcpy(&other, b + i, 8);
        bits |= (uint64_t)nonzero_bytes(one ^ other) << i;
    }
    return bits;
#endif
}

void free_found(Found *found)
{
    for (int label = 0; label < LABELS; label++) {
        free(found->at[label]);
        found->at[label] = NULL;
        found->room[label] = 0;
    }
}

/* Count a point for which there is no room yet; keep it, too, if the limit allows. */
static void keep_more(Found *found, int label, uint64_t point)
{
    size_t room = found->room[label], more = room ? room : 256;
    if (!found->is_full && found->reserved + more <= found->limit) {
        uint64_t *at = realloc(found->at[label], (room + more) * sizeof *at);
        if (at) {
            found->at[label] = at;
            found->room[label] = room + more;
            found->reserved += more;
            at[found->count[label]++] = point;
            return;
        }
        found->has_failed = 1;
    }
    if (!found->is_full)
        free_found(found);
    found->is_full = 1;
    found->count[label]++;
}

static inline void keep(Found *found, int label, uint64_t point)
{
    if (found->count[label] < found->room[label])
        found->at[label][found->count[label]++] = point;
    else
        keep_more(found, label, point);
}

/* Three planes in frames; each row has a vector of zeros before and after it. */
typedef struct {
    uint8_t *memory;
    size_t row, plane;
} Frames;

/* The first voxel of the frame's row before the first of plane z. */
static uint8_t *frame(const Frames *frames, size_t z)
{
    return frames->memory + z % 3 * frames->plane + VECTOR;
}

static void load(const Frames *frames, const Volume *volume, size_t z, size_t as)
{
    const uint8_t *from = volume->labels + z * volume->height * volume->width;
    uint8_t *to = frame(frames, as) + frames->row;
    for (size_t y = 0; y < volume->height; y++)
        memcpy(to + y * frames->row, from + y * volume->width, volume->width);
}

static void load_nothing(const Frames *frames, size_t as)
{
    memset(frame(frames, as) - VECTOR, 0, frames->plane);
}

/* The bits of those of a row's places that follow x. */
static inline uint64_t places_after(size_t x, size_t length)
{
    return length - x < VECTOR ? ~UINT64_C(0) >> (VECTOR - (length - x)) : ~UINT64_C(0);
}

/* Whether one of the six voxels around belongs to another label and is not left out. */
static int has_valid_face(const uint8_t *const *around, size_t x, int label, int ignored)
{
    const uint8_t *row = around[0];
    int found = (row[x - 1] != label && row[x - 1] != ignored) |
                (row[x + 1] != label && row[x + 1] != ignored);
    for (int k = 1; k < 5; k++)
        found |= around[k][x] != label && around[k][x] != ignored;
    return found;
}

/* Voxels of a row that have a face to another label; around: the row, and those beside it. */
static void find_voxels(const Volume *volume, const uint8_t *const *around, uint64_t place,
                        const uint8_t *zeros, Found *found)
{
    const uint8_t *row = around[0];
    for (size_t x = 0; x < volume->width; x += VECTOR) {
        uint64_t bits = differ(row + x, zeros) & places_after(x, volume->width);
        if (!bits)
            continue;
        uint64_t border = differ(row + x, row + x - 1) | differ(row + x, row + x + 1);
        for (int k = 1; k < 5; k++)
            border |= differ(row + x, around[k] + x);
        for (bits &= border; bits; bits &= bits - 1) {
            size_t at = x + (size_t)__builtin_ctzll(bits);
            int label = row[at];
            if (!volume->is_wanted[label] ||
                (volume->ignored >= 0 && !has_valid_face(around, at, label, volume->ignored)))
                continue;
            keep(found, label, place | at);
        }
    }
}

/* Keep a corner for each label of the eight voxels around it; voxel i is byte i. */
static inline void keep_corner(const Volume *volume, uint64_t voxels, uint64_t place, Found *found)
{
    if (volume->ignored >= 0 &&
        nonzero_bytes(voxels ^ (uint64_t)volume->ignored * EACH_BYTE) != 0xFF)
        return;
    unsigned rest = nonzero_bytes(voxels);
    while (rest) {
        int label = (int)(voxels >> 8 * __builtin_ctz(rest) & 0xFF);
        unsigned code = nonzero_bytes(voxels ^ (uint64_t)label * EACH_BYTE) ^ 0xFF;
        rest &= ~code;
        if (volume->is_wanted[label])
            keep(found, label, place | (uint64_t)code << CODE_BITS);
    }
}

/* Corners of a row between voxels that differ; around: rows above and below, before and behind. */
static void find_corners(const Volume *volume, const uint8_t *const *around, uint64_t place,
                         Found *found)
{
    const uint8_t *row = around[0];
    uint64_t left = 0; /* bit 0: the column left of this vector differs in itself */
    for (size_t x = 0; x <= volume->width; x += VECTOR) {
        uint64_t column = differ(row + x, around[1] + x) | differ(row + x, around[2] + x) |
                          differ(row + x, around[3] + x);
        uint64_t bits = column | column << 1 | left | differ(row + x, row + x - 1);
        left = column >> (VECTOR - 1);
        for (bits &= places_after(x, volume->width + 1); bits; bits &= bits - 1) {
            size_t at = x + (size_t)__builtin_ctzll(bits);
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

/* The voxels of plane z; before and behind it are planes of these numbers. */
static void find_in_plane(const Volume *volume, const Frames *frames, size_t before, size_t z,
                          size_t behind, const uint8_t *zeros, Found *found)
{
    for (size_t y = 0; y < volume->height; y++) {
        size_t row = (y + 1) * frames->row;
        const uint8_t *at = frame(frames, z) + row;
        const uint8_t *around[] = {at, at - frames->row, at + frames->row,
                                   frame(frames, before) + row, frame(frames, behind) + row};
        uint64_t place = (uint64_t)(z - 1) << Z_BITS | (uint64_t)y << Y_BITS;
        find_voxels(volume, around, place, zeros, found);
    }
}

/* The corners between two planes. */
static void find_between(const Volume *volume, const Frames *frames, size_t before, size_t z,
                         Found *found)
{
    for (size_t y = 0; y <= volume->height; y++) {
        size_t row = y * frames->row;
        const uint8_t *above = frame(frames, before) + row, *behind = frame(frames, z) + row;
        const uint8_t *around[] = {above, above + frames->row, behind, behind + frames->row};
        uint64_t place = (uint64_t)(z - 1) << Z_BITS | (uint64_t)y << Y_BITS;
        find_corners(volume, around, place, found);
    }
}

int find_surfaces(const Volume *volume, int elements, Found *found)
{
    Frames frames;
    frames.row = volume->width + 2 * VECTOR;
    frames.plane = frames.row * (volume->height + 2);
    frames.memory = calloc(3 * frames.plane + 2 * VECTOR, 1);
    if (!frames.memory)
        return 0;
    const uint8_t *zeros = frames.memory; /* of the first row of a frame, which stays empty */
    /* Plane 0 lies outside; the planes of the volume are numbered from 1. */
    for (size_t z = 1; z <= volume->depth + 1; z++) {
        int is_after = z > volume->depth;
        if (is_after && volume->is_flat)
            break;
        if (is_after)
            load_nothing(&frames, z);
        else
            load(&frames, volume, z - 1, z);
        if (elements)
            find_between(volume, &frames, volume->is_flat ? z : z - 1, z, found);
        else if (volume->is_flat)
            find_in_plane(volume, &frames, z, z, z, zeros, found);
        else if (z > 1)
            find_in_plane(volume, &frames, z - 2, z - 1, z, zeros, found);
    }
    free(frames.memory);
    return !found->has_failed;
}
