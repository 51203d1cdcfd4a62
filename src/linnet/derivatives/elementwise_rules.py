"""Rules of element-wise functions: each says its partial derivatives, of which both linear maps follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from linnet.derivatives.linear_maps import conj, spread, summed_to
from linnet.derivatives.names import ln
from linnet.derivatives.rules import (
    NOTHING,
    RULES,
    Derivatives,
    Linear,
    Rule,
    composition,
    maps,
    ufunc_named,
    zero,
)

Partial = Callable[..., Any]
"""Given the result and the operands, the derivative with respect to one of them."""

LOG_2, LOG_10 = float(np.log(2)), float(np.log(10))


def shape_of(item: Any) -> tuple[int, ...]:
    """Of an operand, which may be a number."""
    return item.shape if hasattr(item, "shape") else np.shape(item)


class Over(NamedTuple):
    """A partial derivative of 1 over something: one division, rather than a division and a product."""

    denominator: Any


def _times(t: Any, partial: Any) -> Any:
    return t / partial.denominator if isinstance(partial, Over) else t * partial


def scaled(result: Any, item: Any, partial: Callable[[], Any]) -> Linear:
    """The maps of an operand that is multiplied, element by element, by its partial derivative."""
    old, new = shape_of(item), result.shape
    return Linear(
        lambda t: _full(_times(t, partial()), new),
        lambda g: summed_to(_full(_times(g, partial()), new), old),
    )


def passed(result: Any, item: Any, sign: int = 1) -> Linear:
    """The maps of an operand whose partial derivative is 1 or -1."""
    old, new = shape_of(item), result.shape
    return Linear(
        lambda t: _full(t if sign > 0 else -t, new), lambda g: summed_to(g if sign > 0 else -g, old)
    )


def _full(t: Any, shape: tuple[int, ...]) -> Any:
    return t if t.shape == shape else spread(t, shape)


def _unary(name: str, text: str, partial: Partial) -> None:
    def make(result: Any, x: Any) -> Derivatives:
        return {"x": scaled(result, x, lambda: partial(result, x))}

    ufunc = ufunc_named(name)
    RULES[ufunc] = Rule(name, "maps", make, text, ("x",))


def _binary(name: str, text: str, one: Partial, other: Partial) -> None:
    def make(result: Any, x: Any, y: Any) -> Derivatives:
        return {
            "x": scaled(result, x, lambda: one(result, x, y)),
            "y": scaled(result, y, lambda: other(result, x, y)),
        }

    RULES[ufunc_named(name)] = Rule(name, "maps", make, text, ("x", "y"))


for _name, _text, _partial in (
    ("sin", "cos(x)", lambda r, x: ln.cos(x)),
    ("cos", "-sin(x)", lambda r, x: -ln.sin(x)),
    ("tan", "1 + tan(x)²", lambda r, x: 1 + r * r),
    ("arcsin", "1 / √(1 - x²)", lambda r, x: 1 / ln.sqrt(1 - x * x)),
    ("arccos", "-1 / √(1 - x²)", lambda r, x: -1 / ln.sqrt(1 - x * x)),
    ("arctan", "1 / (1 + x²)", lambda r, x: Over(1 + x * x)),
    ("sinh", "cosh(x)", lambda r, x: ln.cosh(x)),
    ("cosh", "sinh(x)", lambda r, x: ln.sinh(x)),
    ("tanh", "1 - tanh(x)²", lambda r, x: 1 - r * r),
    ("arcsinh", "1 / √(x² + 1)", lambda r, x: 1 / ln.sqrt(x * x + 1)),
    ("arccosh", "1 / √((x - 1)(x + 1))", lambda r, x: 1 / ln.sqrt((x - 1) * (x + 1))),
    ("arctanh", "1 / (1 - x²)", lambda r, x: 1 / (1 - x * x)),
    ("exp", "exp(x)", lambda r, x: r),
    ("exp2", "log(2)·exp2(x)", lambda r, x: r * LOG_2),
    ("expm1", "exp(x)", lambda r, x: r + 1),
    ("log", "1 / x", lambda r, x: Over(x)),
    ("log2", "1 / (x·log(2))", lambda r, x: 1 / (x * LOG_2)),
    ("log10", "1 / (x·log(10))", lambda r, x: 1 / (x * LOG_10)),
    ("log1p", "1 / (1 + x)", lambda r, x: Over(1 + x)),
    ("sqrt", "1 / (2·√x)", lambda r, x: Over(2 * r)),
    ("cbrt", "1 / (3·∛x²)", lambda r, x: 1 / (3 * r * r)),
    ("square", "2·x", lambda r, x: 2 * x),
    ("reciprocal", "-1 / x²", lambda r, x: -r * r),
    ("fabs", "sign(x)", lambda r, x: ln.sign(x)),
    ("deg2rad", "π / 180", lambda r, x: np.pi / 180),
    ("radians", "π / 180", lambda r, x: np.pi / 180),
    ("rad2deg", "180 / π", lambda r, x: 180 / np.pi),
    ("degrees", "180 / π", lambda r, x: 180 / np.pi),
):
    _unary(_name, _text, _partial)


def _base(x: Any) -> Any:
    """A base whose logarithm may be taken: 1 in place of 0."""
    return ln.where(ln.equal(x, 0), 1, x)


def _power_of_base(r: Any, x: Any, y: Any) -> Any:
    if np.ndim(y) == 0 and not isinstance(y, ln.Array):
        return y * x ** (y - 1) if y != 0 else 0.0
    return y * x ** ln.where(ln.equal(y, 0), 1, y - 1)


def _chosen(r: Any, one: Any, other: Any) -> Any:
    """1 where the first was chosen, half where both are equal (or both are NaN), 0 else."""
    same = ln.equal(one, other)
    return ln.where(same, 0.5, ln.where(ln.equal(r, one), 1.0, 0.0)).astype(r.dtype)


def _side(r: Any, x: Any, y: Any) -> Any:
    return ln.where(ln.equal(ln.signbit(x), ln.signbit(y)), 1.0, -1.0).astype(r.dtype)


for _name, _text, _one, _other in (
    ("multiply", "y; x", lambda r, x, y: y, lambda r, x, y: x),
    ("divide", "1 / y; -x / y²", lambda r, x, y: Over(y), lambda r, x, y: -r / y),
    ("power", "y·x^(y-1); x^y·log(x), 0 at x = 0", _power_of_base, lambda r, x, y: r * ln.log(_base(x))),
    ("float_power", "y·x^(y-1); x^y·log(x), 0 at x = 0",
     _power_of_base, lambda r, x, y: r * ln.log(_base(x))),
    ("maximum", "1 where chosen, 1/2 where equal", _chosen, lambda r, x, y: _chosen(r, y, x)),
    ("minimum", "1 where chosen, 1/2 where equal", _chosen, lambda r, x, y: _chosen(r, y, x)),
    ("fmax", "1 where chosen, 1/2 where equal", _chosen, lambda r, x, y: _chosen(r, y, x)),
    ("fmin", "1 where chosen, 1/2 where equal", _chosen, lambda r, x, y: _chosen(r, y, x)),
    ("arctan2", "y / (x² + y²); -x / (x² + y²)",
     lambda r, x, y: y / (x * x + y * y), lambda r, x, y: -x / (x * x + y * y)),
    ("hypot", "x / hypot; y / hypot", lambda r, x, y: x / r, lambda r, x, y: y / r),
    ("logaddexp", "exp(x - result); exp(y - result)",
     lambda r, x, y: ln.exp(x - r), lambda r, x, y: ln.exp(y - r)),
    ("logaddexp2", "exp2(x - result); exp2(y - result)",
     lambda r, x, y: ln.exp2(x - r), lambda r, x, y: ln.exp2(y - r)),
    ("remainder", "1; -floor(x / y)", lambda r, x, y: 1.0, lambda r, x, y: -ln.floor_divide(x, y)),
    ("fmod", "1; -trunc(x / y)", lambda r, x, y: 1.0, lambda r, x, y: -ln.trunc(x / y)),
    ("copysign", "1 or -1; 0", _side, lambda r, x, y: 0.0),
    ("heaviside", "0; 1 where x = 0", lambda r, x, y: 0.0,
     lambda r, x, y: ln.equal(x, 0).astype(r.dtype)),
):  # fmt: skip
    _binary(_name, _text, _one, _other)


@maps(np.add, text="1; 1")
def _add(result: Any, x: Any, y: Any) -> Derivatives:
    return {"x": passed(result, x), "y": passed(result, y)}


@maps(np.subtract, text="1; -1")
def _subtract(result: Any, x: Any, y: Any) -> Derivatives:
    return {"x": passed(result, x), "y": passed(result, y, -1)}


@maps(np.negative, text="-1")
def _negative(result: Any, x: Any) -> Derivatives:
    return {"x": passed(result, x, -1)}


@maps(np.positive, text="1")
def _positive(result: Any, x: Any) -> Derivatives:
    return {"x": passed(result, x)}


@maps(np.absolute, text="sign(x); of complex x the change along x")
def _absolute(result: Any, x: Any) -> Derivatives:
    if x.dtype.kind != "c":
        return {"x": scaled(result, x, lambda: ln.sign(x))}
    turn = conj(x) / ln.where(ln.equal(result, 0), 1, result)
    return {"x": Linear(lambda t: ln.real(t * turn), lambda g: g * turn)}


@maps(np.sign, text="zero; of complex x = r·s the turn (t - s·Re(s̄·t)) / r, zero at 0")
def _sign(result: Any, x: Any) -> Derivatives:
    if x.dtype.kind != "c":
        return {"x": NOTHING}
    size = ln.abs(x)

    def over_size(t: Any) -> Any:
        return ln.where(ln.equal(size, 0), 0, t / ln.where(ln.equal(size, 0), 1, size))

    return {
        "x": Linear(
            lambda t: over_size(t - result * ln.real(conj(result) * t)),
            lambda g: over_size(g - conj(result) * ln.real(result * g)),
        )
    }


@maps(np.conjugate, text="conjugate")
def _conjugate(result: Any, x: Any) -> Derivatives:
    return {"x": Linear(conj, conj)}


@maps(ln.real, text="real part; as a complex number")
def _real(result: Any, val: Any) -> Derivatives:
    return {"val": Linear(ln.real, lambda g: ln.astype(g, val.dtype))}


@maps(ln.imag, text="imaginary part; times -1j")
def _imag(result: Any, val: Any) -> Derivatives:
    return {"val": Linear(ln.imag, lambda g: g * -1j if val.dtype.kind == "c" else ln.zeros_like(g))}


@maps(ln.angle, text="of real x zero; Im(t / x)")
def _angle(result: Any, z: Any, deg: bool = False) -> Derivatives:
    scale = 180 / np.pi if deg else 1.0
    if z.dtype.kind != "c":
        return {"z": NOTHING}
    return {"z": Linear(lambda t: ln.imag(t / z) * scale, lambda g: g * scale * -1j / z)}


@maps(np.ldexp, text="2^i")
def _ldexp(result: Any, x: Any, i: Any) -> Derivatives:
    old = shape_of(x)
    return {"x": Linear(lambda t: ln.ldexp(t, i), lambda g: summed_to(ln.ldexp(g, i), old))}


@maps(np.frexp, text="2^-exponent for the first result")
def _frexp(result: Any, x: Any) -> Derivatives:
    scale = -result[1]
    return {"x": Linear(lambda t: (ln.ldexp(t, scale), None), lambda g: ln.ldexp(g[0], scale))}


@composition(np.modf, text="x - trunc(x), trunc(x)")
def _modf(x: Any) -> Any:
    whole = ln.trunc(x)
    return x - whole, whole


@composition(np.divmod, text="floor_divide(x, y), remainder(x, y)")
def _divmod(x: Any, y: Any) -> Any:
    return ln.floor_divide(x, y), ln.remainder(x, y)


_ZERO = """
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_not logical_xor
    isfinite isinf isnan isnat signbit floor ceil rint trunc floor_divide spacing nextafter
    bitwise_and bitwise_or bitwise_xor bitwise_count invert left_shift right_shift gcd lcm
"""
zero(*map(ufunc_named, _ZERO.split()))
zero(ln.round, ln.around, ln.fix, ln.isclose, ln.allclose, ln.isposinf, ln.isneginf, ln.isreal, ln.iscomplex)

# ---- element by element, but not ufuncs


@maps(ln.where, text="of the condition none; where it holds; where it does not")
def _where(result: Any, condition: Any, x: Any = None, y: Any = None) -> Derivatives:
    def chosen(t: Any, first: bool) -> Any:
        return ln.where(condition, t, 0) if first else ln.where(condition, 0, t)

    def of(item: Any, first: bool) -> Linear:
        shape = shape_of(item)
        return Linear(lambda t: chosen(t, first), lambda g: summed_to(chosen(g, first), shape))

    return {"condition": NOTHING, "x": of(x, True), "y": of(y, False)}


@composition(ln.clip, text="minimum(maximum(x, min), max)")
def _clip(x: Any, /, min: Any = None, max: Any = None, **bounds: Any) -> Any:
    low, high = bounds.get("a_min", min), bounds.get("a_max", max)
    if low is not None:
        x = ln.maximum(x, low)
    return x if high is None else ln.minimum(x, high)


@maps(ln.nan_to_num, text="1 where it is finite, else 0; of complex x for each part")
def _nan_to_num(
    result: Any, x: Any, copy: Any = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Derivatives:
    if x.dtype.kind != "c":
        return {"x": scaled(result, x, lambda: ln.isfinite(x).astype(x.dtype))}

    def kept(t: Any) -> Any:
        parts = [
            ln.where(ln.isfinite(part), change, 0)
            for part, change in ((ln.real(x), ln.real(t)), (ln.imag(x), ln.imag(t)))
        ]
        return parts[0] + 1j * parts[1]

    return {"x": Linear(kept, kept)}


@maps(ln.sinc, text="(cos(πx) - sinc(x)) / x, 0 at 0")
def _sinc(result: Any, x: Any) -> Derivatives:
    def partial() -> Any:
        safe = ln.where(ln.equal(x, 0), 1, x)
        return ln.where(ln.equal(x, 0), 0, (ln.cos(np.pi * safe) - result) / safe)

    return {"x": scaled(result, x, partial)}


@maps(ln.astype, text="cast; cast back")
def _astype(result: Any, x: Any, dtype: Any, **options: Any) -> Derivatives:
    old = x.dtype
    return {
        "x": Linear(
            lambda t: ln.astype(t, result.dtype),
            lambda g: ln.astype(ln.real(g) if g.dtype.kind == "c" and old.kind == "f" else g, old),
        )
    }
