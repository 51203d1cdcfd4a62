/* Steps of element-wise operations on vectors, as numbers: what recurrences and sweeps compute of a cell. */
#include <stdint.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__gnu_linux__)
#define EVERY_MACHINE __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define EVERY_MACHINE
#endif

enum { F64, F32, I64, I32, TRUTH };
enum { ADD, SUBTRACT, MULTIPLY, DIVIDE, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL,
       CHOOSE, LEAST, MOST, NEGATIVE, AND, OR, NOT, CAST };
static const int64_t SIZE[] = {8, 4, 8, 4, 1};

#define EACH(T, U, EXPRESSION)                                                                                 \
    {                                                                                                          \
        const T *x = a, *y = b;                                                                                \
        U *made = out;                                                                                         \
        for (int64_t k = 0; k < n; k++)                                                                        \
            made[k] = (U)(EXPRESSION);                                                                         \
        (void)y;                                                                                               \
        return 1;                                                                                              \
    }
/* Whole numbers wrap around: W is the type without a sign. */
#define STEPS(NAME, T, W)                                                                                      \
    EVERY_MACHINE static int NAME(int op, int64_t n, const void *a, const void *b, const void *c, void *out)   \
    {                                                                                                          \
        switch (op) {                                                                                          \
        case ADD: EACH(T, T, (W)x[k] + (W)y[k])                                                                \
        case SUBTRACT: EACH(T, T, (W)x[k] - (W)y[k])                                                           \
        case MULTIPLY: EACH(T, T, (W)x[k] * (W)y[k])                                                           \
        case DIVIDE: EACH(T, T, y[k] == 0 && (T)0.5 == 0 ? 0 : x[k] / y[k])                                    \
        case LESS: EACH(T, uint8_t, x[k] < y[k])                                                               \
        case LESS_EQUAL: EACH(T, uint8_t, x[k] <= y[k])                                                        \
        case GREATER: EACH(T, uint8_t, x[k] > y[k])                                                            \
        case GREATER_EQUAL: EACH(T, uint8_t, x[k] >= y[k])                                                     \
        case EQUAL: EACH(T, uint8_t, x[k] == y[k])                                                             \
        case NOT_EQUAL: EACH(T, uint8_t, x[k] != y[k])                                                         \
        case LEAST: EACH(T, T, x[k] < y[k] ? x[k] : y[k])                                                      \
        case MOST: EACH(T, T, x[k] > y[k] ? x[k] : y[k])                                                       \
        case NEGATIVE: EACH(T, T, -(W)x[k])                                                                    \
        case CHOOSE: {                                                                                         \
            const uint8_t *test = c;                                                                           \
            EACH(T, T, test[k] ? x[k] : y[k])                                                                  \
        }                                                                                                      \
        default: return 0;                                                                                     \
        }                                                                                                      \
    }
STEPS(steps_f64, double, double)
STEPS(steps_f32, float, float)
STEPS(steps_i64, int64_t, uint64_t)
STEPS(steps_i32, int32_t, uint32_t)

static int truths(int op, int64_t n, const void *a, const void *b, const void *c, void *out)
{
    const uint8_t *test = c;
    switch (op) {
    case AND: EACH(uint8_t, uint8_t, x[k] & y[k])
    case OR: EACH(uint8_t, uint8_t, x[k] | y[k])
    case NOT: EACH(uint8_t, uint8_t, !x[k])
    case EQUAL: EACH(uint8_t, uint8_t, x[k] == y[k])
    case NOT_EQUAL: EACH(uint8_t, uint8_t, x[k] != y[k])
    case CHOOSE: EACH(uint8_t, uint8_t, test[k] ? x[k] : y[k])
    default: return 0;
    }
}

#define CASTS(NAME, T)                                                                                         \
    static int NAME(int to, int64_t n, const void *a, void *out)                                               \
    {                                                                                                          \
        const void *b = a;                                                                                     \
        switch (to) {                                                                                          \
        case F64: EACH(T, double, x[k])                                                                        \
        case F32: EACH(T, float, x[k])                                                                         \
        case I64: EACH(T, int64_t, x[k])                                                                       \
        case I32: EACH(T, int32_t, x[k])                                                                       \
        default: return 0;                                                                                     \
        }                                                                                                      \
    }
CASTS(cast_f64, double)
CASTS(cast_f32, float)
CASTS(cast_i64, int64_t)
CASTS(cast_i32, int32_t)
CASTS(cast_truth, uint8_t)

static int step(const int32_t *what, int64_t n, void **values)
{
    const int op = what[0], type = what[1], to = what[2];
    const void *a = values[what[3]], *b = values[what[4]], *c = values[what[5]];
    void *out = values[what[6]];
    switch (type) {
    case F64: return op == CAST ? cast_f64(to, n, a, out) : steps_f64(op, n, a, b, c, out);
    case F32: return op == CAST ? cast_f32(to, n, a, out) : steps_f32(op, n, a, b, c, out);
    case I64: return op == CAST ? cast_i64(to, n, a, out) : steps_i64(op, n, a, b, c, out);
    case I32: return op == CAST ? cast_i32(to, n, a, out) : steps_i32(op, n, a, b, c, out);
    default: return op == CAST ? cast_truth(to, n, a, out) : truths(op, n, a, b, c, out);
    }
}
