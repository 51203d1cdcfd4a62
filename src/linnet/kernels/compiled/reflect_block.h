/* The reflectors of a group of sweeps applied to vectors, for one type and one instruction set.

   Before, these are defined: REAL, VECTOR (of 32 bytes of them), NAME(x). Four reflectors of neighbouring
   sweeps, each a row below the one before, are one block I - V T VT: V has 4 columns and width + 3 rows.
   A window of ROWS vectors is copied into the nearest cache, and all blocks of a step are applied to it
   there; sums stay in registers. Next to nothing is spent on zeros, and a block is small enough for its
   triangle T to be made on the spot. */

#define LANES ((int64_t)(sizeof(VECTOR) / sizeof(REAL)))
#define ROWS (3 * LANES)

/* The columns of a block side by side, zeros written out, and its triangle. */
static void NAME(pack)(const struct reflect *r, int64_t step, int64_t begin, REAL *restrict v, REAL *restrict t)
{
    int64_t b = r->width, high = b + 3;
    for (int64_t i = 0; i < 4 * high; i++)
        v[i] = 0;
    for (int64_t i = 0; i < 16; i++)
        t[i] = 0;
    for (int64_t j = 0; j < 4 && begin + j < r->sweeps; j++) {
        const REAL *own = (const REAL *)r->v + ((begin + j) * r->steps + step) * b;
        REAL tau = ((const REAL *)r->tau)[(begin + j) * r->steps + step], inner[4] = {0};
        for (int64_t i = 0; i < b; i++)
            v[4 * (i + j) + j] = own[i];
        for (int64_t i = j; i < b + j; i++)
            for (int64_t k = 0; k < 4; k++)
                inner[k] += v[4 * i + k] * v[4 * i + j];
        for (int64_t k = 0; k < j; k++)
            for (int64_t i = k; i < j; i++)
                t[4 * k + j] -= tau * t[4 * k + i] * inner[i];
        t[4 * j + j] = tau;
    }
}

/* (I - V T VT) x for ROWS vectors x, stored side by side. */
static void NAME(block)(REAL *window, const REAL *restrict v, const REAL *restrict t, int64_t high)
{
    VECTOR *x = (VECTOR *)window;
    VECTOR p[4][3] = {{{0}}};
    for (int64_t i = 0; i < high; i++)
        for (int j = 0; j < 4; j++)
            for (int k = 0; k < 3; k++)
                p[j][k] += x[3 * i + k] * v[4 * i + j];
    for (int j = 0; j < 4; j++)
        for (int k = 0; k < 3; k++) {
            VECTOR sum = p[j][k] * t[4 * j + j];
            for (int i = j + 1; i < 4; i++)
                sum += p[i][k] * t[4 * j + i];
            p[j][k] = sum;
        }
    for (int64_t i = 0; i < high; i++)
        for (int k = 0; k < 3; k++) {
            VECTOR each = x[3 * i + k];
            for (int j = 0; j < 4; j++)
                each -= p[j][k] * v[4 * i + j];
            x[3 * i + k] = each;
        }
}

/* Vectors [at, at + ROWS) of rows [low, low + high) to the window, or back. */
static void NAME(load)(const struct reflect *r, REAL *restrict window, int64_t at, int64_t low, int64_t high)
{
    int64_t count = r->vectors - at < ROWS ? r->vectors - at : ROWS;
    for (int64_t i = 0; i < high; i++) {
        const REAL *from = (const REAL *)r->s + (low + i) * r->leading + at;
        REAL *to = window + i * ROWS;
        if (count == ROWS)
            for (int64_t k = 0; k < ROWS; k++)
                to[k] = from[k];
        else
            for (int64_t k = 0; k < ROWS; k++)
                to[k] = k < count ? from[k] : 0;
    }
}

static void NAME(store)(const struct reflect *r, const REAL *restrict window, int64_t at, int64_t low, int64_t high)
{
    int64_t count = r->vectors - at < ROWS ? r->vectors - at : ROWS;
    for (int64_t i = 0; i < high; i++) {
        REAL *to = (REAL *)r->s + (low + i) * r->leading + at;
        const REAL *from = window + i * ROWS;
        if (count == ROWS)
            for (int64_t k = 0; k < ROWS; k++)
                to[k] = from[k];
        else
            for (int64_t k = 0; k < count; k++)
                to[k] = from[k];
    }
}

static void NAME(reflect)(const struct reflect *r, void *work)
{
    int64_t b = r->width, blocks = (r->sweeps + 3) / 4, high = b + 3, room = 4 * blocks + b - 1;
    REAL *window = work, *v = window + room * ROWS, *t = v + blocks * high * 4;
    for (int64_t step = 0; step < r->steps && r->first + step * b < r->rows; step++) {
        int64_t low = r->first + step * b, inside = r->rows - low < room ? r->rows - low : room;
        for (int64_t q = 0; q < blocks; q++)
            NAME(pack)(r, step, 4 * q, v + q * high * 4, t + q * 16);
        /* Rows beyond the matrix: reflectors are zero there. */
        for (int64_t i = inside * ROWS; i < room * ROWS; i++)
            window[i] = 0;
        for (int64_t at = 0; at < r->vectors; at += ROWS) {
            NAME(load)(r, window, at, low, inside);
            for (int64_t q = blocks - 1; q >= 0; q--)
                NAME(block)(window + 4 * q * ROWS, v + q * high * 4, t + q * 16, high);
            NAME(store)(r, window, at, low, inside);
        }
    }
}

#undef LANES
#undef ROWS
