/* Coordinate descent on a quadratic function with an l1 penalty.
 *
 * Minimises  w'Qw/2 - c'w + sum_j l1[j]·|w[j]|,  Q symmetric, p × p by rows. g is Qw - c throughout.
 * `kernels/models/descent.py` does the same, step by step, in Python.
 */
#include <math.h>
#include <stdint.h>

static double step(const double *q, double penalty, double *w, double *g, int64_t p, int64_t j)
{
    const double *row = q + j * p;
    double curve = row[j], old = w[j], fresh = 0.0;
    if (curve > 0.0) {
        double z = curve * old - g[j];
        if (z > penalty)
            fresh = (z - penalty) / curve;
        else if (z < -penalty)
            fresh = (z + penalty) / curve;
    }
    double moved = fresh - old;
    if (moved != 0.0) {
        w[j] = fresh;
        for (int64_t k = 0; k < p; k++)
            g[k] += moved * row[k];
    }
    return fabs(moved) * curve;
}

/* Sweeps until no step changes a gradient by more than tol; returns how many there were. */
__attribute__((visibility("default"))) int64_t linnet_descend(
    const double *q, const double *l1, double *w, double *g, int64_t p, int64_t most, double tol)
{
    int64_t sweeps = 0;
    while (sweeps < most) {
        double largest = 0.0;
        for (int64_t j = 0; j < p; j++) {
            double moved = step(q, l1[j], w, g, p, j);
            if (moved > largest)
                largest = moved;
        }
        sweeps++;
        if (!(largest > tol))
            break;
        /* What is not zero now is most of what matters: sweep over that until it is at rest. */
        while (sweeps < most) {
            largest = 0.0;
            for (int64_t j = 0; j < p; j++) {
                if (w[j] == 0.0)
                    continue;
                double moved = step(q, l1[j], w, g, p, j);
                if (moved > largest)
                    largest = moved;
            }
            sweeps++;
            if (!(largest > tol))
                break;
        }
    }
    return sweeps;
}
