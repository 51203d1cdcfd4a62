"""The threads engine: what is refused, how errors read, and what is left after one."""

from __future__ import annotations

import gc
import pickle
import threading
import weakref

import numpy as np
import pytest
from engine_samples import chains, failing, matrix, run

from linnet.engines import Threads, available_cores
from linnet.errors import (
    InputError,
    KernelError,
    LinAlgError,
    MissingTileError,
    SingleAssignmentError,
    named_kind,
)
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray


def test_inputs_that_do_not_fit():
    with pytest.raises(InputError, match="chains takes the arrays A; missing: A; not known: X"):
        run(chains, {"X": matrix()}, N=3, M=1)
    with pytest.raises(
        InputError, match=r"A is a ndarray; cut it into tiles first, with TiledArray.from_numpy"
    ):
        run(chains, {"A": np.ones((1, 3))}, N=3, M=1)
    with pytest.raises(InputError, match=r"A\[0, 3\] is read, but A was given as 1×3 tiles"):
        run(chains, {"A": matrix()}, N=4, M=1)
    with pytest.raises(InputError, match="workers=0: give at least 1"):
        Threads(0)
    assert Threads().workers == available_cores()


@pytest.mark.parametrize(
    ("name", "outputs", "words"),
    [
        (
            "e_boom",
            1,
            r"kernel 'e_boom' raised ZeroDivisionError: .*\n  at e_boom\(A\[0, 0\]\) -> B0\[0, 0\]\n  in ",
        ),
        ("e_short", 2, "TypeError: returned 1 results; its declaration says outputs=2"),
        ("e_text", 1, r"TypeError: returned a str for B0\[0, 0\]; a tile is a NumPy array"),
        ("e_halves", 1, r"TypeError: returned 2 results for B0\[0, 0\]"),
    ],
)
def test_a_kernel_error_names_task_tiles_and_line(name, outputs, words):
    with pytest.raises(KernelError, match=words) as caught:
        run(failing(name, outputs), {"A": matrix(2, 2, 2)})
    assert caught.value.task == (0, ())
    assert [repr(key) for key in caught.value.tiles] == ["A[0, 0]"]
    assert f"{name}(A[0, 0])" in caught.value.where


def test_not_positive_definite_names_the_tile_and_the_line():
    from linnet.algorithms.cholesky import cholesky

    a = np.eye(6)
    a[4, 4] = -1.0
    with pytest.raises(LinAlgError) as caught:
        run(cholesky, {"A": TiledArray.from_numpy(a, 2)}, N=3)
    text = str(caught.value)
    assert (
        "the leading minor of order 1 of the tile is not positive definite: chol(S[2, 2, 2]) -> O[2, 2]"
        in text
    )
    assert "O[i, i] = chol(S[i, i, i])  with i=2" in text
    assert isinstance(caught.value, np.linalg.LinAlgError)


@pytest.mark.slow
def test_after_an_error_the_engine_is_usable_and_nothing_is_kept():
    engine = Threads(2)
    engine.run(chains.bind(N=3, M=2), {"A": matrix()})
    before = threading.active_count()

    @kernel("e_late")
    def late(x, j):
        if j == 40:
            raise RuntimeError("late")
        return x + 1

    @tile_program
    def many(A: In, B: Out, N: int):
        for j in range(N):
            B[0, j] = e_late(A[0, 0], j)

    tile = np.ones((1, 1))
    given = TiledArray.from_tiles({(0, 0): tile})
    kept = weakref.ref(tile)
    with pytest.raises(KernelError, match="RuntimeError: late") as caught:
        engine.run(many.bind(N=100), {"A": given})
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert threading.active_count() <= before + 2  # threads are kept, but not more than are used at once
    del given, tile, caught
    gc.collect()
    assert kept() is None
    assert engine.run(chains.bind(N=3, M=2), {"A": matrix()})["B"].to_numpy().tolist() == [[3.0, 4.0, 5.0]]


def test_a_double_write_in_an_unproven_program_is_found():
    @tile_program
    def double(A: In, B: Out, N: int):
        for i in range(N):
            B[0, i * i % 11] = e_bump(A[0, 0])

    assert not double.proven
    run(double, {"A": matrix(1, 1)}, N=6)
    with pytest.raises(SingleAssignmentError, match=r"B\[0, 3\] is written"):
        run(double, {"A": matrix(1, 1)}, N=7)


def test_an_empty_program_has_nothing_to_do():
    out = run(chains, {"A": matrix()}, N=0, M=0)
    with pytest.raises(InputError, match="B has no tiles"):
        out["B"]


@pytest.mark.parametrize(
    "kind", [ValueError, KeyError, OSError, UnicodeDecodeError, ImportError, StopIteration]
)
def test_a_kernel_error_is_of_the_kind_that_was_raised(kind):
    made = KernelError.of(kind, "kernel 'k' raised it", task=1, where="here")
    again = pickle.loads(pickle.dumps(made))
    for error in (made, again):
        assert isinstance(error, kind)
        assert isinstance(error, KernelError)
        assert (str(error), error.task, error.where) == ("kernel 'k' raised it", 1, "here")
        assert type(error).__name__ == "KernelError"


def test_a_kernel_error_of_a_kind_that_cannot_be_joined_or_found():
    class Local(Exception):
        """Known to nobody else."""

    made = KernelError.of(Local, "words")
    assert isinstance(made, Local)
    assert type(pickle.loads(pickle.dumps(made))) is KernelError
    assert type(KernelError.of(ExceptionGroup, "words")) is KernelError
    # That a tile is missing is said to those who can bring it, not by a kernel.
    assert not isinstance(KernelError.of(MissingTileError, "words"), MissingTileError)
    assert isinstance(KernelError.of(MissingTileError, "words"), OSError)


def test_the_kind_of_a_kernel_error_is_found_in_its_words():
    assert named_kind("kernel 'call' raised ValueError: too short") is ValueError
    assert named_kind("kernel 'call' raised print: odd") is Exception
    assert named_kind("something else") is Exception
