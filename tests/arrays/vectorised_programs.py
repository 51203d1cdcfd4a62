"""Programs of whole arrays, as scientists write them for NumPy: no loops over elements, nothing updated in place.

Each takes the module that stands for NumPy, a function that makes an array of one of NumPy's, and a size; and
gives what it has computed. The kinds are those of NPBench; the programs are written anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np


def _data(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).random(shape) + 0.5


def arc_distance(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    a, b, c, d = (make(_data(n * n, seed=seed)) for seed in range(4))

    def run() -> Any:
        part = xp.sin((c - a) / 2) ** 2 + xp.cos(a) * xp.cos(c) * xp.sin((d - b) / 2) ** 2
        return 2 * xp.arctan2(xp.sqrt(part), xp.sqrt(1 - part))

    return run


def clipped(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    a, b = (make((_data(n, n, seed=seed) * 1000).astype(np.int64)) for seed in range(2))
    return lambda: xp.clip(a, 600, 900) * 4 + b * 3 + 9


def softmax(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    x = make(_data(n, n))

    def run() -> Any:
        powers = xp.exp(x - x.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    return run


def diffusion(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    """Horizontal diffusion with limited fluxes."""
    f, weight = make(_data(n + 4, n + 4)), make(_data(n, n, seed=1))

    def run() -> Any:
        around = f[2:, 1:-1] + f[:-2, 1:-1] + f[1:-1, 2:] + f[1:-1, :-2]
        lap = 4.0 * f[1:-1, 1:-1] - around
        down, right = lap[1:, 1:-1] - lap[:-1, 1:-1], lap[1:-1, 1:] - lap[1:-1, :-1]
        x = xp.where(down * (f[2:-1, 2:-2] - f[1:-2, 2:-2]) > 0, 0, down)
        y = xp.where(right * (f[2:-2, 2:-1] - f[2:-2, 1:-2]) > 0, 0, right)
        return f[2:-2, 2:-2] - weight * (x[1:] - x[:-1] + y[:, 1:] - y[:, :-1])

    return run


def prices(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    price, strike, years = (make(_data(n * n, seed=seed)) for seed in range(3))

    def share(z: Any) -> Any:
        return 1 / (1 + xp.exp(-1.702 * z))

    def run() -> Any:
        spread = 0.2 * xp.sqrt(years)
        first = (xp.log(price / strike) + 0.07 * years) / spread
        return price * share(first) - strike * xp.exp(-0.05 * years) * share(first - spread)

    return run


def layers(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    x, first, second = make(_data(n, n)), make(_data(n, n // 2, seed=1)), make(_data(n // 2, n, seed=2))

    def run() -> Any:
        hidden = xp.maximum(x @ first - n / 2, 0) @ second / n**2
        powers = xp.exp(hidden - hidden.max(axis=-1, keepdims=True))
        return powers / powers.sum(axis=-1, keepdims=True)

    return run


def pulls(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    place, mass = make(_data(n, 3)), make(_data(n, 1, seed=2))

    def run() -> Any:
        x, y, z = place[:, 0:1], place[:, 1:2], place[:, 2:3]
        dx, dy, dz = x.T - x, y.T - y, z.T - z
        inverse = (dx**2 + dy**2 + dz**2 + 0.01) ** -1.5
        return xp.hstack([(dx * inverse) @ mass, (dy * inverse) @ mass, (dz * inverse) @ mass])

    return run


def covariance(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    data = make(_data(2 * n, n))

    def run() -> Any:
        centred = data - data.mean(axis=0)
        return centred.T @ centred / (2 * n - 1.0)

    return run


def rings(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    data, radius = make(_data(n * n)), make(_data(n * n, seed=1))

    def run() -> Any:
        edges = np.linspace(0.5, 1.5, 9)
        pairs = itertools.pairwise(edges)
        return np.array([float(data[(radius >= low) & (radius < high)].mean()) for low, high in pairs])

    return run


def lengths(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    x = make(_data(n, n))
    return lambda: xp.sqrt((x * x).sum(axis=1))


def escapes(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    c = make(np.linspace(-2, 0.5, n)[None, :] + 1j * np.linspace(-1.2, 1.2, n)[:, None])

    def run() -> Any:
        z, count = c * 0, (c * 0).real
        for _ in range(8):
            z = xp.where(xp.abs(z) < 2, z * z + c, z)
            count = count + (xp.abs(z) < 2)
        return count

    return run


def traced(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    a = make(_data(n, n))
    return lambda: a + xp.trace(xp.tanh(a))


def rank_two(xp: Any, make: Any, n: int) -> Callable[[], Any]:
    a, (u, v, p, q, y, z) = make(_data(n, n)), (make(_data(n, seed=seed)) for seed in range(6))

    def run() -> Any:
        b = a + xp.outer(u, v) + xp.outer(p, q)
        return 1.5 * (b @ (1.2 * (y @ b) + z))

    return run


PROGRAMS = [
    *(arc_distance, clipped, softmax, diffusion, prices, layers, pulls, covariance, rings, lengths, escapes),
    *(traced, rank_two),
]
