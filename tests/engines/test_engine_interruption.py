"""The threads engine and Ctrl-C."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import pytest

INTERRUPTED = """
import signal, sys, threading, time
import numpy as np
from linnet.engines import Threads
from linnet.events import Events, JobCancelled, TaskFinished
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.tiles import TiledArray

@kernel("nap")
def nap(x, seconds):
    print("napping", flush=True)
    time.sleep(seconds)
    return x

@tile_program
def naps(A: In, B: Out, N: int, S: int):
    for j in range(N):
        B[0, j] = nap(A[0, 0], S / 10)

a = {"A": TiledArray.from_numpy(np.ones((1, 1)), 1)}
events, heard = Events(), []
events.subscribe(heard.append, JobCancelled, TaskFinished)
start = time.perf_counter()
try:
    Threads(2).run(naps.bind(N=1000, S=int(sys.argv[1])), a, events=events)
except KeyboardInterrupt:
    print("interrupted", flush=True)
else:
    print("not interrupted")
assert time.perf_counter() - start < 8, time.perf_counter() - start
assert isinstance(heard[-1], JobCancelled), heard
out = Threads(2).run(naps.bind(N=4, S=0), a)["B"].to_numpy()
assert out.tolist() == [[1.0] * 4]
print("usable", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("tenths", [1, 300])
def test_control_c_stops_at_once_and_leaves_the_process_usable(tmp_path, tenths):
    script = tmp_path / "naps.py"
    script.write_text(textwrap.dedent(INTERRUPTED))
    command = [sys.executable, str(script), str(tenths)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert first.startswith("napping"), err  # two threads print it at once
    assert process.returncode == 0, err
    assert "interrupted\n" in out
    assert out.endswith("usable\n")
