"""The kernel "fused" against the same operations called one after another in NumPy."""

from __future__ import annotations

import importlib
import math
import threading

import numpy as np
import pytest
import scipy.special
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from linnet import kernels
from linnet.errors import UnknownKernelError
from linnet.kernels.arrays import cache_pieces
from linnet.kernels.arrays.fused import fused
from linnet.kernels.arrays.operations import OPERATIONS, cast, operation

FUSED = importlib.import_module("linnet.kernels.arrays.fused")

UNARY = ("negative", "absolute", "square", "sin", "exp", "sqrt", "isnan", "sign", "conjugate", "real", "imag")
BINARY = ("add", "subtract", "multiply", "divide", "maximum", "less", "equal", "arctan2", "logical_or")
DTYPES = ("float64", "float32", "float16", "complex64", "complex128", "bool", "int8", "int64", "uint16")
ORDERS = ("C", "F", "strided", "reversed", "transposed")


@pytest.fixture(params=["straight", "pieces", "crumbs"])
def way(request, monkeypatch):
    """How tiles are run: all at once, in pieces, and in pieces so small that every edge shows."""
    _choose(monkeypatch, request.param)
    yield request.param
    FUSED._read.cache_clear()


def _choose(monkeypatch, way):
    FUSED._read.cache_clear()
    if way != "straight":
        monkeypatch.setattr(FUSED, "_STRAIGHT", 1)
    if way == "crumbs":
        for name, value in (("PIECE", 7), ("SMALL_PIECE", 3), ("CACHE", 200), ("ROW", 2)):
            monkeypatch.setattr(cache_pieces, name, value)


def stored(x, order):
    """The same elements, otherwise in memory."""
    if order == "strided":
        wide = np.zeros([2 * length for length in x.shape], x.dtype)
        wide[tuple(slice(None, None, 2) for _ in x.shape)] = x
        return wide[tuple(slice(None, None, 2) for _ in x.shape)]
    if order == "reversed":
        turn = tuple(slice(None, None, -1) for _ in x.shape)
        return np.array(x[turn])[turn]
    if order == "transposed" and x.ndim == 3:
        return np.array(x.transpose(1, 2, 0)).transpose(2, 0, 1)
    return np.array(x, order="F" if order == "F" else "C")


def numbers(rng, shape, dtype):
    x = rng.standard_normal(shape) * 3
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    x = np.abs(x) if np.dtype(dtype).kind == "u" else x
    x = np.asarray(x).astype(dtype)
    if np.dtype(dtype).kind in "fc" and x.size > 3:
        x.flat[1], x.flat[2] = np.nan, np.inf
    return x


@st.composite
def chains(draw):
    """Operands, steps and results of any form."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 5, 9]), max_size=3).map(tuple))
    operands = []
    for _ in range(draw(st.integers(1, 4))):
        own = [draw(st.sampled_from([length, length, 1])) for length in shape]
        own = own[draw(st.integers(0, len(own))) if draw(st.booleans()) else 0 :]
        x = numbers(rng, own, draw(st.sampled_from(DTYPES)))
        operands.append(stored(x, draw(st.sampled_from(ORDERS))))
    steps = []
    for at in range(draw(st.integers(0, 6))):
        value = st.integers(0, len(operands) + at - 1)
        kind = draw(st.sampled_from(["unary", "binary", "binary", "cast", "where"]))
        if kind == "cast":
            steps.append(("cast", draw(value), draw(st.sampled_from(DTYPES))))
        elif kind == "where":
            steps.append(("where", draw(value), draw(value), draw(value)))
        elif kind == "unary":
            steps.append((draw(st.sampled_from(UNARY)), draw(value)))
        else:
            steps.append((draw(st.sampled_from(BINARY)), draw(value), draw(value)))
    return operands, shape, tuple(steps)


def plain(operands, steps):
    """All values, or None where NumPy refuses a step."""
    values = list(operands)
    with np.errstate(all="ignore"):
        for name, *arguments in steps:
            made = cast(arguments.pop()) if name == "cast" else operation(name)
            try:
                values.append(made.function(*[values[each] for each in arguments]))
            except TypeError:
                return None
    return values


def same(actual, expected):
    assert actual.shape == np.shape(expected)
    assert actual.dtype == np.asarray(expected).dtype
    if actual.dtype.kind in "fc":
        # Loops over whole vectors and over single elements may differ in the last bits.
        tolerance = 64 * np.finfo(actual.dtype).eps
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
    else:
        assert_array_equal(actual, expected)


WAYS = st.sampled_from(["straight", "pieces", "crumbs"])


@given(chains(), st.data(), WAYS)
def test_any_chain_gives_what_numpy_gives(chain, data, way):
    operands, _, steps = chain
    values = plain(operands, steps)
    if values is None:
        return
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    wanted = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=3))
    before = [x.copy() for x in operands]
    with pytest.MonkeyPatch.context() as patch:
        _choose(patch, way)
        results = kernels.fused(
            *operands,
            loads=(None,) * len(operands),
            steps=steps,
            results=tuple(("map", value) for value in wanted),
        )
    FUSED._read.cache_clear()
    results = results if len(wanted) > 1 else [results]
    for result, value in zip(results, wanted, strict=True):
        same(result, np.broadcast_to(values[value], shape))
    for x, old in zip(operands, before, strict=True):
        assert_array_equal(x, old)
    for at, result in enumerate(results):
        assert not any(np.may_share_memory(result, x) for x in operands)
        assert not any(np.may_share_memory(result, other) for other in results[:at])


@given(chains(), st.data(), WAYS)
def test_operands_may_be_overwritten(chain, data, way):
    operands, _, steps = chain
    values = plain(operands, steps)
    if values is None:
        return
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    wanted = data.draw(st.lists(st.integers(0, len(values) - 1), min_size=1, max_size=3, unique=True))
    expected = [np.array(np.broadcast_to(values[value], shape)) for value in wanted]
    free = data.draw(st.lists(st.integers(0, len(operands) - 1), unique=True).map(tuple))
    before = [x.copy() for x in operands]
    with pytest.MonkeyPatch.context() as patch:
        _choose(patch, way)
        patch.setattr(FUSED, "_WORTH", 0)
        results = kernels.fused(
            *operands,
            loads=(None,) * len(operands),
            steps=steps,
            results=tuple(("map", value) for value in wanted),
            overwrite=free,
        )
    FUSED._read.cache_clear()
    for result, correct in zip(results if len(wanted) > 1 else [results], expected, strict=True):
        same(result, correct)
    for at, (x, old) in enumerate(zip(operands, before, strict=True)):
        if at not in free:
            assert_array_equal(x, old)


@given(chains(), st.data(), WAYS)
def test_folds_of_a_chain(chain, data, way):
    operands, _, steps = chain
    values = plain([np.nan_to_num(x, posinf=2, neginf=2) for x in operands], steps)
    if values is None:
        return
    operands = [np.nan_to_num(x, posinf=2, neginf=2) for x in operands]
    shape = np.broadcast_shapes(*[x.shape for x in operands])
    results = []
    for _ in range(data.draw(st.integers(1, 3))):
        axes = data.draw(st.lists(st.integers(0, len(shape) - 1), unique=True) if shape else st.just([]))
        results.append(
            (
                data.draw(st.sampled_from(["any", "all", "count"])),
                data.draw(st.integers(0, len(values) - 1)),
                tuple(axes),
                None,
            )
        )
    with pytest.MonkeyPatch.context() as patch:
        _choose(patch, way)
        found = kernels.fused(
            *operands,
            loads=(None,) * len(operands),
            steps=steps,
            results=(*results, ("map", len(values) - 1)),
        )
    FUSED._read.cache_clear()
    oracles = {
        "any": np.any,
        "all": np.all,
        "count": lambda x, **how: np.sum(x.astype(bool), dtype=np.intp, **how),
    }
    for result, (kind, value, axes, _) in zip(found, results, strict=False):
        whole = np.broadcast_to(values[value], shape)
        with np.errstate(all="ignore"):
            same(result, oracles[kind](whole, axis=axes, keepdims=True))
    same(found[-1], np.broadcast_to(values[-1], shape))


@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128", "int32", "bool"])
@pytest.mark.parametrize("axes", [(), (0,), (1,), (2,), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("order", ORDERS)
def test_numeric_folds(way, dtype, axes, order):
    rng = np.random.default_rng(3)
    x = stored((rng.standard_normal((4, 5, 6)) * 5).astype(dtype), order)
    row = rng.standard_normal((1, 6)).astype(dtype)
    total, largest, moments, mean = kernels.fused(
        x,
        row,
        loads=(None, None),
        steps=(("multiply", 0, 1),),
        results=(
            ("sum", 2, axes, None),
            ("max", 0, axes, None),
            ("moments", 2, axes, None),
            ("mean", 2, axes, None),
        ),
    )
    product = x * row
    tolerance = 50 * np.finfo(np.float32 if dtype == "float32" else np.float64).eps
    np.testing.assert_allclose(total, product.sum(axes, keepdims=True), rtol=tolerance, atol=tolerance * 50)
    assert total.dtype == product.sum(axes).dtype
    assert_array_equal(largest, x.max(axes, keepdims=True))
    count = math.prod(x.shape[axis] for axis in axes)
    assert (moments[0] == count).all()
    variance = product.var(axes, keepdims=True)
    np.testing.assert_allclose(moments[2].real / count, variance, rtol=tolerance * 10, atol=tolerance * 50)
    np.testing.assert_allclose(
        mean[1] / mean[0], product.mean(axes, keepdims=True), rtol=tolerance, atol=tolerance
    )


@pytest.mark.parametrize("axes", [(1, 0), (0, -1, 1), (-1, 1, 0, -1), (0, 1)])
def test_loading_takes_axes_in_any_order(way, axes):
    x = np.random.default_rng(0).standard_normal((3, 4))
    expected = np.expand_dims(
        x.transpose([axis for axis in axes if axis >= 0]), [k for k, axis in enumerate(axes) if axis < 0]
    )
    result = kernels.fused(x, loads=(axes,), steps=(("add", 0, 0), ("sin", 1)), results=(("map", 2),))
    same(result, np.sin(expected * 2))


def test_axes_of_length_1_are_dropped_in_loading(way):
    x = np.arange(4.0).reshape(1, 4, 1)
    same(kernels.fused(x, loads=((1,),), steps=(("negative", 0),), results=(("map", 1),)), -np.arange(4.0))
    assert kernels.fused(np.ones((1, 1)), loads=((),), steps=(), results=(("map", 0),)).shape == ()
    with pytest.raises(
        ValueError, match=r"shape \(1, 4, 1\) is loaded with axes \(0,\); axes that are not named"
    ):
        kernels.fused(x, loads=((0,),), steps=(), results=(("map", 0),))


def test_lengths_give_the_shape(way):
    two = np.array(2.0)
    result = kernels.fused(
        two,
        3,
        40,
        loads=(None,),
        steps=(("negative", 0),),
        results=(("map", 1), ("sum", 0, (0, 1), None)),
        sized=2,
    )
    same(result[0], np.full((3, 40), -2.0))
    same(result[1], np.full((1, 1), 240.0))
    row = np.arange(40.0)
    same(
        kernels.fused(
            row, 3, 40, loads=(None,), steps=(("negative", 0), ("exp", 1)), results=(("map", 2),), sized=2
        ),
        np.broadcast_to(np.exp(-row), (3, 40)),
    )


def test_an_operand_is_written_over_where_its_form_allows(way):
    x, y = np.arange(90_000.0).reshape(300, 300), np.ones((300, 300))
    expected = (x + y) * x
    result = kernels.fused(
        x,
        y,
        loads=(None, None),
        steps=(("add", 0, 1), ("multiply", 2, 0)),
        results=(("map", 3),),
        overwrite=(0,),
    )
    same(result, expected)
    if way != "straight":
        assert np.may_share_memory(result, x)
    one = kernels.fused(y, loads=(None,), steps=(("negative", 0),), results=(("map", 1),), overwrite=(0,))
    assert one is y
    assert (y == -1).all()


def test_a_row_is_worked_on_once(way):
    calls = []
    made = OPERATIONS["exp"]
    counted = type(made)(
        "exp",
        lambda x: calls.append(x.size) or np.exp(x),
        lambda x, out: calls.append(x.size) or np.exp(x, out),
        1,
        1,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(OPERATIONS, "exp", counted)
        x, row = np.ones((20, 30)), np.ones((1, 30))
        for _ in range(2):
            calls.clear()
            kernels.fused(
                x,
                row,
                loads=(None, None),
                steps=(("exp", 1), ("multiply", 0, 2), ("add", 3, 0)),
                results=(("map", 4),),
            )
        FUSED._read.cache_clear()
    assert calls == [30]


@pytest.mark.parametrize("order", ["C", "F"])
def test_results_lie_in_memory_as_operands_do(way, order):
    x = np.array(np.ones((30, 40)), order=order)
    result = kernels.fused(x, loads=(None,), steps=(("negative", 0), ("exp", 1)), results=(("map", 2),))
    assert result.flags[f"{order}_CONTIGUOUS"]


def test_dates(way):
    days = np.arange("2020-01-01", "2020-03-01", dtype="datetime64[D]")
    step = np.array(3, "timedelta64[h]")
    moved, first = kernels.fused(
        days, step, loads=(None, None), steps=(("add", 0, 1),), results=(("map", 2), ("min", 2, (0,), None))
    )
    same(moved, days + step)
    same(first, (days + step).min(keepdims=True))


def test_no_warnings_whatever_the_values(way):
    x = np.array([0.0, -1.0, np.inf, 1e308])
    same(
        kernels.fused(
            x, loads=(None,), steps=(("log", 0), ("multiply", 0, 0), ("divide", 1, 2)), results=(("map", 3),)
        ),
        np.array([-np.inf, np.nan, np.nan, 0.0]),
    )


def test_the_callers_own_error_state_stays():
    kernels.fused(np.zeros(3), loads=(None,), steps=(("log", 0),), results=(("map", 1),))
    assert np.geterr()["divide"] == "warn"


def test_long_chains_from_several_threads_at_once():
    rng = np.random.default_rng(1)
    tiles = [rng.standard_normal(200_000) for _ in range(4)]
    steps = (("sin", 0), ("multiply", 1, 0), ("exp", 2), ("add", 3, 1))
    found: dict[int, np.ndarray] = {}

    def work(at):
        for _ in range(3):
            found[at] = kernels.fused(tiles[at], loads=(None,), steps=steps, results=(("map", 4),))

    threads = [threading.Thread(target=work, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for at, x in enumerate(tiles):
        same(found[at], np.exp(np.sin(x) * x) + np.sin(x))


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_every_operation_writes_into_a_buffer_what_it_returns(name):
    made = OPERATIONS[name]
    for dtype in ("float64", "int64", "bool", "complex128", "datetime64[s]"):
        operands = [np.ones(5, dtype)] * made.least
        with np.errstate(all="ignore"):
            try:
                expected = made.function(*operands)
            except TypeError:
                continue
            out = np.empty_like(expected)
            made.into(*operands, out)
        assert_array_equal(out, expected)
        assert not np.may_share_memory(expected, operands[0])


@pytest.mark.parametrize("name", ["special.erf", "special.sici.1", "special.jv"])
def test_special_functions_are_found_by_name(name):
    made = operation(name)
    x = [np.array([0.5, 1.5])] * made.least
    plainly = getattr(scipy.special, name.split(".")[1])(*x)
    assert_array_equal(made.function(*x), plainly[1] if name.endswith("1") else plainly)


@pytest.mark.parametrize(
    "name", ["matmul", "loadtxt", "special.comb", "special._ufuncs", "special.nosuch", "__class__", "sni"]
)
def test_other_names_are_refused(name):
    with pytest.raises(UnknownKernelError, match=f"no element-wise operation is named '{name}'"):
        kernels.fused(np.ones(2), loads=(None,), steps=((name, 0),), results=(("map", 1),))


@pytest.mark.parametrize(
    ("steps", "results", "message"),
    [
        ((("add", 0),), (("map", 1),), r"step 0 of a fused kernel is \('add', 0\); 'add' takes 2 operands"),
        ((("sin", 1),), (("map", 1),), r"there is no value 1 yet; values known there are 0 to 0"),
        ((("cast", 0),), (("map", 1),), r"'cast' ends with the name of a dtype"),
        ((), (("map", 3),), r"there is no value 3 yet"),
        ((), (("sum", 0),), r"expected \('map', value\) or \(kind, value, axes, dtype or None\)"),
        ((), (("subtract", 0, (0,), None),), r"no fold is of kind 'subtract'; expected one of sum, prod"),
    ],
)
def test_what_cannot_be_read_is_said(steps, results, message):
    with pytest.raises(ValueError, match=message):
        kernels.fused(np.ones(2), loads=(None,), steps=steps, results=results)


def test_the_number_of_arguments_is_checked():
    with pytest.raises(
        ValueError, match="fused got 1 arguments; its loads name 2 tiles, followed by 1 lengths"
    ):
        kernels.fused(np.ones(2), loads=(None, None), steps=(), results=(("map", 0),), sized=1)


def test_what_it_declares():
    fused = kernels.get("fused")
    chain = {
        "loads": ((1, 0), None),
        "steps": (("add", 0, 1), ("less", 2, 1)),
        "results": (("map", 3), ("moments", 2, (0,), None), ("sum", 3, (0, 1), None)),
    }
    tiles = np.ones((3, 4), np.float32), np.ones((1, 3), np.float16)
    results = fused(*tiles, **chain)
    assert fused.shape(*[x.shape for x in tiles], **chain) == [x.shape for x in results]
    assert fused.dtype(*[x.dtype for x in tiles], **chain) == [x.dtype for x in results]
    assert fused.flops(*[x.shape for x in tiles], **chain) == 12 * 4
    assert fused.shape((), 5, 6, loads=(None,), steps=(), results=(("map", 0),), sized=2) == (5, 6)


PLACES = {
    "rows": lambda shape: np.zeros(shape),
    "columns": lambda shape: np.zeros(shape, order="F"),
    "part of a larger array": lambda shape: np.zeros([2 * n for n in shape])[
        tuple(slice(0, n) for n in shape)
    ],
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("shape", [(300, 400), (7, 5)])
@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("turned", [False, True])
def test_a_result_is_written_where_it_is_wanted(place, shape, steps, turned):
    x, y = np.random.default_rng(0).random(shape), np.random.default_rng(1).random(shape[-1])
    chain = (("multiply", 0, 1), ("add", 2, 0))[:steps]
    into = PLACES[place](shape)
    expected = [x, x * y, x * y + x][steps]
    load, tile = ((1, 0), x.T) if turned else (None, x)
    value = steps + 1 if steps else 0
    made = fused(tile, y, loads=(load, None), steps=chain, results=(("map", value),), into=into)
    assert made is into
    np.testing.assert_array_equal(into, expected)


def test_a_number_is_spread_into_its_place():
    for steps in ((), (("negative", 0), ("negative", 1))):
        into = np.zeros((300, 400))
        fused(np.array(3.0), 300, 400, loads=((-1, -1),), steps=steps, results=(("map", len(steps)),), sized=2, into=into)  # fmt: skip
        assert (into == 3).all()


def test_a_place_of_another_form_is_left_alone():
    into = np.zeros(4, np.float32)
    made = fused(np.ones(4), loads=(None,), steps=(("negative", 0),), results=(("map", 1),), into=into)
    assert made is not into
    assert not into.any()
