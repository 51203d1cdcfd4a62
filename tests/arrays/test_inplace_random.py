"""Random programs of small statements against NumPy: whoever holds an older version keeps it.

A slice is a copy to the user, so the oracle is NumPy with a copy at every slice. Names, slices, results and
lists of older versions share memory inside, in every way that a short program can arrange.
"""

from __future__ import annotations

import operator
import warnings
from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.elements import in_place, operator_methods
from linnet.arrays.expression import chunking

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.lt,
    operator.eq,
    operator.pow,
]
UPDATES = [operator.iadd, operator.isub, operator.imul, operator.itruediv]
NUMBERS = [2, -1, 0.5, True, 1j, 300, np.float64(1.5), np.float32(2), np.int8(3), np.bool(True)]
FUNCTIONS = [np.negative, np.sqrt, np.sum, np.max, np.mean, np.square, lambda x: x.T, lambda x: x.any(axis=0)]
REFUSALS = (TypeError, ValueError, IndexError, OverflowError)


class Program:
    """The same statements on arrays of ours and on NumPy's; both sides must do, or refuse, the same."""

    def __init__(self, seed: int, chunks: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.shape = [(6, 5), (7,), (5, 5)][seed % 3]
        kinds = ["f8", "f8", "i8", "f4", "c16", "i2"]
        data = [(self.rng.random(self.shape) * 9).astype(self.pick(kinds)) for _ in range(3)]
        self.ours: list[Any] = [ln.array(each, chunks=chunks) for each in data]
        self.theirs: list[Any] = data
        self.several = chunks > 0
        self.steps: list[str] = []

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def key(self, shape: tuple[int, ...]) -> Any:
        parts = []
        for length in shape[: int(self.rng.integers(1, len(shape) + 1))] if shape else ():
            start = int(self.rng.integers(-length, length)) if length else 0
            choices = [start, slice(None), slice(1, -1), slice(start, None), slice(None, None, -1), ...]
            parts.append(self.pick([*choices, slice(None, None, 2), np.int64(start)]))
        while parts.count(...) > 1:
            parts.remove(...)
        return tuple(parts) if len(parts) != 1 or self.rng.integers(2) else parts[0]

    def both(self, what: str, statement: Any) -> None:
        """Run a statement on either side."""
        self.steps.append(what)
        results = []
        for arrays, copies in ((self.ours, False), (self.theirs, True)):
            try:
                results.append(statement(arrays, (lambda x: x.copy()) if copies else (lambda x: x)))
            except REFUSALS as error:
                results.append(error)
        ours, theirs = results
        assert isinstance(ours, Exception) == isinstance(theirs, Exception), (self.steps, results)
        if theirs is not None and not isinstance(theirs, Exception):
            self.ours.append(ours)
            self.theirs.append(theirs)

    def step(self) -> None:
        count = len(self.theirs)
        i, j = (int(each) for each in self.rng.integers(count, size=2))
        one, other = self.key(np.shape(self.theirs[i])), self.key(np.shape(self.theirs[j]))
        number, op, update = self.pick(NUMBERS), self.pick(OPERATORS), self.pick(UPDATES)
        function = self.pick(FUNCTIONS)

        def put(arrays: Any, value: Any) -> None:
            if np.shape(arrays[i]):  # NumPy's numbers cannot be written to
                arrays[i][one] = value

        def updated(arrays: Any, value: Any) -> None:
            if np.shape(arrays[i]):
                arrays[i] = update(arrays[i], value)

        def grown(arrays: Any) -> None:
            if np.shape(arrays[i]):
                arrays[i] += 2 * arrays[j]  # what has no name may be written over

        def grown_in_part(arrays: Any) -> None:
            if np.shape(arrays[i]):
                arrays[i][one] += 2 * arrays[j][other]

        statements = {
            "read": lambda a, c: c(a[i][one]),
            "put a number": lambda a, c: put(a, number),
            "put an array": lambda a, c: put(a, a[j][other]),
            "put an array itself": lambda a, c: put(a, a[j]),
            "put a computed value": lambda a, c: put(a, 2 * a[j][other] + a[j][other]),
            "operator": lambda a, c: op(a[i], a[j]),
            "operator with a number": lambda a, c: op(number, a[i]) if count % 2 else op(a[i], number),
            "chain": lambda a, c: (a[i] + a[j]) * 2 - a[i],
            "update": lambda a, c: updated(a, a[j]),
            "update by what has no name": lambda a, c: grown(a),
            "update of a part": lambda a, c: grown_in_part(a),
            "update by a part": lambda a, c: updated(a, a[i][one]),
            "update by a number": lambda a, c: updated(a, number),
            "function": lambda a, c: c(function(a[i])),
            "another name": lambda a, c: a[i],
        }
        name = self.pick(list(statements))
        self.both(f"{name} {i} {j} {one} {other} {number} {op.__name__} {update.__name__}", statements[name])

    def run(self) -> None:
        for _ in range(int(self.rng.integers(4, 14))):
            self.step()
        for ours, theirs in zip(self.ours, self.theirs, strict=True):
            found = np.asarray(ours)
            assert found.dtype == np.asarray(theirs).dtype, self.steps
            # Sums over several tiles are rounded otherwise.
            rtol = 1e-4 if self.several else 0
            np.testing.assert_allclose(found, theirs, rtol=rtol, err_msg=str(self.steps))


@pytest.mark.slow
@pytest.mark.threads
@pytest.mark.parametrize(("chunks", "few"), [(-1, False), (-1, True), (3, False)])
def test_older_versions_stay_and_values_are_numpys(
    chunks: int, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`few` sends arrays of a few numbers the ways of longer ones, which are written over."""
    if few:
        monkeypatch.setattr(operator_methods, "_LONG", 0)
        monkeypatch.setattr(chunking, "SMALL", 64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(250 if chunks < 0 else 60):
            Program(seed, chunks).run()


@pytest.mark.slow
def test_the_plain_assignment_is_the_general_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shortcut taken out, programs give the same."""
    monkeypatch.setattr(in_place, "put_plainly", lambda *_: False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(60):
            Program(seed, -1).run()
