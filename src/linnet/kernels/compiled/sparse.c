/* Products of matrices in compressed rows: with a vector, and with each other.
 *
 * A product of two sums the pairs of a row of the result in a dense row, and notes which places were met; a row is
 * then read off in ascending order. Indices were looked at before: all lie inside.
 * `kernels/sparse/products.py` calls this, and has the same with SciPy.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

/* total[i] += Σ values[k] * x[indices[k]] over the stored elements k of row i. */
#define TIMES_VECTOR(NAME, TYPE)                                                                               \
    static void NAME(int64_t rows, const int32_t *pointers, const int32_t *indices, const TYPE *values,        \
                     const TYPE *x, TYPE *total)                                                               \
    {                                                                                                          \
        for (int64_t i = 0; i < rows; i++) {                                                                   \
            TYPE one = 0, two = 0;                                                                             \
            int64_t k = pointers[i];                                                                           \
            const int64_t end = pointers[i + 1];                                                               \
            for (; k + 1 < end; k += 2) {                                                                      \
                one += values[k] * x[indices[k]];                                                              \
                two += values[k + 1] * x[indices[k + 1]];                                                      \
            }                                                                                                  \
            if (k < end)                                                                                       \
                one += values[k] * x[indices[k]];                                                              \
            total[i] += one + two;                                                                             \
        }                                                                                                      \
    }
TIMES_VECTOR(vector_f64, double)
TIMES_VECTOR(vector_f32, float)
TIMES_VECTOR(vector_i64, uint64_t)

API int linnet_sparse_times_vector(int type, int64_t rows, const int32_t *pointers, const int32_t *indices,
                                   const void *values, const void *x, void *total)
{
    switch (type) {
    case 0: vector_f64(rows, pointers, indices, values, x, total); return 1;
    case 1: vector_f32(rows, pointers, indices, values, x, total); return 1;
    case 2: vector_i64(rows, pointers, indices, values, x, total); return 1;
    default: return 0;
    }
}

static int ascending(const void *one, const void *other)
{
    const int32_t a = *(const int32_t *)one, b = *(const int32_t *)other;
    return (a > b) - (a < b);
}

/* How many pairs a row has at most, over all pairs of matrices, but no more than columns. */
API int64_t linnet_sparse_most(int64_t count, int64_t rows, int64_t columns, const int32_t *const *parts)
{
    int64_t total = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t met = 0;
        for (int64_t p = 0; p < count; p++) {
            const int32_t *down = parts[6 * p], *across = parts[6 * p + 1], *below = parts[6 * p + 3];
            for (int64_t k = down[i]; k < down[i + 1]; k++)
                met += below[across[k] + 1] - below[across[k]];
        }
        total += met < columns ? met : columns;
    }
    return total;
}

/* Places of a row, ascending: by looking at all, or by sorting the few that were met. */
static int64_t in_order(int64_t met, int64_t columns, const uint8_t *seen, int32_t *list)
{
    if (met * 24 < columns) {
        if (met > 24)
            qsort(list, met, sizeof *list, ascending);
        else
            for (int64_t a = 1; a < met; a++) {
                const int32_t one = list[a];
                int64_t b = a;
                for (; b > 0 && list[b - 1] > one; b--)
                    list[b] = list[b - 1];
                list[b] = one;
            }
        return met;
    }
    int64_t found = 0, j = 0;
    for (; j + 8 <= columns; j += 8) {
        uint64_t word;
        memcpy(&word, seen + j, 8);
        if (word)
            for (int64_t q = j; q < j + 8; q++) {
                list[found] = (int32_t)q;
                found += seen[q];
            }
    }
    for (; j < columns; j++) {
        list[found] = (int32_t)j;
        found += seen[j];
    }
    return found;
}

/* parts: for each pair of matrices their pointers, indices and values. Zeros are dropped. Returns how many elements
 * the result stores, or -1 if there is no memory. */
#define PRODUCT(NAME, TYPE)                                                                                    \
    static int64_t NAME(int64_t count, int64_t rows, int64_t columns, const void *const *parts,                \
                        int32_t *pointers, int32_t *indices, TYPE *values)                                     \
    {                                                                                                          \
        TYPE *sums = calloc(columns + 1, sizeof *sums);                                                        \
        uint8_t *seen = calloc(columns + 8, 1);                                                                \
        int32_t *list = malloc((columns + 9) * sizeof *list);                                                  \
        int64_t stored = -1;                                                                                   \
        if (sums && seen && list) {                                                                            \
            stored = 0;                                                                                        \
            pointers[0] = 0;                                                                                   \
            for (int64_t i = 0; i < rows; i++) {                                                               \
                int64_t met = 0;                                                                               \
                for (int64_t p = 0; p < count; p++) {                                                          \
                    const int32_t *down = parts[6 * p], *across = parts[6 * p + 1], *below = parts[6 * p + 3];    \
                    const int32_t *right = parts[6 * p + 4];                                                   \
                    const TYPE *a = parts[6 * p + 2], *b = parts[6 * p + 5];                                   \
                    for (int64_t k = down[i]; k < down[i + 1]; k++) {                                          \
                        const TYPE factor = a[k];                                                              \
                        const int64_t end = below[across[k] + 1];                                              \
                        for (int64_t q = below[across[k]]; q < end; q++) {                                     \
                            const int32_t j = right[q];                                                        \
                            list[met] = j;                                                                     \
                            met += !seen[j];                                                                   \
                            seen[j] = 1;                                                                       \
                            sums[j] += factor * b[q];                                                          \
                        }                                                                                      \
                    }                                                                                          \
                }                                                                                              \
                met = in_order(met, columns, seen, list);                                                      \
                for (int64_t q = 0; q < met; q++) {                                                            \
                    const int32_t j = list[q];                                                                 \
                    const TYPE sum = sums[j];                                                                  \
                    indices[stored] = j;                                                                       \
                    values[stored] = sum;                                                                      \
                    stored += sum != 0;                                                                        \
                    sums[j] = 0;                                                                               \
                    seen[j] = 0;                                                                               \
                }                                                                                              \
                pointers[i + 1] = (int32_t)stored;                                                             \
            }                                                                                                  \
        }                                                                                                      \
        free(sums);                                                                                            \
        free(seen);                                                                                            \
        free(list);                                                                                            \
        return stored;                                                                                         \
    }
PRODUCT(product_f64, double)
PRODUCT(product_f32, float)
PRODUCT(product_i64, uint64_t)

API int64_t linnet_sparse_product(int type, int64_t count, int64_t rows, int64_t columns, const void *const *parts,
                                  int32_t *pointers, int32_t *indices, void *values)
{
    switch (type) {
    case 0: return product_f64(count, rows, columns, parts, pointers, indices, values);
    case 1: return product_f32(count, rows, columns, parts, pointers, indices, values);
    case 2: return product_i64(count, rows, columns, parts, pointers, indices, values);
    default: return -1;
    }
}
