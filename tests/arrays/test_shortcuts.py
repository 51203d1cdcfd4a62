"""Small matrices, computed without an expression: the same values, errors and laziness as with one."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linnet as ln
from linnet.arrays.linalg import small_matrices
from linnet.arrays.lowering.evaluate import computed
from linnet.errors import ConditionWarning, LinAlgError
from linnet.planning.cluster import Cluster

FUNCTIONS = {
    "cholesky": lambda a, b: ln.linalg.cholesky(a @ a.mT.conj()),
    "solve": lambda a, b: ln.linalg.solve(a, b),
    "solve of a vector": lambda a, b: ln.linalg.solve(a, b[:, 0]),
    "solve_triangular": lambda a, b: ln.linalg.solve_triangular(a, b, lower=True, trans="T"),
    "inv": lambda a, b: ln.linalg.inv(a),
    "det": lambda a, b: ln.linalg.det(a),
    "slogdet": lambda a, b: ln.linalg.slogdet(a),
    "qr": lambda a, b: ln.linalg.qr(b),
    "qr r": lambda a, b: ln.linalg.qr(b, "r"),
    "qr complete": lambda a, b: ln.linalg.qr(b, mode="complete"),
    "lu": lambda a, b: ln.linalg.lu(b),
    "lu_factor": lambda a, b: ln.linalg.lu_factor(a),
    "svd": lambda a, b: ln.linalg.svd(b),
    "svd thin": lambda a, b: ln.linalg.svd(b, False),
    "svdvals": lambda a, b: ln.linalg.svdvals(b),
    "eigh": lambda a, b: ln.linalg.eigh(a),
    "eigvalsh": lambda a, b: ln.linalg.eigvalsh(a, "U"),
    "eig": lambda a, b: ln.linalg.eig(a),
    "eigvals": lambda a, b: ln.linalg.eigvals(a),
    "matrix_rank": lambda a, b: ln.linalg.matrix_rank(b),
    "matrix_rank tol": lambda a, b: ln.linalg.matrix_rank(b, 1.5),
    "pinv": lambda a, b: ln.linalg.pinv(b),
    "pinv hermitian": lambda a, b: ln.linalg.pinv(a @ a.mT.conj(), hermitian=True),
    "cond": lambda a, b: ln.linalg.cond(b),
    "cond -2": lambda a, b: ln.linalg.cond(a, -2),
    "matrix_power": lambda a, b: ln.linalg.matrix_power(a, 3),
    "matrix_power -2": lambda a, b: ln.linalg.matrix_power(a, -2),
    "lstsq": lambda a, b: ln.linalg.lstsq(b, a)[0],
}


def pair(dtype="f8", seed=0, order="C"):
    rng = np.random.default_rng(seed)
    made = [rng.standard_normal(shape) for shape in ((6, 6), (6, 3))]
    if np.dtype(dtype).kind == "c":
        made = [each + 1j * rng.standard_normal(each.shape) for each in made]
    return [np.array(each, dtype=dtype, order=order) for each in made]


def parts(result):
    return list(result) if isinstance(result, tuple) else [result]


def the_long_way(function, a, b):
    """The values of the expression; a node is asked for, so that there is one."""
    return computed([each.__node__ for each in parts(function(ln.asarray(a), ln.asarray(b)))])


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_same_bits_as_the_expression(name, dtype):
    function = FUNCTIONS[name]
    for seed, order in ((0, "C"), (1, "C"), (2, "F")):
        a, b = pair(dtype, seed, order)
        expected = the_long_way(function, a, b)
        lazy = parts(function(ln.asarray(a), ln.asarray(b)))
        alone = [each.compute() for each in lazy]
        together = parts(ln.compute(function(ln.asarray(a), ln.asarray(b))))
        plain = parts(function(a, b))
        for known, *found in zip(expected, alone, together, plain, strict=True):
            for each in found:
                assert np.array_equal(each, known)
                assert (np.shape(each), each.dtype) == (known.shape, known.dtype)
        for each, known in zip(lazy, expected, strict=True):
            assert (each.shape, each.dtype) == (known.shape, known.dtype)


def test_nothing_runs_at_the_call(monkeypatch):
    a, b = map(ln.asarray, pair())
    ln.linalg.solve(a, b).compute()
    ran = []
    run = small_matrices._Call.run
    monkeypatch.setattr(small_matrices._Call, "run", lambda *args: ran.append(1) or run(*args))
    x = ln.linalg.solve(a, b)
    q = ln.linalg.qr(b)
    assert not ran
    x.compute(), x.compute()
    assert len(ran) == 2
    ln.compute(q)
    assert len(ran) == 3


def test_operands_count_as_read_when_the_expression_is_written():
    a, b = pair()
    lazy, plain = ln.asarray(a.copy()), b.copy()
    ln.linalg.solve(ln.asarray(a), b)  # known from now on
    x, y = ln.linalg.solve(lazy, plain), ln.linalg.inv(lazy)
    lazy[0] = 7
    plain[:] = 9
    assert np.allclose(x.compute(), np.linalg.solve(a, b))
    assert np.allclose(y.compute(), np.linalg.inv(a))
    assert np.allclose((y + 0).compute(), np.linalg.inv(a))


def test_options_that_are_equal_are_not_the_same():
    a = ln.asarray(pair()[1])
    assert ln.linalg.matrix_rank(a, 1).compute() == np.linalg.matrix_rank(np.asarray(a), 1)
    assert ln.linalg.matrix_rank(a, 1.0).compute() == np.linalg.matrix_rank(np.asarray(a), 1.0)
    assert ln.linalg.svd(a, True).U.shape == (6, 6)
    assert ln.linalg.svd(a, False).U.compute().shape == (6, 3)


def test_results_are_arrays_like_any_other():
    a, b = map(ln.asarray, pair())
    for _ in range(2):
        u, s, vt = ln.linalg.svd(b, full_matrices=False)
        assert np.allclose(((u * s) @ vt).compute(), b.compute())
        x = ln.linalg.solve(a, b)
        assert isinstance(x, ln.Array)
        assert ln.plan(x, Cluster(nodes=2)).tasks == 1
        x[0] = 0
        assert np.array_equal(x.compute()[0], np.zeros(3))
        y = ln.linalg.inv(a).persist()
        assert np.allclose(y.compute() @ a.compute(), np.eye(6))
        assert np.allclose(np.asarray(ln.linalg.cholesky(a @ a.T)), np.linalg.cholesky(a @ a.T))
        assert float(ln.linalg.det(a)) == pytest.approx(np.linalg.det(a.compute()))


def test_what_is_wrong_with_numbers_is_said_at_compute():
    singular = ln.asarray(np.array([[1.0, 2.0], [2.0, 4.0]]))
    regular = ln.asarray(np.array([[4.0, 2.0], [2.0, 3.0]]))
    for _ in range(2):
        ln.linalg.inv(regular).compute()
        ln.linalg.cholesky(regular).compute()
        x, y = ln.linalg.inv(singular), ln.linalg.cholesky(-regular)
        with pytest.raises(LinAlgError, match="leading minor of order 2 is zero"):
            x.compute()
        with pytest.raises(LinAlgError, match=r"leading minor of order 1 is not positive \(tile L\[0, 0\]\)"):
            y.compute()


def test_what_is_wrong_with_a_shape_is_said_at_the_call():
    a, b = map(ln.asarray, pair())
    for _ in range(2):
        with pytest.raises(LinAlgError, match="square"):
            ln.linalg.cholesky(b)
        with pytest.raises(LinAlgError, match="needs 3 rows"):
            ln.linalg.solve(a[:3, :3], b)


def test_a_bad_condition_is_told():
    nearly = np.array([[1.0, 1.0], [1.0, 1.0 + 1e-15]])
    for matrix in (ln.asarray(nearly), nearly):
        for function in (ln.linalg.inv, lambda a: ln.linalg.solve(a, np.ones(2))):
            for _ in range(2):
                with pytest.warns(ConditionWarning, match="singular to working precision"):
                    ln.compute(function(matrix))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ln.compute(ln.linalg.inv(ln.asarray(pair()[0] * 1e-200)))


@pytest.mark.parametrize("shape", [(6, 4), (4, 4), (4, 6)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("short", [False, True])
def test_small_least_squares_are_computed_without_an_expression(shape, dtype, short, monkeypatch):
    rng = np.random.default_rng(3)
    a = rng.standard_normal(shape).astype(dtype)
    if short:
        a[:, 1] = a[:, 0]
    b = rng.standard_normal((shape[0], 2)).astype(dtype)
    ln.linalg.lstsq(ln.asarray(a), ln.asarray(b))  # what it stands for is kept from now on
    made = ln.linalg.lstsq(ln.asarray(a), ln.asarray(b))
    with monkeypatch.context() as patch:
        patch.setattr("linnet.arrays.linalg.small_matrices._Pending.node", None)
        found = ln.compute(made)
    assert type(found) is type(made)
    for ours, theirs in zip(found, np.linalg.lstsq(a, b), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3 if dtype in ("f4", "c8") else 1e-10, atol=1e-5)
        assert np.shape(ours) == np.shape(theirs)
    # Each of them alone, and with nodes, is the same.
    for ours, each in zip(found, made, strict=True):
        np.testing.assert_array_equal(each.compute(), ours)
        assert (each + 0).compute().shape == np.shape(ours)


def test_several_calls_are_computed_together_without_expressions(monkeypatch):
    a, b = map(ln.asarray, pair())

    def made():
        return [ln.linalg.inv(a), (ln.linalg.det(a), ln.linalg.qr(b)), ln.linalg.lstsq(b, a).residuals]

    expected = ln.compute(made())
    together = made()
    ran = []
    run = small_matrices._Call.run
    monkeypatch.setattr(small_matrices._Call, "run", lambda *args: ran.append(1) or run(*args))
    monkeypatch.setattr(small_matrices._Pending, "node", None)
    found = ln.compute(together)
    assert len(ran) == 4  # Q and R come of one
    assert [type(each) for each in (found, found[1], found[1][1])] == [list, tuple, type(together[1][1])]
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1][0], expected[1][0])
    np.testing.assert_array_equal(found[1][1].R, expected[1][1].R)
    np.testing.assert_array_equal(found[2], np.linalg.lstsq(*pair()[::-1])[1].astype(found[2].dtype))


def test_small_results_are_computed_beside_other_arrays():
    a, b = map(ln.asarray, pair())
    inverse, rows, none = ln.compute((ln.linalg.inv(a), b[:2], None))
    np.testing.assert_allclose(inverse, np.linalg.inv(a.compute()))
    assert rows.shape == (2, 3)
    assert none is None


def test_results_that_are_numpys_already_stay_in_what_they_are_in():
    a, b = pair()
    for made in (
        ln.linalg.qr(a),
        ln.linalg.slogdet(a),
        ln.linalg.svd(b),
        (a, b),
        [a, a],
        [b, (ln.asarray(a),)],
    ):
        found = ln.compute(made)
        assert type(found) is type(made)
        assert len(found) == len(made)
    np.testing.assert_array_equal(ln.compute([a, a])[1], a)
    assert ln.compute([1, 2]).tolist() == [1, 2]


@pytest.mark.parametrize("progress", [None, False, True])
def test_small_results_take_progress(progress, capfd):
    a, b = map(ln.asarray, pair())
    np.testing.assert_allclose(ln.linalg.inv(a).compute(progress=progress), np.linalg.inv(a.compute()))
    assert ln.linalg.lstsq(b, a).residuals.compute(progress=progress).shape == (6,)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_least_squares_of_what_is_not_finite_are_refused_without_a_noise(value, capfd):
    a, b = pair()
    a[2, 1] = value
    for matrix in (a, ln.asarray(a)):
        with pytest.raises(LinAlgError, match="did not converge in Linear Least Squares; is every element"):
            ln.compute(ln.linalg.lstsq(matrix, b))
    assert capfd.readouterr() == ("", "")
