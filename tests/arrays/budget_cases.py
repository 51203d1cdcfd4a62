"""Operations on arrays four times the memory budget, each run in a process of its own.

`python budget_cases.py NAME FOLDER` prints the most resident memory while it ran, above what there
was before, and whether the result is right, as JSON. Arrays come from files, or are random numbers
made tile by tile; results end in files or are reductions. Oracles look at the files in pieces.
"""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import linnet as ln

BUDGET = 40_000_000
LENGTH = 20_000_000
"""Doubles in an array four times the budget."""
ROWS = 100_000
COLUMNS = 200
_PIECE = 250_000


def most_resident() -> int:
    """The most bytes this process has held since `forget`."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def forget() -> None:
    """Count from now on."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


class Data:
    """Arrays in files, made when they are asked for."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def vector(self, name: str = "x") -> np.memmap[Any, Any]:
        return self._made(name, (LENGTH,), lambda rng, n: rng.standard_normal(n))

    def repeats(self) -> np.memmap[Any, Any]:
        """Few different values, most of them one: skewed keys."""
        return self._made("repeats", (LENGTH,), lambda rng, n: np.floor(rng.exponential(0.4, n)) * 3)

    def matrix(self) -> np.memmap[Any, Any]:
        return self._made("matrix", (ROWS, COLUMNS), lambda rng, n: rng.standard_normal(n) + 3)

    def _made(
        self, name: str, shape: tuple[int, ...], draw: Callable[[Any, int], Any]
    ) -> np.memmap[Any, Any]:
        path = self.folder / f"{name}.bin"
        if not path.exists():
            rng = np.random.default_rng(len(name))
            with path.with_suffix(".new").open("wb") as file:
                for _ in range(0, LENGTH, _PIECE):
                    file.write(draw(rng, _PIECE).tobytes())
            path.with_suffix(".new").rename(path)
        return np.memmap(path, np.float64, "r", 0, shape)


def pieces(*arrays: Any) -> Iterator[tuple[Any, ...]]:
    """Short runs of rows of several arrays, side by side."""
    step = max(1, _PIECE * len(arrays[0]) // arrays[0].size)
    for first in range(0, len(arrays[0]), step):
        yield tuple(np.array(each[first : first + step]) for each in arrays)


def alike(got: Any, expected: Callable[..., Any], *operands: Any, tolerance: float = 1e-12) -> bool:
    """Whether a result is what NumPy makes of the pieces."""
    return all(
        np.allclose(result, expected(*parts), rtol=tolerance, atol=tolerance)
        for result, *parts in pieces(got, *operands)
    )


def chain(x: Any) -> Any:
    return np.sin(x) * 2 + x**2 - 1 / (1 + np.exp(-x))


def _chain(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: chain(ln.asarray(x)).compute()
    yield alike(got, chain, x)


def _chain_summed(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: float(chain(ln.asarray(x)).sum())
    yield np.isclose(got, sum(chain(part).sum() for (part,) in pieces(x)))


def _axpy(data: Data) -> Any:
    x, y = data.vector(), data.vector("second")
    got = yield lambda: (2.5 * ln.asarray(x) + ln.asarray(y)).compute()
    yield alike(got, lambda a, b: 2.5 * a + b, x, y)


def _standardise(data: Data) -> Any:
    x = data.matrix()

    def run() -> Any:
        a = ln.asarray(x)
        return ((a - a.mean(axis=0)) / a.std(axis=0)).compute()

    got = yield run
    mean = sum(part.sum(axis=0) for (part,) in pieces(x)) / ROWS
    std = np.sqrt(sum(((part - mean) ** 2).sum(axis=0) for (part,) in pieces(x)) / ROWS)
    yield alike(got, lambda part: (part - mean) / std, x, tolerance=1e-9)


def _gram(data: Data) -> Any:
    x = data.matrix()

    def run() -> Any:
        a = ln.asarray(x)
        return (a.T @ a).compute()

    got = yield run
    yield np.allclose(got, sum(part.T @ part for (part,) in pieces(x)))


def _mttkrp(data: Data) -> Any:
    rng = np.random.default_rng(0)
    x = data.vector().reshape(200, 250, 400)
    b, c = rng.standard_normal((250, 20)), rng.standard_normal((400, 20))
    spec = "ijk,jr,kr->ir"
    got = yield lambda: ln.einsum(spec, ln.asarray(x), ln.asarray(b), ln.asarray(c)).compute()
    yield alike(got, lambda part: np.einsum(spec, part, b, c, optimize=True), x, tolerance=1e-9)


def _normals(data: Data) -> Any:
    got = yield lambda: ln.random.default_rng(0).standard_normal(LENGTH).compute()
    first = ln.random.default_rng(0).standard_normal(LENGTH)[:1000].compute()
    yield np.array_equal(got[:1000], first)


def _many_chunks(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: (ln.asarray(x, chunks=20_000) + 1).compute()
    yield alike(got, lambda part: part + 1, x)


def _sorted(got: Any, x: Any) -> bool:
    """Ascending, with the same sum and the same number of elements below some marks."""
    last = -np.inf
    for (part,) in pieces(got):
        if part[0] < last or (np.diff(part) < 0).any():
            return False
        last = part[-1]
    marks = np.array([-2.5, -1, 0, 0.3, 3, 9])
    below = sum((part[:, None] < marks).sum(axis=0) for (part,) in pieces(x))
    return len(got) == len(x) and bool((np.searchsorted(got, marks) == below).all())


def _sort(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: ln.sort(ln.asarray(x)).compute()
    yield _sorted(got, x)


def _sort_repeats(data: Data) -> Any:
    x = data.repeats()
    got = yield lambda: ln.sort(ln.asarray(x)).compute()
    yield _sorted(got, x)


def _argsort(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: ln.argsort(ln.asarray(x)).compute()
    picked = got[:: LENGTH // 1000]
    yield len(got) == LENGTH and bool((np.diff(x[picked]) >= 0).all())


def _quantile(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: np.quantile(ln.asarray(x), [0.1, 0.5]).compute()
    below = sum((part[:, None] < got).sum(axis=0) for (part,) in pieces(x))
    yield np.allclose(below / LENGTH, [0.1, 0.5], atol=1e-6)


def _unique(data: Data) -> Any:
    x = data.repeats()
    got = yield lambda: np.unique(ln.asarray(x)).compute()
    found: set[float] = set()
    for (part,) in pieces(x):
        found |= set(np.unique(part).tolist())
    yield got.tolist() == sorted(found)


def _unique_all_different(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: np.unique(ln.asarray(x)).compute()
    yield _sorted(got, x)


def _unique_counts(data: Data) -> Any:
    """Two columns move together."""
    x = data.vector()

    def run() -> Any:
        values, counts = np.unique(ln.asarray(x), return_counts=True)
        return values.compute(), int(counts.sum())

    got, total = yield run
    yield _sorted(got, x) and total == LENGTH


def _rechunk(data: Data) -> Any:
    """Rows to columns, kept; then a weighted sum of each."""
    x = data.matrix()
    weights = np.arange(ROWS) / ROWS

    def run() -> Any:
        columns = chain(ln.asarray(x, chunks=(500, -1))).rechunk((-1, 4)).persist()
        return (columns * ln.asarray(weights)[:, None]).sum(axis=0).compute()

    got = yield run
    yield np.allclose(got, sum(chain(part).T @ w for part, w in pieces(x, weights)))


def _permutation(data: Data) -> Any:
    """All rows in random order, kept; each is known by its product with a vector."""
    x = data.matrix()
    w = np.random.default_rng(1).standard_normal(COLUMNS)

    def run() -> Any:
        mixed = ln.random.default_rng(0).permutation(ln.asarray(x)).persist()
        return (mixed @ w).compute()

    got = yield run
    given = np.concatenate([part @ w for (part,) in pieces(x)])
    yield not np.allclose(got, given) and np.allclose(np.sort(got), np.sort(given))


def _choice(data: Data) -> Any:
    x = data.vector()
    rng = ln.random.default_rng(0)
    got = yield lambda: rng.choice(ln.asarray(x), 500_000, replace=False).compute()
    found = sum(int(np.isin(part, got).sum()) for (part,) in pieces(x))
    yield found == len(np.unique(got)) == 500_000


def _reshape(data: Data) -> Any:
    x = data.matrix()
    got = yield lambda: ln.reshape(ln.asarray(x) + 1, (COLUMNS, ROWS)).compute()
    flat = x.reshape(COLUMNS, ROWS)
    yield alike(got, lambda part: part + 1, flat)


def _transpose_add(data: Data) -> Any:
    x = data.vector().reshape(4000, 5000)
    y = data.vector("second").reshape(5000, 4000)
    got = yield lambda: (ln.asarray(x).T + ln.asarray(y)).compute()
    yield alike(got, lambda a, b: a + b, x.T, y)


def _mask(data: Data) -> Any:
    x = data.vector()

    def run() -> Any:
        a = ln.asarray(x)
        return a[a > 0].compute()

    got = yield run
    yield np.array_equal(got[:1000], x[:10_000][x[:10_000] > 0][:1000]) and len(got) == sum(
        int((part > 0).sum()) for (part,) in pieces(x)
    )


def _mask_computed(data: Data) -> Any:
    x = data.vector()

    def run() -> Any:
        a = ln.asarray(x)
        return float(((a * 2)[a > 0]).sum())

    got = yield run
    yield np.isclose(got, sum((part[part > 0] * 2).sum() for (part,) in pieces(x)))


def _cumsum(data: Data) -> Any:
    x = data.vector()
    got = yield lambda: np.cumsum(ln.asarray(x)).compute()
    total, right = 0.0, True
    for ours, theirs in pieces(got, x):
        right = right and np.allclose(ours, total + np.cumsum(theirs))
        total += theirs.sum()
    yield right


def _fft_rows(data: Data) -> Any:
    x = data.matrix()
    got = yield lambda: np.abs(ln.fft.fft(ln.asarray(x), axis=1)).compute()
    yield alike(got, lambda part: np.abs(np.fft.fft(part)), x)


def _fft_columns(data: Data) -> Any:
    x = data.matrix()
    got = yield lambda: np.abs(ln.fft.rfft(ln.asarray(x), axis=0)).sum(axis=0).compute()
    yield np.isclose(got[7], np.abs(np.fft.rfft(x[:, 7])).sum())


def _assigned(data: Data) -> Any:
    x = data.vector()

    def run() -> Any:
        a = ln.asarray(x) * 1
        a[a < 0] = 0
        a[5:100] = -1
        return a.compute()

    def expected(part: Any) -> Any:
        return np.where(part < 0, 0, part)

    got = yield run
    yield alike(got[200:], expected, x[200:]) and bool((got[5:100] == -1).all())


def _persisted(data: Data) -> Any:
    """Two results kept at once."""
    x = data.vector()

    def run() -> Any:
        a = (ln.asarray(x) + 1).persist()
        b = (a * 2).persist()
        return float((a + b).sum())

    got = yield run
    yield np.isclose(got, sum(3 * (part + 1).sum() for (part,) in pieces(x)))


def _random_sorted(data: Data) -> Any:
    got = yield lambda: ln.sort(ln.random.default_rng(1).standard_normal(LENGTH)).compute()
    yield all((np.diff(part) >= 0).all() for (part,) in pieces(got))


def _svd_tall(data: Data) -> Any:
    """Through QR by a tree: U is as large as the matrix, and kept."""
    x = data.matrix()

    u, s, vh = yield lambda: ln.persist(ln.linalg.svd(ln.asarray(x), full_matrices=False))
    squares = np.linalg.eigvalsh(sum(part.T @ part for (part,) in pieces(x)))[::-1]
    values, vectors = ln.compute((s, vh))
    yield (
        np.allclose(values, np.sqrt(squares))
        and np.allclose((u.T @ u).compute(), np.eye(COLUMNS))
        and np.allclose((u.T @ ln.asarray(x)).compute(), values[:, None] * vectors)
    )


def _principal_components(data: Data) -> Any:
    """Values alone, of a matrix that is not in a file as it is."""
    x = data.matrix()

    def run() -> Any:
        a = ln.asarray(x)
        centred = a - a.mean(axis=0)
        return ln.compute(
            (ln.linalg.svdvals(centred), ln.linalg.matrix_rank(centred), ln.linalg.cond(centred))
        )

    s, rank, condition = yield run
    mean = sum(part.sum(axis=0) for (part,) in pieces(x)) / ROWS
    squares = np.linalg.eigvalsh(sum((part - mean).T @ (part - mean) for (part,) in pieces(x)))[::-1]
    yield np.allclose(s, np.sqrt(squares)) and rank == COLUMNS and np.isclose(condition, s[0] / s[-1])


def _pinv_tall(data: Data) -> Any:
    x = data.matrix()
    got = yield lambda: (ln.linalg.pinv(ln.asarray(x)) @ ln.asarray(x)).compute()
    yield np.allclose(got, np.eye(COLUMNS))


def _picked_rows(data: Data) -> Any:
    """Rows far apart, of what is computed, in order and in none."""
    x = data.matrix()
    rows = np.random.default_rng(3).permutation(ROWS)[:300]

    def run() -> Any:
        a = ln.asarray(x) + 1
        return a[rows].compute(), a[np.sort(rows)].compute(), a[::977].compute()

    scattered, ordered, stepped = yield run
    yield (
        np.array_equal(scattered, x[rows] + 1)
        and np.array_equal(ordered, x[np.sort(rows)] + 1)
        and np.array_equal(stepped, x[::977] + 1)
    )


CASES: dict[str, Callable[[Data], Any]] = {
    name[1:]: value
    for name, value in list(globals().items())
    if name.startswith("_") and callable(value) and name != "_sorted"
}

LINEAR_ALGEBRA = ("svd_tall", "principal_components", "pinv_tall")


def main(name: str, folder: str) -> None:
    case = CASES[name](Data(folder))
    run = next(case)
    small = np.random.default_rng(0).standard_normal((3000, 20))
    with ln.init(workers=2, memory=BUDGET):  # modules and buffers are loaded once
        a = ln.asarray(small, chunks=(1000, 7))
        ((chain(a).sum(axis=0) + a.T @ a).compute(), ln.sort(a[:, 0]).compute(), (a[a > 0] + 1).compute())
        if name in LINEAR_ALGEBRA:
            ln.linalg.pinv(a).compute()
    gc.collect()
    with ln.init(workers=2, memory=BUDGET):
        forget()
        before = most_resident()
        got = run()
        peak = most_resident() - before
        right = bool(case.send(got))
    print(json.dumps({"peak": peak, "right": right}))


if __name__ == "__main__":
    main(*sys.argv[1:])
