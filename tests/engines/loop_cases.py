"""Programs written as loops, run on the engine of the session and compared with their plain runs."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import numpy as np

import linnet as ln

sys.path.append(str(Path(__file__).parents[1] / "loopnests"))

from comparing import equal, plain
from test_programs import PROGRAMS

FEW = ("multiply", "shortest_paths", "kmeans", "forward_substitution")
"""One sum of products, one `while` on values, one with keys, one that runs step by step."""


def sparse_product(A, B):
    C = ln.zeros((A.shape[0], B.shape[1]))
    for i, j, k in ln.grid(A.shape[0], B.shape[1], A.shape[1]):
        C[i, j] += A[i, k] * B[k, j]
    return C


def wrong(names: tuple[str, ...] | None = None) -> list[str]:
    """The programs whose results are not those of the plain function, of all or of some."""
    found = []
    for number, (function, *args) in enumerate(PROGRAMS):
        if names is not None and function.__name__ not in names:
            continue
        expected, after = plain(function, *args)
        given = [
            ln.asarray(each.copy(), chunks=3) if isinstance(each, np.ndarray) else copy.deepcopy(each)
            for each in args
        ]
        try:
            equal(function(*given), expected, 1e-8)
            equal(given, after, 1e-8)
        except AssertionError as error:
            found.append(f"{number} {function.__name__}: {error}")
    return found + wrong_sparse()


def wrong_sparse() -> list[str]:
    """The same of a sparse program."""
    rng = np.random.default_rng(0)
    a, b = (np.where(rng.random((9, 9)) < 0.2, rng.random((9, 9)), 0) for _ in range(2))
    got = ln.loops(sparse_product)(ln.sparse(a, chunks=4), ln.sparse(b, chunks=4)).compute()
    return [] if np.allclose(got, a @ b) else ["sparse product"]


if __name__ == "__main__":
    engine, chosen = sys.argv[1:]
    with ln.init(engine):
        problems = wrong(FEW if chosen == "few" else None)
    print(*problems, sep="\n")
    sys.exit(bool(problems))
