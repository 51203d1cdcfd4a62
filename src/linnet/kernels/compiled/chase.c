/* The bulge chase and the application of its reflectors (see bulge.py and diamonds.py, which have the same in
   Python): a step takes microseconds, and BLAS knows neither.

   Plain C without Python: it is loaded with ctypes, which lets go of the interpreter lock. Any number of
   threads may call `linnet_chase` for one chase; the result has the same bits whatever their number. */

#include <complex.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))
#define PANEL 32   /* columns whose sums stay in registers */
#define TOGETHER 2 /* sweeps that go down the band together, for the sake of the cache */
#define LAG 2      /* steps by which a sweep stays behind the one before it: blocks must not overlap */

/* One chase; `Chase` in compiled/__init__.py is the same. */
struct chase {
    int64_t type;      /* NumPy's letter: 'f', 'd', 'F' or 'D' */
    int64_t hermitian; /* whether only the upper half is stored and only `right` is made */
    int64_t size;      /* rows of the matrix */
    int64_t width;     /* of the band */
    int64_t first;     /* the row where step 0 of sweep 0 begins */
    int64_t steps;     /* room for so many reflectors in each sweep */
    int64_t down;      /* elements from one row to the next */
    void *origin;      /* element (0, 0) */
    void *left_v, *left_tau, *right_v, *right_tau; /* NULL: reflectors are not kept */
    int64_t *taken; /* how many groups of sweeps are taken */
    int64_t *done;  /* how many steps of each sweep are done */
};

/* The reflectors of a group of sweeps, and the vectors they are applied to (rows by columns: side by side). */
struct reflect {
    int64_t type;    /* NumPy's letter: 'f' or 'd' */
    int64_t sweeps;  /* in the group */
    int64_t steps;   /* of each sweep */
    int64_t width;   /* of the band */
    int64_t first;   /* the row where step 0 of the group's first sweep begins */
    int64_t vectors; /* how many */
    int64_t rows;    /* of each vector */
    int64_t leading; /* elements from a row to the next */
    void *v, *tau, *s;
};

typedef float floats __attribute__((vector_size(32)));
typedef double doubles __attribute__((vector_size(32)));

static int64_t steps_of(const struct chase *c, int64_t sweep)
{
    return (c->size - c->first - sweep + c->width - 1) / c->width;
}

/* Wait until a sweep has done so many steps, or all it has. */
static void wait_for(const struct chase *c, int64_t sweep, int64_t count)
{
    int64_t all = steps_of(c, sweep), wanted = count < all ? count : all;
    for (int64_t spins = 0; __atomic_load_n(c->done + sweep, __ATOMIC_ACQUIRE) < wanted; spins++)
        if (spins > 10000) /* there may be fewer cores than threads */
            sched_yield();
}

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
#define WIDE 1
#else
#define WIDE 0
#endif

#define JOIN(a, b) a##b
#define SET portable_
#include "chase_types.h"
#undef SET

#if WIDE
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define SET wide_
#include "chase_types.h"
#undef SET
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif
#endif

/* Work on a chase until nothing of it is left to take. `work` has room for twice `width` elements. */
EXPORT void linnet_chase(const struct chase *c, void *work)
{
#if WIDE
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        wide_walk(c, work);
        return;
    }
#endif
    portable_walk(c, work);
}

/* Apply a group of sweeps. `work` is aligned to 32 bytes, and has room for what `reflect` lays out there. */
EXPORT void linnet_reflect(const struct reflect *r, void *work)
{
#if WIDE
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        wide_reflect(r, work);
        return;
    }
#endif
    portable_reflect(r, work);
}
