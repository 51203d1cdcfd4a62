/* Triangular systems of up to some hundred unknowns (see substitution.py): BLAS has them, at a quarter of the
   speed of its products, because of the small triangles on the diagonal.

   Plain C without Python: it is loaded with ctypes, which lets go of the interpreter lock. */

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* A lower triangle and right sides; `Substitution` in compiled/__init__.py is the same. An upper one is a
   lower one read from its end, with steps below zero. */
struct substitution {
    int64_t type;            /* NumPy's letter: 'f' or 'd' */
    int64_t order;           /* unknowns */
    int64_t count;           /* right sides */
    int64_t unit;            /* whether the diagonal counts as ones */
    int64_t t_down, t_right; /* elements from a row of the triangle to the next, and from a column */
    int64_t x_down, x_right; /* the same of the right sides, which are columns */
    void *t, *x;
};

#define PASTE(a, b) a##b
#define JOIN(a, b) PASTE(a, b)

/* Both types, with names that begin with SET and vectors of BYTES. */
#define GROUP 4
#define BYTES 32
#define SET portable_
#include "substitute_types.h"

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define WIDE 1
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define GROUP 4
#define BYTES 32
#define SET wide_
#include "substitute_types.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx512f,fma"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,fma")
#endif
#define GROUP 8
#define BYTES 64
#define SET widest_
#include "substitute_types.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#else
#define WIDE 0
#endif

/* Overwrite right sides with the solutions. `work` is aligned to 64 bytes, and has the room told below. */
EXPORT void linnet_substitute(const struct substitution *s, void *work)
{
#if WIDE
    if (__builtin_cpu_supports("avx512f")) {
        widest_substitute(s, work);
        return;
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        wide_substitute(s, work);
        return;
    }
#endif
    portable_substitute(s, work);
}

/* Elements that it needs to work in, for so many unknowns of so many bytes, whatever the processor. */
EXPORT int64_t linnet_substitute_room(int64_t order, int64_t item)
{
    int64_t rows = (order + 7) / 8 * 8;
    return rows * (3 * 64 / item) + rows * (rows + 8);
}
