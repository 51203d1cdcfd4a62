"""Corners of NumPy that scripts rely on: empty selections, times, keywords, `flat`, ufunc methods.

Each line is run on NumPy's arrays and on ours, in tiles of odd length and in one tile.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from against_numpy import Pair, same
from strategies import tiled

import linnet as ln
from linnet.errors import BudgetError, KernelError

CUTS = pytest.mark.parametrize("chunks", [3, None])
"""Several tiles, and one that is computed at once."""

M = np.arange(20.0).reshape(4, 5)
I = np.array([1, 2, 4, 8, 9, -3, 7])
U = np.array([1, 200, 30, 255, 0, 7, 8], "u1")
SPANS = np.array([5, 1, 3, 7, 2, 9, -4], "m8[s]")
GAPS = np.array([5, "NaT", 3, 7, 2, 9, -4], "m8[s]")
DAYS = np.array(["2020-01-01", "2020-01-05", "2019-01-01", "NaT", "2021-07-01"], "M8[D]")
SYMMETRIC = (M[:, :4] + M[:, :4].T) / 7

Case = tuple[Callable[..., Any], tuple[Any, ...]]


def check(case: Case, chunks: int | None) -> None:
    """The same from NumPy and from us; functions take the namespace first, then the arrays."""
    function, arrays = case

    def call(*given: Any) -> Any:
        return function(ln if any(isinstance(each, ln.Array) for each in given) else np, *given)

    same(call, *(Pair(np.array(each), chunks) for each in arrays))


def changed(function: Callable[..., Any]) -> Callable[..., Any]:
    """A statement on the first array, as a function that returns what became of it."""

    def call(xp: Any, x: Any, *others: Any) -> Any:
        x = x.copy()
        function(xp, x, *others)
        return x

    return call


def assigned(key: Any, value: Any) -> Callable[..., Any]:
    return changed(lambda xp, x: x.__setitem__(key, value))


def added(key: Any, value: Any) -> Callable[..., Any]:
    def add(xp: Any, x: Any) -> None:
        x[key] += value

    return changed(add)


SHORT = np.array([True, False, True, False, True])
EMPTY: dict[str, Case] = {
    "columns of no rows": (lambda xp, x: x[2:2][:, [0, 1]], (M,)),
    "take of no rows": (lambda xp, x: xp.take(x[2:2], [0, 1], axis=1), (M,)),
    "take of nothing": (lambda xp, x: xp.take(x, np.array([], int), axis=1), (M,)),
    "compress": (lambda xp, x: xp.compress([True, False], x[:0], axis=1), (M,)),
    "added to nothing": (added((slice(0, 0), [0, 1]), 1), (M,)),
    "assigned to nothing": (assigned((slice(0, 0), [0, 1]), 5), (M,)),
    "mask beside a slice of nothing": (lambda xp, x: x[-1, SHORT, 2::2], (np.arange(10).reshape(1, 5, 2),)),
    "take along no axis": (lambda xp, x: xp.take_along_axis(x[:0], np.zeros((0, 2), int), 1), (M,)),
    "norm inf": (lambda xp, x: xp.linalg.norm(x, np.inf), (M[:0],)),
    "norm 2": (lambda xp, x: xp.linalg.norm(x, 2), (M[:0],)),
    "norm inf along": (lambda xp, x: xp.linalg.norm(x, np.inf, axis=0), (M[:0],)),
    "norm -inf": (lambda xp, x: xp.linalg.norm(x, -np.inf), (M[:0],)),
}


@CUTS
@pytest.mark.parametrize("name", EMPTY)
def test_nothing_is_selected(name: str, chunks: int | None) -> None:
    check(EMPTY[name], chunks)


def test_chunks_without_elements() -> None:
    data = np.arange(10)
    x = ln.asarray(data, chunks=((5, 0, 5),))
    assert x.chunks == ((5, 5),)
    for function in (np.sum, np.max, np.cumsum, np.sort):
        np.testing.assert_array_equal(np.asarray(function(x)), function(data))
    assert ln.zeros((0, 3), chunks=(0, 3)).chunks == ((0,), (3,))
    assert ln.zeros((0, 3), chunks=((0, 0), 2)).chunks == ((0,), (2, 1))
    with pytest.raises(ln.InputError, match="chunks of length 0 along axis 0; a chunk has at least one"):
        ln.zeros((2, 3), chunks=0)
    with pytest.raises(ln.InputError, match=r"chunks \(5, -1, 6\) along axis 0: the length .* not negative"):
        ln.asarray(data, chunks=((5, -1, 6),))


TIMES = [
    "sum",
    "mean",
    "cumsum",
    "max",
    "min",
    "median",
    "ptp",
    "argmax",
    "argmin",
    "sort",
    "argsort",
    "unique",
    "diff",
    "average",
    "nansum",
    "nanmean",
]


@CUTS
@pytest.mark.parametrize("name", [*TIMES, "prod", "std", "var", "nanmax", "nancumsum", "any"])
@pytest.mark.parametrize("data", [SPANS, GAPS], ids=["spans", "with gaps"])
def test_times_and_spans_in_tiles(name: str, data: Any, chunks: int | None) -> None:
    check((lambda xp, x: getattr(xp, name)(x), (data,)), chunks)


@CUTS
def test_spans_along_an_axis(chunks: int | None) -> None:
    data = np.arange(20).reshape(4, 5).astype("m8[ms]")
    for name in ("sum", "mean", "cumsum"):
        check((lambda xp, x, name=name: getattr(xp, name)(x, axis=0), (data,)), chunks)


DATE, MOMENT = datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1)


@CUTS
def test_times_of_python_beside_arrays(chunks: int | None) -> None:
    seconds = DAYS[:3].astype("M8[s]")
    for case in (
        (lambda xp, x: x > DATE, (DAYS[:3],)),
        (lambda xp, x: x <= DATE, (DAYS[:3],)),
        (lambda xp, x: x == DATE, (DAYS,)),
        (lambda xp, x: x != MOMENT, (DAYS[:3],)),
        (lambda xp, x: x < MOMENT, (seconds,)),
        (lambda xp, x: x < DATE, (seconds,)),
        (lambda xp, x: x - DATE, (DAYS,)),
        (lambda xp, x: x <= datetime.timedelta(seconds=3), (SPANS,)),
        (lambda xp, x: np.greater(x, DATE), (DAYS[:3],)),
    ):
        check(case, chunks)


WHERE = np.array([[True, False, True, True, False]])


@CUTS
@pytest.mark.parametrize("dtype", ["i4", "u1", "?"])
@pytest.mark.parametrize("name", ["mean", "var", "std", "nanmean", "nanvar", "nanstd"])
def test_moments_in_integers(name: str, dtype: str, chunks: int | None) -> None:
    for data in (M.astype(int) - 3, M * 1.7 - 4):
        for given in ({}, {"axis": 0}, {"axis": 1, "keepdims": True}, {"where": WHERE}):
            check((lambda xp, x, g=given: getattr(xp, name)(x, dtype=dtype, **g), (data,)), chunks)


def halved(xp: Any, x: Any) -> None:
    x[1] /= 2
    x[2] += 1


@CUTS
def test_numbers_that_do_not_fit_the_dtype(chunks: int | None) -> None:
    for case in (
        (changed(halved), (I,)),
        (lambda xp, x: xp.clip(x, -1, 300), (U,)),
        (lambda xp, x: x.clip(5, 256), (U,)),
        (changed(lambda xp, x: xp.copyto(x, 3)), (U,)),
        (changed(lambda xp, x: xp.copyto(x, 2.5)), (U,)),
        (changed(lambda xp, x: xp.copyto(x, 2.5, casting="unsafe")), (U,)),
        (lambda xp, x: xp.full_like(x, np.nan), (I,)),
        (lambda xp, x: xp.full_like(x, 2.5), (I,)),
        (lambda xp, x: xp.histogram(x, bins=3), (np.array([0, 2**63, 2**64 - 1], "u8"),)),
    ):
        check(case, chunks)
    x = tiled(U, chunks)
    for wrong in (300, -1):
        for put in (lambda v: ln.copyto(x, v), x.fill, lambda v: ln.full(3, v, "u1")):
            with pytest.raises(OverflowError, match="out of bounds for uint8"):
                put(wrong)


NAN = np.array([1.0, np.nan, 3.0, 4.0, 5.0, 9.0, 2.0])
WEIGHTS = np.array([1.0, 2, 1, 4, 1, 0.5, 3])
KEYWORDS: dict[str, Case] = {
    "svd values": (lambda xp, x: xp.linalg.svd(x, compute_uv=False), (M,)),
    "svd by place": (lambda xp, x: xp.linalg.svd(x, True, False), (M,)),
    "svd hermitian values": (lambda xp, x: xp.linalg.svd(x, compute_uv=False, hermitian=True), (SYMMETRIC,)),
    "svd hermitian": (
        lambda xp, x: (lambda u, s, vh: (u * s) @ vh)(*xp.linalg.svd(x, hermitian=True)),
        (SYMMETRIC,),
    ),
    "pinv": (lambda xp, x: xp.linalg.pinv(x, 1e-9), (M,)),
    "pinv hermitian": (lambda xp, x: xp.linalg.pinv(x, rcond=1e-9, hermitian=True), (SYMMETRIC,)),
    "matrix_rank": (lambda xp, x: xp.linalg.matrix_rank(A=x), (M,)),
    "solve": (lambda xp, x: xp.linalg.solve(a=x + 9 * np.eye(4), b=np.ones(4)), (SYMMETRIC,)),
    "moveaxis": (lambda xp, x: xp.moveaxis(x, source=0, destination=1), (M,)),
    "sum": (lambda xp, x: xp.sum(a=x, axis=0), (M,)),
    "argmax": (lambda xp, x: xp.argmax(a=x), (M,)),
    "tensordot": (lambda xp, x: xp.tensordot(a=x, b=np.ones((5, 2)), axes=1), (M,)),
    "broadcast_to": (lambda xp, x: xp.broadcast_to(array=x, shape=(2, 4, 5)), (M,)),
    "roll": (lambda xp, x: xp.roll(a=x, shift=2, axis=1), (M,)),
    "repeat": (lambda xp, x: xp.repeat(x, repeats=2, axis=0), (M,)),
    "tile": (lambda xp, x: xp.tile(A=x, reps=2), (M,)),
    "zeros_like": (lambda xp, x: xp.zeros_like(a=x), (M,)),
    "sort": (lambda xp, x: xp.sort(x, 0), (M[::-1],)),
    "sort kind": (lambda xp, x: xp.sort(x, 0, "mergesort"), (M[::-1],)),
    "sort named": (lambda xp, x: xp.sort(a=x, axis=None, kind="heapsort"), (M[::-1],)),
    "sort wrong": (lambda xp, x: xp.sort(x, kind="slow"), (M[::-1],)),
    "argsort": (lambda xp, x: xp.argsort(x, 0, "stable"), (M[::-1],)),
    "nanquantile": (
        lambda xp, x: xp.nanquantile(x, 0.4, weights=WEIGHTS, method="inverted_cdf"),
        (NAN,),
    ),
    "nanpercentile": (
        lambda xp, x: xp.nanpercentile(x, [50, 20], weights=WEIGHTS, method="inverted_cdf"),
        (NAN,),
    ),
    "fft into": (changed(lambda xp, x: xp.fft.fft(a=x, axis=0, out=x)), (M + 0j,)),
    "diff of another shape": (lambda xp, x: xp.diff(x, axis=0, prepend=np.zeros((1, 3))), (M,)),
    "diff of fewer axes": (lambda xp, x: xp.diff(x, axis=0, append=np.zeros(5)), (M,)),
    "diff of other dtypes": (lambda xp, x: xp.diff(x, prepend=1.5, append=[2]), (I,)),
}


@CUTS
@pytest.mark.parametrize("name", KEYWORDS)
def test_operands_by_place_and_by_name(name: str, chunks: int | None) -> None:
    check(KEYWORDS[name], chunks)


def test_frequencies_by_place() -> None:
    for name in ("fftfreq", "rfftfreq"):
        np.testing.assert_array_equal(
            getattr(ln.fft, name)(5, 0.1).compute(), getattr(np.fft, name)(n=5, d=0.1)
        )


def test_an_operand_is_given_once() -> None:
    with pytest.raises(TypeError, match="multiple values for argument 'a'"):
        ln.sum(tiled(M, 2), a=1)


@CUTS
def test_results_go_where_they_are_told(chunks: int | None) -> None:
    whole = M.astype(int)
    for case in (
        (changed(lambda xp, y, x: xp.add(x, 1.7, out=y, casting="unsafe")), (whole, M)),
        (changed(lambda xp, y, x: xp.add(x, 1.7, y, casting="unsafe")), (whole, M)),
        (changed(lambda xp, y, x: xp.add(x, 1.7, y)), (whole, M)),
        (changed(lambda xp, y, x: xp.negative(x, y)), (M + 1, M)),
        (lambda xp, y, x: xp.modf(x, y, y.copy()), (M + 1, M / 3)),
    ):
        check(case, chunks)
    with pytest.raises(TypeError, match="takes 2 operands and 1 results"):
        ln.add(tiled(M, chunks), 1, tiled(M, chunks), out=tiled(M, chunks))


@pytest.mark.parametrize("chunks", [(2, 3), (3, 2), None])
def test_bytes_under_another_dtype(chunks: Any) -> None:
    for data, dtype in (
        (M, "i4"),
        (M, "u1"),
        (M[:, :4], "c16"),
        (np.ones((4, 24), "u1"), "i8"),
        (M, "M8[s]"),
    ):
        check((lambda xp, x, dtype=dtype: x.view(dtype), (np.ascontiguousarray(data),)), chunks)
    check((lambda xp, x: x.view("c16"), (M,)), chunks)  # five floats are no complex numbers
    check((lambda xp, x: x.view("u1"), (np.array(3.0),)), None)


def repeated(key: Any, value: Any) -> Callable[..., Any]:
    return changed(lambda xp, x: x.flat.__setitem__(key, value))


@CUTS
def test_flat(chunks: int | None, tmp_path: Path) -> None:
    mask = np.arange(20) % 3 == 0
    for key in (3, -1, slice(3, 17, 4), slice(None, None, -1), [0, 7, 7], mask, ...):
        check((lambda xp, x, key=key: x.flat[key], (M,)), chunks)
        for value in (7, [9, 8, 7]):
            check((repeated(key, value), (M,)), chunks)
    for value in (3, [1, 2, 3]):
        check((changed(lambda xp, x, value=value: setattr(x, "flat", value)), (M,)), chunks)
    x = tiled(M, chunks)
    assert list(x.flat) == list(M.flat)
    assert len(x.flat) == 20
    assert np.array_equal(np.asarray(x.flat), M.ravel())
    assert x.tobytes() == M.tobytes()
    assert x.tobytes("F") == M.tobytes("F")
    x.tofile(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == M.tobytes()
    x.tofile(tmp_path / "x", sep=",", format="%g")
    assert (tmp_path / "x").read_text() == ",".join(f"{v:g}" for v in M.flat)
    with pytest.raises(IndexError, match="flat"):
        x.flat[1, 2]


GRIDS: dict[str, Any] = {
    "one": np.s_[0:5],
    "two": np.s_[0:3, 1:9:2],
    "reals": np.s_[0:1:0.25, 2:5],
    "counts": np.s_[0:1:5j, -1:1:4j],
    "count": np.s_[0:1:5j],
    "nothing": np.s_[3:3, 0:2],
    "down": np.s_[5:0:-2],
}


@pytest.mark.parametrize("name", GRIDS)
def test_grids_between_brackets(name: str) -> None:
    key = GRIDS[name]
    same(lambda grids: grids[key], np.mgrid)
    for ours, theirs in ((ln.mgrid, np.mgrid), (ln.ogrid, np.ogrid)):
        found, wanted = ours[key], theirs[key]
        several = isinstance(wanted, tuple)
        for one, other in zip(found if several else [found], wanted if several else [wanted], strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_allclose(np.asarray(one), other, rtol=1e-14)


METHODS: dict[str, Case] = {
    "outer": (lambda xp, x, y: xp.add.outer(x, y), (I, M)),
    "reduce": (lambda xp, x: xp.add.reduce(x, axis=1), (M,)),
    "accumulate": (lambda xp, x: xp.maximum.accumulate(x, 1), (M,)),
    "reduceat": (lambda xp, x: xp.add.reduceat(x, [0, 2, 3]), (M,)),
    "reduceat along": (lambda xp, x: xp.add.reduceat(x, [1, 2, 4], axis=1), (M,)),
    "reduceat backwards": (lambda xp, x: xp.add.reduceat(x, [4, 1, 1, 6, 0]), (I,)),
    "reduceat narrow": (lambda xp, x: xp.add.reduceat(x, [0, 4]), (U,)),
    "reduceat dtype": (lambda xp, x: xp.add.reduceat(x, [0, 4], dtype="u1"), (U,)),
    "reduceat subtract": (lambda xp, x: xp.subtract.reduceat(x, [0, 5]), (I,)),
    "reduceat maximum": (lambda xp, x: xp.maximum.reduceat(x, [0, 1, 5]), (SPANS,)),
    "reduceat beyond": (lambda xp, x: xp.add.reduceat(x, [0, 7]), (I,)),
    "reduceat nothing": (lambda xp, x: xp.add.reduceat(x, np.array([], int)), (I,)),
    "at": (changed(lambda xp, x: xp.add.at(x, [0, 0, 5, 0], 2)), (I,)),
    "at values": (changed(lambda xp, x: xp.add.at(x, [0, 3, 0], np.ones((3, 5)) * 2)), (M,)),
    "at points": (changed(lambda xp, x: xp.multiply.at(x, ([1, 1], [2, 2]), [2, 3])), (M,)),
    "at a slice": (changed(lambda xp, x: xp.subtract.at(x, np.s_[1:3, ::2], 10)), (M,)),
    "at rows of a slice": (changed(lambda xp, x: xp.add.at(x, np.s_[1:3, [4, 0, 4]], 10)), (M,)),
    "at a mask": (changed(lambda xp, x: xp.add.at(x, x > 3, 10)), (M,)),
    "at one operand": (changed(lambda xp, x: xp.negative.at(x, [0, 0, 1])), (I,)),
    "at what does not fit": (changed(lambda xp, x: xp.add.at(x, [0], 1.5)), (I,)),
    "at beyond": (changed(lambda xp, x: xp.add.at(x, [9], 1)), (I,)),
}


@CUTS
@pytest.mark.parametrize("name", METHODS)
def test_methods_of_ufuncs(name: str, chunks: int | None) -> None:
    check(METHODS[name], chunks)
    function, arrays = METHODS[name]
    check((lambda xp, *given: function(np, *given), arrays), chunks)


def test_dates_in_a_row() -> None:
    for given in (("2020-01", "2020-03"), (DATE, datetime.date(2020, 3, 1))):
        found, wanted = ln.arange(*given, dtype="M8[D]"), np.arange(*given, dtype="M8[D]")
        np.testing.assert_array_equal(found.compute(), wanted, strict=True)


def test_what_ufuncs_tell_of_themselves() -> None:
    assert (ln.add.nin, ln.add.nout, ln.add.nargs, ln.add.identity) == (2, 1, 3, 0)
    assert ln.sqrt.types == np.sqrt.types
    assert ln.add.outer.__qualname__ == "add.outer"


MORE: dict[str, Case] = {
    "gradient of times": (lambda xp, x: xp.gradient(x), (DAYS[:3],)),
    "gradient of truth values": (lambda xp, x: xp.gradient(x), (M > 3,)),
    "ediff1d of truth values": (lambda xp, x: xp.ediff1d(x), (M > 3,)),
    "bincount": (lambda xp, x: xp.bincount(x), (U[:3].astype("u8"),)),
    "histogram of complex": (lambda xp, x: xp.histogram(x, 4), (M + 1j,)),
    "partition of nothing": (lambda xp, x: xp.partition(x, 0), (M[:, :0],)),
    "argpartition of nothing": (lambda xp, x: xp.argpartition(x, [0, 5]), (M[:, :0],)),
    "partition beyond": (lambda xp, x: xp.partition(x, 5), (M,)),
    "sort_complex": (lambda xp, x: xp.sort_complex(x), (M.astype("f2"),)),
    "search of times": (lambda xp, x: xp.searchsorted(x, [1.5]), (SPANS,)),
    "digitize of times": (lambda xp, x: xp.digitize(x, [1.5, 2]), (SPANS,)),
    "interp of times": (lambda xp, x: xp.interp(x, [1, 2], [3, 4]), (SPANS,)),
    "array_equal": (lambda xp, x: xp.array_equal(x, np.ones(7)), (SPANS,)),
    "array_equiv of nothing": (lambda xp, x: xp.array_equiv(x, np.ones(1)), (SPANS[:0],)),
    "negative powers": (lambda xp, x: x**-1, (I,)),
    "outer of times": (lambda xp, x: xp.outer(x, [1.5, 2]), (SPANS,)),
    "clip into": (changed(lambda xp, x: xp.clip(x, 2, 7, x)), (M,)),
    "clip by name": (lambda xp, x: xp.clip(a=x, a_min=2, a_max=7), (M,)),
    "a date is assigned": (assigned(2, DATE), (DAYS,)),
    "dates as text": (assigned(slice(0, 2), ["2021-05-05", "2020-01-02"]), (DAYS,)),
    "numbers as text": (assigned([0, 3], "2.5"), (M,)),
    "nothing is assigned": (assigned(1, None), (M,)),
    "text that is no number": (assigned(1, "x"), (M,)),
    "an object": (assigned(1, object()), (M,)),
    "sums in another unit": (lambda xp, x: xp.cumsum(x, dtype="m8[ms]"), (SPANS,)),
    "put by name": (changed(lambda xp, x: x.put(indices=[0, 9], values=[7, 8])), (M,)),
    "resize longer": (changed(lambda xp, x: x.resize((5, 5), refcheck=False)), (M,)),
    "resize shorter": (changed(lambda xp, x: x.resize(3, 2, refcheck=False)), (M,)),
}


@CUTS
@pytest.mark.parametrize("name", MORE)
def test_more_lines_of_scripts(name: str, chunks: int | None) -> None:
    check(MORE[name], chunks)


@CUTS
def test_formats_are_for_numbers(chunks: int | None) -> None:
    assert f"{tiled(M, chunks)[0, 1]:.2f}" == "1.00"
    with pytest.raises(TypeError, match="only numbers have formats"):
        format(tiled(M, chunks), ".2f")


@CUTS
def test_the_shape_is_set(chunks: int | None) -> None:
    for shape in ((2, 10), -1, (5, -1)):
        check((changed(lambda xp, x, shape=shape: setattr(x, "shape", shape)), (M,)), chunks)
    x = tiled(M, chunks)
    with pytest.raises(ValueError, match="reshape"):
        x.shape = (3, 5)


def test_arrays_in_annotations() -> None:
    assert isinstance(tiled(M, 2), ln.ndarray)
    assert ln.ndarray is ln.Array
    assert ln.ndarray[Any, np.dtype[np.float64]].__origin__ is ln.Array


@CUTS
def test_gufuncs_without_core_dimensions(chunks: int | None) -> None:
    x = tiled(I, chunks)
    np.testing.assert_array_equal(ln.apply_gufunc(lambda a, b: a + b, "(),()->()", x, x).compute(), 2 * I)


class Mine(Exception):
    """A user's own, with arguments of its own."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


@pytest.mark.parametrize("error", [ValueError("mine"), KeyError("mine"), OSError(2, "mine"), Mine(3, "mine")])
def test_errors_of_functions_keep_their_kind(error: Exception) -> None:
    def fails(x: Any) -> Any:
        raise error

    with pytest.raises(type(error), match="mine") as caught:
        ln.map_blocks(fails, tiled(M, 2), dtype=float).compute()
    assert isinstance(caught.value, KernelError)
    assert "raised" in str(caught.value)
    assert caught.value.__cause__ is error or isinstance(error, Mine)  # on nodes only if it can be sent


@pytest.mark.threads
def test_a_result_larger_than_memory_is_refused_by_name() -> None:
    words = r"80\.0 TB \(shape \(10000000, 1000000\), float64\) does not fit .*; take a part of it"
    for ask in (lambda x: x.compute(), lambda x: x.persist()):
        with pytest.raises(BudgetError, match=words):
            ask(ln.ones((10**7, 10**6), chunks=10**6))
