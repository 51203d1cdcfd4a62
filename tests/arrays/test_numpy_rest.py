"""Functions of NumPy's that do not compute with arrays: text, files, dates, polynomials in one place."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.arrays.strategies import tiled

import linnet as ln
from linnet.errors import BudgetError

rng = np.random.default_rng(1)

# ---- text


@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2000,), (40, 30), (7, 9, 11, 5), (3, 1000)])
@pytest.mark.parametrize("dtype", ["f8", "i4", "M8[D]"])
def test_arrays_as_text(shape: Any, dtype: str) -> None:
    a = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype("i8").astype(dtype)
    x = tiled(a, 3)
    assert np.array_str(x) == np.array_str(a)
    assert np.array2string(x, separator=", ") == np.array2string(a, separator=", ")
    assert ln.array2string(x, threshold=4, edgeitems=1) == np.array2string(a, threshold=4, edgeitems=1)
    assert np.array_repr(x) == np.array_repr(a)


@pytest.mark.threads
def test_only_the_ends_of_long_arrays_are_computed() -> None:
    seen: list[Any] = []

    def noted(t: Any, block_id: Any) -> Any:
        seen.append(block_id)
        return t

    x = ln.map_blocks(noted, tiled(np.zeros((100, 100)), 10), dtype=float)
    assert "..." in np.array_repr(x)
    assert sorted(seen) == [(0, 0), (0, 9), (9, 0), (9, 9)]


# ---- files


def test_save_and_load(tmp_path: Path) -> None:
    a = rng.standard_normal((13, 7))
    x = tiled(a, (4, 3)) * 1
    np.save(tmp_path / "x", x)
    ln.save(tmp_path / "x.npy", x)  # in place of the one there is
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), a)
    np.testing.assert_array_equal(ln.load(tmp_path / "x.npy", chunks=5).compute(), a)
    for function in (np.savez, ln.savez_compressed):
        function(tmp_path / "y", x, dates=tiled(np.arange(9).astype("M8[D]"), 2), one=x.sum())
        with np.load(tmp_path / "y.npz") as found:
            assert sorted(found) == ["arr_0", "dates", "one"]
            np.testing.assert_array_equal(found["arr_0"], a)
            np.testing.assert_array_equal(found["dates"], np.arange(9).astype("M8[D]"))
            np.testing.assert_allclose(found["one"], a.sum())
        np.testing.assert_array_equal(ln.load(tmp_path / "y.npz")["arr_0"].compute(), a)
    file = io.BytesIO()
    np.save(file, x)
    np.testing.assert_array_equal(np.load(io.BytesIO(file.getvalue())), a)
    with pytest.raises(ValueError, match="arr_0"):
        ln.savez(tmp_path / "z", x, arr_0=x)


@pytest.mark.parametrize(
    "options", [{}, {"fmt": "%.3f", "delimiter": ",", "header": "a\nb", "footer": "end"}]
)
def test_savetxt_and_loadtxt(tmp_path: Path, options: Any) -> None:
    for a in (rng.standard_normal((13, 4)), rng.standard_normal(6)):
        np.savetxt(tmp_path / "ours.txt", tiled(a, 3), **options)
        np.savetxt(tmp_path / "theirs.txt", a, **options)
        assert (tmp_path / "ours.txt").read_bytes() == (tmp_path / "theirs.txt").read_bytes()
        keywords = {"delimiter": options.get("delimiter")}
        read = ln.loadtxt(tmp_path / "ours.txt", chunks=2, **keywords)
        np.testing.assert_array_equal(read.compute(), np.loadtxt(tmp_path / "theirs.txt", **keywords))
        again = ln.genfromtxt(tmp_path / "ours.txt", **keywords)
        np.testing.assert_array_equal(again.compute(), read.compute())
    with pytest.raises(ValueError, match="1D or 2D"):
        np.savetxt(tmp_path / "x.txt", tiled(np.zeros((2, 2, 2)), 1))


def test_fromfile_and_fromstring(tmp_path: Path) -> None:
    a = np.arange(50, dtype="f4")
    a.tofile(tmp_path / "x.bin")
    for keywords in ({}, {"count": 7}, {"offset": 8}, {"count": 0}, {"count": 1000, "offset": 40}):
        ours = ln.fromfile(tmp_path / "x.bin", "f4", chunks=9, **keywords)
        np.testing.assert_array_equal(ours.compute(), np.fromfile(tmp_path / "x.bin", "f4", **keywords))
    a.tofile(tmp_path / "x.txt", sep=" ")
    np.testing.assert_array_equal(ln.fromfile(tmp_path / "x.txt", "f4", sep=" ").compute(), a)
    np.testing.assert_array_equal(ln.fromstring("1,2,3", int, sep=",").compute(), [1, 2, 3])


# ---- dates


def test_business_days() -> None:
    days = np.arange("2026-01-01", "2026-02-20", dtype="M8[D]")
    x = tiled(days, 7)
    holidays = ["2026-01-01", "2026-01-06"]
    calendar = np.busdaycalendar("Mon Wed Fri", holidays)
    for keywords in ({}, {"holidays": holidays}, {"weekmask": "0011111"}, {"busdaycal": calendar}):
        np.testing.assert_array_equal(np.is_busday(x, **keywords).compute(), np.is_busday(days, **keywords))
        np.testing.assert_array_equal(
            np.busday_count(x, x[::-1], **keywords).compute(), np.busday_count(days, days[::-1], **keywords)
        )
        np.testing.assert_array_equal(
            np.busday_offset(x, 3, roll="forward", **keywords).compute(),
            np.busday_offset(days, 3, roll="forward", **keywords),
        )
    until = ln.busday_count("2026-01-01", x).compute()
    np.testing.assert_array_equal(until, np.busday_count("2026-01-01", days))
    steps = np.arange(len(days))
    np.testing.assert_array_equal(
        ln.busday_offset("2026-01-05", tiled(steps, 4)).compute(), np.busday_offset("2026-01-05", steps)
    )


# ---- polynomials


def test_roots_and_polynomials_of_them() -> None:
    p, q = np.array([2.0, -3, 0, 5, 1, 0, 0]), np.array([1.0, 2, -1])
    x, y = tiled(p, 2), tiled(q, 1)
    np.testing.assert_allclose(np.roots(x).compute(), np.roots(p))
    np.testing.assert_allclose(np.poly(y).compute(), np.poly(q))
    matrix = rng.standard_normal((4, 4))
    np.testing.assert_allclose(np.poly(tiled(matrix, 3)).compute(), np.poly(matrix))
    for ours, theirs in zip(np.polydiv(x, y), np.polydiv(p, q), strict=True):
        np.testing.assert_allclose(ours.compute(), theirs)
    short, rest = ln.polydiv(y, x)
    np.testing.assert_allclose(short.compute(), np.polydiv(q, p)[0])
    np.testing.assert_allclose(rest.compute(), q)
    with ln.init(memory="1 MB"):
        long = ln.ones(200_000, chunks=1000)
        for function in (ln.roots, ln.poly):
            with pytest.raises(BudgetError, match="gather=True"):
                function(long)


# ---- the rest


def test_functions_without_arrays_are_numpys() -> None:
    assert ln.issubdtype(np.float32, np.floating)
    assert ln.base_repr(5, 3) == "12"
    assert not ln.isscalar(ln.ones(3))
    assert ln.isfortran(tiled(np.zeros((3, 4)).T, 2)) is False
    with ln.printoptions(precision=2):
        assert ln.get_printoptions()["precision"] == 2


def test_frompyfunc() -> None:
    a = np.arange(7)
    twice = ln.frompyfunc(lambda v, w: v * 2 + w, 2, 1)
    np.testing.assert_array_equal(twice(tiled(a, 3), 1).compute(), 2 * a + 1)
    quotient, rest = ln.frompyfunc(divmod, 2, 2)(tiled(a, 3), 3)
    np.testing.assert_array_equal(quotient.compute(), a // 3)
    np.testing.assert_array_equal(rest.compute(), a % 3)
