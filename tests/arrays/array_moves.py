"""Families of random programs that move and multiply: joins, growth, calculus, products (`array_families`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_programs import EVERY, NUMBERS, REAL, Call, Dice, tamely
from numpy.typing import NDArray

# ---- moves


def moves(dice: Dice, a: NDArray[Any]) -> Call:
    axis = dice.axis(a, several=False, none=False)
    axis = 0 if axis is None else axis
    kind = dice.pick(
        ["roll", "flip", "rot90", "swapaxes", "moveaxis", "expand", "reshape", "broadcast", "tril"]
    )
    if kind == "roll":
        return Call(np.roll, [dice.integer(-7, 7)], {"axis": dice.axis(a, several=False)})
    if kind == "flip":
        return Call(np.flip, [], {"axis": dice.axis(a)})
    if kind == "rot90":
        return Call(np.rot90, [dice.integer(-2, 5)])
    if kind in ("swapaxes", "moveaxis"):
        return Call(getattr(np, kind), [axis, dice.axis(a, several=False, none=False)])
    if kind == "expand":
        return Call(np.expand_dims, [dice.integer(-a.ndim - 1, a.ndim)])
    if kind == "broadcast":
        return Call(
            np.broadcast_to, [(*dice.shape(0, 1, 3), *(dice.pick([2, 3]) if n == 1 else n for n in a.shape))]
        )
    if kind == "tril":
        return Call(dice.pick([np.tril, np.triu, np.diagonal, np.diag]), [dice.integer(-2, 2)])
    shape = dice.pick([(-1,), (a.size,), (1, -1), (-1, 2), a.shape[::-1], (2, -1), (a.size, 1), (3, -1, 1)])
    return Call(np.reshape, [shape])


def growth(dice: Dice, a: NDArray[Any]) -> Call:
    axis = dice.axis(a, several=False)
    kind = dice.pick(["tile", "repeat", "pad", "insert", "delete", "append", "resize"])
    if kind == "tile":
        return Call(np.tile, [dice.pick([2, (2, 1), (1, 0), 3, ()])])
    if kind == "repeat":
        n = a.size if axis is None else a.shape[axis]
        return Call(np.repeat, [dice.pick([2, 0, [dice.integer(0, 3) for _ in range(n)]])], {"axis": axis})
    if kind == "pad":
        mode = dice.pick(["constant", "edge", "reflect", "symmetric", "wrap", "maximum", "linear_ramp"])
        mode = "edge" if a.dtype.kind in "mM" else mode
        return Call(np.pad, [dice.pick([1, 2, (0, 3), ((1, 2),)])], {"mode": mode})
    if kind == "insert":
        return Call(np.insert, [dice.pick([0, -1, [0, 1], 2]), dice.pick([0, 1, True])], {"axis": axis})
    if kind == "delete":
        return Call(np.delete, [dice.pick([0, -1, [0, 1], slice(0, 2), [], [1, 1]])], {"axis": axis})
    if kind == "append":
        return Call(np.append, [dice.like(a.shape, (a.dtype.str, "i1"))], {"axis": axis})
    return Call(np.resize, [dice.pick([3, (2, 3), (0,), (4, 1)])])


def joins(dice: Dice, a: NDArray[Any]) -> Call:
    kind = dice.pick(
        [np.concatenate, np.stack, np.hstack, np.vstack, np.dstack, np.column_stack, np.array_split]
    )
    if kind is np.array_split:
        axis = dice.axis(a, several=False, none=False)
        return Call(kind, [dice.pick([2, 3, [1], [1, 3], [2, 9]])], {"axis": 0 if axis is None else axis})
    keywords: dict[str, Any] = {"axis": dice.integer(-1, 1)} if kind in (np.concatenate, np.stack) else {}
    if kind is np.concatenate and dice.coin(0.3):
        keywords["axis"] = None
    others = [dice.like(a.shape, EVERY if dice.coin(0.2) else NUMBERS) for _ in range(dice.integer(0, 2))]
    return Call(lambda x, *others, **k: kind([x, *others], **k), [*others], keywords, kind.__name__)


def choices(dice: Dice, a: NDArray[Any]) -> Call:
    if dice.coin(0.3):
        return Call(
            lambda x, c, d, y: np.select([c, d], [x, y], 0),
            [dice.mask(a.shape), dice.mask(a.shape), dice.like(a.shape)], {}, "select",
        )  # fmt: skip
    if dice.coin(0.3):
        places = dice.cut(dice.places(2, a.shape))
        return Call(
            lambda x, p, y: np.choose(p, [x, y], mode="clip"), [places, dice.like(a.shape)], {}, "choose"
        )
    second = dice.other(a)
    second = 0 if second is None or isinstance(second, str) else second
    return Call(lambda x, c, y: np.where(c, x, y), [dice.mask(a.shape), second], {}, "where")


# ---- calculus and products


def calculus(dice: Dice, a: NDArray[Any]) -> Call:
    kind = dice.pick(
        ["diff", "ediff1d", "gradient", "trapezoid", "convolve", "correlate", "interp", "unwrap"]
    )
    axis = dice.axis(a, several=False, none=False)
    axis = -1 if axis is None else axis
    if kind == "diff":
        keywords: dict[str, Any] = {"n": dice.integer(0, 3), "axis": axis}
        if dice.coin(0.3):
            keywords["prepend"] = dice.pick([0, 1, dice.like(a.shape, (a.dtype.str,))])
        return Call(np.diff, [], keywords)
    if kind == "ediff1d":
        return Call(np.ediff1d, [], {"to_end": dice.pick([None, [0, 1]]), "to_begin": dice.pick([None, 1])})
    if kind == "gradient":
        return Call(np.gradient, [dice.pick([1, 2, 0.5])], {"axis": axis, "edge_order": dice.pick([1, 1, 2])})
    if kind == "trapezoid":
        return Call(np.trapezoid, [], {"axis": axis, "dx": dice.pick([1, 0.5])})
    if kind == "unwrap":
        return Call(np.unwrap, [], {"axis": axis})
    if kind == "interp":
        return Call(lambda x, xp, fp: np.interp(x, xp, fp), [[-1, 0.5, 2], [3, 4.0, -1]], {}, "interp")
    other = dice.like((dice.integer(1, 4),), NUMBERS, special=False)
    return Call(getattr(np, kind), [other], {"mode": dice.pick(["full", "same", "valid"])})


def _infinite(a: NDArray[Any]) -> bool:
    return a.dtype.kind in "fc" and not np.isfinite(a).all()


def products(dice: Dice, a: NDArray[Any]) -> Call:
    function = dice.pick([np.matmul, np.dot, np.inner, np.outer, np.tensordot, np.kron, np.vdot, np.multiply])
    dtypes = NUMBERS
    if _infinite(a):  # what is infinite, and what NaN, is each BLAS's choice among complex numbers
        dtypes, function = (REAL, function) if a.dtype.kind == "f" else (NUMBERS, np.multiply)
    last = a.shape[-1:] or ()
    if function in (np.matmul, np.dot):
        shape: tuple[int, ...] = dice.pick([last, (*last, 2), (2, *last, 3)])
    elif function is np.inner:
        shape = dice.pick([last, (2, *last)])
    elif function is np.tensordot:
        return Call(function, [dice.like(a.shape, dtypes, special=False)], {"axes": dice.integer(0, a.ndim)})
    else:
        shape = a.shape if function in (np.vdot, np.multiply) else dice.shape(0, 2, 3)
    return Call(function, [dice.like(shape, dtypes, special=False)])


SPECS = {
    1: ["i,i->", "i,i->i", "i,j,j->i", "i,i,j->ij", "i->", "i,j->ji", "i,ij->j"],
    2: [
        "ij,jk->ik",
        "ij,jk,kl->il",
        "ij->",
        "ij,ij,ij->ij",
        "ij,j->i",
        "ij->ji",
        "ij,kj->ik",
        "ij,ik->jk",
        "ij->j",
    ],
}


def contractions(dice: Dice, a: NDArray[Any]) -> Call:
    """Letters of the array have its lengths; others are drawn."""
    if a.dtype.kind in "mM":
        return Call(np.copy)
    specs = SPECS.get(a.ndim, ["...->...", "...i->...", "...,...->..."])
    if _infinite(a):  # see products, and what documents say of three factors
        specs = [each for each in specs if each.count(",") < (a.dtype.kind == "f") + 1]
    spec = dice.pick(specs)
    first, *rest = spec.split("->")[0].split(",")
    lengths = dict(zip(first, a.shape, strict=False))
    shapes = [a.shape if c == "..." else tuple(lengths.setdefault(l, 2) for l in c) for c in rest]
    return Call(
        lambda x, *others: np.einsum(spec, x, *others),
        [dice.like(s, REAL if _infinite(a) else NUMBERS, special=False) for s in shapes],
        {},
        spec,
    )


def covariances(dice: Dice, a: NDArray[Any]) -> Call:
    keywords: dict[str, Any] = {"rowvar": dice.coin()}
    if dice.coin(0.3):
        keywords["ddof"] = dice.integer(0, 1)
    return Call(np.cov, [], keywords)


def norms(dice: Dice, a: NDArray[Any]) -> Call:
    if a.dtype == np.float16:  # NumPy's SVD takes none
        return Call(np.copy)
    order = dice.pick([None, 1, 2, np.inf, -np.inf, 0, 3, "fro"])
    axis = dice.axis(a) if a.ndim else None
    return Call(
        tamely(np.linalg.norm),
        [],
        {"ord": order, "axis": None if axis == () else axis, "keepdims": dice.coin()},
    )


def bits(dice: Dice, a: NDArray[Any]) -> Call:
    if dice.coin():
        keywords = {"axis": dice.axis(a, several=False), "bitorder": dice.pick(["big", "little"])}
        return Call(dice.pick([np.packbits, np.unpackbits]), [], keywords)
    if dice.coin():
        return Call(lambda x, t: x.copy().view(t), [dice.pick(["u1", "i2", "f4", "i8"])], {}, "view")
    function = dice.pick([np.bitwise_count, np.invert, np.signbit, np.left_shift, np.gcd])
    return Call(function, [dice.integer(0, 3) for _ in range(function.nin - 1)])
