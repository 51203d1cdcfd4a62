"""Every rule on other numbers than float64: float32, complex, without elements, with NaN."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from derivative_cases import CASES
from test_rules import STEP, cut, drawn

import linnet as ln

la = ln.linalg
M, Q = (5, 4), (4, 4)
NUMBERS = [
    pytest.param(number, id=f"{number}-{name}")
    for number, (name, *_) in enumerate(CASES)
    if not name.startswith("fft.")  # of a narrower kind, which NumPy decides
]


def taken(function: Callable[..., Any], values: list[Any]) -> Any:
    """What the plain function gives; None if it refuses these arrays."""
    try:
        with np.errstate(all="ignore"):
            found = np.asarray(function(*cut(values, False)))
    except (TypeError, ValueError, IndexError, RuntimeError, ZeroDivisionError):
        return None
    return found if found.dtype.kind in "fc" else None


def agrees(value: Any, plain: Any) -> None:
    assert (value.dtype, value.shape) == (plain.dtype, plain.shape)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("number", NUMBERS)
def test_values_and_derivatives_of_float32_have_the_dtype_of_the_plain_function(number: int):
    _, function, shapes = CASES[number]
    values = [x.astype(np.float32) for x in map(np.asarray, drawn(shapes, 0))]
    plain = taken(function, values)
    assert plain is not None
    changes = [np.ones(x.shape, np.float32) for x in values]
    value, tangent = ln.jvp(function, tuple(cut(values, False)), tuple(changes))
    agrees(value, plain)
    agrees(tangent, plain)
    _, pull = ln.vjp(function, *cut(values, False))
    for weight, x in zip(pull(np.ones(plain.shape)), values, strict=True):
        agrees(weight, x)


def emptied(shape: Any, axis: int) -> tuple[int, ...]:
    """The shape of a case, without elements along an axis."""
    lengths = list(shape[1] if shape and shape[0] == "range" else shape)
    if lengths:
        lengths[axis] = 0
    return tuple(lengths)


def without_elements(number: int, axis: int) -> bool:
    """Whether the plain function takes such arrays, and what its derivatives are then is looked at."""
    name, function, shapes = CASES[number]
    values = [np.zeros(emptied(shape, axis)) for shape in shapes]
    plain = taken(function, values)
    if plain is None:
        return False
    if name == "einsum" and plain.shape == (4,) and values[0].shape == (0, 4):
        return False  # NumPy takes a diagonal of four out of 0 × 4 elements
    if name in ("fft.irfft", "fft.hfft") and not values[0].size and plain.size:
        return False  # NumPy reads the first number of rows that have none
    if name == "linalg.qr" and axis == 0:
        return False  # matrices that are wider than high have no rule
    value, tangent = ln.jvp(function, tuple(cut(values, False)), tuple(values))
    np.testing.assert_array_equal(value, plain)
    agrees(tangent, plain)
    _, pull = ln.vjp(function, *cut(values, False))
    for weight, x in zip(pull(np.ones(plain.shape)), values, strict=True):
        agrees(weight, x)
    return True


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("part", range(10))
def test_arrays_without_elements(part: int, axis: int):
    numbers = range(part, len(CASES), 10)
    looked_at = 0
    for number in numbers:
        try:
            looked_at += without_elements(number, axis)
        except Exception as error:
            error.add_note(f"case {number}, {CASES[number][0]}")
            raise
    assert looked_at > len(numbers) / 2


def hermitian(x: Any) -> Any:
    return x + ln.conj(x.mT)


def positive(x: Any) -> Any:
    return x @ ln.conj(x.mT) + 3 * ln.eye(x.shape[-1])


def not_numbers(x: Any) -> Any:
    return ln.nan_to_num(ln.where(ln.real(x) > 0, x, complex(np.nan, 1)) + 1j * ln.imag(x))


COMPLEX: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("sign", ln.sign, (M,)),
    ("signs in a chain", lambda x: ln.sign(x * x) * ln.abs(x) + ln.angle(x), (M,)),
    ("nan_to_num", not_numbers, (M,)),
    ("parts", lambda x: ln.real(x) * x + ln.imag(x) ** 2 - ln.conj(x) * 1j, (M,)),
    ("power", lambda x, y: x**y, (M, M)),
    ("logarithms", lambda x: ln.log(x) + ln.sqrt(x) + ln.arctan(x) + ln.tanh(x) + ln.log1p(x), (M,)),
    ("spread", lambda x: ln.std(x, axis=0) + ln.var(x, axis=0), (M,)),
    ("products", lambda x: ln.prod(x, axis=1) + ln.cumprod(x, axis=1)[:, 0], (M,)),
    ("median", ln.median, (M,)),
    ("cov", ln.cov, (M,)),
    ("vecdot", ln.vecdot, (M, M)),
    ("correlate", lambda x: ln.correlate(x[0], x[1], "full"), (M,)),
    ("cholesky", lambda x: la.cholesky(positive(x)), ((2, 3, 3),)),
    ("cho_solve", lambda x, y: la.cho_solve(la.cho_factor(positive(x)), y), (Q, (4, 2))),
    ("slogdet", lambda x: la.slogdet(x)[0] * la.slogdet(x)[1], ((2, 3, 3),)),
    ("sign of slogdet", lambda x: la.slogdet(x)[0], (Q,)),
    ("eigh", lambda x: ln.abs(la.eigh(hermitian(x))[1]) * la.eigh(hermitian(x))[0], (Q,)),
    ("svdvals", la.svdvals, (M,)),
    ("qr", lambda x: ln.sin(la.qr(x)[0]) @ la.qr(x)[1], (M,)),
    ("factors of qr", lambda x: la.qr(x)[0] * 1j, ((2, 4, 3),)),
    ("triangles of qr", lambda x: la.qr(x)[1], (Q,)),
    ("norm", lambda x: la.norm(x, "nuc") + la.norm(x, axis=1, ord=3).sum() + la.norm(x), (M,)),
    ("fft", lambda x: ln.abs(ln.fft.fft(x)) ** 2, (M,)),
]


@pytest.mark.parametrize("tiles", [False, True], ids=["one tile", "several"])
@pytest.mark.parametrize(("function", "shapes"), [each[1:] for each in COMPLEX], ids=[c[0] for c in COMPLEX])
def test_complex_arrays(function: Callable[..., Any], shapes: tuple[Any, ...], tiles: bool):
    """Changes and weights belong together as Re(sum(g·t))."""

    def complex_ones(seed: int, of: Any) -> list[Any]:
        return [x + 1j * y for x, y in zip(drawn(of, seed), drawn(of, seed + 10), strict=True)]

    values, changes = complex_ones(0, shapes), complex_ones(1, shapes)
    value, tangent = ln.jvp(function, tuple(cut(values, tiles)), tuple(changes))
    plain = np.asarray(function(*cut(values, tiles)))
    np.testing.assert_allclose(value, plain, rtol=1e-12, atol=1e-13)
    near = [
        np.asarray(function(*cut([x + sign * STEP * t for x, t in zip(values, changes, strict=True)], False)))
        for sign in (1, -1)
    ]
    np.testing.assert_allclose(tangent, (near[0] - near[1]) / (2 * STEP), rtol=5e-6, atol=2e-6)
    rng = np.random.default_rng(2)
    weight = rng.uniform(-1, 1, plain.shape) + (
        1j * rng.uniform(-1, 1, plain.shape) if plain.dtype.kind == "c" else 0
    )
    _, pull = ln.vjp(function, *cut(values, tiles))
    pulled = [np.asarray(each) for each in pull(weight)]
    one = np.real(np.sum(np.asarray(tangent) * weight))
    other = sum(np.real(np.sum(w * t)) for w, t in zip(pulled, changes, strict=True))
    np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


def test_the_sign_of_complex_zero_has_no_derivative():
    z = np.array([0j, 3 + 4j])
    _, tangent = ln.jvp(ln.sign, (z,), (np.array([1 + 1j, 1j]),))
    np.testing.assert_allclose(tangent, [0, (1j - (0.6 + 0.8j) * 0.8) / 5])


@pytest.mark.parametrize(
    "function",
    [ln.median, lambda x: ln.quantile(x, 0.3), lambda x: ln.percentile(x, [10, 20]), ln.ptp, ln.cov],
    ids=["median", "quantile", "percentile", "ptp", "cov"],
)
def test_values_while_differentiated_are_those_of_the_function(function: Any):
    for x in (np.array([1.0, np.nan, 2.0, 0.5]), np.array([3.0, 1.0, 2.0, 7.0])):
        value, _ = ln.jvp(function, (x,), (np.ones(4),))
        np.testing.assert_array_equal(value, function(ln.asarray(x)))


def test_arguments_that_the_function_refuses_are_refused_with_its_words():
    with pytest.raises(TypeError, match="must be an array of real numbers"):
        ln.vjp(lambda x: ln.quantile(x, 0.5), np.ones(3, complex))
    with pytest.raises(ValueError, match="ddof must be integer"):
        ln.vjp(lambda x: ln.cov(x, ddof=0.5), np.ones(3))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_variance_of_one_element_less_one_is_not_a_number():
    assert np.isnan(ln.grad(lambda x: ln.var(x, ddof=1))(np.ones(1))).all()
