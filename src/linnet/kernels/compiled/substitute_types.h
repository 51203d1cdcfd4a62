/* `substitute_block.h` for both types, with names that begin with SET; then what chooses among them. */

typedef float JOIN(SET, floats) __attribute__((vector_size(BYTES)));
typedef double JOIN(SET, doubles) __attribute__((vector_size(BYTES)));

#define REAL float
#define VECTOR JOIN(SET, floats)
#define NAME(x) JOIN(SET, s_##x)
#include "substitute_block.h"
#undef REAL
#undef VECTOR
#undef NAME

#define REAL double
#define VECTOR JOIN(SET, doubles)
#define NAME(x) JOIN(SET, d_##x)
#include "substitute_block.h"
#undef REAL
#undef VECTOR
#undef NAME

static void JOIN(SET, substitute)(const struct substitution *s, void *work)
{
    if (s->type == 'f')
        JOIN(SET, s_substitute)(s, work);
    else
        JOIN(SET, d_substitute)(s, work);
}

#undef SET
#undef GROUP
#undef BYTES
