"""Random programs on arrays: what they are made of, how they run, and what is different from NumPy.

A program is an array, a few steps that are exact (so that differences do not grow), and one function of a
family (`array_families`). It is drawn from a seed and a number by `random.Random`: hypothesis takes most of
the time for itself, and these programs have to be many. To look for differences, or at one again:

    python tests/arrays/array_programs.py --programs 5000 --seed 7 [--family sets] [--number 123]
"""

from __future__ import annotations

import operator
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from against_numpy import ERRORS, Pair, agree
from numpy.typing import NDArray

from linnet.arrays.expression import chunking

REAL = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
NUMBERS = (*REAL, "c8", "c16")
INTEGERS = ("?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
TIMES = ("M8[D]", "m8[s]", "M8[ms]", "m8[D]")
EVERY = (*NUMBERS, *TIMES)
SPECIAL = (0.0, -0.0, 1.0, -1.5, float("inf"), float("-inf"), float("nan"), float("nan"), 3.0, 3.0)


@dataclass
class Call:
    """A function and what it takes besides the array, which comes first."""

    function: Callable[..., Any]
    others: list[Any] = field(default_factory=list[Any])
    keywords: dict[str, Any] = field(default_factory=dict[str, Any])
    name: str = ""

    def __str__(self) -> str:
        given = [*map(repr, self.others), *(f"{name}={value!r}" for name, value in self.keywords.items())]
        called = self.name or getattr(self.function, "__name__", repr(self.function))
        return f"{called}({', '.join(['x', *given])})"

    def on(self, x: Any, which: str) -> Any:
        """The call on NumPy's arrays or on ours."""

        def one(item: Any) -> Any:
            if isinstance(item, Pair):
                return getattr(item, which)
            return type(item)(map(one, item)) if type(item) in (list, tuple) else item

        return self.function(x, *map(one, self.others), **{n: one(v) for n, v in self.keywords.items()})


class Dice:
    """Draws all that a program needs."""

    def __init__(self, seed: str) -> None:
        self.random = random.Random(seed)

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.random.random() * len(choices))]

    def coin(self, chance: float = 0.5) -> bool:
        return self.random.random() < chance

    def integer(self, least: int, most: int) -> int:
        return least + int(self.random.random() * (most - least + 1))

    # ---- arrays

    def elements(self, dtype: str, count: int, special: bool, wide: bool) -> list[Any]:
        kind = np.dtype(dtype).kind
        if kind == "b":
            return [self.coin() for _ in range(count)]
        if kind in "iu":
            limits = np.iinfo(dtype)
            least = 0 if kind == "u" else -5
            ends = [limits.min, limits.max]
            return [
                self.pick(ends) if wide and self.coin(0.3) else self.integer(least, 5) for _ in range(count)
            ]
        if kind in "mM":
            return [
                np.array("NaT", dtype)
                if special and self.coin(0.15)
                else np.array(self.integer(-5, 5), dtype)
                for _ in range(count)
            ]
        if kind == "c":
            return [complex(self._float(special), self._float(special)) for _ in range(count)]
        return [self._float(special) for _ in range(count)]

    def _float(self, special: bool) -> float:
        return self.pick(SPECIAL) if special and self.coin(0.3) else self.integer(-40, 40) / 8

    def shape(self, min_dims: int = 0, max_dims: int = 3, max_side: int = 6) -> tuple[int, ...]:
        least = 0 if self.coin(0.15) else 1
        return tuple(self.integer(least, max_side) for _ in range(self.integer(min_dims, max_dims)))

    def array(
        self,
        dtypes: Sequence[str] = NUMBERS,
        shape: tuple[int, ...] | None = None,
        *,
        special: bool = True,
        wide: bool = False,
        **sides: int,
    ) -> NDArray[Any]:
        dtype = self.pick(dtypes)
        shape = self.shape(**sides) if shape is None else shape
        made = np.empty(shape, dtype)
        made.reshape(-1)[:] = self.elements(dtype, made.size, special, wide)
        return made

    def cut(self, array: NDArray[Any]) -> Pair:
        """The array, and the same in tiles; one in six in one tile."""
        whole = self.coin(1 / 6)
        return Pair(array, tuple(n if whole else self.integer(1, max(1, n)) for n in array.shape))

    def like(self, shape: tuple[int, ...], dtypes: Sequence[str] = NUMBERS, special: bool = True) -> Pair:
        return self.cut(self.array(dtypes, shape, special=special))

    def mask(self, shape: tuple[int, ...]) -> Pair:
        return self.like(shape, ("?",))

    # ---- what functions take

    def axis(self, a: NDArray[Any], several: bool = True, none: bool = True) -> Any:
        choices: list[Any] = [None] if none or not a.ndim else []
        choices += range(-a.ndim, a.ndim)
        if several and a.ndim > 1:
            choices += [(), (0, -1), tuple(range(a.ndim))]
        return self.pick(choices)

    def other(self, a: NDArray[Any]) -> Any:
        """The other operand: an array, one of NumPy's, a list, a number, none of these."""
        kind = self.integer(0, 4)
        if kind == 0:
            return self.like(tuple(1 if self.coin(0.3) else n for n in a.shape), EVERY)
        if kind == 1:
            return self.array(EVERY, a.shape[self.integer(0, a.ndim) :])
        if kind == 2:
            plain = self.array(("?", "i8", "f8"), a.shape).tolist()
            return tuple(plain) if isinstance(plain, list) and self.coin() else plain
        if kind == 3:
            return np.array(self.elements(self.pick(EVERY), 1, True, False))[0]
        return self.pick([0, 1, -2, 300, 2.5, True, 1j, float("nan"), range(3)])

    def masked(self, a: NDArray[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Keywords with `where=` now and then."""
        if self.coin(0.4):
            shape = self.pick([a.shape, a.shape[1:], tuple(1 if self.coin() else n for n in a.shape)])
            keywords["where"] = self.mask(shape) if self.coin(0.8) else self.coin()
        return keywords

    def part(self, n: int) -> slice:
        ends = [None, *range(-n - 1, n + 2)]
        return slice(self.pick(ends), self.pick(ends), self.pick([None, 1, 1, 2, -1, -2, 3]))

    def basic_key(self, shape: tuple[int, ...]) -> Any:
        """Slices, integers, an ellipsis, new axes."""
        named = shape[: self.integer(0, len(shape))]
        items: list[Any] = [self.integer(-n, n - 1) if n and self.coin(0.3) else self.part(n) for n in named]
        if self.coin(0.3):
            items.insert(self.integer(0, len(items)), ...)
        if self.coin(0.2):
            items.insert(self.integer(0, len(items)), None)
        return items[0] if len(items) == 1 and self.coin() else tuple(items)

    def key(self, shape: tuple[int, ...]) -> Any:
        """Any key: also lists, index arrays that broadcast, masks, lazy or not."""
        if self.coin(0.3):
            return self.basic_key(shape)
        if self.coin(0.2):
            return self._laid(self.mask(shape[: self.integer(0, len(shape))]))
        common = self.shape(0, 2, 3)
        items: list[Any] = []
        for n in shape[: self.integer(0, len(shape))]:
            kind = self.integer(0, 4)
            if kind < 2:
                items.append(self.part(n))
            elif kind == 2 and n:
                items.append(self.integer(-n, n - 1))
            elif kind == 3 and len(common) < 2 and self.coin(0.3):
                items.append(self._laid(self.mask((n,))))
            else:
                items.append(self._laid(self.cut(self.places(n, common))))
        if self.coin(0.2):
            items.insert(self.integer(0, len(items)), self.pick([None, ...]))
        return items[0] if len(items) == 1 and self.coin() else tuple(items)

    def places(self, n: int, shape: tuple[int, ...]) -> NDArray[Any]:
        """Positions along an axis of this length; one in forty out of bounds."""
        made = np.empty(shape, self.pick(("i8", "i8", "i4", *(("u1", "i1") if n < 128 else ("u2", "i2")))))
        least = 0 if made.dtype.kind == "u" else -n
        most = n if self.coin(0.025) else max(n - 1, least)
        made.reshape(-1)[:] = [self.integer(least, most) for _ in range(made.size)]
        return made

    def _laid(self, pair: Pair) -> Any:
        """An index as an array of ours, as NumPy's, or as a list."""
        kind = self.integer(0, 2)
        return pair if kind == 0 else pair.array if kind == 1 else pair.array.tolist()


def tamely(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an array without complex infinities: NumPy makes NaN of them here and there."""

    def called(x: Any, *others: Any, **keywords: Any) -> Any:
        if x.dtype.kind == "c":
            x = np.where(np.isinf(x), x.dtype.type(1), x)
        return function(x, *others, **keywords)

    called.__name__ = function.__name__
    return called


# ---- steps: exact, so that differences do not grow


def _arithmetic(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([operator.add, operator.sub, operator.mul, np.maximum, np.minimum])
    return Call(function, [dice.other(a)])


def _compared(dice: Dice, a: NDArray[Any]) -> Call:
    if dice.coin(0.1):
        return Call(dice.pick([operator.eq, operator.ne]), [dice.pick(["a", b"a", ["a"], None])])
    return Call(dice.pick([operator.eq, operator.ne, operator.lt, operator.ge]), [dice.other(a)])


def _turned(dice: Dice, a: NDArray[Any]) -> Call:
    return Call(dice.pick([np.transpose, np.ravel, np.flip, np.atleast_2d, np.squeeze, np.copy]))


def _sliced(dice: Dice, a: NDArray[Any]) -> Call:
    return Call(operator.getitem, [dice.basic_key(a.shape) if dice.coin() else dice.key(a.shape)])


def _converted(dice: Dice, a: NDArray[Any]) -> Call:
    wider = "c16" if a.dtype.kind == "c" else dice.pick(["f8", "c16"])
    return Call(lambda x: x.astype(wider), name=f"astype {wider}")


def _assigned(dice: Dice, a: NDArray[Any]) -> Call:
    def assign(x: Any, key: Any, value: Any) -> Any:
        changed = x.copy()
        changed[key] = value
        changed += changed
        return changed

    return Call(assign, [dice.key(a.shape), dice.pick([0, 1, True, 3])])


def _chosen(dice: Dice, a: NDArray[Any]) -> Call:
    def choose(x: Any, mask: Any, y: Any) -> Any:
        return np.where(mask, x, y)

    return Call(choose, [dice.mask(a.shape), dice.like(a.shape)])


def _joined(dice: Dice, a: NDArray[Any]) -> Call:
    def join(x: Any, y: Any, axis: int) -> Any:
        return np.concatenate([x, y, x], axis=axis)

    return Call(
        join, [dice.like(a.shape, (a.dtype.str, a.dtype.str, "f8")), dice.integer(-a.ndim, a.ndim - 1)]
    )


STEPS = [_arithmetic, _compared, _turned, _sliced, _converted, _assigned, _chosen, _joined]

LARGEST = 500
"""Elements that a step may make."""


# ---- programs

Family = Callable[[Dice, NDArray[Any]], Call]


@contextmanager
def tiles_alone(wanted: bool) -> Iterator[None]:
    """No array is so small that NumPy computes it, if that is wanted."""
    before = chunking.SMALL
    chunking.SMALL = -1 if wanted else before
    try:
        yield
    finally:
        chunking.SMALL = before


def _stepped(dice: Dice, x: Pair, told: list[str]) -> Pair:
    """A step further; where NumPy refuses it, or makes too much of it, no step."""
    call = dice.pick(STEPS)(dice, x.array)
    try:
        made = np.asarray(call.on(x.array, "array"))
    except ERRORS:
        return x
    if made.dtype.kind not in "biufcmM" or made.size > LARGEST:
        return x
    told.append(str(call))
    found = Pair(made, -1)
    found.ours = call.on(x.ours, "ours")
    return found


def difference(family: Family, options: dict[str, Any], seed: int, number: int) -> str | None:
    """Run a program; if NumPy has another answer, tell the program and the answer."""
    dice = Dice(f"{seed} {family.__name__} {number}")
    told: list[str] = []
    with tiles_alone(dice.coin(0.8)), np.errstate(all="ignore"):
        try:
            x = dice.cut(dice.array(**options))
            told.append(repr(x))
            for _ in range(dice.pick([0, 0, 1, 1, 2])):
                x = _stepped(dice, x, told)
            before = np.array(x.array)
            call = family(dice, x.array)
            told.append(str(call))
            _check(call, x)
            np.testing.assert_array_equal(np.asarray(x.ours), before)  # nobody's operands change
        except (Exception, pytest.fail.Exception) as error:
            program = "\n  ".join(told)
            return (
                f"--seed {seed} --family {family.__name__} --number {number}\n  {program}\n  {_first(error)}"
            )
    return None


REFUSED = (*ERRORS, AttributeError, ZeroDivisionError)
"""What NumPy raises; of objects, too."""


LATE = (ZeroDivisionError, IndexError, np.linalg.LinAlgError)
"""What depends on values, so that we may raise it when these are computed."""


def _check(call: Call, x: Pair) -> None:
    """The same values; or both refuse, we at the call or, where values are to blame, when computed."""
    try:
        wanted = call.on(x.array, "array")
    except REFUSED as error:
        late = isinstance(error, LATE) or "negative integer powers" in str(error)
        with pytest.raises(REFUSED if late else ERRORS):
            computed(call.on(x.ours, "ours"), late)
        return
    if any(np.asarray(each).dtype.kind == "O" for each in listed(wanted)):
        with pytest.raises(TypeError):
            call.on(x.ours, "ours")
        return
    agree(call.on(x.ours, "ours"), wanted)


def computed(result: Any, wanted: bool) -> None:
    """Compute a result, where an error may come so late."""
    for each in listed(result) if wanted else []:
        np.asarray(each)


def listed(result: Any) -> Sequence[Any]:
    """Results, one or several."""
    return result if isinstance(result, tuple | list) else [result]


def _first(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' | '.join(lines[:7])}"[:600]


def differences(family: Family, options: dict[str, Any], seed: int, count: int, most: int = 5) -> list[str]:
    """What is different among so many programs; it stops when there is enough."""
    found: list[str] = []
    for number in range(count):
        told = difference(family, options, seed, number)
        if told is not None:
            found.append(told)
            if len(found) == most:
                break
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Look for differences."""
    import argparse
    import warnings

    from array_families import FAMILIES

    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family")
    parser.add_argument("--number", type=int)
    given = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    total = 0
    for family, options in FAMILIES.items():
        if given.family not in (None, family.__name__):
            continue
        began = time.process_time()
        if given.number is not None:
            found = [told for told in [difference(family, options, given.seed, given.number)] if told]
        else:
            found = differences(family, options, given.seed, given.programs, most=12)
        total += len(found)
        took = time.process_time() - began
        print(f"{family.__name__}: {len(found)} different, {took:.1f} s", *found, sep="\n", flush=True)
    return int(total > 0)


if __name__ == "__main__":
    sys.exit(main())
