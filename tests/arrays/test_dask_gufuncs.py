"""Generalised functions with the options of NumPy's own, against these and Dask's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.arrays.strategies import tiled

import linnet as ln

A = np.arange(3 * 5 * 4, dtype=float).reshape(3, 5, 4) ** 2
B = np.arange(4 * 3, dtype=float).reshape(4, 3)


@pytest.mark.parametrize("axis", [0, 1, -1, -3])
@pytest.mark.parametrize("keepdims", [False, True])
def test_one_axis_for_all_cores(axis: int, keepdims: bool) -> None:
    x = tiled(A, (2, 2, 3))
    ours = ln.apply_gufunc(np.vecdot, "(i),(i)->()", x, x[::-1], axis=axis, keepdims=keepdims)
    np.testing.assert_allclose(ours.compute(), np.vecdot(A, A[::-1], axis=axis, keepdims=keepdims))
    kept = ln.apply_gufunc(lambda t: t - t.mean(-1, keepdims=True), "(i)->(i)", x, axis=axis)
    np.testing.assert_allclose(kept.compute(), A - A.mean(axis, keepdims=True))


@pytest.mark.parametrize(
    ("signature", "axes"),
    [
        ("(m,n),(n,p)->(m,p)", [(0, 2), (2, 1), (0, 1)]),
        ("(m,n),(n,p)->(m,p)", [(-2, -1), (1, 2), (-1, 0)]),
        ("(m,n),(n,p)->(m,p)", [(2, 0), (0, 1), (2, 1)]),
    ],
)
def test_axes_of_each_core(signature: str, axes: Any) -> None:
    right = np.arange(5 * 4 * 3, dtype=float).reshape(
        {(2, 1): (5, 3, 4), (1, 2): (3, 4, 5)}.get(axes[1], (3, 4, 5))
    )
    expected = np.matmul(A, right, axes=axes)
    ours = ln.apply_gufunc(np.matmul, signature, tiled(A, 2), tiled(right, (2, 3, 2)), axes=axes)
    assert ours.shape == expected.shape
    np.testing.assert_allclose(ours.compute(), expected)


def test_axes_of_results_without_cores_may_be_left_out() -> None:
    x, y = tiled(A, 2), tiled(B, (2, 2))
    ours = ln.apply_gufunc(np.vecdot, "(i),(i)->()", x, y, axes=[0, 1])
    np.testing.assert_allclose(ours.compute(), np.vecdot(np.moveaxis(A, 0, -1), B))
    low, high = ln.apply_gufunc(
        lambda t: (t.min(-1), t.max(-1)),
        "(i)->(),()",
        x,
        axes=[1],
        keepdims=True,
        output_dtypes=(float, float),
    )
    np.testing.assert_array_equal(low.compute(), A.min(1, keepdims=True))
    np.testing.assert_array_equal(high.compute(), A.max(1, keepdims=True))


def test_options_that_do_not_fit() -> None:
    x = tiled(A, 2)
    total = lambda t: t.sum(-1)  # noqa: E731
    with pytest.raises(TypeError, match="not both"):
        ln.apply_gufunc(total, "(i)->()", x, axis=0, axes=[0])
    with pytest.raises(TypeError, match="one core axis alone"):
        ln.apply_gufunc(np.matmul, "(i,j),(j,k)->(i,k)", x, x, axis=0)
    with pytest.raises(ValueError, match="2 entries for the 3"):
        ln.apply_gufunc(np.multiply, "(i),()->(i)", x, x, axes=[0, 1])
    with pytest.raises(ValueError, match="has cores of"):
        ln.apply_gufunc(total, "(i)->()", x, axes=[(0, 1)])
    with pytest.raises(ValueError, match="keepdims=True is for"):
        ln.apply_gufunc(total, "(i)->(i)", x, keepdims=True)
    with pytest.raises(ValueError, match="named twice"):
        ln.apply_gufunc(lambda t: t.sum((-1, -2)), "(i,j)->()", x, axes=[(1, -2)])
    with pytest.raises(ValueError, match="lies in 2 tiles"):
        ln.apply_gufunc(total, "(i)->()", x, allow_rechunk=False)


def test_as_gufunc() -> None:
    x = tiled(A, 2)

    @ln.as_gufunc("(i)->(),()", output_dtypes=(float, np.intp))
    def extreme(t: Any, sign: int = 1) -> Any:
        """The largest element and where it is."""
        return (sign * t).max(-1), (sign * t).argmax(-1)

    assert extreme.__doc__ == "The largest element and where it is."
    value, place = extreme(x, axis=0)
    np.testing.assert_array_equal(value.compute(), A.max(0))
    np.testing.assert_array_equal(place.compute(), A.argmax(0))
    np.testing.assert_array_equal(extreme(x, sign=-1)[0].compute(), -A.min(-1))
    with pytest.raises(TypeError, match="needs a signature"):
        ln.as_gufunc()


def test_as_gufunc_as_dask() -> None:
    da = pytest.importorskip("dask.array")
    kinds: dict[str, Any] = {"signature": "(i,j)->(j)", "vectorize": True, "output_dtypes": float}
    ours = ln.as_gufunc(**kinds)(lambda m: m.sum(0))(tiled(A, (2, 5, 4)))
    theirs = da.as_gufunc(**kinds)(lambda m: m.sum(0))(da.from_array(A, chunks=(2, 5, 4)))
    assert ours.chunks == theirs.chunks
    np.testing.assert_array_equal(ours.compute(), theirs.compute())
