/* Substitution in a lower triangle, for one type and one instruction set.

   Before, these are defined: REAL, VECTOR (of them), GROUP, NAME(x). A window of SIDES right sides lies in the
   nearest cache, unknown by unknown; GROUP unknowns at a time are summed up in registers. */

#define LANES ((int64_t)(sizeof(VECTOR) / sizeof(REAL)))
#define SIDES (3 * LANES)

/* The triangle in the order in which it is read: for each group of rows, column by column. On the diagonal
   are reciprocals, and rows beyond the triangle are those of the identity. */
static void NAME(pack)(const struct substitution *s, REAL *restrict to)
{
    const REAL *t = s->t;
    for (int64_t i = 0; i < s->order; i += GROUP)
        for (int64_t p = 0; p < i + GROUP; p++)
            for (int64_t row = i; row < i + GROUP; row++) {
                REAL value = 0;
                if (row == p)
                    value = row >= s->order || s->unit ? 1 : 1 / t[row * (s->t_down + s->t_right)];
                else if (row > p && row < s->order)
                    value = t[row * s->t_down + p * s->t_right];
                *to++ = value;
            }
}

static void NAME(solve)(REAL *window, const REAL *restrict t, int64_t order)
{
    VECTOR *x = (VECTOR *)window;
    for (int64_t i = 0; i < order; i += GROUP) {
        VECTOR sum[GROUP][3];
        for (int j = 0; j < GROUP; j++)
            for (int k = 0; k < 3; k++)
                sum[j][k] = x[3 * (i + j) + k];
        for (int64_t p = 0; p < i; p++, t += GROUP)
            for (int j = 0; j < GROUP; j++)
                for (int k = 0; k < 3; k++)
                    sum[j][k] -= x[3 * p + k] * t[j];
        for (int q = 0; q < GROUP; q++, t += GROUP) {
            for (int k = 0; k < 3; k++)
                x[3 * (i + q) + k] = sum[q][k] *= t[q];
            for (int j = q + 1; j < GROUP; j++)
                for (int k = 0; k < 3; k++)
                    sum[j][k] -= sum[q][k] * t[j];
        }
    }
}

/* `count` right sides to the window, or back; in the order in which they lie. */
static void NAME(load)(const struct substitution *s, REAL *restrict window, const REAL *restrict x, int64_t count)
{
    if (s->x_right == 1)
        for (int64_t i = 0; i < s->order; i++)
            for (int64_t r = 0; r < count; r++)
                window[i * SIDES + r] = x[i * s->x_down + r];
    else
        for (int64_t r = 0; r < count; r++)
            for (int64_t i = 0; i < s->order; i++)
                window[i * SIDES + r] = x[i * s->x_down + r * s->x_right];
}

static void NAME(store)(const struct substitution *s, const REAL *restrict window, REAL *restrict x, int64_t count)
{
    if (s->x_right == 1)
        for (int64_t i = 0; i < s->order; i++)
            for (int64_t r = 0; r < count; r++)
                x[i * s->x_down + r] = window[i * SIDES + r];
    else
        for (int64_t r = 0; r < count; r++)
            for (int64_t i = 0; i < s->order; i++)
                x[i * s->x_down + r * s->x_right] = window[i * SIDES + r];
}

static void NAME(substitute)(const struct substitution *s, void *work)
{
    int64_t room = (s->order + GROUP - 1) / GROUP * GROUP;
    REAL *window = work, *t = window + room * SIDES;
    NAME(pack)(s, t);
    for (int64_t i = 0; i < room * SIDES; i++)
        window[i] = 0;
    for (int64_t at = 0; at < s->count; at += SIDES) {
        int64_t count = s->count - at < SIDES ? s->count - at : SIDES;
        REAL *x = (REAL *)s->x + at * s->x_right;
        NAME(load)(s, window, x, count);
        NAME(solve)(window, t, s->order);
        NAME(store)(s, window, x, count);
    }
}

#undef LANES
#undef SIDES
