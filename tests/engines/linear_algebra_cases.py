"""Linear algebra of expressions, as users write it: what every engine must agree on.

`python linear_algebra_cases.py FOLDER FILE ENGINE all|few` runs it on the engine of that name, and saves what comes
out. FOLDER has the matrices that are read from files, see `write_files`.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import linnet as ln
from linnet import linalg
from linnet.arrays.lowering import on_caller_thread
from linnet.session import current_engine

N, TILE = 44, 16
"""Three by three tiles, the last of them smaller."""
MANY = 2 * 18
"""The side of a matrix in tiles of 2 that has more of them in a column than are factored together."""


class Matrices(NamedTuple):
    """What the cases are about, for NumPy or in tiles."""

    x: Any
    """Square."""
    b: Any
    """Right sides."""
    t: Any
    """Tall and skinny."""
    z: Any
    """Complex."""
    f: Any
    """Single precision."""
    k: Any
    """A stack."""
    stored: Any
    """Square, in a Zarr array."""
    saved: Any
    """Square, in an `.npy` file."""
    alike: Any
    """With columns that depend on one another, in tiny tiles: pivots of a tournament are in doubt."""


def given() -> Matrices:
    """For NumPy."""
    rng = np.random.default_rng(14)
    square = [rng.standard_normal((N, N)) for _ in range(5)]
    stack = rng.standard_normal((2, N, N))
    alike = rng.standard_normal((MANY, MANY))
    alike[:, 1] = alike[:, 2] = alike[:, 0]
    return Matrices(
        x=square[0],
        b=rng.standard_normal((N, 5)),
        t=rng.standard_normal((300, 8)),
        z=square[1] + 1j * square[2],
        f=square[3].astype(np.float32),
        k=stack @ stack.mT + N * np.eye(N),
        stored=square[4],
        saved=square[0] - square[4],
        alike=alike,
    )


def write_files(folder: Path) -> None:
    """Put the matrices that are read from files there."""
    a = given()
    np.save(folder / "saved.npy", a.saved)
    with ln.init("threads", 1):
        ln.to_zarr(ln.asarray(a.stored, chunks=TILE), folder / "stored.zarr")


def in_tiles(folder: Path) -> Matrices:
    """The same in tiles."""
    a = given()
    return Matrices(
        x=ln.asarray(a.x, chunks=TILE),
        b=ln.asarray(a.b, chunks=(TILE, 5)),
        t=ln.asarray(a.t, chunks=(40, 8)),
        z=ln.asarray(a.z, chunks=TILE),
        f=ln.asarray(a.f, chunks=TILE),
        k=ln.asarray(a.k, chunks=(1, TILE, TILE)),
        stored=ln.from_zarr(folder / "stored.zarr"),
        saved=ln.from_npy(folder / "saved.npy", chunks=TILE),
        alike=ln.asarray(a.alike, chunks=MANY),
    )


def positive(x: Any) -> Any:
    """A positive definite matrix."""
    return x @ np.conj(x.T) + N * (np if isinstance(x, np.ndarray) else ln).eye(N, dtype=x.dtype)


class Case(NamedTuple):
    """An expression, and two things that its results must make equal."""

    expression: Callable[[Matrices], Any]
    equal: Callable[..., tuple[Any, Any]]
    """Called with NumPy's matrices and the results."""


def same_as(function: Callable[[Matrices], Any]) -> Callable[..., tuple[Any, Any]]:
    """For results that are what NumPy gives."""
    return lambda a, *found: (
        np.concatenate([np.ravel(each) for each in found]),
        np.concatenate([np.ravel(each) for each in leaves(function(a))]),
    )


CASES = {
    "cholesky": Case(lambda a: linalg.cholesky(positive(a.x)), lambda a, l: (l @ l.T, positive(a.x))),
    "cholesky, complex": Case(
        lambda a: linalg.cholesky(positive(a.z)), lambda a, l: (l @ np.conj(l.T), positive(a.z))
    ),
    "cholesky of a stack": Case(lambda a: linalg.cholesky(2 * a.k), lambda a, l: (l @ l.mT, 2 * a.k)),
    "part of a factor": Case(
        lambda a: linalg.cholesky(positive(a.x))[20:50, :30] @ a.b[:30],
        same_as(lambda a: np.linalg.cholesky(positive(a.x))[20:50, :30] @ a.b[:30]),
    ),
    "qr": Case(lambda a: linalg.qr(2 * a.x), lambda a, q, r: (q @ r, 2 * a.x)),
    "qr of a slice": Case(lambda a: linalg.qr(a.x[3:, ::2]), lambda a, q, r: (q @ r, a.x[3:, ::2])),
    "qr, complete": Case(lambda a: linalg.qr(a.x[:, :40], "complete"), lambda a, q, r: (q @ r, a.x[:, :40])),
    "qr of a tall matrix": Case(lambda a: linalg.qr(a.t - 1), lambda a, q, r: (q @ r, a.t - 1)),
    "lu": Case(lambda a: linalg.lu(a.x + 1), lambda a, p, l, u: (l @ u, (a.x + 1)[p])),
    "lu of a slice": Case(lambda a: linalg.lu(a.z[:, 5:50]), lambda a, p, l, u: (l @ u, a.z[p, 5:50])),
    "solve": Case(lambda a: linalg.solve(a.x, a.b) - a.b, same_as(lambda a: np.linalg.solve(a.x, a.b) - a.b)),
    "solve, positive definite": Case(
        lambda a: linalg.solve(positive(a.x), a.b[:, 0]),
        same_as(lambda a: np.linalg.solve(positive(a.x), a.b[:, 0])),
    ),
    "solve, single precision": Case(
        lambda a: linalg.solve(positive(a.f), a.f[:, :3]),
        same_as(lambda a: np.linalg.solve(positive(a.f), a.f[:, :3])),
    ),
    "solve, from files": Case(
        lambda a: linalg.solve(a.stored, a.saved[:, 10:14]) + 1,
        same_as(lambda a: np.linalg.solve(a.stored, a.saved[:, 10:14]) + 1),
    ),
    "solve, stacked": Case(
        lambda a: linalg.solve(a.k, a.b),
        same_as(lambda a: np.linalg.solve(a.k, np.broadcast_to(a.b, (2, N, 5)))),
    ),
    "kept factors": Case(
        lambda a: linalg.lu_solve(linalg.lu_factor(a.x), a.b), same_as(lambda a: np.linalg.solve(a.x, a.b))
    ),
    "least squares": Case(
        lambda a: [
            getattr(linalg.lstsq(a.t, a.t[:, :2] + 1), each) for each in ("x", "rank", "singular_values")
        ],
        same_as(
            lambda a: [np.linalg.lstsq(a.t, a.t[:, :2] + 1, rcond=None)[each] for each in (0, 2, 3)],
        ),
    ),
    "least squares, from files": Case(
        lambda a: linalg.lstsq(a.stored[:, :30], a.saved[:, 0]).x,
        same_as(lambda a: np.linalg.lstsq(a.stored[:, :30], a.saved[:, 0], rcond=None)[0]),
    ),
    "least squares, wide": Case(
        lambda a: linalg.lstsq(a.x[:30], a.b[:30]).x,
        same_as(lambda a: np.linalg.lstsq(a.x[:30], a.b[:30], rcond=None)[0]),
    ),
    "inverse": Case(lambda a: linalg.inv(positive(a.x)), same_as(lambda a: np.linalg.inv(positive(a.x)))),
    "determinant": Case(lambda a: linalg.det(a.x / 5), same_as(lambda a: np.linalg.det(a.x / 5))),
    "log of determinant": Case(lambda a: linalg.slogdet(a.z), same_as(lambda a: np.linalg.slogdet(a.z))),
    "svd": Case(lambda a: linalg.svd(a.x[:, 7:]), lambda a, u, s, vh: (u[:, : N - 7] * s @ vh, a.x[:, 7:])),
    "svd, complex": Case(
        lambda a: linalg.svd(a.z, full_matrices=False), lambda a, u, s, vh: (u * s @ vh, a.z)
    ),
    "svd, from a file": Case(
        lambda a: linalg.svd(a.stored[:40], full_matrices=False),
        lambda a, u, s, vh: (u * s @ vh, a.stored[:40]),
    ),
    "svd of a tall matrix": Case(
        lambda a: linalg.svd(a.t, full_matrices=False), lambda a, u, s, vh: (u * s @ vh, a.t)
    ),
    "svd, put together again": Case(
        lambda a: (lambda u, s, vh: u * s @ vh)(*linalg.svd(a.x)), lambda a, made: (made, a.x)
    ),
    "eigh": Case(lambda a: linalg.eigh(positive(a.x)), lambda a, w, v: (v * w @ v.T, positive(a.x))),
    "eigh, complex": Case(
        lambda a: linalg.eigh(positive(a.z)), lambda a, w, v: (v * w @ np.conj(v.T), positive(a.z))
    ),
    "eigenvalues": Case(
        lambda a: linalg.eigvalsh(positive(a.x)[5:50, 5:50]),
        same_as(lambda a: np.linalg.eigvalsh(positive(a.x)[5:50, 5:50])),
    ),
    "singular values": Case(lambda a: linalg.svdvals(a.saved), same_as(lambda a: np.linalg.svdvals(a.saved))),
    "norm": Case(lambda a: linalg.norm(a.x @ a.x), same_as(lambda a: np.linalg.norm(a.x @ a.x))),
    "norm, spectral": Case(lambda a: linalg.norm(a.x - 1, 2), same_as(lambda a: np.linalg.norm(a.x - 1, 2))),
    "condition": Case(lambda a: linalg.cond(a.x), same_as(lambda a: np.linalg.cond(a.x))),
    "condition, by the inverse": Case(
        lambda a: linalg.cond(positive(a.x), 1), same_as(lambda a: np.linalg.cond(positive(a.x), 1))
    ),
    "power": Case(
        lambda a: linalg.matrix_power(a.x / 8, 5), same_as(lambda a: np.linalg.matrix_power(a.x / 8, 5))
    ),
    "power, negative": Case(
        lambda a: linalg.matrix_power(positive(a.x), -2),
        same_as(lambda a: np.linalg.matrix_power(positive(a.x), -2)),
    ),
    "triangle": Case(
        lambda a: linalg.solve_triangular(positive(a.x), a.b, lower=True),
        same_as(lambda a: np.linalg.solve(np.tril(positive(a.x)), a.b)),
    ),
    "pseudo-inverse": Case(
        lambda a: linalg.pinv(a.x[:, :20]), same_as(lambda a: np.linalg.pinv(a.x[:, :20]))
    ),
    "rank": Case(
        lambda a: linalg.matrix_rank(a.x[:, :20] @ a.x[:20]),
        same_as(lambda a: np.linalg.matrix_rank(a.x[:, :20] @ a.x[:20])),
    ),
    "eigenvalues of any matrix": Case(
        lambda a: linalg.eigvals(2 * a.x),
        lambda a, w: (np.sort_complex(w), np.sort_complex(np.linalg.eigvals(2 * a.x))),
    ),
}

DOUBTED = {
    "lu in doubt": Case(
        lambda a: linalg.lu(a.alike[:, :4], tile=2), lambda a, p, l, u: (l @ u, a.alike[p, :4])
    ),
    "factors in doubt": Case(
        lambda a: (lambda p, l, u: l @ u - 1)(*linalg.lu(a.alike[:, :4], tile=2)),
        lambda a, made: (np.sort(made, axis=0), np.sort(a.alike[:, :4] - 1, axis=0)),
    ),
}
"""What needs a second program: pivots of the first are not to be trusted."""


def without(x: Any, column: int) -> Any:
    """The matrix with a column of zeros."""
    return x * (np.arange(x.shape[1]) != column)


ERRORS = {
    "cholesky": (
        lambda a: linalg.cholesky(positive(a.x) - 4 * N * (np.arange(N) == 40) * ln.eye(N)),
        "the matrix is not positive definite: its leading minor of order 41 is not positive (tile L[2, 2])",
    ),
    "cholesky in a stack": (
        lambda a: linalg.cholesky(a.k * np.array([1.0, -1.0])[:, None, None]),
        "matrix (1,) of the stack: the matrix is not positive definite: its leading minor of order 1 is not "
        "positive (tile L[0, 0])",
    ),
    "solve": (
        lambda a: linalg.solve(without(a.x, 20), a.b) - 1,
        "the matrix is singular: after row exchanges, its leading minor of order 21 is zero "
        "(row 4 of tile (1, 1))",
    ),
    "inverse": (
        lambda a: linalg.inv(without(a.stored, 9)[:50, :50], tile=TILE),
        "the matrix is singular: after row exchanges, its leading minor of order 10 is zero "
        "(row 9 of tile (0, 0))",
    ),
    "triangle": (
        lambda a: linalg.solve_triangular(without(a.x, 33), a.b),
        "the matrix is singular: its leading minor of order 34 is zero (row 1 of tile (2, 2))",
    ),
}
"""Matrices that are refused when they are computed with, and the words."""


def nearly_singular(a: Matrices) -> Any:
    """A solution that has hardly a correct digit."""
    return linalg.solve(a.x[:, : N - 1] @ a.x[: N - 1], a.b) + 1


# ---- running them


def leaves(made: Any) -> list[Any]:
    """Arrays out of tuples and lists."""
    return [each for part in made for each in leaves(part)] if isinstance(made, tuple | list) else [made]


@contextmanager
def counted() -> Iterator[list[Any]]:
    """The programs that the engine in use is given."""
    engine, programs = current_engine(), []
    run = engine.run

    def recorded(bound: Any, *args: Any, **options: Any) -> Any:
        programs.append(bound)
        return run(bound, *args, **options)

    at_once = on_caller_thread.evaluated
    engine.run, on_caller_thread.evaluated = recorded, lambda *_: None  # a program, however cheap it is
    try:
        yield programs
    finally:
        del engine.run
        on_caller_thread.evaluated = at_once


ALL = {**CASES, **DOUBTED}
FEW = {name: ALL[name] for name in ("cholesky of a stack", "qr", "solve, from files", "svd", "lu in doubt")}
"""For an engine that has nothing of its own in between: its jobs are tested with all of them."""
EACH_KIND = FEW.keys() | {
    "cholesky, complex",
    "part of a factor",
    "qr of a tall matrix",
    "lu of a slice",
    "solve, single precision",
    "kept factors",
    "least squares, from files",
    "log of determinant",
    "svd of a tall matrix",
    "eigh",
    "condition, by the inverse",
    "eigenvalues of any matrix",
}
"""One of every kind of program, type of numbers and source of matrices."""


def results(folder: Path, some: dict[str, Case] = ALL) -> dict[str, np.ndarray]:
    """What the engine in use makes of cases, how many programs it ran, what it said, all as arrays."""
    a, found = in_tiles(folder), {}
    for name, case in some.items():
        with counted() as programs:
            made = leaves(ln.compute(case.expression(a)))
        found |= {f"{name}/{number}": np.asarray(each) for number, each in enumerate(made)}
        found[f"{name}/runs"] = np.asarray(len(programs))
    for name, (refused, _) in errors_of(some).items():
        try:
            ln.compute(refused(a))
            found[f"{name}/error"] = np.asarray("nothing was refused")
        except linalg.LinAlgError as error:
            found[f"{name}/error"] = np.asarray(str(error))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", linalg.ConditionWarning)
        nearly_singular(a).compute()
    found["warnings"] = np.asarray([str(each.message) for each in told])
    return found


def errors_of(some: dict[str, Case]) -> dict[str, Any]:
    """The matrices to be refused beside some of the cases: all of them, or two beside a few."""
    return ERRORS if some is ALL else {name: ERRORS[name] for name in ("cholesky", "solve")}


def values(name: str, found: dict[str, np.ndarray]) -> list[np.ndarray]:
    """The results of a case."""
    count = sum(key.startswith(f"{name}/") and key[len(name) + 1 :].isdigit() for key in found)
    return [found[f"{name}/{number}"] for number in range(count)]


def wrong(found: dict[str, np.ndarray], some: dict[str, Case] = ALL) -> list[str]:
    """Cases with results that are not right, that took another number of programs, or said other words."""
    a, names = given(), []
    for name, case in some.items():
        one, other = case.equal(a, *values(name, found))
        bound = 1e-3 if "single" in name else 1e-8
        if not (np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=bound, atol=bound)):
            names.append(name)
        if found[f"{name}/runs"] != (2 if name in DOUBTED else 1):
            names.append(f"{name}: {found[f'{name}/runs']} runs")
    names += [
        f"{name}: {found[f'{name}/error']}"
        for name in errors_of(some)
        if found[f"{name}/error"] != ERRORS[name][1]
    ]
    if [str(each)[:43] for each in found["warnings"]] != ["the matrix is singular to working precision"]:
        names.append(f"warnings: {found['warnings']}")
    return names


if __name__ == "__main__":
    chosen = {"all": ALL, "few": FEW}[sys.argv[4]]
    with ln.init(sys.argv[3], 2):
        made: dict[str, Any] = {
            name.replace("/", "|"): each for name, each in results(Path(sys.argv[1]), chosen).items()
        }
    np.savez(sys.argv[2], **made)
