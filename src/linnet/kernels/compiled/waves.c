/* Recurrences in two loops, along the diagonals of a tile: see `kernels/arrays/waves.py`, which has the same in NumPy.
 *
 * A value is a vector of the cells of a diagonal, by rows of the tile. Of each array that is written the last diagonals
 * are kept, with the cells of the edges that lie on them: so a cell above or to the left is the same vector, moved.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cell_steps.h"

/* Diagonals of a tile, so many at a time, lie under each other in memory of their own, each by rows of the tile: cells of a
 * diagonal are far apart in a tile, and every one of them would be a line of the cache and a page. */
enum { TOGETHER = 32, APART = 8 }; /* rows a power of two apart would share places in the cache */

#define TURN(T)                                                                                                \
    {                                                                                                          \
        T *one = (T *)tile + r * leading, *other = (T *)block + r;                                             \
        if (back)                                                                                              \
            for (int64_t c = low; c < high; c++)                                                               \
                one[c] = other[(c + r - first) * pitch];                                                       \
        else                                                                                                   \
            for (int64_t c = low; c < high; c++)                                                               \
                other[(c + r - first) * pitch] = one[c];                                                       \
        break;                                                                                                 \
    }
/* The diagonals from `first` on: of a tile as rows of a block; `back`: the other way. */
static void turn(int64_t size, int64_t first, int64_t height, int64_t width, int64_t leading, char *tile, char *block, int back)
{
    const int64_t pitch = height + APART;
    for (int64_t r = 0; r < height; r++) {
        const int64_t low = first > r ? first - r : 0;
        const int64_t high = first + TOGETHER - r < width ? first + TOGETHER - r : width;
        switch (size) {
        case 8: TURN(uint64_t)
        case 4: TURN(uint32_t)
        default: TURN(uint8_t)
        }
    }
}

typedef struct {
    int64_t high, wide, size, count, leading;
    const char *top, *left;
    char *tile, *rows, *block;
} State;

/* The memory of a diagonal, with what lies on it of the edges. */
static char *row_of(const State *s, int64_t diagonal, int64_t height, int64_t width)
{
    char *row = s->rows + ((diagonal + 2 * s->count) % s->count) * (s->high + height) * s->size;
    for (int64_t r = -s->high; r < 0; r++) {
        const int64_t c = diagonal - r;
        if (c >= 0 && c < width)
            memcpy(row + (r + s->high) * s->size, s->top + ((r + s->high) * width + c) * s->size, s->size);
        else if (c >= -s->wide && c < 0)
            memcpy(row + (r + s->high) * s->size, s->left + ((r + s->high) * s->wide + c + s->wide) * s->size, s->size);
    }
    for (int64_t c = -s->wide; c < 0; c++) {
        const int64_t r = diagonal - c;
        if (r >= 0 && r < height)
            memcpy(row + (r + s->high) * s->size, s->left + ((r + s->high) * s->wide + c + s->wide) * s->size, s->size);
    }
    return row;
}

/* numbers: height, width, states, inputs, reads, constants, steps, first row, first column, values; then for each state
 * its rows above, columns to the left, type, result and how far apart the rows of its tile are; for each input its kind (0: along rows, 1: along columns, 2: both) and type;
 * for each read the state, how far up and back; the type of each constant. pointers: top, left and tile of each state,
 * inputs (those along columns backwards), constants. Returns 0 if it cannot be done; nothing is right then. */
__attribute__((visibility("default"))) int linnet_wave(const int64_t *numbers, const int32_t *steps, char *const *pointers)
{
    const int64_t height = numbers[0], width = numbers[1], states = numbers[2], inputs = numbers[3];
    const int64_t reads = numbers[4], constants = numbers[5], count = numbers[6];
    const int64_t *of_state = numbers + 10, *of_input = of_state + 5 * states, *of_read = of_input + 2 * inputs;
    const int64_t *of_constant = of_read + 3 * reads;
    const int64_t total = numbers[9];
    void **values = calloc(total + 1, sizeof *values);
    char *memory = calloc(total * (height + 8), 8);
    int64_t *down = malloc((height + width + 2) * sizeof *down);
    State *all = calloc(states, sizeof *all);
    char *blocks = malloc((inputs + states) * TOGETHER * (height + APART) * 8);
    int done = values && memory && down && all && blocks;
    for (int64_t s = 0; done && s < states; s++) {
        const int64_t *of = of_state + 5 * s;
        all[s] = (State){of[0], of[1], SIZE[of[2]], of[0] + of[1] + 1, of[4], pointers[3 * s], pointers[3 * s + 1],
                         pointers[3 * s + 2], NULL, blocks + (inputs + s) * TOGETHER * (height + APART) * 8};
        all[s].rows = calloc(all[s].count * (all[s].high + height), all[s].size);
        done = all[s].rows != NULL;
        for (int64_t d = -all[s].high - all[s].wide; done && d < 0; d++)
            row_of(all + s, d, height, width);
    }
    if (done) {
        for (int64_t k = 0; k < height; k++)
            down[k] = numbers[7] + k;
        for (int64_t k = 0; k < width; k++)
            down[height + k] = numbers[8] + width - 1 - k;
        for (int64_t v = 0; v < total; v++)
            values[v] = memory + v * (height + 8) * 8;
        for (int64_t k = 0; k < constants; k++) {
            const int64_t size = SIZE[of_constant[k]];
            for (int64_t r = 0; r < height; r++)
                memcpy((char *)values[2 + inputs + reads + k] + r * size, pointers[3 * states + inputs + k], size);
        }
    }
    for (int64_t diagonal = 0; done && diagonal < height + width - 1; diagonal++) {
        const int64_t low = diagonal >= width ? diagonal - width + 1 : 0;
        const int64_t n = (diagonal < height ? diagonal + 1 : height) - low, turned = width - 1 - diagonal + low;
        const int64_t place = diagonal % TOGETHER;
        values[0] = down + low;
        values[1] = down + height + turned;
        for (int64_t k = 0; k < inputs; k++) {
            const int64_t size = SIZE[of_input[2 * k + 1]];
            char *from = pointers[3 * states + k];
            char *block = blocks + k * TOGETHER * (height + APART) * 8;
            if (of_input[2 * k] == 2 && !place)
                turn(size, diagonal, height, width, width, from, block, 0);
            values[2 + k] = of_input[2 * k] == 2 ? block + (place * (height + APART) + low) * size
                                                 : from + (of_input[2 * k] ? turned : low) * size;
        }
        for (int64_t k = 0; k < reads; k++) {
            const State *s = all + of_read[3 * k];
            const int64_t up = of_read[3 * k + 1], back = diagonal - up - of_read[3 * k + 2];
            values[2 + inputs + k] =
                s->rows + (((back + 2 * s->count) % s->count) * (s->high + height) + low - up + s->high) * s->size;
        }
        for (int64_t k = 0; done && k < count; k++)
            done = step(steps + 7 * k, n, values);
        for (int64_t s = 0; done && s < states; s++) {
            char *row = row_of(all + s, diagonal, height, width) + (low + all[s].high) * all[s].size;
            memcpy(row, values[of_state[5 * s + 3]], n * all[s].size);
            memcpy(all[s].block + (place * (height + APART) + low) * all[s].size, row, n * all[s].size);
            if (place == TOGETHER - 1 || diagonal == height + width - 2)
                turn(all[s].size, diagonal - place, height, width, all[s].leading, all[s].tile, all[s].block, 1);
        }
    }
    for (int64_t s = 0; all && s < states; s++)
        free(all[s].rows);
    free(blocks);
    free(values);
    free(memory);
    free(down);
    free(all);
    return done;
}
