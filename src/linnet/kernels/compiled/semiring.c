/* Products over other pairs of operations than + and *: c[i, j] = c[i, j] ⊕ (a[i, k] ⊗ b[k, j]) for all k.
 *
 * ⊕ is min or max, and the first of two stays unless the second is smaller (larger): so what is no number never
 * gets into a result. Or and and of truth values are max and min of bytes. Columns of b are packed, so that a
 * stripe of it stays in the cache; of c, 4 rows and a stripe are in registers.
 * `kernels/arrays/semiring.py` calls this, and has the same in NumPy.
 */
#include <stdint.h>

enum { ROWS = 4, DEPTH = 256 };

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)
#define EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EVERY_MACHINE
#endif

#define ADD(x, y) ((x) + (y))
#define ADD_I64(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define ADD_I32(x, y) ((int32_t)((uint32_t)(x) + (uint32_t)(y)))
/* New against old: the old one stays unless the new one is better. */
#define LESS(t, old) ((t) < (old) ? (t) : (old))
#define MORE(t, old) ((t) > (old) ? (t) : (old))
/* Python's min(x, y) and max(x, y). */
#define LEAST(x, y) ((y) < (x) ? (y) : (x))
#define MOST(x, y) ((y) > (x) ? (y) : (x))

#define PRODUCT(NAME, TYPE, WIDTH, PLUS, TIMES)                                                                \
    EVERY_MACHINE static void NAME(const int64_t *size, const TYPE *a, const TYPE *b, TYPE *c)                 \
    {                                                                                                          \
        const int64_t m = size[0], n = size[1], k = size[2], down = size[3], right = size[4];                  \
        const int64_t b_down = size[5], b_right = size[6], c_down = size[7];                                   \
        TYPE packed[DEPTH * WIDTH] __attribute__((aligned(64)));                                               \
        for (int64_t from = 0; from < k; from += DEPTH) {                                                      \
            const int64_t depth = k - from < DEPTH ? k - from : DEPTH;                                         \
            for (int64_t j = 0; j < n; j += WIDTH) {                                                           \
                const int64_t width = n - j < WIDTH ? n - j : WIDTH;                                           \
                for (int64_t p = 0; p < depth; p++)                                                            \
                    for (int64_t q = 0; q < WIDTH; q++)                                                        \
                        packed[p * WIDTH + q] = b[(from + p) * b_down + (j + (q < width ? q : 0)) * b_right];  \
                for (int64_t i = 0; i < m; i += ROWS) {                                                        \
                    TYPE sum[ROWS][WIDTH] __attribute__((aligned(64)));                                        \
                    const TYPE *line[ROWS];                                                                    \
                    for (int r = 0; r < ROWS; r++) {                                                           \
                        const int64_t row = i + r < m ? i + r : m - 1;                                         \
                        line[r] = a + row * down + from * right;                                               \
                        for (int q = 0; q < WIDTH; q++)                                                        \
                            sum[r][q] = c[row * c_down + j + (q < width ? q : 0)];                             \
                    }                                                                                          \
                    for (int64_t p = 0; p < depth; p++) {                                                      \
                        const TYPE *here = packed + p * WIDTH;                                                 \
                        const TYPE x0 = line[0][p * right], x1 = line[1][p * right];                           \
                        const TYPE x2 = line[2][p * right], x3 = line[3][p * right];                           \
                        for (int q = 0; q < WIDTH; q++) {                                                    \
                            const TYPE y = here[q];                                                            \
                            const TYPE t0 = TIMES(x0, y), t1 = TIMES(x1, y), t2 = TIMES(x2, y), t3 = TIMES(x3, y); \
                            sum[0][q] = PLUS(t0, sum[0][q]);                                                   \
                            sum[1][q] = PLUS(t1, sum[1][q]);                                                   \
                            sum[2][q] = PLUS(t2, sum[2][q]);                                                   \
                            sum[3][q] = PLUS(t3, sum[3][q]);                                                   \
                        }                                                                                      \
                    }                                                                                          \
                    for (int r = 0; r < ROWS && i + r < m; r++)                                                \
                        for (int64_t q = 0; q < width; q++)                                                    \
                            c[(i + r) * c_down + j + q] = sum[r][q];                                           \
                }                                                                                              \
            }                                                                                                  \
        }                                                                                                      \
    }

#define PRODUCTS(WORD, TYPE, WIDTH, SUM)                     \
    PRODUCT(min_add_##WORD, TYPE, WIDTH, LESS, SUM)          \
    PRODUCT(max_add_##WORD, TYPE, WIDTH, MORE, SUM)          \
    PRODUCT(max_min_##WORD, TYPE, WIDTH, MORE, LEAST)        \
    PRODUCT(min_max_##WORD, TYPE, WIDTH, LESS, MOST)

PRODUCTS(f64, double, 16, ADD)
PRODUCTS(f32, float, 16, ADD)
PRODUCTS(i64, int64_t, 16, ADD_I64)
PRODUCTS(i32, int32_t, 16, ADD_I32)
PRODUCTS(u8, uint8_t, 64, ADD)

#define CASES(WORD, TYPE)                                                          \
    switch (operation) {                                                           \
    case 0: min_add_##WORD(size, (const TYPE *)a, (const TYPE *)b, (TYPE *)c); return 1; \
    case 1: max_add_##WORD(size, (const TYPE *)a, (const TYPE *)b, (TYPE *)c); return 1; \
    case 2: max_min_##WORD(size, (const TYPE *)a, (const TYPE *)b, (TYPE *)c); return 1; \
    case 3: min_max_##WORD(size, (const TYPE *)a, (const TYPE *)b, (TYPE *)c); return 1; \
    default: return 0;                                                             \
    }

/* size: rows, columns and depth; the strides of a, of b, and between rows of c, in elements. */
__attribute__((visibility("default"))) int linnet_semiring(
    int64_t operation, int64_t type, const int64_t *size, const void *a, const void *b, void *c)
{
    switch (type) {
    case 0: CASES(f64, double)
    case 1: CASES(f32, float)
    case 2: CASES(i64, int64_t)
    case 3: CASES(i32, int32_t)
    case 4: CASES(u8, uint8_t)
    default: return 0;
    }
}
