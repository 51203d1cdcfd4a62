"""Arrays used from several threads and processes, inside one another, and broken off."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import textwrap
import time
import traceback
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest
from strategies import tiled

import linnet as ln
from linnet.session import current_engine

A = np.random.default_rng(0).standard_normal((60, 50))


def total(scale):
    """A sum of an array in tiles, for other processes."""
    return float((tiled(A, 7) * scale).sum())


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_threads_compute_the_same_array_at_once(workers):
    with closing(ln.init(workers=workers)), ThreadPoolExecutor(4) as pool:
        x = np.sin(tiled(A, 9)) @ tiled(A.T, 11)
        expected = np.sin(A) @ A.T
        for made in pool.map(lambda _: x.compute(), range(16)):
            assert np.allclose(made, expected)


def test_threads_compute_different_arrays_at_once():
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(total, range(24)))
    assert np.allclose(found, A.sum() * np.arange(24))


def test_threads_persist_the_same_array_at_once():
    x = tiled(A, 9) + 1
    with ThreadPoolExecutor(4) as pool:
        for made in pool.map(lambda _: x.persist().sum(axis=0).compute(), range(8)):
            assert np.allclose(made, (A + 1).sum(axis=0))


@pytest.mark.slow
def test_processes():
    total(1)
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert np.allclose(list(pool.map(total, range(4))), A.sum() * np.arange(4))


def test_a_function_on_blocks_may_use_arrays_itself():
    def nested(block):
        return (tiled(block, 3) * 2 + tiled(block, 4).mean()).compute()

    made = ln.map_blocks(nested, tiled(A, 20), dtype=A.dtype).compute()
    expected = np.block(
        [
            [(part := A[i : i + 20, j : j + 20]) * 2 + part.mean() for j in range(0, 50, 20)]
            for i in range(0, 60, 20)
        ]
    )
    assert np.allclose(made, expected)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("memory", [None, "1 MB"])
def test_functions_on_blocks_compute_in_the_session_of_the_caller(workers, memory):
    seen = []

    def inner(block):
        seen.append(current_engine())
        return (tiled(block, 3) + 1).compute()

    def outer(block):
        seen.append(current_engine())
        return ln.map_blocks(inner, tiled(block, 8), dtype=A.dtype).compute() * 2

    with ln.init(workers=workers, memory=memory) as session:
        made = ln.map_blocks(outer, tiled(A, 16), dtype=A.dtype).compute()
        assert np.array_equal(made, (A + 1) * 2)
    assert len(seen) == 4 * 4 + 8 * 7  # tiles of 16 by 16, and those of 8 by 8 in them
    assert set(map(id, seen)) == {id(session.engine)}


@pytest.mark.slow
def test_functions_on_blocks_may_have_a_session_of_their_own():
    def alone(block):
        with ln.init(workers=1) as own:
            assert current_engine() is own.engine
            return (tiled(block, 3) + 1).compute()

    with ln.init(workers=2) as session:
        made = ln.map_blocks(alone, tiled(A, 16), dtype=A.dtype).compute()
        assert current_engine() is session.engine
    assert np.array_equal(made, A + 1)


def test_in_a_worker_functions_compute_on_its_own_core():
    seen = []

    def nested(block):
        seen.append(current_engine())
        return (tiled(block, 3) + 1).compute()

    with ln.init("simulated") as session:
        made = ln.map_blocks(nested, tiled(A, 16), dtype=A.dtype).compute()
        assert current_engine() is session.engine
    assert np.array_equal(made, A + 1)
    assert {repr(engine) for engine in seen} == {"Threads(workers=1, deterministic=True)"}


def test_an_error_in_a_function_of_the_user_is_the_users_and_names_the_place():
    def faulty(block):
        raise ZeroDivisionError("of mine")

    x = ln.map_blocks(faulty, tiled(A, 20), dtype=A.dtype)
    with pytest.raises(Exception, match="of mine") as caught:
        x.compute()
    assert "while it made the tile [0, 0] of its result" in str(caught.value)
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "faulty"
    assert np.allclose((tiled(A, 9) + 1).compute(), A + 1)


INTERRUPTED = """
import time
import numpy as np
import linnet as ln

def nap(block):
    print("napping", flush=True)
    time.sleep(0.1)
    return block

x = ln.map_blocks(nap, ln.asarray(np.ones(1000), chunks=1), dtype=float)
begun = time.perf_counter()
try:
    x.compute()
except KeyboardInterrupt:
    print("interrupted", flush=True)
assert time.perf_counter() - begun < 10
assert (ln.asarray(np.ones(100), chunks=9) + 1).sum().compute() == 200
print("usable", flush=True)
"""


@pytest.mark.slow
def test_control_c_leaves_the_session_usable(tmp_path):
    script = tmp_path / "nap.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline().startswith("napping")
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0, err
    assert "interrupted\n" in out
    assert out.endswith("usable\n")
