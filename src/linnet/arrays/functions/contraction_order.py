"""What an `einsum` is made of: steps of one or two operands, in an order with little to compute.

`plan` reads a spec as `np.einsum` does (implicit results, ellipses, axes of length 1 that broadcast,
letters twice in one operand), and takes it apart into steps that know nothing of all this:

| kind      | spec        |                                                                    |
|-----------|-------------|--------------------------------------------------------------------|
| diagonal  | `iji->ij`   | a letter stands twice in an operand: only equal indices are kept   |
| sum       | `ijk->ik`   | letters that nobody else has are summed over, axes of length 1 that |
|           |             | broadcast are dropped                                              |
| contract  | `ik,kj->ij` | a product of two                                                   |
| transpose | `ij->ji`    | only where there is nothing to multiply                            |

The order comes from opt_einsum. Operands and results are numbered: the operands from 0, then the
result of each step. A letter has one meaning and one length in all steps.
"""

from __future__ import annotations

import math
import operator
import string
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from linnet.errors import InputError
from linnet.records import record

Shape = tuple[int, ...]

_LETTERS = string.ascii_uppercase + string.ascii_lowercase
"""Sorted, so that subscripts given as integers keep their order."""
_ORDERS = ("auto", "greedy", "optimal", "dp", "branch-all", "branch-2")
"""Ways of opt_einsum to search that find the same order every time."""


@record
class Step:
    """One operation on one or two arrays."""

    kind: Literal["diagonal", "sum", "contract", "transpose"]
    operands: tuple[int, ...]
    """Which arrays: the operand of that number, or, after those, the result of an earlier step."""
    spec: str
    """The letters of their axes, and of the result's."""
    shape: Shape
    """The shape of the result."""
    flops: float
    """Multiplications and additions."""


def plan(spec: str, shapes: Sequence[Shape], optimize: Any = True) -> list[Step]:
    """The steps of `np.einsum(spec, ...)` on arrays of these shapes; the last one gives the result.

    No steps: the result is the operand as it is. `optimize` is as for NumPy and opt_einsum: False
    takes the operands from left to right; a list of positions is followed as given.

    >>> for step in plan("ij,jk,k", [(1000, 1000), (1000, 1000), (1000,)]):
    ...     print(step.kind, step.operands, step.spec, step.shape)
    contract (1, 2) jk,k->j (1000,)
    contract (0, 3) ij,j->i (1000,)
    >>> [(step.kind, step.spec) for step in plan("ii,...", [(3, 3), (2, 2)])]
    [('diagonal', 'ii->i'), ('sum', 'i->'), ('contract', ',AB->AB')]
    """
    inputs, out, lengths = resolve(spec, shapes)
    made = _Made(lengths, len(inputs))
    narrows = [
        {c for c, n in zip(letters, shape, strict=True) if n == 1 and lengths[c] != 1}
        for letters, shape in zip(inputs, shapes, strict=True)
    ]
    shared = Counter(c for letters, narrow in zip(inputs, narrows, strict=True) for c in {*letters} - narrow)
    arrays: list[tuple[int, str]] = []
    for number, (letters, narrow) in enumerate(zip(inputs, narrows, strict=True)):
        distinct = "".join(dict.fromkeys(letters))
        kept = "".join(c for c in distinct if c not in narrow and (c in out or shared[c] > 1))
        step = made.single("diagonal", number, letters, distinct, narrow)
        arrays.append((made.single("sum", step, distinct, kept, narrow), kept))
    if len(arrays) == 1:
        made.single("transpose", *arrays[0], out)
        return made.steps
    for positions in _path([letters for _, letters in arrays], out, lengths, optimize):
        taken = [arrays[position] for position in sorted(positions)]
        arrays = [pair for position, pair in enumerate(arrays) if position not in positions]
        for count, second in enumerate(taken[1:], 2):
            others = [letters for _, letters in arrays + taken[count:]]
            taken[0] = made.pair(taken[0], second, others, out)
        arrays.append(taken[0])
    return made.steps


def fused(steps: Sequence[Step], operands: int) -> list[Step]:
    """The steps with products joined wherever one task can do both and nothing is computed twice.

    A product whose axes include all axes of the product it goes into is needed, tile by tile, by
    one task only: it need not be stored. `operands` is how many arrays the steps start from.

    >>> steps = plan("ijk,jr,kr->ir", [(40, 40, 40), (40, 9), (40, 9)], [(0, 2), (0, 1)])
    >>> [step.spec for step in steps]
    ['ijk,kr->ijr', 'jr,ijr->ir']
    >>> [(step.operands, step.spec) for step in fused(steps, 3)]
    [((1, 0, 2), 'jr,ijk,kr->ir')]
    """
    kept: list[Step] = []
    renumbered = {number: number for number in range(operands)}
    by_number: dict[int, Step] = {}
    for number, step in enumerate(steps, operands):
        taken: list[tuple[int, str]] = []
        before, _, out = step.spec.partition("->")
        flops = step.flops
        for operand, letters in zip(step.operands, before.split(","), strict=True):
            inner = by_number.get(operand)
            if inner and "contract" == inner.kind == step.kind and set(out) <= set(letters):
                kept.remove(inner)
                taken.extend(zip(inner.operands, inner.spec.partition("->")[0].split(","), strict=True))
                flops += inner.flops
            else:
                taken.append((operand, letters))
        spec = f"{','.join(letters for _, letters in taken)}->{out}"
        by_number[number] = Step(step.kind, tuple(each for each, _ in taken), spec, step.shape, flops)
        kept.append(by_number[number])
    for position, step in enumerate(kept, operands):
        renumbered[next(n for n, each in by_number.items() if each is step)] = position
    return [
        Step(step.kind, tuple(renumbered[n] for n in step.operands), step.spec, step.shape, step.flops)
        for step in kept
    ]


class _Made:
    """The steps so far."""

    def __init__(self, lengths: dict[str, int], operands: int) -> None:
        self.lengths = lengths
        self.steps: list[Step] = []
        self._next = operands

    def _add(self, kind: Any, operands: tuple[int, ...], spec: str, shape: Shape, flops: float) -> int:
        self.steps.append(Step(kind, operands, spec, shape, flops))
        self._next += 1
        return self._next - 1

    def single(self, kind: str, number: int, letters: str, out: str, narrow: Iterable[str] = ()) -> int:
        """The number of the array with these letters made into those; itself, if they are the same."""
        if letters == out:
            return number
        lengths = self.lengths | dict.fromkeys(narrow, 1)
        flops = float(math.prod(lengths[c] for c in letters)) if kind == "sum" else 0.0
        return self._add(kind, (number,), f"{letters}->{out}", tuple(lengths[c] for c in out), flops)

    def pair(
        self, first: tuple[int, str], second: tuple[int, str], others: Sequence[str], out: str
    ) -> tuple[int, str]:
        """The product of two arrays: its number, and its letters."""
        present = "".join(dict.fromkeys(first[1] + second[1]))
        wanted = set(out).union(*others)
        kept = "".join(c for c in present if c in wanted) if others else out
        shape = tuple(self.lengths[c] for c in kept)
        flops = 2.0 * math.prod(self.lengths[c] for c in present)
        spec = f"{first[1]},{second[1]}->{kept}"
        return self._add("contract", (first[0], second[0]), spec, shape, flops), kept


def resolve(spec: str, shapes: Sequence[Shape]) -> tuple[list[str], str, dict[str, int]]:
    """The letters of each operand and of the result, ellipses spelt out, and the length of each letter.

    >>> resolve("...ij,...jk", [(5, 2, 3), (3, 4)])
    (['Aij', 'jk'], 'Aik', {'A': 5, 'i': 2, 'j': 3, 'k': 4})
    """
    spec = "".join(spec.split())
    before, arrow, out = spec.partition("->")
    inputs = before.split(",")
    _check_signs(spec, inputs, out)
    if len(inputs) != len(shapes):
        raise InputError(f"einsum {spec!r} names {len(inputs)} operands, got {len(shapes)}")
    unused = [c for c in _LETTERS if c not in spec]
    widths = [_width(letters, shape, spec) for letters, shape in zip(inputs, shapes, strict=True)]
    broadcast = "".join(unused[: max(widths)])
    if len(broadcast) < max(widths):
        raise InputError(f"einsum {spec!r} needs more than the {len(_LETTERS)} letters there are")
    spelt = [
        letters.replace("...", broadcast[len(broadcast) - width :])
        for letters, width in zip(inputs, widths, strict=True)
    ]
    if arrow:
        if "..." not in out and broadcast:
            raise InputError(
                f"einsum {spec!r}: the ellipsis stands for {len(broadcast)} axes that the result must "
                "have too; write '...' after '->'"
            )
        result = out.replace("...", broadcast)
    else:
        counts = Counter("".join(spelt))
        result = broadcast + "".join(c for c in sorted(counts) if counts[c] == 1 and c not in broadcast)
    _check_result(spec, result, spelt)
    return spelt, result, _lengths(spec, spelt, shapes)


def from_lists(arguments: Sequence[Any]) -> tuple[str, list[Any]]:
    """The spec and the operands of `np.einsum`'s other form: each operand followed by its subscripts.

    >>> from_lists(["x", [0, 1], "y", [1, 2], [0, 2]])
    ('AB,BC->AC', ['x', 'y'])
    """
    pairs, rest = divmod(len(arguments), 2)
    operands = [arguments[2 * i] for i in range(pairs)]
    spec = ",".join(_subscripts(arguments[2 * i + 1]) for i in range(pairs))
    if rest:
        spec += "->" + _subscripts(arguments[-1])
    return spec, operands


def _subscripts(items: Iterable[Any]) -> str:
    found: list[str] = []
    for item in items:
        if item is Ellipsis:
            found.append("...")
            continue
        try:
            number = operator.index(item)
        except TypeError:
            raise TypeError(f"einsum: subscripts in a list are integers or ..., got {item!r}") from None
        if not 0 <= number < len(_LETTERS):
            raise InputError(f"einsum: subscripts in a list are from 0 to {len(_LETTERS) - 1}, got {number}")
        found.append(_LETTERS[number])
    return "".join(found)


def _check_signs(spec: str, inputs: list[str], out: str) -> None:
    for part in (*inputs, out):
        bare = part.replace("...", "", 1)
        wrong = next((c for c in bare if c not in _LETTERS), None)
        if wrong is not None:
            raise InputError(
                f"einsum {spec!r}: {wrong!r} in {part!r} is not a letter; a spec has letters, '...' once "
                "in an operand, ',' between operands and '->' before the result"
            )


def _check_result(spec: str, result: str, inputs: list[str]) -> None:
    for letter, count in Counter(result).items():
        if count > 1:
            raise InputError(f"einsum {spec!r}: {letter!r} stands more than once in the result {result!r}")
        if not any(letter in letters for letters in inputs):
            raise InputError(f"einsum {spec!r}: {letter!r} of the result is in no operand")


def _width(letters: str, shape: Shape, spec: str) -> int:
    """How many axes the ellipsis stands for."""
    bare = letters.replace("...", "")
    width = len(shape) - len(bare)
    if width < 0 or (width > 0 and bare == letters):
        more = "at least " if bare != letters else ""
        raise InputError(
            f"einsum {spec!r}: {letters!r} names {more}{len(bare)} axes, "
            f"but the operand has {len(shape)}, shape {tuple(shape)}"
        )
    return width


def _lengths(spec: str, inputs: Sequence[str], shapes: Sequence[Shape]) -> dict[str, int]:
    found: dict[str, int] = {}
    for letters, shape in zip(inputs, shapes, strict=True):
        own: dict[str, int] = {}
        for letter, length in zip(letters, shape, strict=True):
            if own.setdefault(letter, length) != length:
                raise InputError(
                    f"einsum {spec!r}: {letter!r} stands for axes of lengths {own[letter]} and {length} "
                    f"in an operand of shape {tuple(shape)}; a diagonal needs equal ones"
                )
            known = found.setdefault(letter, length)
            if known != length and 1 not in (known, length):
                raise InputError(
                    f"einsum {spec!r}: {letter!r} has length {known} in one operand and {length} in another"
                )
            found[letter] = length if known == 1 else known
    return found


def _path(inputs: list[str], out: str, lengths: dict[str, int], optimize: Any) -> list[tuple[int, ...]]:
    """Which operands to multiply, step by step; they go, and their product comes last."""
    if optimize is False or optimize is None:
        return [(0, 1)] + [(0, count) for count in range(len(inputs) - 2, 0, -1)]
    order, limit = "auto" if optimize is True else optimize, None
    if isinstance(order, (tuple, list)):
        if not (len(order) == 2 and order[0] in _ORDERS):
            return _checked(order, len(inputs))
        order, limit = order[0], int(order[1])
    if order not in _ORDERS:
        raise InputError(
            f"einsum: optimize={optimize!r} is not known; use True, False, a list of positions, or one of "
            f"{', '.join(_ORDERS)}"
        )
    if len(inputs) == 2:
        return [(0, 1)]
    from opt_einsum import contract_path  # takes a while to import; `import linnet` does without

    shapes = [tuple(max(1, lengths[c]) for c in letters) for letters in inputs]
    spec = f"{','.join(inputs)}->{out}"
    search: Any = order
    path, _ = contract_path(spec, *shapes, shapes=True, optimize=search, memory_limit=limit)
    return [tuple(positions) for positions in path]


def _checked(path: Sequence[Any], count: int) -> list[tuple[int, ...]]:
    """A path given by the user, if it takes every operand."""
    found = [tuple(step) for step in path if step != "einsum_path"]
    left = count
    for step in found:
        if not step or len(set(step)) != len(step) or not all(0 <= position < left for position in step):
            raise InputError(f"einsum: the step {step} of the path does not fit {left} arrays")
        left -= len(step) - 1
    if left != 1:
        raise InputError(f"einsum: the path {found} leaves {left} arrays of {count}; it must leave one")
    return found
