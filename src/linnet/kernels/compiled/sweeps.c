/* One statement of a sweep over a matrix: each cell is made of cells around it; see `kernels/arrays/sweeps.py`, which has the
 * same in NumPy. Rows are taken in pieces, so that what is computed on the way stays in the nearest cache.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cell_steps.h"

enum { PIECE = 512 };

/* numbers: rows, columns, how far apart rows lie of what is read and of what is written, reads, constants, steps, values, the result and its type; then the types of
 * reads and of constants. Values are numbered as for recurrences: the first two are not used here. pointers: the first cell
 * of each read, the constants, the first cell that is written. Returns 0 if it cannot be done. */
__attribute__((visibility("default"))) int linnet_sweep(const int64_t *numbers, const int32_t *steps, char *const *pointers)
{
    const int64_t rows = numbers[0], columns = numbers[1], leading = numbers[2], apart = numbers[3], reads = numbers[4];
    const int64_t constants = numbers[5], count = numbers[6], total = numbers[7], result = numbers[8];
    const int64_t *types = numbers + 10, size = SIZE[numbers[9]];
    void **values = calloc(total + 1, sizeof *values);
    char *memory = calloc(total, (PIECE + 8) * 8);
    int done = values && memory;
    for (int64_t v = 0; done && v < total; v++)
        values[v] = memory + v * (PIECE + 8) * 8;
    for (int64_t k = 0; done && k < constants; k++)
        for (int64_t c = 0; c < PIECE; c++)
            memcpy((char *)values[2 + reads + k] + c * SIZE[types[reads + k]], pointers[reads + k], SIZE[types[reads + k]]);
    for (int64_t r = 0; done && r < rows; r++)
        for (int64_t c = 0; done && c < columns; c += PIECE) {
            const int64_t n = columns - c < PIECE ? columns - c : PIECE;
            char *made = pointers[reads + constants] + (r * apart + c) * size;
            for (int64_t k = 0; k < reads; k++)
                values[2 + k] = pointers[k] + (r * leading + c) * SIZE[types[k]];
            if (result >= 2 + reads + constants)
                values[result] = made;
            for (int64_t k = 0; done && k < count; k++)
                done = step(steps + 7 * k, n, values);
            if (done && values[result] != made)
                memmove(made, values[result], n * size);
        }
    free(memory);
    free(values);
    return done;
}
