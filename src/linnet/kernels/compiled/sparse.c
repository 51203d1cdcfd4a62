/* Products of matrices in compressed rows: with a vector, and with each other.
 *
 * A product of two sums the pairs of a row of the result in a dense row, and notes which places were met, if not most of
 * them will be; a row is then read off in ascending order. Where the result is wanted dense, the row is a row of it. Indices were looked at before: all lie inside.
 * `kernels/sparse/products.py` calls this, and has the same with SciPy.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define API __attribute__((visibility("default")))

/* What is multiplied so many elements later is asked for now: x lies all over memory. */
enum { AHEAD = 48 };

/* total[i] += Σ values[k] * x[indices[k]] over the stored elements k of row i. */
#define TIMES_VECTOR(NAME, TYPE)                                                                               \
    static void NAME(int64_t rows, const int32_t *pointers, const int32_t *indices, const TYPE *values,        \
                     const TYPE *x, TYPE *total)                                                               \
    {                                                                                                          \
        const int64_t safe = (int64_t)pointers[rows] - AHEAD;                                                  \
        for (int64_t i = 0; i < rows; i++) {                                                                   \
            TYPE sum = 0;                                                                                      \
            int64_t k = pointers[i];                                                                           \
            const int64_t end = pointers[i + 1];                                                               \
            if (end < safe)                                                                                    \
                for (; k < end; k++) {                                                                         \
                    __builtin_prefetch(x + indices[k + AHEAD]);                                                \
                    sum += values[k] * x[indices[k]];                                                          \
                }                                                                                              \
            for (; k < end; k++)                                                                               \
                sum += values[k] * x[indices[k]];                                                              \
            total[i] += sum;                                                                                   \
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

/* Pairs of a row, over all pairs of matrices. */
static int64_t pairs_of(int64_t i, int64_t count, const void *const *parts)
{
    int64_t met = 0;
    for (int64_t p = 0; p < count; p++) {
        const int32_t *down = parts[6 * p], *across = parts[6 * p + 1], *below = parts[6 * p + 3];
        for (int64_t k = down[i]; k < down[i + 1]; k++)
            met += below[across[k] + 1] - below[across[k]];
    }
    return met;
}

/* How many elements the result has at most: the pairs of each row (noted for each), but no more than columns. */
API int64_t linnet_sparse_most(int64_t count, int64_t rows, int64_t columns, const void *const *parts, int32_t *noted)
{
    int64_t total = 0;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t met = pairs_of(i, count, parts);
        noted[i] = (int32_t)(met < INT32_MAX ? met : INT32_MAX);
        total += met < columns ? met : columns;
    }
    return total;
}

/* Rows of the second matrix lie all over memory: one is asked for so many elements of the first before it is needed. */
enum { SOON = 12 };

/* The pairs of a row, each added to its place; MEET does what else there is to do for a pair, AFTER for a row of them. */
#define ADD_PAIRS(TYPE, MEET, AFTER)                                                                           \
    for (int64_t p = 0; p < count; p++) {                                                                      \
        const int32_t *down = parts[6 * p], *across = parts[6 * p + 1], *below = parts[6 * p + 3];             \
        const int32_t *right = parts[6 * p + 4];                                                               \
        const TYPE *a = parts[6 * p + 2], *b = parts[6 * p + 5];                                               \
        const int64_t stop = down[rows];                                                                       \
        for (int64_t k = down[i]; k < down[i + 1]; k++) {                                                      \
            const TYPE factor = a[k];                                                                          \
            if (k + SOON < stop) {                                                                             \
                __builtin_prefetch(right + below[across[k + SOON]]);                                           \
                __builtin_prefetch(b + below[across[k + SOON]]);                                               \
            }                                                                                                  \
            const int64_t from = below[across[k]], end = below[across[k] + 1];                                 \
            for (int64_t q = from; q < end; q++) {                                                             \
                const int64_t j = right[q];                                                                    \
                sums[j] += factor * b[q];                                                                      \
                MEET;                                                                                          \
            }                                                                                                  \
            AFTER;                                                                                             \
        }                                                                                                      \
    }

/* A row of the result has a bit for each place that was met, and, where few will be, one for each word of these. */
#define BIT(j) ((uint64_t)1 << ((j) & 63))

/* parts: for each pair of matrices their pointers, indices and values. Zeros are dropped. Returns how many elements
 * the result stores, or -1 if there is no memory. */
#define PRODUCT(NAME, TYPE)                                                                                    \
    static int64_t NAME##_word(uint64_t word, int64_t first, int64_t stored, TYPE *sums, int32_t *indices,     \
                               TYPE *values)                                                                   \
    {                                                                                                          \
        for (; word; word &= word - 1) {                                                                       \
            const int64_t j = first + __builtin_ctzll(word);                                                   \
            const TYPE sum = sums[j];                                                                          \
            indices[stored] = (int32_t)j;                                                                      \
            values[stored] = sum;                                                                              \
            stored += sum != 0;                                                                                \
            sums[j] = 0;                                                                                       \
        }                                                                                                      \
        return stored;                                                                                         \
    }                                                                                                          \
    static int64_t NAME(int64_t count, int64_t rows, int64_t columns, const void *const *parts,                \
                        int32_t *pointers, int32_t *indices, TYPE *values)                                     \
    {                                                                                                          \
        const int64_t words = columns / 64 + 1;                                                                \
        TYPE *sums = calloc(columns + 1, sizeof *sums);                                                        \
        uint64_t *met = calloc(words, sizeof *met), *some = calloc(words / 64 + 1, sizeof *some);              \
        int64_t stored = sums && met && some ? 0 : -1;                                                         \
        pointers[0] = 0;                                                                                       \
        for (int64_t i = 0; i < rows && stored >= 0; i++) {                                                    \
            const int64_t most = pointers[i + 1]; /* as linnet_sparse_most noted it */                         \
            const int few = 2 * most < words;                                                                  \
            if (4 * most > columns) { /* most places will be met: look at all of them */                       \
                ADD_PAIRS(TYPE, , )                                                                            \
                for (int64_t j = 0; j < columns; j++) {                                                        \
                    const TYPE sum = sums[j];                                                                  \
                    if (sum != 0) {                                                                            \
                        indices[stored] = (int32_t)j;                                                          \
                        values[stored++] = sum;                                                                \
                        sums[j] = 0;                                                                           \
                    }                                                                                          \
                }                                                                                              \
                pointers[i + 1] = (int32_t)stored;                                                             \
                continue;                                                                                      \
            }                                                                                                  \
            ADD_PAIRS(                                                                                         \
                TYPE, met[j >> 6] |= BIT(j),                                                                   \
                for (int64_t q = few ? from : end; q < end; q++) some[right[q] >> 12] |= BIT(right[q] >> 6)) \
            if (few)                                                                                           \
                for (int64_t h = 0; h <= words / 64; h++) {                                                    \
                    for (uint64_t left = some[h]; left; left &= left - 1) {                                    \
                        const int64_t w = 64 * h + __builtin_ctzll(left);                                      \
                        stored = NAME##_word(met[w], 64 * w, stored, sums, indices, values);                   \
                        met[w] = 0;                                                                            \
                    }                                                                                          \
                    some[h] = 0;                                                                               \
                }                                                                                              \
            else                                                                                               \
                for (int64_t w = 0; w < words; w++) {                                                          \
                    stored = NAME##_word(met[w], 64 * w, stored, sums, indices, values);                       \
                    met[w] = 0;                                                                                \
                }                                                                                              \
            pointers[i + 1] = (int32_t)stored;                                                                 \
        }                                                                                                      \
        free(sums);                                                                                            \
        free(met);                                                                                             \
        free(some);                                                                                            \
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

/* The sum of products as a dense matrix, whose rows lie `leading` elements apart. */
#define DENSE(NAME, TYPE)                                                                                      \
    static void NAME(int64_t count, int64_t rows, int64_t columns, const void *const *parts, int64_t leading,  \
                     TYPE *made)                                                                               \
    {                                                                                                          \
        for (int64_t i = 0; i < rows; i++) {                                                                   \
            TYPE *sums = made + i * leading;                                                                   \
            memset(sums, 0, columns * sizeof *sums);                                                           \
            ADD_PAIRS(TYPE, , )                                                                                \
        }                                                                                                      \
    }
DENSE(dense_f64, double)
DENSE(dense_f32, float)
DENSE(dense_i64, uint64_t)

API int linnet_sparse_dense_product(int type, int64_t count, int64_t rows, int64_t columns, const void *const *parts,
                                    int64_t leading, void *made)
{
    switch (type) {
    case 0: dense_f64(count, rows, columns, parts, leading, made); return 1;
    case 1: dense_f32(count, rows, columns, parts, leading, made); return 1;
    case 2: dense_i64(count, rows, columns, parts, leading, made); return 1;
    default: return 0;
    }
}
