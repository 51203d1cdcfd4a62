"""Arrays under NumPy's and Python's protocols."""

from __future__ import annotations

import copy
import operator
import pickle

import numpy as np
import pytest
from strategies import tiled

import linnet as ln

VALUES = np.arange(12.0).reshape(3, 4)


@pytest.fixture(params=[None, 2, 1], ids=["one tile", "tiles", "every chunk 1"])
def x(request):
    return tiled(VALUES, (-1, -1) if request.param is None else request.param)


def test_numpy_takes_the_values(x):
    assert np.array_equal(np.asarray(x + 1), VALUES + 1)
    assert np.asarray(x, dtype=np.float32).dtype == np.float32
    assert np.array(x).flags.writeable
    with pytest.raises(ValueError, match="without a copy"):
        np.asarray(x * 2 if x.grid != (1, 1) else tiled(VALUES, 2) * 2, copy=False)


def test_what_numpy_is_shown_cannot_spoil_the_array(x):
    seen = np.asarray(x)
    if seen.flags.writeable:
        seen[...] = -1
    computed = x.compute()
    computed[...] = -2
    assert np.array_equal(x.compute(), VALUES)


@pytest.mark.parametrize("build", [lambda x: x, lambda x: np.sin(x) + x.sum(axis=0)])
def test_pickles_and_copies(x, build):
    y = build(x)
    for again in (pickle.loads(pickle.dumps(y)), copy.copy(y), copy.deepcopy(y)):
        assert isinstance(again, ln.Array)
        assert again.chunks == y.chunks
        assert again.dtype == y.dtype
        assert np.array_equal(again.compute(), y.compute())


def test_a_copy_is_another_array(x):
    for again in (copy.copy(x), copy.deepcopy(x)):
        again[0, 0] = 99
        assert x[0, 0].compute() == 0
        assert again[0, 0].compute() == 99


def test_dlpack_both_ways(x):
    assert np.array_equal(np.from_dlpack(x + 1), VALUES + 1)
    assert x.__dlpack_device__() == (1, 0)
    ours = ln.from_dlpack(VALUES)
    assert isinstance(ours, ln.Array)
    assert np.array_equal(ln.from_dlpack(x).compute(), VALUES)
    with pytest.raises(BufferError, match="copy"):
        (tiled(VALUES, 1) + 1).persist().__dlpack__(copy=False)


def test_ufuncs_take_their_arguments(x):
    assert np.array_equal(np.add(x, 1, dtype=np.float32).compute(), np.add(VALUES, 1, dtype=np.float32))
    assert np.add(x, 1, dtype=np.float32).dtype == np.float32
    kept = x * 0 - 1
    assert np.sqrt(x, out=kept, where=x > 4) is kept
    assert np.array_equal(kept.compute(), np.sqrt(VALUES, out=np.full((3, 4), -1.0), where=VALUES > 4))
    place = np.zeros((3, 4))
    assert np.multiply(x, 2, out=place) is place
    assert np.array_equal(place, VALUES * 2)
    with pytest.raises(TypeError, match="casting|cast"):
        np.add(x, 1.5, dtype=np.int64, casting="same_kind")
    with pytest.raises(TypeError, match="cannot be cast"):
        np.add(x, 1.5, out=x.astype(np.int64))
    with pytest.raises(ValueError, match="shape"):
        np.add(x, 1, out=x[0] * 1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        np.add(x, 1, sideways=True)


def test_ufuncs_have_their_methods(x):
    assert np.array_equal(np.add.reduce(x).compute(), np.add.reduce(VALUES))
    assert np.array_equal(np.maximum.reduce(x, axis=1).compute(), VALUES.max(axis=1))
    assert np.array_equal(np.multiply.accumulate(x, axis=1).compute(), np.multiply.accumulate(VALUES, axis=1))
    assert np.array_equal(
        np.subtract.outer(x[0], x[:, 1]).compute(), np.subtract.outer(VALUES[0], VALUES[:, 1])
    )


def test_methods_that_go_element_by_element(x):
    changed, wanted = x.copy(), VALUES.copy()
    np.add.at(changed, [0, 0], 1)
    np.add.at(wanted, [0, 0], 1)
    assert np.array_equal(changed.compute(), wanted)
    assert np.array_equal(x.compute(), VALUES)
    assert np.array_equal(np.add.reduceat(x, [0, 1]).compute(), np.add.reduceat(VALUES, [0, 1]))


@pytest.mark.parametrize("op", [operator.add, operator.sub, operator.mul, operator.truediv, operator.lt])
def test_operators_with_numpy_arrays_stay_lazy(x, op):
    x, values, other = x + 1, VALUES + 1, VALUES + 2
    for made, expected in ((op(x, other), op(values, other)), (op(other, x), op(other, values))):
        assert isinstance(made, ln.Array)
        assert np.array_equal(made.compute(), expected)
    assert isinstance(other @ x.T, ln.Array)
    assert isinstance(np.float64(2) * x, ln.Array)


def test_functions_of_numpy_we_lack_are_refused_and_never_convert(x):
    with pytest.raises(TypeError, match="no implementation found"):
        np.datetime_as_string(x)
    with pytest.raises(TypeError, match="no implementation found"):
        np.emath.sqrt(x)


def test_python_asks_for_scalars():
    one = tiled(np.array([[3]]), 1)
    scalar = one[0, 0]
    assert (float(scalar), int(scalar), complex(scalar), operator.index(scalar)) == (3.0, 3, 3 + 0j, 3)
    assert bool(scalar)
    assert bool(one)
    assert [10, 20, 30, 40][scalar] == 40
    many = tiled(VALUES, 2)
    with pytest.raises(ValueError, match="ambiguous"):
        bool(many)
    for kind in (float, int, complex, operator.index):
        with pytest.raises(TypeError, match=r"\(3, 4\)"):
            kind(many)
    with pytest.raises(TypeError):
        operator.index(tiled(np.array(3.0), ()))
    with pytest.raises(TypeError, match="len"):
        len(scalar)
    with pytest.raises(TypeError):
        hash(many)


def test_python_goes_through(x):
    assert len(x) == 3
    assert [row.compute().tolist() for row in x] == VALUES.tolist()
    assert 5.0 in x
    assert 99.0 not in x
    assert x.tolist() == VALUES.tolist()
    assert x.item(5) == 5.0
    assert x.item(1, 2) == VALUES.item(1, 2)
    with pytest.raises(ValueError, match="one element"):
        x.item()
    assert f"{x[1, 1]:.2f}" == "5.00"


def test_the_same_object_changes_and_others_do_not(x):
    y, z = x, x + 0
    x += 1
    assert y is x
    assert np.array_equal(y.compute(), VALUES + 1)
    assert np.array_equal(z.compute(), VALUES)
    part = x[0]
    x[0] = 7
    assert np.array_equal(part.compute(), VALUES[0] + 1)


@pytest.mark.parametrize("chunks", [None, 1])
def test_in_place_operators_keep_the_dtype(chunks):
    x = tiled(np.arange(4), -1 if chunks is None else chunks)
    with pytest.raises(TypeError, match="cast"):
        x += 0.5
    assert x.compute().tolist() == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="broadcast|fit"):
        x += np.ones((2, 4), int)
    assert x.shape == (4,)


@pytest.mark.parametrize(
    "data",
    [np.array([None, 1]), np.array([(1, 2.0)], "i4,f8"), np.array(["a"]), np.array([b"a"])],
    ids=["object", "structure", "text", "bytes"],
)
def test_other_dtypes_are_refused(data):
    with pytest.raises(TypeError, match="not supported"):
        ln.asarray(data)
    with pytest.raises(TypeError):
        ln.asarray(np.arange(len(data))) + data


@pytest.mark.parametrize("chunks", [-1, 1])
class TestPromotion:
    def test_python_scalars_are_weak(self, chunks):
        for dtype in ("u1", "i4", "f2", "f4", "c8"):
            a = np.ones(3, dtype)
            x = tiled(a, chunks)
            for scalar in (True, 2, 2.5, 2j):
                assert (x * scalar).dtype == (a * scalar).dtype
                assert np.array_equal((scalar + x).compute(), scalar + a)

    def test_what_does_not_fit_is_refused_at_the_call(self, chunks):
        x = tiled(np.ones(3, np.uint8), chunks)
        with pytest.raises(OverflowError):
            x + 300
        assert (x < 300).compute().all()

    def test_numpy_scalars_are_strong(self, chunks):
        x = tiled(np.ones(3, np.float32), chunks)
        assert (x + np.float64(1)).dtype == np.float64

    def test_half_precision(self, chunks):
        a = np.array([1, 2.5, 60000], np.float16)
        x = tiled(a, chunks)
        for f in (np.sin, np.sqrt, lambda v: v / 3, lambda v: v.sum(), lambda v: v.mean()):
            assert f(x).dtype == f(a).dtype
            assert np.array_equal(f(x).compute(), f(a))

    def test_dates(self, chunks):
        days = np.array(["2024-02-28", "2024-03-01", "NaT"], "M8[D]")
        x = tiled(days, chunks)
        assert (x - x[0]).dtype == np.dtype("m8[D]")
        assert np.array_equal((x + np.timedelta64(2, "D")).compute(), days + 2, equal_nan=True)
        hours = x + np.timedelta64(5, "h")
        assert hours.dtype == np.dtype("M8[h]")
        assert np.array_equal(np.isnat(x).compute(), np.isnat(days))
        assert np.array_equal((x > x[0]).compute(), days > days[0])
        assert np.array_equal(
            ((x - x[0]) / np.timedelta64(1, "D")).compute(), (days - days[0]) / np.timedelta64(1, "D"), True
        )
        with pytest.raises(TypeError):
            x + x


def test_how_it_looks():
    small, large = tiled(VALUES, 2), ln.zeros((5000, 5000)) + 1
    assert "dtype=float64" in repr(small)
    assert repr(large) == "Array(shape=(5000, 5000), dtype=float64, grid=5×5)"
    assert str(small) == str(VALUES)
    assert str(large).count("...") >= 1
    assert "5,000 × 5,000" in large._repr_html_()
    assert "<svg" in large._repr_html_()
