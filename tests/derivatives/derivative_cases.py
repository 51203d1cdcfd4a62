"""For every function with a rule: calls that test it, as the name in the table, the function, shapes of its arguments.

A shape may come with a range that its numbers are drawn from.
"""

# ruff: noqa: SIM905, RUF005, B008

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import linnet as ln

Case = tuple[str, Callable[..., Any], tuple[Any, ...]]

POSITIVE, SMALL, ABOVE_1 = (0.5, 2.0), (-0.9, 0.9), (1.1, 3.0)
M, V, N3 = (5, 4), (6,), (2, 3, 4)


def ranged(shape: tuple[int, ...], limits: tuple[float, float]) -> tuple[str, Any, Any]:
    return ("range", shape, limits)


def _elementwise() -> list[Case]:
    anywhere = """sin cos tan sinh cosh tanh arcsinh arctan exp exp2 expm1 square absolute fabs deg2rad rad2deg degrees
        radians negative positive conjugate""".split()
    positive = "log log2 log10 log1p sqrt cbrt reciprocal".split()
    cases: list[Case] = [(name, getattr(ln, name), (M,)) for name in anywhere]
    cases += [(name, getattr(ln, name), (ranged(M, POSITIVE),)) for name in positive]
    cases += [(name, getattr(ln, name), (ranged(M, SMALL),)) for name in ("arcsin", "arccos", "arctanh")]
    cases += [("arccosh", ln.arccosh, (ranged(M, ABOVE_1),))]
    two = (
        "add subtract multiply maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2 copysign".split()
    )
    for name in two:
        cases += [(name, getattr(ln, name), (M, M)), (name, getattr(ln, name), (M, (4,)))]
        cases += [(name, lambda x, f=getattr(ln, name): f(0.3, x), (M,))]
    up = ranged(M, POSITIVE)
    cases += [
        ("divide", ln.divide, (M, up)), ("divide", lambda x: x / 3 + 2 / x, (up,)),
        ("power", ln.power, (up, up)), ("power", lambda x: x**3 + x**0 + 2.0**x, (up,)),
        ("power", lambda x: x ** np.array([0, 1, 2, 3.0]), (M,)), ("float_power", ln.float_power, (up, up)),
        ("remainder", lambda x, y: ln.remainder(x * 7, y), (M, up)), ("fmod", lambda x, y: ln.fmod(x * 7, y), (M, up)),
        ("heaviside", ln.heaviside, (M, M)), ("ldexp", lambda x: ln.ldexp(x, np.arange(4)), (M,)),
        ("frexp", lambda x: ln.frexp(x)[0], (up,)), ("modf", lambda x: ln.modf(3 * x)[0], (M,)),
        ("divmod", lambda x, y: ln.divmod(x, y)[1], (M, up)), ("sign", lambda x: x * ln.sign(x), (M,)),
        ("floor", lambda x: x * ln.floor(3 * x), (M,)), ("where", lambda x, y: ln.where(x > 0, x * y, y), (M, (4,))),
        ("clip", lambda x: ln.clip(x, -0.4, 0.5), (M,)), ("clip", lambda x: x.clip(-0.4, None), (M,)),
        ("nan_to_num", lambda x: ln.nan_to_num(ln.where(x > 0, x, np.nan)), (M,)), ("sinc", ln.sinc, (M,)),
        ("astype", lambda x: x.astype(complex).real * 2 + x.astype(np.float64), (M,)), ("real", lambda x: ln.real(x * (1 + 2j)), (M,)),
        ("imag", lambda x: ln.imag(x * x * (1 + 2j)), (M,)), ("angle", lambda x: ln.angle(x + 1j), (M,)),
        ("absolute", lambda x: ln.abs(x + 2j), (M,)), ("conjugate", lambda x: (ln.conj(x + 1j) ** 2).imag, (M,)),
        ("add", lambda x: np.add(x, 1, where=np.arange(4) > 1), (M,)), ("exp", lambda x: np.exp(x, dtype=float), (M,)),
        ("round", lambda x: x * ln.round(3 * x), (M,)), ("isclose", lambda x: x * ln.isclose(x, 2.0), (M,)),
    ]  # fmt: skip
    return cases


def _reductions() -> list[Case]:
    cases: list[Case] = []
    for name in "sum mean max min amax amin prod var std ptp median".split():
        f = getattr(ln, name)
        cases += [
            (name, f, (M,)), (name, lambda x, f=f: f(x, axis=0), (M,)), (name, lambda x, f=f: f(x, axis=-1, keepdims=True), (N3,)),
        ]  # fmt: skip
        if name not in ("ptp", "median"):
            cases += [(name, lambda x, f=f: f(x, axis=(0, 2)), (N3,))]
    hidden = np.arange(20).reshape(5, 4) % 3 > 0
    for name in "nansum nanmean nanmax nanmin nanprod nanvar nanstd".split():
        f = getattr(ln, name)
        cases += [(name, lambda x, f=f: f(ln.where(np.arange(4) == 1, np.nan, x), axis=1), (M,))]
    return cases + [
        ("sum", lambda x: ln.sum(x, axis=0, where=hidden, initial=2.0), (M,)), ("mean", lambda x: x.mean(axis=1, where=hidden), (M,)),
        ("max", lambda x: ln.max(x, axis=0, where=hidden, initial=-9.0), (M,)), ("var", lambda x: ln.var(x, axis=0, where=hidden, ddof=1), (M,)),
        ("var", lambda x: ln.var(x, axis=0, mean=x[:1] * 2), (M,)), ("var", lambda x: ln.var(x, axis=0, correction=1), (M,)),
        ("prod", lambda x: ln.prod(x * (np.arange(4) != 1), axis=1), (M,)),
        ("average", lambda x, w: ln.average(x, axis=0, weights=w), (M, ranged((5,), POSITIVE))), ("average", lambda x: ln.average(x, axis=1), (M,)),
        ("cov", ln.cov, (M,)), ("cov", lambda x: ln.cov(x, rowvar=False, ddof=0), (M,)), ("corrcoef", ln.corrcoef, (M,)),
        ("cumsum", ln.cumsum, (M,)), ("cumsum", lambda x: x.cumsum(axis=1), (M,)), ("nancumsum", lambda x: ln.nancumsum(x, axis=0), (M,)),
        ("cumulative_sum", lambda x: ln.cumulative_sum(x, axis=1, include_initial=True), (M,)),
        ("cumprod", ln.cumprod, (M,)), ("cumprod", lambda x: ln.cumprod(x * (np.arange(4) != 2), axis=1), (M,)),
        ("cumulative_prod", lambda x: ln.cumulative_prod(x, axis=0, include_initial=True), (M,)),
        ("diff", ln.diff, (M,)), ("diff", lambda x: ln.diff(x, 2, axis=0, prepend=0.0, append=x[:1]), (M,)), ("ediff1d", lambda x: ln.ediff1d(x, to_end=1.0, to_begin=2.0), (M,)),
        ("trapezoid", lambda y, x: ln.trapezoid(y, ln.cumsum(x)), (M, ranged((4,), POSITIVE))), ("unwrap", ln.unwrap, (V,)),
        ("quantile", lambda x: ln.quantile(x, [0.1, 0.5, 0.85], axis=0, keepdims=True), (M,)), ("percentile", lambda x: ln.percentile(x, 30), (M,)),
        ("sort", ln.sort, (M,)), ("sort", lambda x: ln.sort(x, axis=0, descending=True), (M,)), ("topk", lambda x: ln.topk(x, 2), (M,)),
        ("argmax", lambda x: x[ln.argmax(x).compute() // 4], (M,)), ("all", lambda x: x * ln.all(x > 5), (M,)),
        ("methods of ufuncs", lambda x: np.add.reduce(x), (M,)), ("methods of ufuncs", lambda x: np.logaddexp.reduce(x, axis=1), (M,)),
        ("methods of ufuncs", lambda x: ln.multiply.accumulate(x), (M,)), ("methods of ufuncs", lambda x, y: np.subtract.outer(x, y), (M, V)),
    ]  # fmt: skip


def _shapes() -> list[Case]:
    return [
        ("reshape", lambda x: ln.reshape(x, (2, -1)), (M,)), ("reshape", lambda x: x.reshape(4, 5, order="F"), (M,)), ("ravel", lambda x: x.ravel("F"), (M,)),
        ("squeeze", lambda x: ln.squeeze(x[:1]), (M,)), ("expand_dims", lambda x: ln.expand_dims(x, (0, 2)), (M,)),
        ("transpose", lambda x: ln.transpose(x, (1, 2, 0)) * x.T.reshape(3, 4, 2), (N3,)), ("permute_dims", lambda x: ln.permute_dims(x, (2, 0, 1)), (N3,)),
        ("matrix_transpose", lambda x: x.mT, (N3,)), ("swapaxes", lambda x: x.swapaxes(0, 2), (N3,)), ("moveaxis", lambda x: ln.moveaxis(x, 0, -1), (N3,)),
        ("rollaxis", lambda x: ln.rollaxis(x, 2, 0), (N3,)), ("broadcast_to", lambda x: ln.broadcast_to(x, (3, 5, 4)), (M,)),
        ("broadcast_arrays", lambda x, y: ln.broadcast_arrays(x, y)[1], (M, (4,))), ("atleast_1d", lambda x: ln.atleast_1d(x[0, 0]), (M,)),
        ("atleast_2d", lambda x: ln.atleast_2d(x), (V,)), ("atleast_3d", lambda x: ln.atleast_3d(x), (V,)),
        ("concatenate", lambda x, y: ln.concatenate([x, 2 * y, np.ones((1, 4))]), (M, M)), ("concatenate", lambda x, y: ln.concat([x, y], axis=None), (M, V)),
        ("stack", lambda x, y: ln.stack([x, y], axis=1), (M, M)), ("hstack", lambda x, y: ln.hstack([x, y]), (M, M)), ("vstack", lambda x, y: ln.vstack([x, y]), (M, (4,))),
        ("dstack", lambda x: ln.dstack([x, x]), (M,)), ("column_stack", lambda x, y: ln.column_stack([x, y]), (V, V)), ("append", lambda x, y: ln.append(x, y), (M, V)),
        ("block", lambda x, y: ln.block([[x, y], [y, x]]), (M, M)), ("split", lambda x: ln.split(x, [1, 3])[1], (M,)), ("array_split", lambda x: ln.array_split(x, 2)[1], (M,)),
        ("vsplit", lambda x: ln.vsplit(x, [2])[1], (M,)), ("hsplit", lambda x: ln.hsplit(x, 2)[1], (M,)), ("dsplit", lambda x: ln.dsplit(x, 2)[1], (N3,)),
        ("unstack", lambda x: ln.unstack(x, axis=1)[2], (M,)), ("pad", lambda x: ln.pad(x, ((1, 2), (0, 3)), constant_values=4), (M,)),
        ("pad", lambda x: sum(ln.pad(x, 2, mode=mode) for mode in ("edge", "reflect", "symmetric", "wrap")), (M,)),
        ("roll", lambda x: ln.roll(x, 2), (M,)), ("roll", lambda x: ln.roll(x, (1, -2), (0, 1)), (M,)), ("flip", lambda x: ln.flip(x, 1), (M,)),
        ("fliplr", ln.fliplr, (M,)), ("flipud", ln.flipud, (M,)), ("rot90", ln.rot90, (M,)), ("repeat", lambda x: ln.repeat(x, [1, 2, 0, 3], axis=1), (M,)),
        ("tile", lambda x: ln.tile(x, (2, 1, 3)), (M,)), ("resize", lambda x: ln.resize(x, (3, 9)), (M,)), ("delete", lambda x: ln.delete(x, [1, 3], axis=0), (M,)),
        ("insert", lambda x, y: ln.insert(x, [1, 3], y, axis=1), (M, (5, 2))), ("insert", lambda x: ln.insert(x, 2, 7.0), (V,)),
        ("diagonal", lambda x: ln.diagonal(x, 1), (M,)), ("diagonal", lambda x: ln.diagonal(x, -1, 2, 0), (N3,)), ("trace", lambda x: x.trace(-1), (M,)),
        ("diag", ln.diag, (V,)), ("diag", lambda x: ln.diag(x, -2), (M,)), ("diagflat", ln.diagflat, ((2, 3),)), ("tril", ln.tril, (M,)), ("triu", lambda x: ln.triu(x, 1), (N3,)),
        ("rechunk", lambda x: x.rechunk((2, 3)) * 2, (M,)), ("copy", lambda x: ln.copy(x) + x.copy(), (M,)),
        ("asarray", lambda x: ln.asarray([x[0, 0], x[1, 1] * 2, 3.0]), (M,)), ("array", lambda x: ln.array(x, ndmin=3), (M,)),
        ("full_like", lambda x: ln.full_like(x, x[0, 0]), (M,)), ("zeros_like", lambda x: x + ln.zeros_like(x), (M,)), ("shape", lambda x: x / ln.shape(x)[0], (M,)),
    ]  # fmt: skip


def assigned(x: Any, v: Any) -> Any:
    """Assignments of all kinds, to a traced array and to one that becomes traced."""
    y = x * 1
    y[1:3] = v
    y[0, ::2] = x[0, 1]
    y[x[:, 0] > 0.2] *= 2
    y[[0, 0, 4]] = x[[1, 2, 3]]
    y += 1
    z = ln.zeros((5, 4))
    z[:, 1] = x[:, 2]
    z -= y * 0.5
    y[...] = y + z
    return y


def _indexing() -> list[Case]:
    rows = np.array([[3, 0], [3, 1]])
    return [
        ("x[...]", lambda x: x[1:4, ::2], (M,)), ("x[...]", lambda x: x[::-1, None, -1], (M,)), ("x[...]", lambda x: x[2], (M,)), ("x[...]", lambda x: x[rows], (M,)),
        ("x[...]", lambda x: x[rows, [0, 1]], (M,)), ("x[...]", lambda x: x[x > 0] * 2, (M,)), ("x[...]", lambda x: x[x[:, 0] > -0.3], (M,)), ("x[...]", lambda x: x[..., [0, 0], 1:], (N3,)),
        ("x[...]", lambda x: sum(row * k for k, row in enumerate(x)), (M,)),
        ("x[...] = v", assigned, (M, (4,))), ("x += v", assigned, (M, (2, 4))), ("x[...] = v", assigned, (M, ())),
        ("take", lambda x: ln.take(x, rows, axis=1 - 1), (M,)), ("take", lambda x: x.take([1, 19, 1]), (M,)), ("take", lambda x: ln.take(x, [7, -9], axis=0, mode="wrap"), (M,)),
        ("take_along_axis", lambda x: ln.take_along_axis(x, np.array([[0], [1], [1], [2], [0]]), axis=1), (M,)), ("take_along_axis", lambda x: ln.take_along_axis(x, rows[:, :1] * 0 + 1, axis=0), ((5, 1),)),
        ("compress", lambda x: ln.compress([True, False, True], x, axis=0), (M,)), ("extract", lambda x: ln.extract(x > 0, x), (M,)),
        ("select", lambda x, y: ln.select([x > 0.3, x > -0.3], [x, y * x], 0.5), (M, M)), ("choose", lambda x, y: ln.choose(np.array([0, 1, 1, 0]), [x, y]), (M, M)),
        ("copyto", copied, (M, (4,))),
    ]  # fmt: skip


def joined_rows(x: Any) -> Any:
    return ln.concatenate(x) * 2


def copied(x: Any, y: Any) -> Any:
    z = x * 2
    ln.copyto(z, y, where=np.arange(4) > 1)
    return z


def _products() -> list[Case]:
    S, B = (3, 4, 5), (3, 5, 2)
    return [
        ("matmul", ln.matmul, (M, (4, 3))), ("matmul", lambda x, y: x @ y, (V, V)), ("matmul", lambda x, y: x @ y, (M, (4,))), ("matmul", lambda x, y: x @ y, ((5,), M)),
        ("matmul", ln.matmul, (S, B)), ("matmul", ln.matmul, (S, (5, 2))), ("matmul", ln.matmul, ((4,), S)), ("matmul", ln.matmul, (S, (5,))), ("matmul", ln.matmul, ((4, 5), B)),
        ("linalg.matmul", lambda x, y: ln.linalg.matmul(x, y, op_a="T", op_b="T"), ((4, 5), (3, 4))),
        ("tensordot", ln.tensordot, (N3, (3, 4, 2))), ("tensordot", lambda x, y: ln.tensordot(x, y, ([2, 0], [1, 2])), (N3, (3, 4, 2))), ("tensordot", lambda x, y: ln.tensordot(x, y, 0), (V, M)),
        ("dot", ln.dot, (M, (4,))), ("dot", lambda x, y: x.dot(y), (M, (3, 4, 2))), ("inner", ln.inner, (M, N3)), ("outer", ln.outer, (M, V)), ("linalg.outer", ln.linalg.outer, (V, V)),
        ("vdot", ln.vdot, (M, (4, 5))), ("vecdot", ln.vecdot, (M, M)), ("matvec", ln.matvec, (S, (3, 5))), ("vecmat", ln.vecmat, ((3, 4), S)), ("kron", ln.kron, ((2, 3), (4,))),
        ("cross", lambda x, y: ln.cross(x, y), ((4, 3), (4, 3))), ("linalg.cross", lambda x, y: ln.linalg.cross(x, y), ((4, 3), (4, 3))),
        ("einsum", lambda x, y: ln.einsum("ij,jk->ik", x, y), (M, (4, 3))), ("einsum", lambda x, y: ln.einsum("ij,kj", x, y), (M, M)), ("einsum", lambda x: ln.einsum("ii->i", x), ((4, 4),)),
        ("einsum", lambda x: ln.einsum("iji", x), ((3, 2, 3),)), ("einsum", lambda x, y, z: ln.einsum("...i,ij,...j->...", x, y, z), ((3, 4), M[::-1], (3, 5))), ("einsum", lambda x: ln.einsum("ij->", x), (M,)),
        ("einsum", lambda x, y: ln.einsum(x, [0, 1], y, [1, 2], [2, 0]), (M, (4, 3))),
        ("convolve", ln.convolve, (V, (3,))), ("convolve", lambda x, y: ln.convolve(x, y, "same"), (V, (4,))), ("convolve", lambda x, y: ln.convolve(x, y, "valid"), ((3,), V)), ("convolve", lambda x, y: ln.convolve(x, y, "same"), ((4,), V)),
        ("convolve", ln.convolve, ((5, 6), (2, 3))), ("convolve", lambda x, y: ln.convolve(x, y, "same", strides=2), ((5, 6), (3, 2))), ("convolve", lambda x, y: ln.convolve(x, y, "valid"), ((2, 3), (5, 6))),
        ("convolve", lambda x, y: ln.convolve(x, y, padding=((1, 2), (4, 0)), strides=(2, 3)), ((5, 6), (3, 2))), ("convolve", lambda x, y: ln.convolve(x, y, strides=3), (V, (3,))), ("convolve", lambda x, y: ln.convolve(x, y, "valid"), ((2, 3, 5, 5), (1, 3, 2, 2))),
        ("correlate", ln.correlate, (V, (3,))), ("correlate", lambda x, y: ln.correlate(x, y, "full"), (V, (4,))), ("correlate", lambda x, y: ln.correlate(x, y, "same"), (V, (4,))), ("correlate", lambda x, y: ln.correlate(x, y, "same"), ((3,), V)),
    ]  # fmt: skip


def positive_definite(x: Any) -> Any:
    return x @ x.mT + 3 * ln.eye(x.shape[-1])


def _linalg() -> list[Case]:
    la, Q = ln.linalg, (4, 4)
    cases: list[Case] = []
    for ord in (None, 1, 2, -np.inf, np.inf, 3):
        cases += [
            ("linalg.norm", lambda x, o=ord: la.norm(x, o, axis=1), (M,)),
            ("linalg.vector_norm", lambda x, o=ord or 2: la.vector_norm(x, ord=o), (M,)),
        ]
    for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf):
        cases += [
            ("linalg.matrix_norm", lambda x, o=ord: la.matrix_norm(x, ord=o), (M,)),
            ("linalg.norm", lambda x, o=ord: la.norm(x, o, keepdims=True), (M,)),
        ]
    return cases + [
        ("linalg.cholesky", lambda x: la.cholesky(positive_definite(x)), (Q,)), ("linalg.cholesky", lambda x: la.cholesky(positive_definite(x), upper=True), ((2, 3, 3),)),
        ("linalg.solve", lambda x, y: la.solve(positive_definite(x), y), (Q, (4, 2))), ("linalg.solve", lambda x, y: la.solve(positive_definite(x), y), (Q, (4,))), ("linalg.solve", lambda x, y: la.solve(positive_definite(x), y), ((2, 3, 3), (2, 3, 2))),
        ("linalg.solve_triangular", lambda x, y: la.solve_triangular(positive_definite(x), y, lower=True), (Q, (4, 2))), ("linalg.solve_triangular", lambda x, y: la.solve_triangular(positive_definite(x), y, trans=1), (Q, (4,))),
        ("linalg.solve_triangular", lambda x, y: la.solve_triangular(positive_definite(x), y, lower=True, unit_diagonal=True, trans=1), (Q, (4, 2))), ("linalg.solve_triangular", lambda x, y: la.solve_triangular(positive_definite(x), y, side="right"), (Q, (2, 4))),
        ("linalg.inv", lambda x: la.inv(positive_definite(x)), (Q,)), ("linalg.det", lambda x: la.det(positive_definite(x)), (Q,)), ("linalg.det", lambda x: la.det(positive_definite(x)), ((2, 3, 3),)), ("linalg.slogdet", lambda x: la.slogdet(positive_definite(x))[1], (Q,)),
        ("linalg.eigh", lambda x: la.eigh(x + x.mT)[0], (Q,)), ("linalg.eigh", lambda x: abs(la.eigh(x + x.mT)[1]), (Q,)), ("linalg.eigh", weighed_eigenvectors, ((2, 3, 3),)), ("linalg.eigvalsh", lambda x: la.eigvalsh(x + x.mT), (Q,)),
        ("linalg.svd", lambda x: la.svd(x, full_matrices=False)[1], (M,)), ("linalg.svd", weighed_singular_vectors, (M,)), ("linalg.svd", weighed_singular_vectors, ((3, 5),)), ("linalg.svd", weighed_singular_vectors, ((3, 3),)), ("linalg.svdvals", la.svdvals, (M,)),
        ("linalg.qr", lambda x: abs(la.qr(x)[1]), (M,)), ("linalg.qr", lambda x: abs(la.qr(x)[0]) * 2, (M,)), ("linalg.qr", lambda x: abs(la.qr(x)[0]) @ abs(la.qr(x)[1]), (Q,)),
        ("linalg.cho_solve", lambda x, y: la.cho_solve(la.cho_factor(positive_definite(x)), y), (Q, (4, 2))), ("linalg.cho_factor", lambda x: ln.triu(la.cho_factor(positive_definite(x))[0]), (Q,)),
        ("linalg.pinv", la.pinv, (M,)), ("linalg.pinv", la.pinv, ((3, 5),)), ("linalg.matrix_power", lambda x: la.matrix_power(positive_definite(x) / 4, 5), (Q,)), ("linalg.matrix_power", lambda x: la.matrix_power(positive_definite(x), -2), (Q,)),
        ("linalg.multi_dot", lambda x, y, z: la.multi_dot([x, y, z]), (M, (4, 3), (3, 2))), ("linalg.matrix_transpose", la.matrix_transpose, (N3,)), ("linalg.diagonal", lambda x: la.diagonal(x, offset=1), (N3,)), ("linalg.trace", la.trace, (N3,)),
        ("linalg.syrk", la.syrk, (M,)), ("linalg.cond", lambda x: la.cond(positive_definite(x)), (Q,)), ("linalg.cond", lambda x: la.cond(positive_definite(x), 1), (Q,)),
    ]  # fmt: skip


def weighed_eigenvectors(x: Any) -> Any:
    w, v = ln.linalg.eigh(x + x.mT)
    return (v * v) * w[..., None, :]


def weighed_singular_vectors(x: Any) -> Any:
    u, s, vh = ln.linalg.svd(x, full_matrices=False)
    return (u * ln.arange(1.0, s.shape[0] + 1)) @ (vh * s[:, None] ** 2)


def _transforms() -> list[Case]:
    f = ln.fft

    def parts(z: Any) -> Any:
        return ln.concatenate([ln.ravel(ln.real(z)), ln.ravel(ln.imag(z))]) if z.dtype.kind == "c" else z

    cases: list[Case] = []
    for name in ("fft", "ifft", "rfft", "ihfft"):
        for options in ({}, {"n": 8, "norm": "ortho"}, {"n": 3, "axis": 0, "norm": "forward"}):
            cases += [(f"fft.{name}", lambda x, g=getattr(f, name), o=options: parts(g(x, **o)), (M,))]
    for name in ("irfft", "hfft"):
        for options in ({}, {"n": 5}, {"n": 9, "norm": "ortho"}, {"axis": 0, "norm": "forward"}):
            cases += [
                (f"fft.{name}", lambda x, y, g=getattr(f, name), o=options: parts(g(x + 1j * y, **o)), (M, M))
            ]
    for name in "fftn ifftn rfftn irfftn fft2 ifft2 rfft2 irfft2".split():
        cases += [
            (
                f"fft.{name}",
                lambda x, y, g=getattr(f, name): parts(g(x if "rfft" in g.__name__[:4] else x + 1j * y)),
                (N3, N3),
            )
        ]
    return cases + [("fft.fftshift", f.fftshift, (M,)), ("fft.ifftshift", lambda x: f.ifftshift(x, axes=1), (M,))]  # fmt: skip


def _further() -> list[Case]:
    xs = np.array([-0.8, -0.2, 0.1, 0.5, 0.9])
    return [
        ("concatenate", joined_rows, (N3,)), ("stack", lambda x: ln.stack(x, axis=1), (M,)), ("hstack", ln.hstack, (M,)),
        ("interp", lambda x, f: ln.interp(x, xs, f), (M, (5,))),
        ("clip", lambda x: np.clip(x, a_min=-0.3, a_max=0.3), (M,)), ("sort", lambda x: np.sort(x, axis=0), (M,)), ("sort", lambda x: x[np.argsort(x)], (V,)),
        ("full", lambda x: ln.full((3, 2), x[0]), (V,)), ("meshgrid", lambda x, y: ln.meshgrid(x, y)[0] * ln.meshgrid(x, y, sparse=True)[1], (V, (3,))),
        ("polyval", ln.polyval, ((3,), V)), ("vander", lambda x: ln.vander(x, 4), (V,)), ("gradient", lambda x: ln.gradient(x, 0.5, axis=1), (M,)), ("gradient", lambda x: sum(ln.gradient(x)), (M,)),
        ("interp", lambda x, f: ln.interp(x, xs, f), (V, (5,))), ("interp", lambda x, p: ln.interp(x, ln.cumsum(p), xs, left=0.0), (V, ranged((5,), POSITIVE))),
    ]  # fmt: skip


CASES = [
    *_elementwise(),
    *_reductions(),
    *_shapes(),
    *_indexing(),
    *_products(),
    *_linalg(),
    *_transforms(),
    *_further(),
]
