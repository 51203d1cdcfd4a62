/* The bulge chase for one type of element and one instruction set; `chase.c` includes this for each.

   Before, these are defined: T (an element), REAL (its parts), NAME(x) (the name of a function), CONJ, RE,
   IM, ROOT (square root of a REAL), EXPONENT and POWER (frexp and ldexp), SMALLEST (an exponent: below it
   numbers are not scaled, because the factor would be infinite).

   The band is stored by rows: element (i, j) is at i * down + j from `origin`. There are zeros around the
   matrix, so that no block is ragged. A reflector is H = I - tau v vH, and v[0] = 1. */

/* Find H with HH x = beta e1: `x` becomes v. Scaled by a power of two, no square is lost or infinite. */
static T NAME(reflector)(T *x, int64_t count, REAL *beta)
{
    REAL largest = 0;
    for (int64_t i = 0; i < count; i++) {
        REAL re = RE(x[i]) < 0 ? -RE(x[i]) : RE(x[i]), im = IM(x[i]) < 0 ? -IM(x[i]) : IM(x[i]);
        REAL part = re > im ? re : im;
        largest = part > largest ? part : largest;
    }
    int exponent = 0;
    EXPONENT(largest, &exponent);
    if (exponent < SMALLEST)
        exponent = SMALLEST;
    REAL factor = POWER((REAL)1, -exponent), tail = 0;
    for (int64_t i = 0; i < count; i++)
        x[i] *= factor;
    for (int64_t i = 1; i < count; i++)
        tail += RE(x[i]) * RE(x[i]) + IM(x[i]) * IM(x[i]);
    T alpha = x[0];
    x[0] = 1;
    if (tail == 0 && IM(alpha) == 0) {
        for (int64_t i = 1; i < count; i++)
            x[i] = 0;
        *beta = POWER(RE(alpha), exponent);
        return 0;
    }
    REAL length = ROOT(RE(alpha) * RE(alpha) + IM(alpha) * IM(alpha) + tail);
    REAL end = RE(alpha) > 0 ? -length : length;
    T scale = 1 / (alpha - end);
    for (int64_t i = 1; i < count; i++)
        x[i] *= scale;
    *beta = POWER(end, exponent);
    return (end - alpha) / end;
}

/* A H on `rows` rows: four together, so that their sums do not wait for one another. */
static void NAME(from_right)(T *a, int64_t down, int64_t rows, int64_t width, const T *restrict v, T tau)
{
    int64_t i = 0;
    for (; i + 4 <= rows; i += 4) {
        T *restrict p = a + i * down, *restrict q = p + down, *restrict r = q + down, *restrict s = r + down;
        T x = 0, y = 0, z = 0, t = 0;
        for (int64_t j = 0; j < width; j++) {
            x += p[j] * v[j];
            y += q[j] * v[j];
            z += r[j] * v[j];
            t += s[j] * v[j];
        }
        x *= tau;
        y *= tau;
        z *= tau;
        t *= tau;
        for (int64_t j = 0; j < width; j++) {
            T each = CONJ(v[j]);
            p[j] -= x * each;
            q[j] -= y * each;
            r[j] -= z * each;
            s[j] -= t * each;
        }
    }
    for (; i < rows; i++) {
        T *restrict p = a + i * down;
        T x = 0;
        for (int64_t j = 0; j < width; j++)
            x += p[j] * v[j];
        x *= tau;
        for (int64_t j = 0; j < width; j++)
            p[j] -= x * CONJ(v[j]);
    }
}

/* HH A on `count` columns, at most PANEL: their sums stay in registers, and they in the nearest cache. */
static inline __attribute__((always_inline)) void NAME(panel)(
    T *restrict a, int64_t down, int64_t width, int64_t count, const T *restrict v, T tau)
{
    T sums[PANEL];
    for (int64_t j = 0; j < count; j++)
        sums[j] = 0;
    for (int64_t i = 0; i < width; i++) {
        T each = CONJ(v[i]);
        for (int64_t j = 0; j < count; j++)
            sums[j] += each * a[i * down + j];
    }
    for (int64_t j = 0; j < count; j++)
        sums[j] *= CONJ(tau);
    for (int64_t i = 0; i < width; i++) {
        T each = v[i];
        for (int64_t j = 0; j < count; j++)
            a[i * down + j] -= each * sums[j];
    }
}

static void NAME(from_left)(T *a, int64_t down, int64_t width, int64_t columns, const T *v, T tau)
{
    int64_t j = 0;
    for (; j + PANEL <= columns; j += PANEL)
        NAME(panel)(a + j, down, width, PANEL, v, tau);
    if (j < columns)
        NAME(panel)(a + j, down, width, columns - j, v, tau);
}

/* HH A H for a Hermitian block of which the upper half is stored: A - w vH - v wH. */
static void NAME(from_both)(T *a, int64_t down, int64_t width, const T *restrict v, T tau, T *restrict w)
{
    for (int64_t i = 0; i < width; i++)
        w[i] = 0;
    for (int64_t i = 0; i < width; i++) {
        const T *restrict row = a + i * down;
        T each = v[i], sum = RE(row[i]) * each;
        for (int64_t j = i + 1; j < width; j++) {
            sum += row[j] * v[j];
            w[j] += CONJ(row[j]) * each;
        }
        w[i] += sum;
    }
    REAL inner = 0, weight = RE(tau) * RE(tau) + IM(tau) * IM(tau);
    for (int64_t i = 0; i < width; i++)
        inner += RE(CONJ(v[i]) * w[i]);
    for (int64_t i = 0; i < width; i++)
        w[i] = tau * w[i] - (weight * inner / 2) * v[i];
    for (int64_t i = 0; i < width; i++) {
        T *restrict row = a + i * down;
        T left = w[i], right = v[i];
        for (int64_t j = i; j < width; j++)
            row[j] -= left * CONJ(v[j]) + right * CONJ(w[j]);
        row[i] = RE(row[i]);
    }
}

/* A step: a row is cleared by a reflector of columns, then (not Hermitian) a column by one of rows. */
static void NAME(step)(const struct chase *c, T *corner, int64_t step, int64_t place, T *work)
{
    int64_t b = c->width, down = c->down;
    T *v = c->right_v ? (T *)c->right_v + place * b : work + b, *own = corner - down * (step ? b : 1);
    REAL beta;
    for (int64_t j = 0; j < b; j++)
        v[j] = CONJ(own[j]);
    T tau = NAME(reflector)(v, b, &beta);
    if (c->right_v)
        ((T *)c->right_tau)[place] = tau;
    own[0] = beta;
    for (int64_t j = 1; j < b; j++)
        own[j] = 0;
    /* Above the corner, only rows that the sweep has passed have elements here. */
    int64_t above = step ? b - 1 : 0;
    if (c->hermitian) {
        NAME(from_right)(corner - above * down, down, above, b, v, tau);
        NAME(from_both)(corner, down, b, v, tau, work);
        NAME(from_left)(corner + b, down, b, b, v, tau);
        return;
    }
    NAME(from_right)(corner - above * down, down, above + b, b, v, tau);
    v = c->left_v ? (T *)c->left_v + place * b : work;
    for (int64_t i = 0; i < b; i++)
        v[i] = corner[i * down];
    tau = NAME(reflector)(v, b, &beta);
    if (c->left_v)
        ((T *)c->left_tau)[place] = tau;
    corner[0] = beta;
    for (int64_t i = 1; i < b; i++)
        corner[i * down] = 0;
    NAME(from_left)(corner + 1, down, b, 2 * b - 1, v, tau);
}

/* Take groups of sweeps until there are none. Others may do the same at the same time: a group is taken
   by one of them, and waits only for a group that was taken before it. */
static void NAME(walk)(const struct chase *c, void *work)
{
    int64_t sweeps = c->size - c->first;
    for (;;) {
        int64_t begin = TOGETHER * __atomic_fetch_add(c->taken, 1, __ATOMIC_RELAXED);
        if (begin >= sweeps)
            return;
        int64_t end = begin + TOGETHER < sweeps ? begin + TOGETHER : sweeps;
        int64_t moments = steps_of(c, begin) + LAG * (end - begin - 1);
        for (int64_t moment = 0; moment < moments; moment++)
            for (int64_t sweep = begin; sweep < end; sweep++) {
                int64_t step = moment - LAG * (sweep - begin);
                if (step < 0 || step >= steps_of(c, sweep))
                    continue;
                if (sweep == begin && sweep > 0)
                    wait_for(c, sweep - 1, step + LAG + 1);
                T *corner = (T *)c->origin + (c->first + sweep + step * c->width) * (c->down + 1);
                NAME(step)(c, corner, step, sweep * c->steps + step, work);
                __atomic_store_n(c->done + sweep, step + 1, __ATOMIC_RELEASE);
            }
    }
}
