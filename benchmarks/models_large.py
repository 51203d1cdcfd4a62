"""Measures models on files, under a memory budget, with many columns, and against packages of their own.

    python benchmarks/models_large.py [--share 1.0] [--only NAME ...] [--json FILE]

`--share` makes sizes smaller, to try the file out; targets are those of whole sizes. Rows against a package
that is not installed (celer, dask-ml) say so. Files go to a temporary folder and are deleted.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.linear_model as sk
from measuring import Row, keep_memory, show

import linnet as ln
from linnet.arrays.elements.core import as_node
from linnet.arrays.lowering.evaluate import computed


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    made = call()
    return time.perf_counter() - began, made


def installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def coefficients(model: Any) -> np.ndarray[Any, Any]:
    return np.append(np.ravel(model.coef_), model.intercept_)


def apart(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    return float(np.max(np.abs(a - b) / np.maximum(1, np.abs(b))))


def labelled(rows: int, columns: int, seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, columns))
    y = rng.random(rows) < 1 / (1 + np.exp(-(x @ (0.3 * rng.standard_normal(columns)))))
    return x, y.astype(float)


def csv(share: float) -> Row:
    """A file of 2 GB: read, fitted, predicted."""
    import pandas
    import pyarrow
    from pyarrow import csv as arrow

    columns = 50
    x, y = labelled(int(2_050_000 * share), columns)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        names = ["y", *(f"x{k}" for k in range(columns))]
        arrow.write_csv(pyarrow.table([y, *x.T], names=names), path)
        size = path.stat().st_size
        del x, y

        def ours() -> Any:
            table = ln.read_csv(path).persist()
            model = ln.models.LogisticRegression().fit(table[:, 1:], table[:, 0])
            return model, np.asarray(model.predict(table[:, 1:]))

        def theirs(engine: Any) -> Any:
            table = pandas.read_csv(path, engine=engine)
            model = sk.LogisticRegression(tol=1e-6, solver="newton-cholesky")
            model.fit(table[names[1:]].to_numpy(), table["y"].to_numpy())
            return model, model.predict(table[names[1:]].to_numpy())

        own, (mine, said) = timed(ours)
        arrow_time, (known, told) = timed(lambda: theirs("pyarrow"))
        plain, _ = timed(lambda: theirs("c"))
    ratio, error = own / arrow_time, apart(coefficients(mine), coefficients(known))
    same = float(np.mean(said == told))
    measured = (
        f"{ratio:.2f} ({own:.1f} s; pandas with pyarrow {arrow_time:.1f} s, pandas' own {plain:.1f} s: "
        f"{own / plain:.2f}; coefficients apart {error:.0e}, same predictions {same:.4f})"
    )
    numbers = {"ours": own, "pyarrow": arrow_time, "pandas": plain}
    what = f"CSV of {size / 1e9:.2f} GB to fit to predictions"
    return Row(what, "<= 0.4", measured, bool(ratio <= 0.4 and error < 1e-5), numbers)


_UNDER_A_BUDGET = r"""
import re, sys, time, numpy as np, linnet as ln
path, target, budget = sys.argv[1:4]
y = np.load(target)
x = ln.from_npy(path)
with ln.init(memory=int(budget)) if int(budget) else ln.init():
    if not int(budget):
        x = x.persist()
    began = time.perf_counter()
    model = ln.models.LogisticRegression(tol=1e-10).fit(x, y)
    spent = time.perf_counter() - began
# Not ru_maxrss: a process takes over that of the one which started it.
peak = int(re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1]) * 1024
print(spent, peak, *model.coef_[0], model.intercept_[0])
"""


def budget(share: float) -> Row:
    """Data of four times the budget, in processes of their own."""
    columns, allowed = 100, int(1e9 * share)
    rows = 4 * allowed // (8 * columns)
    with tempfile.TemporaryDirectory() as folder:
        path, target = Path(folder) / "x.npy", Path(folder) / "y.npy"
        x, y = labelled(rows, columns)
        np.save(path, x)
        np.save(target, y)
        del x

        def fitted(limit: int) -> list[float]:
            command = [sys.executable, "-W", "ignore", "-c", _UNDER_A_BUDGET, path, target, str(limit)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            return [float(each) for each in done.stdout.split()]

        bounded, free = fitted(allowed), fitted(0)
    error = apart(np.array(bounded[2:]), np.array(free[2:]))
    over, slower = bounded[1] / allowed, bounded[0] / free[0]
    measured = (
        f"{over:.2f} of the budget at its peak, {slower:.2f} of the time in memory ({bounded[0]:.1f} s), "
        f"coefficients apart {error:.0e}"
    )
    kept = bool(over <= 1.15 and slower <= 2.0 and error <= 1e-8)
    numbers = {"peak": bounded[1], "bounded": bounded[0], "free": free[0]}
    return Row(
        f"{rows * columns * 8 / 1e9:.1f} GB, budget {allowed / 1e9:.2f} GB",
        "<= 1.15, 2.0",
        measured,
        kept,
        numbers,
    )


def wide(share: float) -> Row:
    """Newton with a Hessian in tiles: two iterations, against SYRK and the tiled Cholesky alone."""
    from linnet.linalg import cholesky, syrk
    from linnet.models import wide as tiled
    from linnet.models.design import Design, Model

    columns = int(20_000 * share)
    rows = 3 * columns
    x, y = labelled(rows, columns)
    x /= np.sqrt(columns)
    design = Design.of(ln.asarray(x, chunks=(4096, -1)), y, intercept=False)
    problem = tiled.Tiled(design, Model("binomial", "logit"), 1.0)
    tile, coef, spent = tiled._TILE, np.zeros(columns), []
    for _ in range(2):
        seconds, (_, _, step) = timed(lambda at=coef: tiled._newton_step(problem, at, "observed", "wide"))
        spent.append(seconds)
        coef = coef + step
    table = ln.asarray(x, chunks=(4096, tile))
    product = syrk(table.T, tile=tile) + ln.eye(columns, chunks=tile)
    alone, _ = timed(lambda: computed([as_node(cholesky(product)[-1, -1])]))
    ratio = max(spent) / alone
    measured = f"{ratio:.2f} ({spent[0]:.1f} and {spent[1]:.1f} s; SYRK and Cholesky {alone:.1f} s)"
    what = f"Newton, {rows:,} x {columns:,}"
    return Row(what, "<= 1.2", measured, ratio <= 1.2, {"iteration": max(spent), "alone": alone})


def against_celer(share: float) -> Row:
    """A lasso path with many columns."""
    celer = installed("celer")
    what = f"lasso path of 50, {int(2_000 * share):,} x {int(20_000 * share):,} against celer"
    if celer is None:
        return Row(what, "<= 1.0", "celer is not installed", False, {})
    rng = np.random.default_rng(0)
    x = np.asfortranarray(rng.standard_normal((int(2_000 * share), int(20_000 * share))))
    y = x[:, :40] @ rng.standard_normal(40) + rng.standard_normal(len(x))
    alphas = np.geomspace(1, 0.01, 50) * np.abs(x.T @ y).max() / len(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, (_, known, _) = timed(lambda: celer.celer_path(x, y, "lasso", alphas=alphas, tol=1e-8)[:3])
        own, (_, found, _) = timed(lambda: ln.models.lasso_path(x, y, alphas=alphas, tol=1e-8))
    same = float(((found != 0) == (known != 0)).mean())
    residual = x.T @ (y[:, None] - x @ found) / len(y)
    worst = float(
        (
            np.where(
                found == 0,
                np.maximum(np.abs(residual) - alphas, 0),
                np.abs(residual - alphas * np.sign(found)),
            )
        ).max()
    )
    ratio = own / theirs
    measured = (
        f"{ratio:.2f} ({own:.1f} s against {theirs:.1f} s; same support {same:.6f}, KKT residual {worst:.0e})"
    )
    return Row(what, "<= 1.0", measured, bool(ratio <= 1.0 and worst <= 1e-6), {"ours": own, "celer": theirs})


def against_dask(share: float) -> Row:
    """Newton of Dask-ML, on threads of this process."""
    what = f"logistic {int(1_000_000 * share):,} x 100 against Dask-ML's Newton"
    if installed("dask_ml") is None:
        return Row(what, "<= 0.33", "dask-ml is not installed", False, {})
    import dask.array
    from dask_glm.algorithms import newton

    x, y = labelled(int(1_000_000 * share), 100)
    table, target = dask.array.from_array(x, chunks=(50_000, 100)), dask.array.from_array(y, chunks=50_000)
    own, mine = timed(lambda: ln.models.LogisticRegression(C=np.inf, fit_intercept=False).fit(x, y))
    theirs, known = timed(lambda: newton(table, target, max_iter=20, tol=1e-6))
    ratio, error = own / theirs, apart(mine.coef_[0], np.asarray(known))
    measured = f"{ratio:.2f} ({own:.1f} s against {theirs:.1f} s, coefficients apart {error:.0e})"
    return Row(what, "<= 0.33", measured, bool(ratio <= 0.33 and error < 1e-5), {"ours": own, "dask": theirs})


CASES: dict[str, Callable[[float], Row]] = {
    "csv": csv,
    "budget": budget,
    "wide": wide,
    "celer": against_celer,
    "dask": against_dask,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    keep_memory()
    show([CASES[name](given.share) for name in given.only], "Models on larger data", given.json)


if __name__ == "__main__":
    main()
