"""Calls in processes of this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from calls_conformance import (
    CallsConformance,
    OutsideConformance,
    dies_in_a_call,
    dies_once_in_a_call,
    square,
)

import linnet as ln
from linnet.engines import Threads


class TestThreads(CallsConformance):
    outside = False

    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls):
        return Threads(workers=2)


@pytest.mark.slow
class TestProcesses(OutsideConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls):
        engine = Threads(workers=1, processes=True)
        yield engine
        engine.close()

    def test_a_process_that_dies_is_replaced_and_a_pure_call_is_made_again(self, engine, tmp_path):
        run = dies_once_in_a_call
        with ln.init(engine):
            assert run(str(tmp_path / "died"), os.getpid()) == "lived"

    def test_a_call_that_always_kills_its_process_is_named(self, engine):
        run = dies_in_a_call
        with ln.init(engine):
            with pytest.raises(
                ln.JobError, match=r"dies was lost, 3 times: its process was ended by SIGKILL"
            ):
                run(os.getpid())
            with pytest.raises(
                ln.JobError, match=r"posix._exit was lost: .* exit code 3; it was not called again"
            ):
                ln.submit_call(os._exit, 3).result()
            assert ln.submit_call(square, 3).result() == 9


@pytest.mark.slow
def test_closing_ends_the_processes_and_what_waits_is_told():
    session = ln.init(workers=1, processes=True)
    process = ln.submit_call(os.getpid).result()
    running, waiting = ln.submit_call(time.sleep, 600), ln.submit_call(square, 1)
    session.close()
    for each in (running, waiting):
        with pytest.raises(ln.EngineClosedError):
            each.result(60)
    _wait_until_gone(process)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["interrupt", "kill"])
def test_no_process_is_left(ending):
    text = """
        import os, sys, time
        import linnet as ln

        def endless(x):
            print(os.getpid(), flush=True)
            while True:
                x += 1

        ln.init(workers=1, processes=True)
        ln.submit_call(endless, 0).result()
    """
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(text)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert parent.stdout is not None
    process = int(parent.stdout.readline())
    if ending == "interrupt":
        os.killpg(parent.pid, signal.SIGINT)  # as a terminal does it
    else:
        parent.kill()
    _, errors = parent.communicate(timeout=120)
    assert ("KeyboardInterrupt" in errors) is (ending == "interrupt")
    _wait_until_gone(process)


def _wait_until_gone(process: int) -> None:
    end = time.monotonic() + 120
    while os.path.exists(f"/proc/{process}") and time.monotonic() < end:
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{process}")


def test_processes_is_true_or_false():
    with pytest.raises(ln.InputError, match="processes=2: give True or False; workers= says how many"):
        ln.init(processes=2)
