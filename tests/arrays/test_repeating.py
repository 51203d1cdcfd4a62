"""Under a budget, what lies in files is read again rather than put aside."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import linnet as ln
from linnet.bridges.parts import from_boxes
from linnet.tiles import Layout

X = np.random.default_rng(0).random((400, 30))


class Boxes:
    """An array that is read tile by tile, and how often each was."""

    def __init__(self) -> None:
        self.reads: Counter[int] = Counter()
        self.array = from_boxes(self.read, Layout.regular(X.shape, (20, 30)), X.dtype)

    def read(self, box: tuple[slice, ...]) -> np.ndarray:
        self.reads[box[0].start] += 1
        return X[box].copy()

    @property
    def times(self) -> set[int]:
        assert len(self.reads) == 20
        return {*self.reads.values()}


def deviations(x):
    return (x - x.mean(axis=0)).std(axis=0)


@pytest.mark.parametrize(("memory", "times"), [("60 kB", 2), ("1 MB", 1), (None, 1)])
def test_who_waits_for_a_mean_reads_again(memory, times):
    boxes = Boxes()
    with ln.init(workers=2, memory=memory):
        found = deviations(boxes.array).compute()
    np.testing.assert_allclose(found, deviations(X))
    assert boxes.times == {times}


def test_who_waits_for_nothing_shares_a_tile():
    boxes = Boxes()
    with ln.init(workers=2, memory="60 kB"):
        x = boxes.array
        columns, rows, largest = ln.compute(x.sum(axis=0), (x * x).sum(axis=1), x.max())
    np.testing.assert_allclose(columns, X.sum(axis=0))
    np.testing.assert_allclose(rows, (X * X).sum(axis=1))
    assert largest == X.max()
    assert boxes.times == {1}


def test_every_wait_reads_once_more():
    boxes = Boxes()
    with ln.init(workers=2, memory="60 kB"):
        x = boxes.array
        first = x.mean()
        second = ((x - first) ** 2).mean()
        made = (x / second).max()
        found = ln.compute(made, x.min(), first)
    variance = ((X - X.mean()) ** 2).mean()
    np.testing.assert_allclose(found, [(X / variance).max(), X.min(), X.mean()])
    assert boxes.times == {3}


def test_files_are_read_again_and_nothing_is_written(tmp_path, monkeypatch):
    from linnet.io import npy

    np.save(tmp_path / "x.npy", X)
    calls = []
    read = npy.read
    monkeypatch.setattr(npy, "read", lambda *args, **kwargs: (calls.append(1), read(*args, **kwargs)))
    with ln.init(workers=2, memory="60 kB"):
        found = deviations(ln.from_npy(tmp_path / "x.npy", chunks=(20, 30))).compute()
    np.testing.assert_allclose(found, deviations(X))
    assert len(calls) == 40


def test_what_was_asked_for_is_made_once():
    boxes = Boxes()
    with ln.init(workers=2, memory="60 kB"):
        whole, found = ln.compute(boxes.array, deviations(boxes.array))
    np.testing.assert_array_equal(whole, X)
    np.testing.assert_allclose(found, deviations(X))
    assert boxes.times == {1}
