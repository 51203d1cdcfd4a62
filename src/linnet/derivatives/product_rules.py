"""Rules of products: matrices, contractions, outer products, convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements.ufuncs import method_of
from linnet.arrays.functions.convolve import box
from linnet.derivatives.linear_maps import conj, layout_of, length_along, put_into_zeros, spread, summed_to
from linnet.derivatives.names import la, ln
from linnet.derivatives.rules import Derivatives, Linear, composition, maps
from linnet.errors import DerivativeError


@maps(ln.matmul, text="t @ b, a @ t; g @ bᵀ, aᵀ @ g")
def _matmul(result: Any, x1: Any, x2: Any, dtype: Any = None, out: Any = None) -> Derivatives:
    a, b = _array(x1), _array(x2)

    def pull_a(g: Any) -> Any:
        if b.ndim == 1:
            return summed_to(g * b if a.ndim == 1 else g[..., None] * b, a.shape)
        if a.ndim == 1:
            return summed_to((b @ g[..., None])[..., 0], a.shape)
        return summed_to(g @ ln.matrix_transpose(b), a.shape)

    def pull_b(g: Any) -> Any:
        if a.ndim == 1:
            return summed_to(g * a if b.ndim == 1 else a[:, None] * g[..., None, :], b.shape)
        if b.ndim == 1:
            if a.ndim == 2:
                return ln.matrix_transpose(a) @ g
            return summed_to((ln.matrix_transpose(a) @ g[..., None])[..., 0], b.shape)
        return summed_to(ln.matrix_transpose(a) @ g, b.shape)

    return {"x1": Linear(lambda t: t @ b, pull_a), "x2": Linear(lambda t: a @ t, pull_b)}


def _array(item: Any) -> Any:
    return item if isinstance(item, ln.Array) else ln.asarray(item)


@composition(la.matmul, text="matmul")
def _linalg_matmul(a: Any, b: Any, /, *, op_a: str = "N", op_b: str = "N", tile: Any = None) -> Any:
    return ln.matmul(_turned(a, op_a), _turned(b, op_b))


def _turned(x: Any, op: str) -> Any:
    x = _array(x)
    return x if op == "N" else ln.matrix_transpose(x) if op == "T" else conj(ln.matrix_transpose(x))


@maps(ln.tensordot, text="tensordot with the other; with the weights")
def _tensordot(result: Any, x1: Any, x2: Any, axes: Any = 2) -> Derivatives:
    a, b = _array(x1), _array(x2)
    if isinstance(axes, int | np.integer):
        count = int(axes)
        of_a, of_b = list(range(a.ndim - count, a.ndim)), list(range(count))
    else:
        of_a, of_b = (
            [each % x.ndim for each in np.atleast_1d(given).tolist()]
            for given, x in zip(axes, (a, b), strict=True)
        )
    free_a = [axis for axis in range(a.ndim) if axis not in of_a]
    free_b = [axis for axis in range(b.ndim) if axis not in of_b]

    def pull_a(g: Any) -> Any:
        made = ln.tensordot(g, b, (list(range(len(free_a), g.ndim)), free_b))
        order = [of_a[place] for place in np.argsort(of_b)]
        return ln.transpose(made, tuple(np.argsort([*free_a, *order]).tolist()))

    def pull_b(g: Any) -> Any:
        made = ln.tensordot(a, g, (free_a, list(range(len(free_a)))))
        order = [of_b[place] for place in np.argsort(of_a)]
        return ln.transpose(made, tuple(np.argsort([*order, *free_b]).tolist()))

    return {
        "x1": Linear(lambda t: ln.tensordot(t, b, (of_a, of_b)), pull_a),
        "x2": Linear(lambda t: ln.tensordot(a, t, (of_a, of_b)), pull_b),
    }


@composition(ln.dot, text="matmul or tensordot")
def _dot(a: Any, b: Any, out: Any = None) -> Any:
    a, b = _array(a), _array(b)
    if not a.ndim or not b.ndim:
        return a * b
    return a @ b if b.ndim <= 2 else ln.tensordot(a, b, ([a.ndim - 1], [b.ndim - 2]))


@composition(ln.inner, text="tensordot")
def _inner(a: Any, b: Any, /) -> Any:
    a, b = _array(a), _array(b)
    return ln.tensordot(a, b, ([a.ndim - 1], [b.ndim - 1])) if a.ndim and b.ndim else a * b


@composition(ln.outer, text="a[:, None]·b")
def _outer(a: Any, b: Any, out: Any = None) -> Any:
    return ln.ravel(_array(a))[:, None] * ln.ravel(_array(b))[None, :]


composition(la.outer, text="outer")(lambda x1, x2, /: ln.outer(x1, x2))


@composition(ln.vdot, text="sum(conj(a)·b)")
def _vdot(a: Any, b: Any, /) -> Any:
    return ln.matmul(conj(ln.ravel(_array(a))), ln.ravel(_array(b)))


@composition(ln.vecdot, text="sum(conj(a)·b)")
def _vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    return ln.sum(conj(_array(x1)) * _array(x2), axis=axis)


@composition(ln.matvec, text="matmul")
def _matvec(x1: Any, x2: Any, /) -> Any:
    return (_array(x1) @ _array(x2)[..., None])[..., 0]


@composition(ln.vecmat, text="matmul")
def _vecmat(x1: Any, x2: Any, /) -> Any:
    return (conj(_array(x1))[..., None, :] @ _array(x2))[..., 0, :]


@composition(ln.kron, text="products of all pairs")
def _kron(a: Any, b: Any) -> Any:
    a, b = _array(a), _array(b)
    ndim = max(a.ndim, b.ndim)
    one, other = (1,) * (ndim - a.ndim) + a.shape, (1,) * (ndim - b.ndim) + b.shape
    left = ln.reshape(a, tuple(each for n in one for each in (n, 1)))
    right = ln.reshape(b, tuple(each for n in other for each in (1, n)))
    return ln.reshape(left * right, tuple(n * m for n, m in zip(one, other, strict=True)))


@composition(ln.cross, text="products of components")
def _cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: Any = None) -> Any:
    axisa, axisb, axisc = (axisa, axisb, axisc) if axis is None else (axis,) * 3
    a, b = ln.moveaxis(_array(a), axisa, 0), ln.moveaxis(_array(b), axisb, 0)
    if a.shape[0] != 3 or b.shape[0] != 3:
        raise DerivativeError("cross has a rule of derivatives for vectors of three components")
    parts = [a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3] for k in range(3)]
    return ln.stack(parts, axis=axisc)


composition(la.cross, text="cross")(lambda x1, x2, /, *, axis=-1: ln.cross(x1, x2, axis=axis))


# ---- einsum

_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parsed(operands: tuple[Any, ...]) -> tuple[list[str], str, list[Any]]:
    """The indices of each operand, those of the result, and the operands; `...` written out."""
    if not isinstance(operands[0], str):
        pairs = list(zip(operands[0::2], operands[1::2], strict=False))
        arrays = [each for each, _ in pairs]
        terms = ["".join("..." if k is Ellipsis else _LETTERS[k] for k in each) for _, each in pairs]
        tail = operands[-1] if len(operands) % 2 else None
        text = ",".join(terms)
        if tail is not None:
            text += "->" + "".join("..." if k is Ellipsis else _LETTERS[k] for k in tail)
    else:
        text, arrays = operands[0].replace(" ", ""), list(operands[1:])
    inputs, arrow, output = text.partition("->")
    terms = inputs.split(",")
    spare = [c for c in _LETTERS if c not in text]
    longest = max(
        (np.ndim(x) - len(t.replace("...", "")) for t, x in zip(terms, arrays, strict=True) if "..." in t),
        default=0,
    )
    hidden = "".join(spare[:longest])
    full = [
        t.replace("...", hidden[longest - (np.ndim(x) - len(t.replace("...", ""))) :] if "..." in t else "")
        for t, x in zip(terms, arrays, strict=True)
    ]
    if arrow:
        return full, output.replace("...", hidden), arrays
    every = "".join(full)
    return full, hidden + "".join(sorted(c for c in set(every) - set(hidden) if every.count(c) == 1)), arrays


@maps(ln.einsum, text="einsum with the change; with the weights in place of the operand")
def _einsum(result: Any, *operands: Any, **options: Any) -> Derivatives:
    terms, output, arrays = _parsed(operands)
    arrays = [_array(each) for each in arrays]
    sizes: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        for letter, n in zip(term, array.shape, strict=True):
            sizes[letter] = n if n != 1 else sizes.get(letter, 1)

    def of(place: int) -> Linear:
        term, array = terms[place], arrays[place]
        others = [(t, x) for k, (t, x) in enumerate(zip(terms, arrays, strict=True)) if k != place]

        def push(t: Any) -> Any:
            every = [t if k == place else x for k, x in enumerate(arrays)]
            return ln.einsum(",".join(terms) + "->" + output, *every)

        def pull(g: Any) -> Any:
            return _einsum_pulled(g, output, term, array, others, sizes)

        return Linear(push, pull)

    if isinstance(operands[0], str):
        return {"operands": [None, *(of(place) for place in range(len(arrays)))]}  # type: ignore[dict-item]
    found: list[Any] = [None] * len(operands)
    for place in range(len(arrays)):
        found[2 * place] = of(place)
    return {"operands": found}


def _einsum_pulled(g: Any, output: str, term: str, array: Any, others: Any, sizes: dict[str, int]) -> Any:
    """The weight on one operand of `einsum`."""
    unique = "".join(dict.fromkeys(term))
    known = set(output) | {letter for t, _ in others for letter in t}
    kept = "".join(letter for letter in unique if letter in known)
    made = ln.einsum(",".join([output, *(t for t, _ in others)]) + "->" + kept, g, *(x for _, x in others))
    shape = tuple(sizes[letter] if letter in kept else 1 for letter in unique)
    made = spread(ln.reshape(made, shape), tuple(sizes[letter] for letter in unique))
    lengths = dict(zip(term, array.shape, strict=True))
    made = summed_to(made, tuple(lengths[letter] for letter in unique))  # what was broadcast
    if len(unique) == len(term):
        return made
    spare = iter(c for c in _LETTERS if c not in term)
    seen: set[str] = set()
    full, eyes, pairs = "", [], []
    for letter in term:
        if letter not in seen:
            seen.add(letter)
            full += letter
            continue
        second = next(spare)
        full += second
        pairs.append(letter + second)
        eyes.append(ln.eye(lengths[letter], dtype=array.dtype))
    return ln.einsum(",".join([unique, *pairs]) + "->" + full, made, *eyes)


# ---- convolutions


_FEW = 4096
"""Elements of an operand of `convolve` up to which each takes a sum of its own."""


@maps(ln.convolve, text="convolve with the other; correlate with the weights")
def _convolve(
    result: Any, a: Any, v: Any, mode: Any = "full", strides: Any = 1, padding: Any = None
) -> Derivatives:
    a, v = _array(a), _array(v)
    options = {"mode": mode, "strides": strides, "padding": padding}
    return {
        "a": Linear(
            lambda t: ln.convolve(t, v, **options), lambda g: _convolved_back(g, a, v, (a, v), options)
        ),
        "v": Linear(
            lambda t: ln.convolve(a, t, **options), lambda g: _convolved_back(g, v, a, (a, v), options)
        ),
    }


def _convolved_back(g: Any, x: Any, other: Any, given: Any, options: dict[str, Any]) -> Any:
    """The weight on one operand of `convolve`: that on the whole convolution, with the other in reverse."""
    x_shape, other_shape = (each.shape or (1,) for each in (x, other))
    asked = box(*(each.shape or (1,) for each in given), **options)
    whole = tuple(n + m - 1 for n, m in zip(x_shape, other_shape, strict=True))
    inside: list[slice] = []
    places: list[slice] = []
    for length, start, count, step in zip(whole, asked.starts, asked.counts, asked.steps, strict=True):
        first = max(0, -(start // step) if start < 0 else 0)
        last = min(count, max(0, -(-(length - start) // step)))
        inside.append(slice(first, last))
        places.append(slice(start + first * step, start + (last - 1) * step + 1, step))
    if any(part.stop <= part.start for part in inside):
        return ln.zeros(x.shape, g.dtype)
    zeros = ln.zeros(whole, g.dtype, chunks=_chunks_like(g, whole))
    full = put_into_zeros(g[tuple(inside)], tuple(places), whole, g.dtype, layout_of(zeros))
    other = ln.reshape(other, other_shape)
    if x.size < other.size and x.size <= _FEW:
        sums = [
            ln.sum(full[tuple(slice(j, j + n) for j, n in zip(place, other_shape, strict=True))] * other)
            for place in np.ndindex(*x_shape)
        ]
        return ln.reshape(ln.stack(sums), x.shape)
    return ln.reshape(ln.convolve(full, ln.flip(other), "valid"), x.shape)


def _chunks_like(g: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Tiles about as long as those of the weight."""
    return tuple(min(n, max(cut)) for n, cut in zip(shape, g.chunks, strict=True))


@composition(ln.correlate, text="convolve with the conjugate in reverse", own_value=True)
def _correlate(a: Any, v: Any, mode: Any = "valid") -> Any:
    a, v = _array(a), _array(v)
    full = ln.convolve(a, conj(ln.flip(v, 0)), "full")
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    n, m = a.shape[0], v.shape[0]
    if mode == "full":
        return full
    if mode == "valid":
        short = min(n, m)
        return full[short - 1 : short - 1 + max(n, m) - short + 1]
    length = max(n, m)
    start = (min(n, m) - 1) // 2 if m <= n else n // 2
    return full[start : start + length]


# ---- methods of ufuncs


@composition(method_of, text="reduce: sum, prod, max, min, log of a sum; accumulate: cumsum, cumprod; outer")
def _method_of(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    folds = {
        np.add: ln.sum,
        np.multiply: ln.prod,
        np.maximum: ln.max,
        np.minimum: ln.min,
        np.logaddexp: logsumexp,
    }
    runs = {np.add: ln.cumsum, np.multiply: ln.cumprod}
    if method == "reduce" and ufunc in folds:
        x, *rest = inputs
        return folds[ufunc](x, *(rest or [keywords.pop("axis", 0)]), **keywords)
    if method == "accumulate" and ufunc in runs:
        x, *rest = inputs
        return runs[ufunc](x, *(rest or [keywords.pop("axis", 0)]), **keywords)
    if method == "outer":
        a, b = map(_array, inputs)
        from linnet.arrays.elements.elementwise import call

        return call(ufunc, (ln.reshape(a, a.shape + (1,) * b.ndim), b), keywords)
    raise DerivativeError(f"np.{ufunc.__name__}.{method} has no rule of derivatives")


def logsumexp(x: Any, axis: Any = 0, keepdims: bool = False, **options: Any) -> Any:
    """`log(sum(exp(x)))`, without overflow."""
    if any(value is not None for value in options.values()):
        raise DerivativeError(
            "np.logaddexp.reduce has no rule of derivatives with dtype=, initial= or where="
        )
    from linnet.derivatives.tracing import plain

    if not length_along(x, axis):  # the sum of nothing: its logarithm stays -inf
        return ln.sum(x, axis=axis, keepdims=keepdims) - np.inf
    most = ln.max(plain(x), axis=axis, keepdims=True)
    most = ln.where(ln.isfinite(most), most, 0)
    made = ln.log(ln.sum(ln.exp(x - most), axis=axis, keepdims=True)) + most
    return made if keepdims else ln.squeeze(made, tuple(range(x.ndim)) if axis is None else axis)


__all__ = ["logsumexp"]
