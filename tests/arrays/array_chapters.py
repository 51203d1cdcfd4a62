"""Families of random programs by chapters of NumPy: spectra, polynomials, grids, solving (`array_families`)."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_programs import EVERY, NUMBERS, REAL, Call, Dice, Family
from array_statements import expressions, operands, statements
from numpy.typing import NDArray


def _axis(dice: Dice, a: NDArray[Any]) -> int:
    return dice.integer(-a.ndim, a.ndim - 1) if a.ndim else 0


# ---- spectra


def spectra(dice: Dice, a: NDArray[Any]) -> Call:
    name = dice.pick(
        [
            "fft",
            "ifft",
            "rfft",
            "irfft",
            "hfft",
            "ihfft",
            "fft2",
            "ifft2",
            "fftn",
            "ifftn",
            "rfftn",
            "irfftn",
            "rfft2",
            "irfft2",
            "fftshift",
            "ifftshift",
        ]
    )
    if not a.ndim:
        return Call(np.copy)
    if name.endswith("shift"):
        return Call(getattr(np.fft, name), [], {"axes": dice.axis(a)})
    if a.dtype == np.float16:
        return Call(np.copy)
    keywords: dict[str, Any] = {"norm": dice.pick([None, "backward", "ortho", "forward"])}
    if name[-1] in "2n":
        axes = dice.pick([None, (0,), (-1, 0), (0, 1), (1, 0)]) if name[-1] == "n" else (-2, -1)
        count = a.ndim if axes is None else len(axes)
        s = dice.pick([None, None, tuple(dice.integer(1, 8) for _ in range(count))])
        keywords |= {"axes": axes if axes is not None or s is None else tuple(range(count)), "s": s}
    else:
        keywords |= {"n": dice.pick([None, None, 1, 2, 5, 8, 0]), "axis": _axis(dice, a)}
    return Call(getattr(np.fft, name), [], keywords)


def windows(dice: Dice, a: NDArray[Any]) -> Call:
    """Views of windows, whole or reduced."""
    if dice.coin() or not a.ndim:
        window, axis = dice.integer(1, 4), _axis(dice, a)
    else:
        window, axis = tuple(dice.integer(1, 3) for _ in a.shape), None
    how = dice.pick([None, np.max, np.sum, np.median, np.count_nonzero])

    def run(x: Any) -> Any:
        found = np.lib.stride_tricks.sliding_window_view(x, window, axis)
        step = found[::2]
        return step if how is None else how(step, axis=-1)

    return Call(run, [], {}, f"sliding_window_view {window} {axis} {how}")


# ---- polynomials


def polynomials(dice: Dice, a: NDArray[Any]) -> Call:
    kind = dice.pick(["val", "add", "sub", "mul", "der", "int", "vander", "cross", "fit"])
    if (a.ndim != 1 and kind not in ("val", "fit")) or a.shape[-1:] == (2,):
        kind = "val"  # NumPy takes vectors here, and vectors of two elements are deprecated
    if kind == "val":
        return Call(
            lambda x, p: np.polyval(p, x), [dice.like((dice.integer(0, 4),), special=False)], {}, kind
        )
    if kind in ("add", "sub", "mul"):
        return Call(getattr(np, "poly" + kind), [dice.like((dice.integer(1, 5),), special=False)])
    if kind == "der":
        return Call(np.polyder, [dice.integer(0, 3)])
    if kind == "int":
        return Call(np.polyint, [dice.integer(0, 3)])
    if kind == "vander":
        return Call(np.vander, [dice.pick([None, 0, 1, 4])], {"increasing": dice.coin()})
    if kind == "cross":
        other = dice.like(a.shape, special=False)
        return Call(np.cross, [other], {"axis": _axis(dice, a)} if dice.coin() else {})
    if not np.isfinite(a).all():
        return Call(np.copy)
    places = np.arange(a.shape[0] if a.ndim else 1)
    return Call(lambda y, p: np.polyfit(p, y, 1), [places], {}, "polyfit")


# ---- grids, blocks, places


def grids(dice: Dice, a: NDArray[Any]) -> Call:
    kind = dice.pick(["meshgrid", "ix_", "block", "broadcast_arrays", "tri", "rollaxis", "diagflat", "trim"])
    other = dice.like(dice.shape(0, 1, 4), EVERY)
    if kind == "meshgrid":
        options = {"indexing": dice.pick(["ij", "xy"]), "sparse": dice.coin()}
        return Call(np.meshgrid, [other], options)
    if kind == "ix_":
        return Call(lambda x, y: x[np.ix_(*y)], [[dice.places(n, (2,)) for n in a.shape]], {}, kind)
    if kind == "block":
        same = dice.like(a.shape, (a.dtype.str, "f8"))
        if dice.coin():
            return Call(lambda x, y: np.block([x, y]), [same], {}, "block beside")
        return Call(lambda x, y: np.block([[x], [y]]), [same], {}, "block below")
    if kind == "broadcast_arrays":
        return Call(np.broadcast_arrays, [dice.like(tuple(1 if dice.coin() else n for n in a.shape), EVERY)])
    if kind == "tri":
        m = dice.integer(-2, 2)
        return Call(lambda x: x[np.triu_indices_from(x, m)], [], {}, "triu_indices_from")
    if kind == "rollaxis":
        return Call(np.rollaxis, [_axis(dice, a)], {"start": dice.integer(0, max(a.ndim, 1))})
    if kind == "diagflat":
        return Call(np.diagflat, [dice.integer(-2, 2)])
    return Call(np.trim_zeros, [], {"trim": dice.pick(["fb", "f", "b"])})


def places(dice: Dice, a: NDArray[Any]) -> Call:
    """Numbers of places and back; counts in two dimensions."""
    kind = dice.pick(["unravel", "ravel", "h2d", "hdd", "digitize", "put_along", "unique_axis", "sorted"])
    if kind == "unravel":
        return Call(lambda x: np.unravel_index(np.abs(x), (50, 50)), [], {}, kind)
    if kind == "ravel":
        options = {"mode": dice.pick(["raise", "wrap", "clip"]), "order": dice.pick("CF")}
        return Call(
            lambda x, y, **k: np.ravel_multi_index((x, y), (5, 6), **k),
            [dice.like(a.shape, ("i8", "i2"))],
            options,
            kind,
        )
    if kind in ("h2d", "hdd"):
        x = a.ravel() * 1.0
        y = dice.like(x.shape, ("f8", "i4"), special=False)
        options: dict[str, Any] = {"density": dice.coin(), "bins": dice.pick([3, [2, 4], [[-1, 0, 2], 2]])}
        options["range"] = dice.pick([None, [(-3, 3), (-2, 2)]])
        if dice.coin():
            options["weights"] = dice.like(x.shape, ("f8",), special=False)
        if a.dtype.kind not in "biuf":
            return Call(np.copy)
        if kind == "h2d":
            return Call(lambda x, y, **k: np.histogram2d(x.ravel(), y, **k), [y], options, kind)

        def boxes(x: Any, y: Any, **keywords: Any) -> Any:
            counts, edges = np.histogramdd((x.ravel(), y), **keywords)
            return counts, *edges

        return Call(boxes, [y], options, kind)
    if kind == "digitize":
        return Call(lambda x, b: np.digitize(x, b), [dice.cut(np.array([-3, -0.5, 0, 2]))], {}, kind)
    if kind == "put_along" and a.ndim:
        axis = _axis(dice, a) % a.ndim
        shape = tuple(1 if k == axis else n for k, n in enumerate(a.shape))
        value = dice.pick([0, 1])

        def put(x: Any, where: Any) -> Any:
            changed = x.copy()
            np.put_along_axis(changed, where, value, axis)
            return changed

        return Call(put, [dice.cut(dice.places(a.shape[axis], shape))], {}, kind)
    if kind == "unique_axis" and a.ndim and a.dtype.kind in "biu":
        return Call(np.unique, [], {"axis": _axis(dice, a), "return_counts": True, "return_index": True})
    return Call(lambda x: np.sort(x, axis=-1)[..., ::-1], [], {}, "sorted down")


def along(dice: Dice, a: NDArray[Any]) -> Call:
    """Functions of lines, of pieces, of axes."""
    kind = dice.pick(["lines", "over", "pieces", "sorted", "nan_to", "extract", "ptp", "round", "parts"])
    if kind == "lines":
        function = dice.pick(
            [np.sum, np.sort, np.flip, lambda line: line[:1], lambda line: np.outer(line, line)]
        )
        return Call(lambda x, f, axis: np.apply_along_axis(f, axis, x), [function, _axis(dice, a)], {}, kind)
    if kind == "over":
        axes = dice.pick([0, [0], [-1], list(range(a.ndim))])
        return Call(lambda x: np.apply_over_axes(np.sum, x, axes), [], {}, kind)
    if kind == "pieces":
        return Call(
            lambda x, m: np.piecewise(x, [m, x > 0], [1, lambda v: v + v, 2]), [dice.mask(a.shape)], {}, kind
        )
    if kind == "sorted":
        axis = _axis(dice, a)
        return Call(
            lambda x: np.take_along_axis(x, np.argsort(x, axis=axis, kind="stable"), axis=axis), [], {}, kind
        )
    if kind == "nan_to":
        return Call(np.nan_to_num, [], {"nan": dice.pick([0, 1.5]), "posinf": dice.pick([None, 7])})
    if kind == "extract":
        return Call(lambda x, m: np.extract(m, x), [dice.mask(a.shape)], {}, kind)
    if kind == "ptp":
        return Call(np.ptp, [], {"axis": dice.axis(a), "keepdims": dice.coin()})
    if kind == "round":
        return Call(np.around, [dice.integer(-2, 3)])
    if dice.coin(0.4):
        return Call(dice.pick([np.frexp, np.modf]))
    return Call(dice.pick([np.divmod, np.ldexp, np.float_power]), [dice.pick([2, 3])])


# ---- solving


def _square(dice: Dice, n: int, dtypes: Any) -> NDArray[Any]:
    m = dice.array(dtypes, (n, n), special=False)
    return m + m.T.conj() + np.eye(n, dtype=m.dtype) * 40 if m.dtype.kind in "fc" else m


def solving(dice: Dice, a: NDArray[Any]) -> Call:
    n = dice.integer(1, 6)
    dtypes = ("f4", "f8", "c8", "c16", "f8")
    m = dice.cut(_square(dice, n, dtypes))
    b = dice.like(dice.pick([(n,), (n, 3), (n, 1)]), ("f8", "c16", "i4"), special=False)
    name = dice.pick(
        [
            "solve",
            "inv",
            "det",
            "slogdet",
            "matrix_power",
            "multi_dot",
            "pinv",
            "lstsq",
            "cholesky",
            "eigvalsh",
            "svdvals",
            "cond",
            "trace",
            "matrix_rank",
            "qr",
            "eigh",
            "svd",
            "norm",
            "vecdot",
            "stacked",
        ]
    )
    function: Any = getattr(np.linalg, name, None)

    def on(f: Any, *more: Any) -> Call:
        return Call(lambda x, m, b: f(m, b), [m, b], {}, name)

    if name == "solve":
        return on(np.linalg.solve)
    if name == "lstsq":
        return on(lambda m, b: np.linalg.lstsq(m, b, rcond=None)[0])
    if name == "matrix_power":
        power = dice.integer(-2, 4)
        return on(lambda m, b: np.linalg.matrix_power(m, power))
    if name == "multi_dot":
        return on(lambda m, b: np.linalg.multi_dot([m, m, b]))
    if name == "qr":
        return on(lambda m, b: abs(np.linalg.qr(m)[1]))
    if name == "eigh":

        def back(m: Any, b: Any) -> Any:
            w, v = np.linalg.eigh(m)
            return v @ (w[:, None] * v.conj().T)

        return on(back)
    if name == "svd":

        def again(m: Any, b: Any) -> Any:
            u, s, v = np.linalg.svd(m)
            return u @ (s[:, None] * v)

        return on(again)
    if name == "norm":
        order: Any = dice.pick([None, 2, "nuc", 1, -2])
        return on(lambda m, b: np.linalg.norm(m, order))
    if name == "vecdot":
        return on(lambda m, b: np.linalg.vecdot(m, m, axis=0))
    if name == "stacked":
        k = dice.integer(1, 3)
        stack = dice.cut(np.stack([_square(dice, n, ("f8",)) for _ in range(k)]))
        which = dice.pick(
            [np.linalg.inv, np.linalg.det, np.linalg.eigvalsh, np.linalg.cholesky, np.linalg.pinv]
        )
        return Call(lambda x, s: which(s), [stack], {}, f"stacked {which.__name__}")
    if name == "trace":
        return on(lambda m, b: np.trace(m, 1))
    return on(lambda m, b: function(m))


CHAPTERS: dict[Family, dict[str, Any]] = {
    spectra: {"dtypes": NUMBERS, "special": False, "min_dims": 1},
    windows: {"dtypes": NUMBERS, "special": False, "min_dims": 1},
    polynomials: {
        "dtypes": ("i4", "i8", "f4", "f8", "c16", "u1"),
        "special": False,
        "min_dims": 1,
        "max_dims": 2,
    },
    grids: {"dtypes": EVERY},
    places: {"dtypes": ("i2", "i8", "u1", "i4", "f8"), "special": False},
    along: {"dtypes": REAL},
    solving: {"dtypes": ("f8",), "max_dims": 1},
    expressions: {"dtypes": ("f8", "i8", "i4"), "special": False, "min_dims": 1, "max_side": 9},
    operands: {"dtypes": (*NUMBERS, "m8[s]"), "special": False},
    statements: {"dtypes": ("f8", "i8", "f4"), "special": False, "min_dims": 1},
}
