"""Sixty programs as users write them, each for NumPy and for Linnet: what every engine must agree on.

`python sixty_programs.py FILE` runs all of them on the engine in use and saves what they give.
"""

from __future__ import annotations

import functools
import sys

import numpy as np

import linnet as ln


def data():
    rng = np.random.default_rng(20)
    square = rng.standard_normal((48, 48))
    return {
        "a": (rng.standard_normal((37, 29)), (10, 8)),
        "b": (rng.standard_normal((29, 41)), (8, 11)),
        "c": (rng.standard_normal((37, 29)), (9, 29)),
        "d": (rng.standard_normal((48, 48)), 13),
        "s": (square @ square.T + 48 * np.eye(48), 16),
        "t": (rng.standard_normal((200, 6)), (23, 6)),
        "v": (rng.standard_normal(501), 60),
        "w": (rng.random(501).astype("float32"), 77),
        "i": (rng.integers(-9, 9, (40, 30)), (7, 30)),
        "k": (rng.integers(0, 12, 300), 41),
        "z": (rng.standard_normal((24, 20)) + 1j * rng.standard_normal((24, 20)), 7),
        "q": (rng.standard_normal((6, 8, 10)), (2, 3, 4)),
        "n": (np.where(rng.random((33, 21)) < 0.1, np.nan, rng.standard_normal((33, 21))), (8, 21)),
    }


PROGRAMS = {
    # element by element
    "polynomial": lambda x, a, c: 3 * a**2 - a * c + 1,
    "chain": lambda x, v: x.sin(v) * 2 + v**2 - 1 / (1 + x.exp(-v)),
    "single precision": lambda x, w: x.sqrt(w) + w / 3,
    "integers": lambda x, i: (i // 3) % 5 + abs(i),
    "conditions": lambda x, a, c: x.where(a > c, a, -c),
    "clip": lambda x, v: x.clip(v, -0.5, 0.5),
    "complex": lambda x, z: x.conj(z) * z + 1j,
    "broadcast": lambda x, a: a - a.mean(axis=0),
    "outer": lambda x, v: v[:40, None] * v[None, :50],
    "bits": lambda x, i: (i & 6) | (i >> 1),
    # reductions
    "sum": lambda x, v: v.sum(),
    "sums along": lambda x, a: a.sum(axis=1),
    "mean and deviation": lambda x, t: x.stack([t.mean(axis=0), t.std(axis=0)]),
    "variance": lambda x, a: a.var(axis=0, ddof=1),
    "extremes": lambda x, v: x.stack([v.max(), v.min()]),
    "where largest": lambda x, a: a.argmax(axis=1),
    "product": lambda x, w: x.prod(1 + w / 100),
    "any, all": lambda x, i: x.stack([(i > 7).any(axis=0), (i > -9).all(axis=0)]),
    "norm": lambda x, a: x.linalg.norm(a),
    "without nans": lambda x, n: x.stack([x.nansum(n, axis=0), x.nanmean(n, axis=0)]),
    "running sum": lambda x, v: x.cumsum(v),
    "median": lambda x, v: x.median(v),
    "quantiles": lambda x, v: x.quantile(v, [0.1, 0.5, 0.9]),
    "histogram": lambda x, v: x.histogram(v, bins=10, range=(-3, 3))[0],
    "counts": lambda x, k: x.bincount(k, minlength=12),
    "covariance": lambda x, t: x.cov(t, rowvar=False),
    # products
    "matmul": lambda x, a, b: a @ b,
    "gram": lambda x, t: t.T @ t,
    "outer gram": lambda x, a: a @ a.T,
    "transposed": lambda x, a, c: a.T @ c,
    "vector": lambda x, a: a @ a[0],
    "chain of products": lambda x, a, b: a @ b @ b.T @ a.T,
    "einsum": lambda x, q: x.einsum("ijk,ljk->il", q, q),
    "tensordot": lambda x, q: x.tensordot(q, q, axes=([1, 2], [1, 2])),
    "kron": lambda x, z: x.kron(z[:4, :3], z[:2, :2]),
    # moves
    "slices": lambda x, a: a[3:30:2, ::-1],
    "picks": lambda x, a: a[[5, 1, 30, 1], 2:9],
    "mask": lambda x, v: v[v > 0.3],
    "reshape": lambda x, i: i.reshape(60, 20),
    "transpose": lambda x, q: q.transpose(2, 0, 1),
    "concatenate": lambda x, a, c: x.concatenate([a, c, a], axis=0),
    "roll": lambda x, v: x.roll(v, 100),
    "pad": lambda x, a: x.pad(a, ((2, 3), (1, 0))),
    "repeat": lambda x, i: x.repeat(i, 2, axis=1),
    "triangle": lambda x, d: x.tril(d, -1) + x.triu(d, 2),
    "take along": lambda x, a: x.take_along_axis(a, x.argsort(a, axis=1), axis=1),
    # order
    "sort": lambda x, v: x.sort(v),
    "argsort": lambda x, v: x.argsort(v),
    "unique": lambda x, k: x.unique(k),
    "search": lambda x, v: x.searchsorted(x.sort(v), v[:50]),
    "differences": lambda x, v: x.diff(v, n=2),
    "convolution": lambda x, v: x.convolve(v, v[:7], mode="same"),
    "fourier": lambda x, q: x.fft.fft(q, axis=1),
    # linear algebra
    "cholesky": lambda x, s: x.linalg.cholesky(s),
    "solve": lambda x, s, d: x.linalg.solve(s, d),
    "inverse": lambda x, s: x.linalg.inv(s),
    "determinant": lambda x, s: x.linalg.slogdet(s)[1],
    "singular values": lambda x, d: x.linalg.svdvals(d),
    "eigenvalues": lambda x, s: x.linalg.eigvalsh(s),
    "triangular factor": lambda x, t: abs(x.linalg.qr(t)[1]),
}
assert len(PROGRAMS) == 60


class Tiled:
    """`ln.linalg`, in small tiles: matrices of this size would go straight to LAPACK."""

    def __getattr__(self, name):
        function = getattr(ln.linalg, name)
        return function if name == "norm" else functools.partial(function, tile=12)


class Ours:
    """`ln`, with linear algebra in small tiles."""

    linalg = Tiled()

    def __getattr__(self, name):
        return getattr(ln, name)


def arguments(name):
    """Names of the arrays that a program takes."""
    code = PROGRAMS[name].__code__
    return code.co_varnames[1 : code.co_argcount]


def expected(name):
    """What NumPy gives."""
    given = data()
    return np.asarray(PROGRAMS[name](np, *(given[each][0] for each in arguments(name))))


def found(name):
    """What Linnet gives, on the engine in use."""
    given = data()
    arrays = [ln.asarray(given[each][0], chunks=given[each][1]) for each in arguments(name)]
    return np.asarray(PROGRAMS[name](Ours(), *arrays))


def close(name, value):
    """Whether a result is NumPy's, but for rounding."""
    right = expected(name)
    scale = 1e-5 if name == "single precision" else 1e-10 * max(1.0, float(abs(right).max(initial=0.0)))
    return value.shape == right.shape and np.allclose(value, right, rtol=1e-5, atol=scale, equal_nan=True)


if __name__ == "__main__":
    np.savez(sys.argv[1], **{name: found(name) for name in PROGRAMS})
