"""NumPy's arrays among the operands: what they held when the expression was written is what counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.expression import chunking

r = np.random.default_rng(0)
x = ln.asarray(r.standard_normal((8, 6)), chunks=(3, 2))
v = ln.asarray(r.standard_normal(48), chunks=7)
BINS = ln.asarray(r.integers(0, 5, 48), chunks=7)

CASES: dict[str, tuple[Any, Any]] = {
    "add": (r.standard_normal((8, 6)), lambda c: x + c),
    "radd": (r.standard_normal((8, 6)), lambda c: c + x),
    "matmul": (r.standard_normal((6, 3)), lambda c: x @ c),
    "where": (r.random((8, 6)) > 0.5, lambda c: ln.where(c, x, 1)),
    "mask": (r.random((8, 6)) > 0.5, lambda c: x[c]),
    "rowmask": (r.random(8) > 0.5, lambda c: x[c]),
    "idx": (np.array([7, 0, 3]), lambda c: x[c]),
    "idx2": (np.array([5, 0, 3]), lambda c: x[:, c]),
    "idxv": (r.integers(0, 48, 30), lambda c: v[c]),
    "take": (r.integers(0, 48, 30), lambda c: ln.take(v, c)),
    "pair": (r.integers(0, 6, 8), lambda c: x[np.arange(8), c]),
    "sum": (r.standard_normal((8, 6)), lambda c: ln.sum(ln.stack([x, c]))),
    "concat": (r.standard_normal((8, 6)), lambda c: ln.concatenate([x, c])),
    "interp": (np.sort(r.random(5)), lambda c: ln.interp(v, c, np.arange(5.0))),
    "interp2": (np.sort(r.random(5)), lambda c: ln.interp(v, np.arange(5.0), c)),
    "quantile": (np.array([0.2, 0.5]), lambda c: ln.quantile(x, c, axis=0)),
    "repeat": (np.arange(8), lambda c: ln.repeat(x, c, axis=0)),
    "searchsorted": (np.sort(r.random(9)), lambda c: ln.searchsorted(ln.asarray(c.copy(), chunks=2), v)),
    "ss2": (r.random(9), lambda c: ln.searchsorted(ln.sort(v), c)),
    "digitize": (np.sort(r.random(4)), lambda c: ln.digitize(v, c)),
    "hist": (np.sort(r.random(4)), lambda c: ln.histogram(v, c)[0]),
    "histw": (r.random(48), lambda c: ln.histogram(v, 4, weights=c)[0]),
    "bincount": (r.random(48), lambda c: ln.bincount(BINS, weights=c)),
    "isin": (r.random(5), lambda c: ln.isin(v, c)),
    "clip": (r.random(6), lambda c: ln.clip(x, c, 1.0)),
    "choose": (r.integers(0, 2, (8, 6)), lambda c: ln.choose(c, [x, x + 1])),
    "select": (r.random((8, 6)) > 0.5, lambda c: ln.select([c], [x])),
    "einsum": (r.random((6, 3)), lambda c: ln.einsum("ij,jk->ik", x, c)),
    "conv": (r.random(3), lambda c: ln.convolve(v, c)),
    "polyval": (r.random(3), lambda c: ln.polyval(c, v)),
    "average": (r.random(8), lambda c: ln.average(x, axis=0, weights=c)),
    "solve": (r.random((8, 8)) + np.eye(8), lambda c: ln.linalg.solve(c, x)),
    "map_blocks": (r.random((8, 6)), lambda c: ln.map_blocks(np.add, x.rechunk(-1), c)),
    "ta": (r.integers(0, 8, (8, 6)), lambda c: ln.take_along_axis(x, c, 0)),
    "insert": (r.random(6), lambda c: ln.insert(x, 2, c, axis=0)),
    "append": (r.random((1, 6)), lambda c: ln.append(x, c, axis=0)),
    "pad": (np.array([1, 2]), lambda c: ln.pad(v, c)),
    "put": (r.random(3), lambda c: (lambda y: (ln.put(y, [1, 9, 20], c), y)[1])(v + 0)),
    "setmask": (r.random((8, 6)) > 0.5, lambda c: (lambda y: (y.__setitem__(c, 5), y)[1])(x + 0)),
    "setidx": (np.array([7, 0]), lambda c: (lambda y: (y.__setitem__(c, 5), y)[1])(x + 0)),
    "setval": (r.random(6), lambda c: (lambda y: (y.__setitem__(2, c), y)[1])(x + 0)),
    "outwhere": (r.random((8, 6)) > 0.5, lambda c: np.add(x, 1, where=c)),
    "sumwhere": (r.random((8, 6)) > 0.5, lambda c: x.sum(axis=0, where=c)),
    "copyto": (r.random((8, 6)), lambda c: (lambda y: (ln.copyto(y, c), y)[1])(x + 0)),
    "asreshape": (r.random((8, 6)), lambda c: ln.reshape(c, (6, 8))),
    "T": (r.random((8, 6)), lambda c: ln.transpose(c)),
    "ravel": (r.random((8, 6)), lambda c: ln.ravel(c)),
    "piecewise": (r.random(48) > 0.5, lambda c: ln.piecewise(v, [c], [1, 2])),
    "delete": (np.array([1, 2]), lambda c: ln.delete(x, c, axis=0)),
    "roll": (r.random((8, 6)), lambda c: ln.roll(c, 1)),
    "kron": (r.random((2, 2)), lambda c: ln.kron(x, c)),
    "cross": (r.random((8, 3)), lambda c: ln.cross(x[:, :3], c)),
    "outer": (r.random(4), lambda c: ln.outer(v, c)),
    "cov": (r.random((8, 6)), lambda c: ln.cov(x, c)),
    "bcast": (r.random(6), lambda c: ln.broadcast_to(c, (4, 6))),
    "list": (r.random(6), lambda c: ln.asarray([x[0], c])),
    "lexsort": (r.random(48), lambda c: ln.lexsort([v, c])),
    "trapz": (r.random(48), lambda c: ln.trapezoid(v, c)),
    "grad": (np.sort(r.random(48)), lambda c: ln.gradient(v, c)),
}


@pytest.mark.parametrize("small", [1 << 18, -1], ids=["straight", "in tiles"])
@pytest.mark.parametrize("name", CASES)
def test_later_changes_do_not_show(name: str, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "SMALL", small)
    given, function = CASES[name]
    expected = np.asarray(function(given.copy()))
    changed = given.copy()
    made = function(changed)
    changed[...] = 0
    assert np.array_equal(np.asarray(made), expected, equal_nan=True)


def test_what_cannot_change_is_shared(tmp_path: Any) -> None:
    frozen = np.arange(6.0)
    frozen.flags.writeable = False
    mapped = np.memmap(tmp_path / "a.bin", float, "w+", shape=(6,))
    behind = np.arange(6.0)
    view = behind[:]
    view.flags.writeable = False  # but `behind` can be written to
    tiles = ln.asarray(np.zeros(6), chunks=4)
    assert np.shares_memory((tiles + frozen).__node__.inputs[1].data, frozen)
    assert np.shares_memory((tiles + mapped).__node__.inputs[1].data, mapped)
    assert not np.shares_memory((tiles + view).__node__.inputs[1].data, view)
    spread = (
        (ln.asarray(np.zeros((3, 6)), chunks=2) + np.broadcast_to(behind, (3, 6))).__node__.inputs[1].data
    )
    assert spread.strides[0] == 0  # a copy of what there is, not of what it looks like
    behind[:] = 5
    assert spread[0].tolist() == [0, 1, 2, 3, 4, 5]


def test_asarray_shares_memory_until_it_is_assigned_to() -> None:
    own = np.zeros(6)
    for chunks in (None, 4):
        shared = ln.asarray(own, chunks=chunks)
        own[0] += 1
        assert shared.compute()[0] == own[0]
        shared[1] = 9
        assert own[1] == 0
    assert ln.array(own).__node__.data is not own


def test_under_a_budget_a_copy_goes_where_results_go() -> None:
    with ln.init(memory="1 MB"):
        long = np.ones(200_000)
        made = ln.zeros(200_000, chunks=20_000) + long
        long[:] = 7
        assert made.sum().compute() == 200_000
