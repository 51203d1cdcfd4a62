"""Measures models against scikit-learn (and glum where it is installed).

A time counts when coefficients are within 1e-6 of those of a Newton fit at tolerance 1e-12, relative to the
larger of 1 and themselves; competitors run at the loosest of a few tolerances that meets this. Both sides
run in turn, in the same process; each time is the least of several.

    python benchmarks/models.py [--share 1.0] [--only NAME ...] [--json FILE]

`--share` makes all numbers of rows smaller, to try the file out; targets are those of whole sizes.
"""

from __future__ import annotations

import argparse
import importlib
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import sklearn.cluster
import sklearn.decomposition
import sklearn.linear_model as sk
from measuring import Row, keep_memory, show

import linnet as ln

REPEATS = 3
CLOSE = 1e-6
TOLERANCES = (1e-4, 1e-6, 1e-8, 1e-10, 1e-12)
Fit = Callable[[], Any]


def timed(fit: Fit) -> tuple[float, Any]:
    began = time.perf_counter()
    made = fit()
    return time.perf_counter() - began, made


def coefficients(model: Any) -> np.ndarray[Any, Any]:
    return np.append(np.ravel(model.coef_), model.intercept_)


def distance(model: Any, exact: np.ndarray[Any, Any]) -> float:
    return float(np.max(np.abs(coefficients(model) - exact) / np.maximum(1, np.abs(exact))))


def table(rows: int, columns: int, correlated: bool) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns))
    if correlated:
        for k in range(1, columns):
            x[:, k] = 0.9 * x[:, k - 1] + np.sqrt(1 - 0.81) * x[:, k]
        x *= 10.0 ** rng.uniform(-2, 2, columns)
    return x


def loosest(make: Callable[[float], Fit], exact: np.ndarray[Any, Any]) -> tuple[float, float] | None:
    """The time of a competitor at the loosest tolerance that is near enough, and that tolerance."""
    for tol in TOLERANCES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            seconds, model = timed(make(tol))
            if distance(model, exact) <= CLOSE:
                return min([seconds, *(timed(make(tol))[0] for _ in range(REPEATS - 1))]), tol
    return None


def against(
    what: str, target: float, ours: Fit, theirs: dict[str, Callable[[float], Fit]], exact: Any
) -> Row:
    """Our time over that of the fastest competitor that converges."""
    own = [timed(ours) for _ in range(REPEATS)]
    seconds, error = min(each for each, _ in own), distance(own[-1][1], exact)
    found = {name: loosest(make, exact) for name, make in theirs.items()}
    reached = {name: each[0] for name, each in found.items() if each is not None}
    told = ", ".join(
        f"{name} {reached[name]:.2f} s" if name in reached else f"{name} never near" for name in theirs
    )
    ratio = seconds / min(reached.values()) if reached else float("nan")
    measured = f"{ratio:.2f} ({seconds:.2f} s, {own[-1][1].n_iter_} iterations; {told}; error {error:.1e})"
    kept = bool(ratio <= target and error <= CLOSE)
    return Row(what, f"<= {target}", measured, kept, {"ours": seconds, "error": error, **reached})


def logistic(share: float, correlated: bool) -> Row:
    x = table(int(1_000_000 * share), 100, correlated)
    rng = np.random.default_rng(1)
    w = rng.standard_normal(100) / x.std(axis=0) * 0.3
    y = (rng.random(len(x)) < 1 / (1 + np.exp(-(x @ w)))).astype(int)
    exact = coefficients(ln.models.LogisticRegression(tol=1e-12).fit(x, y))
    solvers = ("newton-cholesky",) if correlated else ("lbfgs", "newton-cholesky")
    theirs = {
        name: lambda tol, name=name: (
            lambda: sk.LogisticRegression(solver=name, tol=tol, max_iter=1000).fit(x, y)
        )
        for name in solvers
    }
    kind = "correlated" if correlated else "independent"
    what = f"logistic {len(x):,} x 100, {kind} columns"
    return against(
        what, 0.4 if correlated else 0.6, lambda: ln.models.LogisticRegression().fit(x, y), theirs, exact
    )


def counts(share: float, family: str) -> Row:
    x = table(int(500_000 * share), 50, False)
    rng = np.random.default_rng(1)
    mean = np.exp(x @ (rng.standard_normal(50) * 0.1))
    y = rng.poisson(mean).astype(float) if family == "poisson" else rng.gamma(2.0, mean / 2)
    ours = ln.models.PoissonRegressor if family == "poisson" else ln.models.GammaRegressor
    peer = sk.PoissonRegressor if family == "poisson" else sk.GammaRegressor
    alpha = 1e-4
    exact = coefficients(ours(alpha=alpha, tol=1e-12).fit(x, y))
    theirs: dict[str, Callable[[float], Fit]] = {
        "newton-cholesky": lambda tol: lambda: peer(alpha=alpha, solver="newton-cholesky", tol=tol).fit(x, y)
    }
    glum = _installed("glum")
    if glum is not None:
        theirs["glum"] = lambda tol: (
            lambda: glum.GeneralizedLinearRegressor(
                family=family, link="log", alpha=alpha, l1_ratio=0, gradient_tol=tol
            ).fit(x, y)
        )
    what = f"{family} {len(x):,} x 50"
    return against(what, 0.5, lambda: ours(alpha=alpha).fit(x, y), theirs, exact)


def _installed(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def path(share: float) -> Row:
    x = table(int(200_000 * share), 500, False)
    rng = np.random.default_rng(1)
    y = x[:, :50] @ rng.standard_normal(50) + rng.standard_normal(len(x))
    ours, (alphas, found, _) = timed(lambda: ln.models.enet_path(x, y, l1_ratio=0.5, n_alphas=50, tol=1e-8))
    theirs, (_, known, _) = timed(lambda: sk.enet_path(x, y, l1_ratio=0.5, alphas=alphas, tol=1e-8))
    same = bool(((found != 0) == (known != 0)).all())
    ratio = ours / theirs
    measured = f"{ratio:.2f} ({ours:.2f} s against {theirs:.2f} s; same support: {same})"
    numbers = {"ours": ours, "sklearn": theirs, "difference": float(np.abs(found - known).max())}
    return Row(
        f"elastic net path of 50, {len(x):,} x 500",
        "<= 0.65",
        measured,
        bool(ratio <= 0.65 and same),
        numbers,
    )


def components(share: float) -> Row:
    x = table(int(1_000_000 * share), 200, True)
    ours = min(timed(lambda: ln.models.PCA(20).fit(x))[0] for _ in range(REPEATS))
    theirs = min(timed(lambda: sklearn.decomposition.PCA(20).fit(x))[0] for _ in range(REPEATS))
    ratio = ours / theirs
    measured = f"{ratio:.2f} ({ours:.2f} s against {theirs:.2f} s)"
    return Row(f"PCA {len(x):,} x 200", "<= 0.6", measured, ratio <= 0.6, {"ours": ours, "sklearn": theirs})


def clusters(share: float) -> Row:
    x = table(int(1_000_000 * share), 20, False)
    init = x[:50].copy()
    how: dict[str, Any] = {"init": init, "n_init": 1, "max_iter": 20, "tol": 0.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, mine = timed(lambda: ln.models.KMeans(50, **how).fit(x))
        theirs, known = timed(lambda: sklearn.cluster.KMeans(50, **how).fit(x))
    ratio, apart = ours / theirs, abs(mine.inertia_ / known.inertia_ - 1)
    measured = f"{ratio:.2f} ({ours:.2f} s against {theirs:.2f} s, inertia apart {apart:.1e})"
    what = f"k-means {len(x):,} x 20, k = 50, 20 iterations"
    return Row(what, "<= 0.7", measured, ratio <= 0.7, {"ours": ours, "sklearn": theirs})


CASES: dict[str, Callable[[float], Row]] = {
    "correlated": lambda share: logistic(share, True),
    "independent": lambda share: logistic(share, False),
    "poisson": lambda share: counts(share, "poisson"),
    "gamma": lambda share: counts(share, "gamma"),
    "path": path,
    "pca": components,
    "kmeans": clusters,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    keep_memory()
    show([CASES[name](given.share) for name in given.only], "Models", given.json)


if __name__ == "__main__":
    main()
