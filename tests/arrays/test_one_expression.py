"""Linear algebra inside expressions: one program with its neighbours, lazy until asked for, the same on every engine."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

import linnet as ln
from linnet import linalg
from linnet.arrays.expression.nodes import Source, Stored
from linnet.arrays.lowering import on_caller_thread
from linnet.engines import Threads
from linnet.engines.simulated import Simulated
from linnet.engines.stateless import Stateless
from linnet.errors import InputError, LinAlgError
from linnet.planning.cluster import Cluster
from linnet.workers.spec import Options

N, TILE = 30, 8
RNG = np.random.default_rng(14)
A = RNG.standard_normal((N, N)) + N * np.eye(N)
X = RNG.standard_normal((N, 22))
B = RNG.standard_normal((N, 5))
C = RNG.standard_normal((N, 5))
SPD = X @ X.T + N * np.eye(N)
TALL = RNG.standard_normal((200, 6))
ORDER = linalg.lu(A, tile=TILE, engine=Threads(1)).p

ENGINES = {
    "threads": lambda: Threads(2),
    "deterministic": lambda: Threads(2, deterministic=True),
    "counted": lambda: Threads(2, memory="100 MB"),
    "one node": lambda: Simulated(cluster=Cluster(1)),
    "three nodes": lambda: Simulated(cluster=Cluster(3)),
}
FORMS_Q = {"column_of_q", "reflect_unit", "reflect_lower", "combine"}
"""Kernels that form Q."""


def lazy(x, chunks=TILE):
    """An array in tiles that has yet to be computed."""
    return ln.asarray(x, chunks=chunks) * 1.0


def is_lazy(array):
    return isinstance(array, ln.Array) and not isinstance(array.__node__, Source | Stored)


@contextlib.contextmanager
def counting(engine):
    """The programs that an engine runs, in its session."""
    programs, run = [], engine.run

    def recorded(bound, *args, **options):
        programs.append(bound)
        return run(bound, *args, **options)

    engine.run = recorded
    with ln.init(engine=engine):
        yield programs


def kernels(bound):
    """How many tasks of each kernel a program has."""
    found: dict[str, int] = {}
    for task in bound.tasks():
        name = bound.call(task).kernel
        found[name] = found.get(name, 0) + 1
    return found


@pytest.fixture(
    params=[
        pytest.param(name, marks=[] if name in ("threads", "three nodes") else pytest.mark.slow)
        for name in ENGINES
    ]
)
def programs(request, monkeypatch):
    """The programs that are run, on one engine after another, however cheap they are."""
    monkeypatch.setattr(on_caller_thread, "evaluated", lambda *_: None)
    with counting(ENGINES[request.param]()) as found:
        yield found


def values(u, s, vh):
    return (u * s) @ vh


def lstsq_of(module):
    return lambda a, b: module.lstsq(a, b, rcond=None)[0]


EXPRESSIONS = {
    "cholesky(x @ x.T + c·eye)": (
        lambda: linalg.cholesky(lazy(X) @ lazy(X).T + N * ln.eye(N)),
        lambda: np.linalg.cholesky(SPD),
    ),
    "solve(a, b) - c": (lambda: linalg.solve(lazy(A), lazy(B)) - lazy(C), lambda: np.linalg.solve(A, B) - C),
    "u * s @ vh": (lambda: values(*linalg.svd(lazy(X), full_matrices=False)), lambda: X),
    "q @ r": (lambda: linalg.qr(lazy(X)).Q @ linalg.qr(lazy(X)).R, lambda: X),
    "q @ r of a tall one": (lambda: np.matmul(*linalg.qr(lazy(TALL, (20, 6)))), lambda: TALL),
    "inv(a)[:5] @ b": (lambda: linalg.inv(lazy(A))[:5] @ lazy(B), lambda: np.linalg.inv(A)[:5] @ B),
    "l @ u": (lambda: np.matmul(*linalg.lu(lazy(A))[1:]), lambda: A[ORDER]),
    "det(a / 30) * 2": (lambda: linalg.det(lazy(A) / 30) * 2, lambda: np.linalg.det(A / 30) * 2),
    "slogdet(a)": (lambda: linalg.slogdet(lazy(A) + 1).logabsdet, lambda: np.linalg.slogdet(A + 1).logabsdet),
    "z * w @ z.T": (
        lambda: (lambda w, z: (z * w) @ z.T)(*linalg.eigh(lazy(SPD))),
        lambda: SPD,
    ),
    "eigvalsh(x.T @ x)": (
        lambda: linalg.eigvalsh(lazy(X).T @ lazy(X)),
        lambda: np.linalg.eigvalsh(X.T @ X),
    ),
    "svdvals(x)[::-1]": (lambda: linalg.svdvals(lazy(X))[::-1], lambda: np.linalg.svdvals(X)[::-1]),
    "lstsq(x, b)": (lambda: lstsq_of(linalg)(lazy(X), lazy(B)) + 1, lambda: lstsq_of(np.linalg)(X, B) + 1),
    "pinv(x) @ b": (lambda: linalg.pinv(lazy(X)) @ lazy(B), lambda: np.linalg.pinv(X) @ B),
    "norm(x, 2)": (lambda: linalg.norm(lazy(X), 2), lambda: np.linalg.norm(X, 2)),
    "cond(a, 1)": (lambda: linalg.cond(lazy(A), 1), lambda: np.linalg.cond(A, 1)),
    "matrix_power(a / 30, 5)": (
        lambda: linalg.matrix_power(lazy(A) / 30, 5),
        lambda: np.linalg.matrix_power(A / 30, 5),
    ),
    "solve_triangular(cholesky, b)": (
        lambda: linalg.solve_triangular(linalg.cholesky(lazy(SPD)), lazy(B), lower=True),
        lambda: np.linalg.solve(np.linalg.cholesky(SPD), B),
    ),
    "matrix_rank": (lambda: linalg.matrix_rank(lazy(X @ X.T)), lambda: np.linalg.matrix_rank(X @ X.T)),
    "syrk(x) - symm(spd, x)[:, :1]": (
        lambda: linalg.syrk(lazy(X)) - linalg.symm(lazy(SPD), lazy(X))[:, :1],
        lambda: X @ X.T - (SPD @ X)[:, :1],
    ),
    "trmm(spd, x)": (lambda: linalg.trmm(lazy(SPD), lazy(X)) * 2, lambda: np.tril(SPD) @ X * 2),
}


@pytest.mark.slow
@pytest.mark.sample(35)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_is_one_program(name, programs):
    ours, theirs = EXPRESSIONS[name]
    made, expected = ours(), theirs()
    assert is_lazy(made)
    assert (made.shape, made.dtype) == (np.shape(expected), np.asarray(expected).dtype)
    assert programs == []
    found = made.compute()
    assert len(programs) == 1
    assert (found.shape, found.dtype) == (made.shape, made.dtype)
    assert np.allclose(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.sample(9)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_can_be_planned(name):
    made = EXPRESSIONS[name][0]()
    plan = ln.plan(made, Cluster(nodes=4))
    assert plan.tasks > 1
    with counting(Simulated(cluster=Cluster(nodes=4))) as programs:
        assert ln.plan(made).tasks == plan.tasks
        made.compute()
    assert programs[0].count() == plan.tasks


def test_several_results_are_planned_together():
    q, r = linalg.qr(lazy(X))
    both, one = ln.plan((q, r), Cluster(nodes=2)), ln.plan(r, Cluster(nodes=2))
    assert both.tasks > one.tasks


# ---- laziness


def test_nothing_runs_at_the_call_however_small(programs):
    bad = linalg.cholesky(ln.asarray(-np.eye(3)))
    singular = linalg.solve(ln.asarray(np.zeros((2, 2))), np.ones(2))
    assert (bad.shape, singular.shape) == ((3, 3), (2,))
    assert programs == []
    with pytest.raises(LinAlgError, match="leading minor of order 1 is not positive"):
        bad.compute()
    with pytest.raises(LinAlgError, match="its leading minor of order 1 is zero"):
        singular.compute()


def test_one_lazy_operand_makes_the_result_lazy():
    for made in (
        linalg.solve(A, lazy(B)),
        linalg.solve(lazy(A), B),
        linalg.solve_triangular(A, lazy(B), lower=True),
        linalg.lu_solve(linalg.lu_factor(A), lazy(B)),
        linalg.cho_solve(linalg.cho_factor(lazy(SPD)), B),
        linalg.lstsq(A, lazy(B)).x,
        linalg.matmul(A, lazy(B)),
    ):
        assert is_lazy(made)
    assert isinstance(linalg.solve(A, B), np.ndarray)


def test_numpys_names_give_lazy_arrays():
    for made in (
        np.linalg.cholesky(lazy(SPD)),
        *np.linalg.qr(lazy(X)),
        *np.linalg.svd(lazy(X), full_matrices=False),
        *np.linalg.eigh(lazy(SPD)),
        np.linalg.inv(lazy(A)),
        np.linalg.det(lazy(A)),
        np.linalg.solve(A, lazy(B)),
        np.linalg.matrix_rank(lazy(A)),
        np.linalg.pinv(lazy(X)),
    ):
        assert is_lazy(made)


def test_engine_and_events_are_refused_with_advice():
    for option in ("engine", "events"):
        with pytest.raises(
            InputError, match=rf"cholesky was given an ln.Array together with {option}=: it is lazy"
        ):
            linalg.cholesky(lazy(SPD), **{option: Threads(1)})
        with pytest.raises(InputError, match=r"choose the engine with `with ln.init\(...\):` around compute"):
            linalg.solve(A, lazy(B), **{option: Threads(1)})
        for name in ("norm", "matrix_norm", "trace"):
            with pytest.raises(InputError, match=f"^{name} was given an ln.Array together with {option}=:"):
                getattr(linalg, name)(lazy(A), **{option: Threads(1)})
        with pytest.raises(InputError, match=f"^lstsq was given an ln.Array together with {option}=:"):
            linalg.lstsq(lazy(A), B, **{option: Threads(1)})


@pytest.mark.parametrize(
    "make", [linalg.qr, linalg.svdvals, lambda a, **given: linalg.lstsq(a, B, **given).x]
)
@pytest.mark.parametrize("operand", [A, lazy(A), np.ones((N, 1)), lazy(np.ones((N, 1)))])
def test_the_length_of_tiles_is_a_whole_number(make, operand):
    for tile in (2.5, "7", (3, 3)):
        with pytest.raises(InputError, match="give the length of square tiles, a whole number"):
            make(operand, tile=tile)
    for tile in (0, -3):
        with pytest.raises(InputError, match="a tile has at least one row and one column"):
            make(operand, tile=tile)
    expected, found = (ln.compute(make(operand, tile=each)) for each in (7, np.int64(7)))
    for one, same in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, same)


def test_a_warning_of_the_condition_comes_at_compute(recwarn, programs):
    bad = RNG.standard_normal((N, N - 1)) @ RNG.standard_normal((N - 1, N))
    made = linalg.solve(lazy(bad), B) + 1
    assert not recwarn.list
    with pytest.warns(linalg.ConditionWarning, match="singular to working precision"):
        made.compute()
    with pytest.warns(linalg.ConditionWarning, match="singular to working precision"):
        linalg.inv(ln.asarray(bad)).compute()  # one tile: LAPACK's


# ---- parts of results


@pytest.mark.slow
def test_slices_of_results(programs):
    lower = np.linalg.cholesky(SPD)
    assert np.allclose(linalg.cholesky(lazy(SPD))[5:20, :7].compute(), lower[5:20, :7])
    assert np.allclose(linalg.cholesky(lazy(SPD))[::3, -1].compute(), lower[::3, -1])
    assert np.allclose(linalg.solve(lazy(A), lazy(B))[3].compute(), np.linalg.solve(A, B)[3])
    u, s, vh = linalg.svd(lazy(X))
    whole = np.zeros((N, 22))
    np.fill_diagonal(whole, np.linalg.svdvals(X))
    assert np.allclose((u[:, :22] * s @ vh)[2:4].compute(), X[2:4])
    assert np.allclose((u[:4] @ whole @ vh[:, 20:]).compute(), X[:4, 20:])
    p, l, up = linalg.lu(lazy(A))
    assert np.allclose((l[:9] @ up).compute(), A[p[:9].compute()])


def test_results_used_in_several_places_are_computed_once(programs):
    lower = linalg.cholesky(lazy(SPD))
    made = (
        lower @ lower.T - lazy(SPD) + lower.sum() + linalg.solve_triangular(lower, lazy(B), lower=True)[:, :1]
    )
    expected = np.linalg.cholesky(SPD).sum() + np.linalg.solve(np.linalg.cholesky(SPD), B)[:, :1]
    assert np.allclose(made.compute(), np.broadcast_to(expected, (N, N)))
    assert len(programs) == 1
    assert kernels(programs[0])["chol"] == -(-N // TILE)


def test_results_computed_together_are_one_program(programs):
    q, r = linalg.qr(lazy(X))
    found = ln.compute(q, r, r.sum())
    assert len(programs) == 1
    assert np.allclose(found[0] @ found[1], X)
    assert np.allclose(found[2], found[1].sum())


@pytest.mark.parametrize("matrix", [X, X.T, TALL], ids=["tall", "wide", "skinny"])
def test_a_triangle_alone_forms_no_q(matrix, programs):
    q, r = linalg.qr(lazy(matrix, (20, 6) if matrix is TALL else TILE))
    found = r.compute()
    assert not FORMS_Q & set(kernels(programs[0]))
    assert np.allclose(found.T @ found, matrix.T @ matrix)
    alone = linalg.qr(lazy(matrix, (20, 6) if matrix is TALL else TILE), mode="r").compute()
    assert not FORMS_Q & set(kernels(programs[1]))
    assert np.allclose(np.abs(alone), np.abs(found))
    q.compute()
    assert FORMS_Q & set(kernels(programs[2]))


@pytest.mark.slow
def test_values_alone_form_no_vectors(programs):
    linalg.svd(lazy(X)).S.compute()
    linalg.eigh(lazy(SPD)).eigenvalues.compute()
    for bound in programs:
        assert not {"apply_sweeps", "apply_panel", "bidiagonal_vectors"} & set(kernels(bound))


@pytest.mark.slow
@pytest.mark.sample(6)
@pytest.mark.parametrize("matrix", [X, X.T, TALL], ids=["tall", "wide", "skinny"])
def test_factors_computed_apart_fit_together(matrix, programs):
    chunks = (20, 6) if matrix is TALL else TILE
    q, r = linalg.qr(lazy(matrix, chunks))
    assert np.allclose(q.compute() @ r.compute(), matrix)
    u, s, vh = linalg.svd(lazy(matrix, chunks), full_matrices=False)
    assert np.allclose(u.compute() * s.compute() @ vh.compute(), matrix)
    p, lower, upper = linalg.lu(lazy(matrix, chunks))
    assert np.allclose(lower.compute() @ upper.compute(), matrix[p.compute()])
    assert len(programs) == 8


@pytest.mark.slow
def test_eigenvectors_fit_eigenvalues_computed_apart(programs):
    w, z = linalg.eigh(lazy(SPD))
    assert np.allclose(SPD @ z.compute(), z.compute() * w.compute())
    sign, log = linalg.slogdet(lazy(A))
    assert np.allclose(sign.compute() * np.exp(log.compute() - 100), np.linalg.det(A) * np.exp(-100.0))


@pytest.mark.slow
def test_pivots_that_are_not_trusted_make_a_second_program(programs):
    a = np.zeros((40, 40))
    a[5:, 3:] = np.random.default_rng(0).standard_normal((35, 37))
    p, lower, upper = ln.compute(*linalg.lu(lazy(a, 20), tile=2))
    assert np.allclose(lower @ upper, a[p])
    assert np.abs(lower).max() <= 16
    assert len(programs) == 2


@pytest.mark.slow
def test_persisted_results_are_used_without_computing_them_again(programs):
    lower = linalg.cholesky(lazy(SPD)).persist()
    assert isinstance(lower.__node__, Stored)
    assert np.allclose((lower @ lower.T).compute(), SPD)
    assert "chol" not in kernels(programs[1])


# ---- the same everywhere


@pytest.fixture
def everywhere(tmp_path):
    """Engines of every kind, by name."""
    stateless = Stateless(
        2, store=str(tmp_path / "jobs"), launcher="threads", options=Options(lease=2.0, grace=0.2)
    )
    yield {**{name: make() for name, make in ENGINES.items()}, "stateless": stateless}
    stateless.close()


def broken(x, place, value):
    x = x.copy()
    x[place] = value
    return x


NOT_FINITE = "the matrix has elements that are not finite (inf or nan); remove them first"
ERRORS = {
    "cholesky": (
        lambda: linalg.cholesky(lazy(broken(SPD, (20, 20), -1.0)) + 0),
        "the matrix is not positive definite: its leading minor of order 21 is not positive (tile L[2, 2])",
    ),
    "cholesky of a product": (
        lambda: linalg.cholesky(lazy(X) @ lazy(X).T - N * ln.eye(N)) * 2,
        "the matrix is not positive definite: its leading minor of order 1 is not positive (tile L[0, 0])",
    ),
    "solve": (
        lambda: linalg.solve(lazy(broken(A, np.s_[:, 20], 0.0)), lazy(B)) - 1,
        "the matrix is singular: after row exchanges, its leading minor of order 21 is zero "
        "(row 4 of tile (2, 2))",
    ),
    "inv": (
        lambda: linalg.inv(lazy(broken(A, np.s_[:, 9], 0.0))),
        "the matrix is singular: after row exchanges, its leading minor of order 10 is zero "
        "(row 1 of tile (1, 1))",
    ),
    "solve_triangular": (
        lambda: linalg.solve_triangular(lazy(broken(A, (17, 17), 0.0)), lazy(B), lower=True),
        "the matrix is singular: its leading minor of order 18 is zero (row 1 of tile (2, 2))",
    ),
    "a stack": (
        lambda: linalg.cholesky(lazy(np.stack([SPD, broken(SPD, (20, 20), -1.0)]), (1, 8, 8))),
        "matrix (1,) of the stack: the matrix is not positive definite: its leading minor of order 21 is not "
        "positive (tile L[2, 2])",
    ),
    "not finite": (lambda: linalg.svdvals(lazy(broken(X, (3, 3), np.nan))) * 2, NOT_FINITE),
    "not finite, with vectors": (
        lambda: linalg.eigh(lazy(broken(SPD, (3, 3), np.nan)) + 0).eigenvectors,
        NOT_FINITE,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ERRORS)
def test_errors_have_the_same_words_everywhere(name, everywhere):
    make, words = ERRORS[name]
    found = {}
    for place, engine in everywhere.items():
        with ln.init(engine=engine), pytest.raises(LinAlgError) as caught:
            make().compute()
        found[place] = str(caught.value)
    assert set(found.values()) == {words}, found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cholesky", "solve"])
def test_jobs_raise_the_same_error(name, tmp_path):
    make, words = ERRORS[name]
    with ln.submit(make(), store=str(tmp_path), launcher="threads") as job:
        for ask in (job.wait, job.result):
            with pytest.raises(LinAlgError) as caught:
                ask()
            assert str(caught.value) == words


@pytest.mark.sample(7)
@pytest.mark.slow
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_same_bits_wherever_there_is_one_node(name, everywhere):
    made = {}
    for place in ("deterministic", "one node", "stateless"):
        with ln.init(engine=everywhere[place]):
            made[place] = EXPRESSIONS[name][0]().compute()
    assert all(np.array_equal(each, made["deterministic"]) for each in made.values()), name


@pytest.mark.slow
def test_an_expression_is_submitted(tmp_path):
    made = linalg.solve(lazy(X) @ lazy(X).T + N * ln.eye(N), lazy(B)) - lazy(C)
    with ln.submit(made, store=str(tmp_path), launcher="threads") as job:
        found = job.result()
        assert isinstance(found, ln.Array)
        assert np.allclose(found.compute(), np.linalg.solve(SPD, B) - C)


@pytest.mark.slow
def test_a_named_tuple_is_submitted_and_comes_back(tmp_path):
    with ln.submit(linalg.qr(lazy(X)), store=str(tmp_path), launcher="threads") as job:
        found = job.result()
        assert isinstance(found, linalg.QRResult)
        assert np.allclose((found.Q @ found.R).compute(), X)
