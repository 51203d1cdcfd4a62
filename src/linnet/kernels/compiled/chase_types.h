/* `chase_walk.h` for each of the four types, with names that begin with SET; then what chooses among them. */

#define NAMED(set, type, x) JOIN2(set, type##x)
#define JOIN2(a, b) JOIN(a, b)

#define T float
#define REAL float
#define NAME(x) NAMED(SET, s_, x)
#define CONJ(x) (x)
#define RE(x) (x)
#define IM(x) ((REAL)0)
#define ROOT sqrtf
#define EXPONENT frexpf
#define POWER ldexpf
#define SMALLEST (-120)
#define VECTOR floats
#include "chase_walk.h"
#include "reflect_block.h"
#undef VECTOR
#undef T
#undef REAL
#undef NAME
#undef ROOT
#undef EXPONENT
#undef POWER
#undef SMALLEST

#define T double
#define REAL double
#define NAME(x) NAMED(SET, d_, x)
#define ROOT sqrt
#define EXPONENT frexp
#define POWER ldexp
#define SMALLEST (-1000)
#define VECTOR doubles
#include "chase_walk.h"
#include "reflect_block.h"
#undef VECTOR
#undef T
#undef NAME
#undef CONJ
#undef RE
#undef IM

#define T double complex
#define NAME(x) NAMED(SET, z_, x)
#define CONJ(x) conj(x)
#define RE(x) creal(x)
#define IM(x) cimag(x)
#include "chase_walk.h"
#undef T
#undef REAL
#undef NAME
#undef CONJ
#undef RE
#undef IM
#undef ROOT
#undef EXPONENT
#undef POWER
#undef SMALLEST

#define T float complex
#define REAL float
#define NAME(x) NAMED(SET, c_, x)
#define CONJ(x) conjf(x)
#define RE(x) crealf(x)
#define IM(x) cimagf(x)
#define ROOT sqrtf
#define EXPONENT frexpf
#define POWER ldexpf
#define SMALLEST (-120)
#include "chase_walk.h"
#undef T
#undef REAL
#undef NAME
#undef CONJ
#undef RE
#undef IM
#undef ROOT
#undef EXPONENT
#undef POWER
#undef SMALLEST

static void JOIN2(SET, walk)(const struct chase *c, void *work)
{
    if (c->type == 'f')
        JOIN2(SET, s_walk)(c, work);
    else if (c->type == 'd')
        JOIN2(SET, d_walk)(c, work);
    else if (c->type == 'F')
        JOIN2(SET, c_walk)(c, work);
    else
        JOIN2(SET, z_walk)(c, work);
}

static void JOIN2(SET, reflect)(const struct reflect *r, void *work)
{
    if (r->type == 'f')
        JOIN2(SET, s_reflect)(r, work);
    else
        JOIN2(SET, d_reflect)(r, work);
}

#undef NAMED
#undef JOIN2
