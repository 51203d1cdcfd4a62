"""Tile programs called on arrays: what they take, the sizes that are found, what they refuse, where they run."""

from __future__ import annotations

import numpy as np
import pytest

import linnet as ln
from linnet.errors import BindError, InputError, KernelError


@ln.kernel("calls_sum")
def summed(a, b):
    return a + b


@ln.kernel("calls_halves", outputs=2, shape=lambda x: ((x[0] // 2, x[1]), (x[0] - x[0] // 2, x[1])))
def halves(x):
    middle = x.shape[0] // 2
    return x[:middle], x[middle:]


@ln.kernel("calls_times")
def times(a, factor):
    return a * factor


@ln.kernel("calls_root", shape=lambda x: x)
def root(a):
    return np.sqrt(a)


@ln.kernel("calls_up", inplace=0)
def up(a, *, overwrite=()):
    a = a if 0 in overwrite else a.copy()
    a += 1
    return a


@ln.kernel("calls_refusing")
def refusing(a):
    raise ValueError("no such luck")


@ln.tile_program
def cholesky(A: ln.In, O: ln.Out(fill=0), S: ln.Temp("A"), N: int):
    for i in range(N):
        O[i, i] = chol(S[i, i, i])
        for j in range(i + 1, N):
            O[j, i] = trsm(O[i, i], S[i, j, i])
            for k in range(i + 1, j + 1):
                S[i + 1, j, k] = syrk(S[i, j, k], O[j, i], O[k, i])


@ln.tile_program
def plus(A: ln.In, B: ln.In, C: ln.Out, M: int, N: int):
    for i in range(M):
        for j in range(N):
            C[i, j] = summed(A[i, j], B[i, j])


@ln.tile_program
def split(A: ln.In, U: ln.Out, V: ln.Out, N: int):
    for i in range(N):
        U[i, 0], V[i, 0] = halves(A[i, 0])


@ln.tile_program
def every_other(A: ln.In, B: ln.Out, N: int):
    for i in range(N):
        B[i] = copy(A[2 * i])


@ln.tile_program
def weighted(A: ln.In, B: ln.Out, T: ln.Table, N: int):
    for i in range(N):
        B[i] = times(A[i], T[i])


@ln.tile_program
def roots(A: ln.In, B: ln.Out, N: int):
    for i in range(N):
        B[i] = root(A[i])


@ln.tile_program
def upwards(A: ln.In, B: ln.Out, N: int):
    for i in range(N):
        B[i] = up(A[i])


@ln.tile_program
def refused(A: ln.In, B: ln.Out, N: int):
    for i in range(N):
        B[i] = refusing(A[i])


X = np.diag(np.arange(1.0, 7.0) ** 2) + 0.25
L = np.linalg.cholesky(X)


@pytest.mark.parametrize("chunks", [2, 3, (4, 4), 6])
def test_inputs_by_position_and_by_name(chunks):
    x = ln.asarray(X, chunks=chunks)
    for made in (cholesky(x), cholesky(A=x), cholesky(x, N=x.grid[0]), cholesky(x, N=np.int64(x.grid[0]))):
        assert isinstance(made, ln.Array)
        assert made.chunks == x.chunks
        np.testing.assert_allclose(made.compute(), L)


def test_inputs_are_what_asarray_takes():
    for given in (X, X.tolist(), ln.asarray(X) + 0):
        np.testing.assert_allclose(cholesky(given).compute(), L)
    np.testing.assert_array_equal(plus(X, B=ln.asarray(X)).compute(), 2 * X)
    np.testing.assert_array_equal(plus(B=X, A=-X).compute(), 0 * X)
    assert cholesky(np.ones((0, 0))).compute().shape == (0, 0)


@pytest.mark.parametrize("engine", ["threads", "simulated"])
def test_several_outputs_are_a_named_tuple_in_their_order(engine):
    a = np.arange(30.0).reshape(5, 6)
    with ln.init(engine):
        made = split(ln.asarray(a, chunks=(3, 6)))
        assert [type(made).__name__, *made._fields] == ["split", "U", "V"]
        assert ln.plan(made).tasks == 2
        found = ln.compute(made)
        assert type(found) is type(made)
        np.testing.assert_array_equal(found.U, a[[0, 3]])
        np.testing.assert_array_equal(found.V, a[[1, 2, 4]])
        np.testing.assert_array_equal(ln.persist(made).V.compute(), found.V)


def test_programs_from_bytes_from_then_and_from_the_builder():
    again = ln.TileProgram.from_bytes(cholesky.to_bytes())
    np.testing.assert_allclose(again(X).compute(), L)
    builder = ln.ProgramBuilder("doubled")
    source, result, count = builder.input("A"), builder.output("B"), builder.size("N")
    with builder.loop("i", count) as i:
        builder.call("calls_times", [result[i]], [source[i], 2])
    doubled = builder.build()
    x = ln.asarray(np.arange(5.0), chunks=2)
    np.testing.assert_array_equal(doubled(x).compute(), 2 * np.arange(5.0))
    np.testing.assert_array_equal(doubled(A=doubled(x) + 1).compute(), 4 * np.arange(5.0) + 2)


@pytest.mark.parametrize("engine", ["threads", "simulated", "stateless"])
def test_calls_are_part_of_the_expression_around_them(engine):
    x = ln.asarray(X, chunks=2)
    with ln.init(engine):
        composed = cholesky(x.T @ x + ln.eye(6, chunks=2)) * 2 + ln.linalg.inv(cholesky(x))[0]
        expected = np.linalg.cholesky(X.T @ X + np.eye(6)) * 2 + np.linalg.inv(L)[0]
        np.testing.assert_allclose(composed.compute(), expected)
        np.testing.assert_allclose(cholesky(x)[1:5, ::2].compute(), L[1:5, ::2])


def test_a_job_of_a_call():
    with ln.init("stateless"):
        job = ln.submit((cholesky(ln.asarray(X, chunks=2)), ln.asarray(X)))
        factor, same = job.result()
        np.testing.assert_allclose(factor, L)
        np.testing.assert_array_equal(same, X)


def test_operands_are_not_changed_by_kernels_that_work_in_place():
    x = ln.asarray(np.zeros(6), chunks=2)
    made = upwards(x)
    for _ in range(2):
        np.testing.assert_array_equal(made.compute(), np.ones(6))
    np.testing.assert_array_equal((upwards(made) + made).compute(), np.full(6, 3.0))
    np.testing.assert_array_equal(x.compute(), np.zeros(6))


def test_sizes_at_which_a_part_is_read_are_asked_for():
    small, large = ln.asarray(np.ones((4, 4)), chunks=2), ln.asarray(np.ones((6, 6)), chunks=2)
    with pytest.raises(
        InputError, match=r"no sizes of plus read all tiles of its arrays \(A 3×3, B 2×2\).*give M=2, N=2"
    ):
        plus(large, small)
    np.testing.assert_array_equal(plus(large, small, M=2, N=2).compute(), np.full((4, 4), 2.0))
    line = ln.asarray(np.arange(6.0), chunks=1)
    with pytest.raises(InputError, match=r"no sizes of every_other fit .*give N=\.\.\."):
        every_other(line)
    np.testing.assert_array_equal(every_other(line, N=3).compute(), [0, 2, 4])


def test_tables_are_given_by_name():
    x = ln.ones(6, chunks=2)
    for table in ((1, 2, 3), np.array([1, 2, 3])):
        np.testing.assert_array_equal(weighted(x, T=table).compute(), [1, 1, 2, 2, 3, 3])
    with pytest.raises(InputError, match="weighted also needs T"):
        weighted(x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: cholesky(B=X), "no input or size 'B'; it has A, N"),
        (lambda: cholesky(X, A=X), "A by position and by name"),
        (lambda: cholesky(X, X), r"takes 1 arrays \(A\); 2 were given"),
        (lambda: plus(X), "plus also needs B"),
        (lambda: cholesky(X, N=5), r"at N=5 reads these tiles: A 5×5; the arrays have A 1×1"),
        (lambda: cholesky(np.ones(4)), "no sizes of cholesky fit arrays with these tiles: A 1"),
        (lambda: cholesky([object()]), "input A is no array: arrays of objects"),
    ],
)
def test_what_cannot_be_called(call, words):
    with pytest.raises(InputError, match=words):
        call()


@pytest.mark.parametrize("size", ["3", 3.0])
def test_sizes_are_whole_numbers(size):
    with pytest.raises(BindError, match="size N of 'cholesky' must be an integer"):
        cholesky(X, N=size)


def test_why_a_kernel_does_not_tell_its_shapes_is_said():
    with pytest.raises(
        InputError, match=r"'calls_refusing' declares none.*it raised ValueError: no such luck"
    ):
        refused(np.ones(3))
    left, right = ln.asarray(np.ones((6, 6)), chunks=(3, 6)), ln.asarray(np.ones((6, 6)), chunks=((2, 4), 6))
    with pytest.raises(InputError, match=r"it raised ValueError: operands could not be broadcast"):
        plus(left, right)


def test_tiles_that_a_kernel_refuses():
    with pytest.raises(KernelError, match="chol expects a square tile, got one of 2×3"):
        cholesky(ln.asarray(X, chunks=((2, 4), (3, 3)))).compute()


@pytest.mark.parametrize("chunks", [1, 3])
def test_the_dtype_of_a_result_is_the_one_that_the_kernel_gives(chunks):
    made = roots(ln.asarray(np.array([2, 3, 5]), chunks=chunks))  # the kernel declares shapes alone
    assert made.dtype == np.float64
    np.testing.assert_array_equal(made.compute(), np.sqrt([2, 3, 5]))
    assert made.sum().compute() == pytest.approx(np.sqrt([2, 3, 5]).sum())
    assert roots(ln.asarray(np.ones(3, "f4"), chunks=chunks)).dtype == np.float32
