/* The row filters under the sanitizers: buffers of exactly the right size, so that one
 * byte too many is seen, and every answer compared with filters undone the plain way. */
#include "_png_decode.h"

#include <stdio.h>

static uint32_t state = 1;

static unsigned
draw(unsigned below)
{
    state = state * 1664525u + 1013904223u;
    return (state >> 8) % below;
}

static int
plain_paeth(int left, int above, int corner)
{
    int guess = left + above - corner;
    int a = abs(guess - left), b = abs(guess - above), c = abs(guess - corner);
    return a <= b && a <= c ? left : b <= c ? above : corner;
}

static void
plain_row(const uint8_t *raw, const uint8_t *above, uint8_t *row, size_t size)
{
    for (size_t x = 0; x < size; x++) {
        int left = x ? row[x - 1] : 0, corner = x ? above[x - 1] : 0;
        int guesses[5] = {0, left, above[x], (left + above[x]) / 2,
                          plain_paeth(left, above[x], corner)};
        row[x] = (uint8_t)(raw[1 + x] + guesses[raw[0]]);
    }
}

static int
plain_decode(const uint8_t *raw, uint8_t *out, Raster raster)
{
    size_t size = count_row_bytes(raster);
    uint8_t *lines = calloc(raster.height + 1, size);
    for (size_t y = 0; y < raster.height; y++) {
        const uint8_t *filtered = raw + y * (size + 1);
        if (filtered[0] > 4) {
            free(lines);
            return 0;
        }
        plain_row(filtered, lines + y * size, lines + (y + 1) * size, size);
        for (size_t x = 0; x < raster.width; x++) {
            size_t bit = x * raster.depth;
            unsigned byte = lines[(y + 1) * size + bit / 8];
            unsigned sample = byte >> (8 - raster.depth - bit % 8) & ((1u << raster.depth) - 1);
            out[y * raster.width + x] = (uint8_t)(sample * raster.scale);
        }
    }
    free(lines);
    return 1;
}

/* Residuals that are mostly zero, or texture, under any filter and at times a wrong one. */
static void
fill_residuals(uint8_t *raw, Raster raster)
{
    size_t size = count_row_bytes(raster);
    unsigned rarity = 1 + draw(40);
    for (size_t y = 0; y < raster.height; y++, raw += size + 1) {
        raw[0] = (uint8_t)(draw(400) ? draw(5) : 5 + draw(251));
        for (size_t x = 0; x < size; x++) {
            raw[1 + x] = (uint8_t)(draw(rarity) ? 0 : draw(256));
        }
    }
}

/* In two parts, as a stream that is inflated in steps. */
static int
decode_in_two(const uint8_t *raw, uint8_t *out, Raster raster)
{
    size_t size = count_row_bytes(raster), rows = draw((unsigned)raster.height + 1);
    uint8_t *above = calloc(1, size);
    Raster first = raster, second = raster;
    first.height = rows;
    second.height = raster.height - rows;
    int done = decode(raw, out, above, first)
        && decode(raw + rows * (size + 1), out + rows * raster.width, above, second);
    free(above);
    return done;
}

int
main(void)
{
    static const unsigned scales[9] = {0, 1, 85, 0, 17, 0, 0, 0, 1};
    for (int round = 0; round < 20000; round++) {
        unsigned depth = 1u << draw(4);
        Raster raster = {1 + draw(90), 1 + draw(6), depth, draw(2) ? scales[depth] : 1};
        size_t raw_size = raster.height * (count_row_bytes(raster) + 1);
        size_t out_size = raster.height * raster.width;
        uint8_t *raw = malloc(raw_size), *out = malloc(out_size), *expected = malloc(out_size);
        fill_residuals(raw, raster);
        int done = decode_in_two(raw, out, raster), wanted = plain_decode(raw, expected, raster);
        if (done != wanted || (done && memcmp(out, expected, out_size) != 0)) {
            printf("round %d: depth %u, width %zu\n", round, depth, raster.width);
            return 1;
        }
        free(raw);
        free(out);
        free(expected);
    }
    return 0;
}
