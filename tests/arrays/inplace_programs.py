"""Programs as scientists write them: arrays are updated in place, in loops, by slices that move and grow.

Each takes the module that stands for NumPy, a function that makes an array of one of NumPy's, and a size; and
gives what it has computed. The kinds are those of NPBench; the programs are written anew.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def _data(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape) + 0.5


# ---- stencils in time


def jacobi(xp: Any, make: Any, n: int) -> Any:
    a, b = make(_data(n, n)), make(_data(n, n, seed=1))
    for _ in range(3):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return a


def heat_in_one_array(xp: Any, make: Any, n: int) -> Any:
    u = make(_data(n))
    for _ in range(5):
        u[1:-1] += 0.25 * (u[:-2] - 2.0 * u[1:-1] + u[2:])
        u[0] = u[1]
        u[-1] = u[-2]
    return u


def waves(xp: Any, make: Any, n: int) -> Any:
    ex, ey, hz = make(_data(n, n)), make(_data(n, n, seed=1)), make(_data(n, n, seed=2))
    for step in range(3):
        ey[0, :] = step
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex + ey + hz


def cavity(xp: Any, make: Any, n: int) -> Any:
    """Pressure and flow with borders that are set after each step."""
    u, p = make(np.zeros((n, n))), make(_data(n, n))
    for _ in range(3):
        old = p.copy()
        p[1:-1, 1:-1] = (old[1:-1, 2:] + old[1:-1, :-2] + old[2:, 1:-1] + old[:-2, 1:-1]) / 4
        p[:, -1] = p[:, -2]
        p[0, :] = p[1, :]
        p[:, 0] = p[:, 1]
        p[-1, :] = 0
        before = u.copy()
        u[1:-1, 1:-1] = before[1:-1, 1:-1] * (1 - 0.1 * before[1:-1, 1:-1]) + 0.1 * (
            p[1:-1, 2:] - p[1:-1, :-2]
        )
        u[-1, :] = 1
    return u + p


# ---- factorisations by rows


def cholesky(xp: Any, make: Any, n: int) -> Any:
    a = _data(n, n)
    a = make(a @ a.T + n * np.eye(n))
    a[0, 0] = xp.sqrt(a[0, 0])
    for i in range(1, n):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[j, :j]
            a[i, j] /= a[j, j]
        a[i, i] -= a[i, :i] @ a[i, :i]
        a[i, i] = xp.sqrt(a[i, i])
    return xp.tril(a)


def gram_schmidt(xp: Any, make: Any, n: int) -> Any:
    a, q, r = make(_data(n, n)), make(np.zeros((n, n))), make(np.zeros((n, n)))
    for k in range(n):
        r[k, k] = xp.sqrt((a[:, k] * a[:, k]).sum())
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = q[:, k] @ a[:, j]
            a[:, j] -= q[:, k] * r[k, j]
    return q + r


def elimination(xp: Any, make: Any, n: int) -> Any:
    a = make(_data(n, n) + n * np.eye(n))
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k : k + 1, k + 1 :]
    return a


def triangular_solve(xp: Any, make: Any, n: int) -> Any:
    a, b, x = make(_data(n, n) + n * np.eye(n)), make(_data(n)), make(np.zeros(n))
    for i in range(n):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def symmetric_rank_update(xp: Any, make: Any, n: int) -> Any:
    a, c = make(_data(n, n)), make(_data(n, n, seed=1))
    for i in range(n):
        c[i, : i + 1] *= 0.5
        for k in range(n):
            c[i, : i + 1] += 1.5 * a[i, k] * a[: i + 1, k]
    return c


# ---- recurrences


def durbin(xp: Any, make: Any, n: int) -> Any:
    r, y = make(_data(n) / n), make(np.zeros(n))
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta = beta * (1.0 - alpha * alpha)
        alpha = -(r[k] + xp.flip(r[:k]) @ y[:k]) / beta
        y[:k] += alpha * xp.flip(y[:k])
        y[k] = alpha
    return y


def recursive_filter(xp: Any, make: Any, n: int) -> Any:
    x, y = make(_data(n, n)), make(np.zeros((n, n)))
    y[:, 0] = 0.3 * x[:, 0]
    for j in range(1, n):
        y[:, j] = 0.3 * x[:, j] + 0.6 * y[:, j - 1]
    for j in range(n - 2, -1, -1):
        y[:, j] += 0.1 * y[:, j + 1]
    return y


def column_sweep(xp: Any, make: Any, n: int) -> Any:
    """Implicit steps in alternating directions: a column after the other, forward and back."""
    u, v, p, q = make(_data(n, n)), make(np.zeros((n, n))), make(np.zeros((n, n))), make(np.zeros((n, n)))
    for _ in range(2):
        v[0, 1:-1] = 1.0
        p[1:-1, 0], q[1:-1, 0] = 0.0, v[0, 1:-1]
        for j in range(1, n - 1):
            p[1:-1, j] = 0.3 / (1.6 - 0.3 * p[1:-1, j - 1])
            q[1:-1, j] = (0.2 * u[j, :-2] + 0.6 * u[j, 1:-1] + 0.3 * q[1:-1, j - 1]) / (
                1.6 - 0.3 * p[1:-1, j - 1]
            )
        v[-1, 1:-1] = 1.0
        for j in range(n - 2, 0, -1):
            v[j, 1:-1] = p[1:-1, j] * v[j + 1, 1:-1] + q[1:-1, j]
        u[1:-1, 1:-1] = v[1:-1, 1:-1]
    return u


# ---- windows, masks, particles, triangles


def convolution(xp: Any, make: Any, n: int) -> Any:
    image, weights = make(_data(n, n)), _data(3, 3, seed=1)
    out = make(np.zeros((n - 2, n - 2)))
    for i in range(3):
        for j in range(3):
            out[:] += weights[i, j] * image[i : i + n - 2, j : j + n - 2]
    return xp.maximum(out, 2.0)


def windows(xp: Any, make: Any, n: int) -> Any:
    x, y = make(_data(n)), make(np.zeros(n))
    for i in range(n - 5):
        y[i] = (x[i : i + 5] * x[i + 2]).sum()
    return y


def mandelbrot(xp: Any, make: Any, n: int) -> Any:
    c = make(np.linspace(-2, 0.5, n)[None, :] + 1j * np.linspace(-1.2, 1.2, n)[:, None])
    z, count = make(np.zeros((n, n), complex)), make(np.zeros((n, n), np.int64))
    for step in range(8):
        inside = xp.abs(z) < 2.0
        count[inside] = step
        z[inside] = z[inside] ** 2 + c[inside]
    return count


def particles(xp: Any, make: Any, n: int) -> Any:
    place, speed, mass = make(_data(n, 3)), make(_data(n, 3, seed=1)), make(_data(n, 1, seed=2))
    for _ in range(3):
        x, y, z = place[:, 0:1], place[:, 1:2], place[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inverse = dx**2 + dy**2 + dz**2 + 0.01
        inverse[inverse > 0] = inverse[inverse > 0] ** -1.5
        pull = xp.hstack([(dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass])
        speed += 0.01 * pull
        place += 0.01 * speed
    return place + speed


def correlations(xp: Any, make: Any, n: int) -> Any:
    data, found = make(_data(n, n)), make(np.eye(n))
    data -= data.mean(axis=0)
    data /= data.std(axis=0)
    for i in range(n - 1):
        found[i + 1 :, i] = found[i, i + 1 :] = data[:, i] @ data[:, i + 1 :]
    return found


def shortest_paths(xp: Any, make: Any, n: int) -> Any:
    paths = make(np.random.default_rng(0).integers(1, 100, (n, n)))
    for k in range(n):
        paths[:] = xp.minimum(paths[:], paths[:, k : k + 1] + paths[k : k + 1, :])
    return paths


PROGRAMS = [
    *(jacobi, heat_in_one_array, waves, cavity, cholesky, gram_schmidt, elimination, triangular_solve),
    *(symmetric_rank_update, durbin, recursive_filter, column_sweep, convolution, windows, mandelbrot),
    *(particles, correlations, shortest_paths),
]
