"""Rules of linear algebra: factors, systems, spectra, norms.

The formulas are those of M. Giles, "Collected matrix derivative results for forward and reverse mode
algorithmic differentiation" (2008), written for stacks of matrices. Matrices that are read as symmetric
have symmetric changes. Eigenvalues and singular values must be distinct where vectors are asked for.

Weights are paired with changes as Re(sum(g·t)), without a conjugate: `_transposed` makes that of an adjoint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.derivatives.linear_maps import adjoint, conj, length_along
from linnet.derivatives.names import la, ln
from linnet.derivatives.rules import Derivatives, Linear, composition, maps, zero
from linnet.errors import DerivativeError


def _array(item: Any) -> Any:
    return item if isinstance(item, ln.Array) else ln.asarray(item)


def _mT(x: Any) -> Any:
    return ln.matrix_transpose(x)


def _transposed(adjoint_map: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The transpose of a map whose adjoint is given; of real matrices they are the same."""

    def pull(g: Any) -> Any:
        parts = tuple(None if each is None else conj(each) for each in g) if isinstance(g, tuple) else conj(g)
        return conj(adjoint_map(parts))

    return pull


def _symmetric(x: Any) -> Any:
    return (x + adjoint(x)) / 2


def _real_only(x: Any, name: str) -> None:
    if x.dtype.kind == "c":
        raise DerivativeError(f"{name} has a rule of derivatives for real matrices, not for {x.dtype}")


def _lower_half(x: Any) -> Any:
    """The lower triangle, with half of the diagonal."""
    eye = ln.eye(x.shape[-1], dtype=x.real.dtype if x.dtype.kind == "c" else x.dtype)
    return ln.tril(x) * (1 - eye / 2)


@maps(la.cholesky, text="L·Φ(L⁻¹·dA·L⁻ᴴ), Φ the lower triangle with half of the diagonal; dA symmetric")
def _cholesky(result: Any, a: Any, upper: bool = False, lower: Any = None, tile: Any = None) -> Derivatives:
    is_upper = upper if lower is None else not lower
    factor = adjoint(result) if is_upper else result

    def push(t: Any) -> Any:
        half = la.solve_triangular(factor, _symmetric(t), lower=True)
        inside = adjoint(la.solve_triangular(factor, adjoint(half), lower=True))
        made = factor @ _lower_half(inside)
        return adjoint(made) if is_upper else made

    def back(g: Any) -> Any:
        g = adjoint(g) if is_upper else g
        inside = _lower_half(adjoint(factor) @ ln.tril(g))
        half = la.solve_triangular(adjoint(factor), inside, lower=False)
        made = adjoint(la.solve_triangular(adjoint(factor), adjoint(half), lower=False))
        return _symmetric(made)

    return {"a": Linear(push, _transposed(back))}


def _product(a: Any, x: Any) -> Any:
    """A matrix times one vector or a matrix."""
    return a @ x


def _outer(g: Any, x: Any) -> Any:
    return g[..., :, None] * x[..., None, :] if x.ndim == 1 else g @ _mT(x)


@maps(la.solve, text="solve(a, -dA·x), solve(a, t); the same with aᵀ")
def _solve(result: Any, a: Any, b: Any, tile: Any = None) -> Derivatives:
    a, b = _array(a), _array(b)

    def pull_b(g: Any) -> Any:
        return la.solve(_mT(a), g)

    def summed(g: Any, shape: Any) -> Any:
        from linnet.derivatives.linear_maps import summed_to

        return summed_to(g, shape)

    return {
        "a": Linear(
            lambda t: -la.solve(a, _product(t, result)),
            lambda g: summed(-_outer(pull_b(g), result), a.shape),
        ),
        "b": Linear(lambda t: la.solve(a, t), lambda g: summed(pull_b(g), b.shape)),
    }


@maps(la.solve_triangular, text="as solve, in the triangle")
def _solve_triangular(
    result: Any, a: Any, b: Any, lower: bool = False, trans: Any = 0, unit_diagonal: bool = False,
    side: str = "left", tile: Any = None,
) -> Derivatives:  # fmt: skip
    a, b = _array(a), _array(b)
    options = {"lower": lower, "unit_diagonal": unit_diagonal, "side": side}
    turn = {0: 0, "N": 0, 1: 1, "T": 1, 2: 2, "C": 2}[trans]
    if turn == 2 and a.dtype.kind != "c":
        turn = 1

    def operator(x: Any) -> Any:
        return x if turn == 0 else _mT(x) if turn == 1 else adjoint(x)

    def triangle(x: Any) -> Any:
        return (ln.tril if lower else ln.triu)(x, (-1 if lower else 1) if unit_diagonal else 0)

    def pull_b(g: Any) -> Any:
        if turn == 2:  # the transpose of the inverse of aᴴ is the inverse of conj(a)
            return conj(la.solve_triangular(a, conj(g), trans=0, **options))
        return la.solve_triangular(a, g, trans=1 - turn, **options)

    def push_a(t: Any) -> Any:
        change = operator(triangle(t))
        return -la.solve_triangular(
            a, change @ result if side == "left" else result @ change, trans=trans, **options
        )

    def pull_a(g: Any) -> Any:
        weight = pull_b(g)
        made = -_outer(weight, result) if side == "left" else -_mT(result) @ weight
        return triangle(operator(made))

    return {
        "a": Linear(push_a, pull_a),
        "b": Linear(lambda t: la.solve_triangular(a, t, trans=trans, **options), pull_b),
    }


@maps(la.inv, text="-a⁻¹·dA·a⁻¹")
def _inv(result: Any, a: Any, tile: Any = None) -> Derivatives:
    return {"a": Linear(lambda t: -(result @ t @ result), lambda g: -(_mT(result) @ g @ _mT(result)))}


def _traces(x: Any) -> Any:
    return ln.sum(ln.diagonal(x, 0, -2, -1), axis=-1)


@maps(la.det, text="det·trace(a⁻¹·dA), of matrices that have an inverse")
def _det(result: Any, a: Any, tile: Any = None) -> Derivatives:
    return {
        "a": Linear(
            lambda t: result * _traces(la.solve(a, t)),
            lambda g: (g * result)[..., None, None] * _mT(la.inv(a)),
        )
    }


@maps(la.slogdet, text="i·sign·Im(trace(a⁻¹·dA)), which is zero of real a; Re(trace(a⁻¹·dA))")
def _slogdet(result: Any, a: Any, tile: Any = None) -> Derivatives:
    sign = result[0]

    def push(t: Any) -> Any:
        trace = _traces(la.solve(a, t))
        if trace.dtype.kind != "c":
            return ln.zeros_like(sign), trace
        return sign * ln.imag(trace) * 1j, ln.real(trace)

    def pull(g: Any) -> Any:
        weight = g[1]
        if g[0] is not None and sign.dtype.kind == "c":
            turn = ln.imag(g[0] * sign) * 1j
            weight = turn if weight is None else weight + turn
        return None if weight is None else weight[..., None, None] * _mT(la.inv(a))

    return {"a": Linear(push, pull)}


def _gaps(w: Any) -> Any:
    """1 / (w[j] - w[i]), zero on the diagonal."""
    eye = ln.eye(w.shape[-1], dtype=w.dtype)
    return (1 - eye) / (w[..., None, :] - w[..., :, None] + eye)


@maps(la.eigh, text="diagonal of VᴴdA·V; V·(F∘VᴴdA·V), F = 1 / (wⱼ - wᵢ): distinct eigenvalues")
def _eigh(
    result: Any, a: Any, b: Any = None, UPLO: str = "L", type: int = 1, tile: Any = None
) -> Derivatives:
    if b is not None:
        raise DerivativeError("linalg.eigh has no rule of derivatives for two matrices")
    w, v = result

    def push(t: Any) -> Any:
        inside = adjoint(v) @ _symmetric(t) @ v
        values = ln.diagonal(inside, 0, -2, -1)
        return (ln.real(values) if values.dtype.kind == "c" else values), v @ (_gaps(w) * inside)

    def back(g: Any) -> Any:
        inside: Any = None if g[0] is None else g[0][..., None, :] * ln.eye(w.shape[-1], dtype=w.dtype)
        if g[1] is not None:
            turn = _gaps(w) * (adjoint(v) @ g[1])
            inside = turn if inside is None else inside + turn
        return _symmetric(v @ inside @ adjoint(v))

    return {"a": Linear(push, _transposed(back))}


@maps(la.eigvalsh, text="diagonal of VᴴdA·V")
def _eigvalsh(
    result: Any, a: Any, b: Any = None, UPLO: str = "L", type: int = 1, tile: Any = None
) -> Derivatives:
    if b is not None:
        raise DerivativeError("linalg.eigvalsh has no rule of derivatives for two matrices")
    found: list[Any] = []

    def linear() -> Linear:
        if not found:
            made = _eigh(la.eigh(a, None, UPLO), a)["a"]
            found.append(made)
        return found[0]

    return {"a": Linear(lambda t: linear().push(t)[0], lambda g: linear().pull((g, None)))}


@maps(
    la.svd,
    text="real, full_matrices=False or square: UᵀdA·V on the diagonal, and turns of U and V; distinct values",
)
def _svd(
    result: Any,
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    tile: Any = None,
) -> Derivatives:
    _real_only(a, "linalg.svd")
    if not compute_uv:
        return _svdvals(result, a)
    m, n = a.shape[-2:]
    if full_matrices and m != n:
        raise DerivativeError(
            "linalg.svd has a rule of derivatives for full_matrices=False, or square matrices"
        )
    u, s, vh = result
    v = _mT(vh)
    eye = ln.eye(s.shape[-1], dtype=s.dtype)
    row, column = s[..., None, :], s[..., :, None]
    gaps = (1 - eye) / ((row - column) * (row + column) + eye)

    def push(t: Any) -> Any:
        inside = _mT(u) @ t @ v
        one, other = inside * row, inside * column
        du, dv = u @ (gaps * (one + _mT(one))), v @ (gaps * (other + _mT(other)))
        if m > n:
            rest = t @ v
            du = du + (rest - u @ (_mT(u) @ rest)) / row
        if n > m:
            rest = _mT(t) @ u
            dv = dv + (rest - v @ (vh @ rest)) / row
        return du, ln.diagonal(inside, 0, -2, -1), _mT(dv)

    def pull(g: Any) -> Any:
        inside = eye * 0 if g[1] is None else g[1][..., None, :] * eye
        made: Any = None
        if g[0] is not None:
            turn = gaps * (_mT(u) @ g[0])
            inside = inside + (turn + _mT(turn)) * row
            if m > n:
                rest = g[0] / row
                made = (rest - u @ (_mT(u) @ rest)) @ vh
        if g[2] is not None:
            weight = _mT(g[2])
            turn = gaps * (vh @ weight)
            inside = inside + (turn + _mT(turn)) * column
            if n > m:
                rest = weight / row
                made = u @ _mT(rest - v @ (vh @ rest))
        whole = u @ inside @ vh
        return whole if made is None else whole + made

    return {"a": Linear(push, pull)}


@maps(la.svdvals, text="diagonal of UᵀdA·V")
def _svdvals(result: Any, a: Any, tile: Any = None) -> Derivatives:
    found: list[Any] = []

    def vectors() -> Any:
        if not found:
            u, _, vh = la.svd(a, full_matrices=False)
            found.append((u, vh))
        return found[0]

    def push(t: Any) -> Any:
        u, vh = vectors()
        inside = ln.diagonal(adjoint(u) @ t @ adjoint(vh), 0, -2, -1)
        return ln.real(inside) if inside.dtype.kind == "c" else inside

    def back(g: Any) -> Any:
        u, vh = vectors()
        return (u * g[..., None, :]) @ vh

    return {"a": Linear(push, _transposed(back))}


def _right(x: Any, r: Any) -> Any:
    """`x·r⁻¹`, for an upper triangle."""
    return _mT(la.solve_triangular(_mT(r), _mT(x), lower=True))


@maps(la.qr, text="mode='reduced', not wider than high: dQ = Q·W + (I - QQᴴ)·dA·R⁻¹, dR = (QᴴdA·R⁻¹ - W)·R")
def _qr(result: Any, a: Any, mode: str = "reduced", tile: Any = None) -> Derivatives:
    m, n = a.shape[-2:]
    if mode not in ("reduced", "complete") or (mode == "complete" and m != n) or m < n:
        raise DerivativeError(
            f"linalg.qr has a rule of derivatives for mode='reduced' and matrices not wider than high, "
            f"not for "
            f"mode={mode!r} and shape {a.shape}"
        )
    q, r = result
    eye = ln.eye(n, dtype=r.real.dtype if r.dtype.kind == "c" else r.dtype)

    def push(t: Any) -> Any:
        c = _right(t, r)
        inside = adjoint(q) @ c
        low = ln.tril(inside, -1)
        turn = low - adjoint(low)
        if turn.dtype.kind == "c":  # the diagonal of R stays real
            turn = turn + 1j * ln.imag(inside) * eye
        return q @ (turn - inside) + c, (inside - turn) @ r

    def back(g: Any) -> Any:
        inside: Any = 0
        if g[1] is not None:
            inside = r @ adjoint(ln.triu(g[1]))
        if g[0] is not None:
            inside = inside - adjoint(g[0]) @ q
        low = ln.tril(inside, -1)
        both = low + adjoint(low) + (ln.real(inside) if inside.dtype.kind == "c" else inside) * eye
        made = q @ both if g[0] is None else g[0] + q @ both
        return adjoint(la.solve_triangular(r, adjoint(made), lower=False))

    return {"a": Linear(push, _transposed(back))}


# ---- said in other words


@composition(la.cho_solve, text="two triangular systems")
def _cho_solve(factors: Any, b: Any, *, tile: Any = None) -> Any:
    c, lower = factors
    c = _array(c)
    low = ln.tril(c) if lower else adjoint(ln.triu(c))
    return la.solve_triangular(adjoint(low), la.solve_triangular(low, _array(b), lower=True), lower=False)


@composition(la.cho_factor, text="cholesky")
def _cho_factor(a: Any, *, lower: bool = False, tile: Any = None) -> Any:
    from linnet.arrays.linalg.factorisations import CholeskyFactors

    return CholeskyFactors(la.cholesky(a, upper=not lower), lower)


@composition(la.pinv, text="(AᴴA)⁻¹Aᴴ or Aᴴ(AAᴴ)⁻¹: full rank", own_value=True)
def _pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None, tile: Any = None) -> Any:
    m, n = a.shape[-2:]
    return la.solve(adjoint(a) @ a, adjoint(a)) if m >= n else adjoint(la.solve(a @ adjoint(a), a))


@composition(la.matrix_power, text="products")
def _matrix_power(a: Any, n: int, *, tile: Any = None) -> Any:
    if n < 0:
        a, n = la.inv(a), -n
    if n == 0:
        return ln.zeros_like(a) + ln.eye(a.shape[-1], dtype=a.dtype)
    made: Any = None
    while n:
        if n % 2:
            made = a if made is None else made @ a
        n //= 2
        a = a @ a if n else a
    return made


@composition(la.multi_dot, text="products")
def _multi_dot(arrays: Any, *, out: Any = None) -> Any:
    made = _array(arrays[0])
    for each in arrays[1:]:
        made = made @ _array(each)
    return made


composition(la.matrix_transpose, text="matrix_transpose")(lambda x, /: ln.matrix_transpose(x))


@composition(la.diagonal, text="diagonal")
def _diagonal(x: Any, /, *, offset: int = 0) -> Any:
    return ln.diagonal(x, offset, -2, -1)


@composition(la.trace, text="sum(diagonal)")
def _trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    return ln.sum(ln.diagonal(x, offset, -2, -1), axis=-1, dtype=dtype)


@composition(la.syrk, text="a·aᴴ")
def _syrk(a: Any, /, *, adjoint: bool = False, tile: Any = None) -> Any:
    return conj(_mT(a)) @ a if adjoint else a @ conj(_mT(a))


def _abs2(x: Any) -> Any:
    return ln.real(x) ** 2 + ln.imag(x) ** 2 if x.dtype.kind == "c" else x * x


@composition(la.vector_norm, text="roots of sums of powers, max, min, sum", own_value=True)
def _vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    if not length_along(x, axis):  # norms of nothing stay what they are
        return ln.sum(ln.abs(x), axis=axis, keepdims=keepdims)
    if ord == np.inf:
        return ln.max(ln.abs(x), axis=axis, keepdims=keepdims)
    if ord == -np.inf:
        return ln.min(ln.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return ln.sum((x != 0).astype(ln.abs(x).dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return ln.sum(ln.abs(x), axis=axis, keepdims=keepdims)
    if ord == 2:
        return ln.sqrt(ln.sum(_abs2(x), axis=axis, keepdims=keepdims))
    return ln.sum(ln.abs(x) ** ord, axis=axis, keepdims=keepdims) ** (1.0 / ord)


@composition(la.matrix_norm, text="norms of rows and columns, of singular values", own_value=True)
def _matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    if not length_along(x, (-2, -1)):  # norms of nothing stay what they are
        made = ln.sum(ln.abs(x), axis=(-2, -1))
    elif ord == "fro":
        made = ln.sqrt(ln.sum(_abs2(x), axis=(-2, -1)))
    elif ord in (1, -1, np.inf, -np.inf):
        sums = ln.sum(ln.abs(x), axis=-2 if abs(ord) == 1 else -1)
        made = (ln.max if ord > 0 else ln.min)(sums, axis=-1)
    else:
        values = la.svdvals(x)
        made = {2: ln.max, -2: ln.min, "nuc": ln.sum}[ord](values, axis=-1)
    return made[..., None, None] if keepdims else made


@composition(la.norm, text="vector_norm or matrix_norm", own_value=True)
def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, *, tile: Any = None) -> Any:
    if axis is None and (ord is None or x.ndim == 1):
        made = la.vector_norm(x, ord=2 if ord is None else ord)
        return ln.reshape(made, (1,) * x.ndim) if keepdims else made
    axes = tuple(range(x.ndim)) if axis is None else axis if isinstance(axis, tuple) else (axis,)
    if len(axes) == 1:
        return la.vector_norm(x, ord=2 if ord is None else ord, axis=axes[0], keepdims=keepdims)
    made = la.matrix_norm(ln.moveaxis(x, axes, (-2, -1)), ord="fro" if ord is None else ord)
    return ln.expand_dims(made, tuple(sorted(a % x.ndim for a in axes))) if keepdims else made


@composition(la.cond, text="quotient of norms", own_value=True)
def _cond(x: Any, p: Any = None, **options: Any) -> Any:
    if p is None or p in (2, -2):
        values = la.svdvals(x)
        large, small = values[..., 0], values[..., -1]
        return small / large if p == -2 else large / small
    return la.matrix_norm(x, ord=p) * la.matrix_norm(la.inv(x), ord=p)


zero(la.matrix_rank)
