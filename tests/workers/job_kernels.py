"""Kernels and programs of the tests of jobs: workers import this module by its name."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import ctypes
import os
import threading
import time
from pathlib import Path

import numpy as np

from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.workers.quarantine import Interrupted


@kernel("jobs_sleepy", shape=lambda x: x)
def sleepy(x):
    """`x + 1`, a little later."""
    time.sleep(0.02)
    return x + 1


@kernel("jobs_fatal", shape=lambda x: x)
def fatal(x):
    """`x + 1`, but a 13 ends the process that sees it."""
    if (x == 13).any():
        ctypes.string_at(0)
    return x + 1


@kernel("jobs_once_fatal", shape=lambda x: x)
def once_fatal(x):
    """`x + 1`; each 13 ends the processes that see it, as often as a file says."""
    path = Path(os.environ["JOBS_FATAL"])
    if (x == 13).any() and int(path.read_text()) > 0:
        path.write_text(str(int(path.read_text()) - 1))
        os.kill(os.getpid(), 9)
    return x + 1


@kernel("jobs_stuck_once", shape=lambda x: x)
def stuck_once(x):
    """`x + 1`; the first who sees a 13 sleeps over it for a minute."""
    path = Path(os.environ["JOBS_STUCK"])
    if (x == 13).any() and not path.exists():
        path.touch()
        time.sleep(60)
    return x + 1


@kernel("jobs_greedy", shape=lambda x: x)
def greedy(x):
    """`x + 1`, with 4 GB in between."""
    return x + 1 + np.ones(2**29).min() - 1


@tile_program
def sleeping(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = sleepy(A[i])


@tile_program
def chained(A: In, B: Out, S: Temp("A"), N: int, M: int):
    for t in range(M):
        for i in range(N):
            S[t + 1, i] = sleepy(S[t, i])
    for i in range(N):
        B[i] = sleepy(S[M, i])


@tile_program
def killing(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = fatal(A[i])


@tile_program
def killing_once(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = once_fatal(A[i])


@tile_program
def stuck(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = stuck_once(A[i])


@tile_program
def eating(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = greedy(A[i])


@kernel("jobs_twice", shape=lambda x: x)
def twice(x):
    """`2 * x`, a little later."""
    time.sleep(0.02)
    return 2 * x


@kernel("jobs_doubt", shape=lambda *parts: ((1,), np.float64))
def doubt(parts):
    """1 where a number is negative: then the first part cannot be trusted. It kills as often as a file says."""
    path = Path(os.environ.get("JOBS_FATAL_DOUBT", ""))
    if path.is_file() and int(path.read_text()) > 0:
        path.write_text(str(int(path.read_text()) - 1))
        os.kill(os.getpid(), 9)
    return np.array([float(min(part.min() for part in parts) < 0)])


@tile_program
def doubling(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = twice(A[i])


@tile_program
def quick_way(A: In, B: Out, D: Out, S: Temp, N: int):
    for i in range(N):
        S[i] = sleepy(A[i])
    D[0] = doubt(S[0:N])
    for i in range(N):
        B[i] = sleepy(S[i])


@tile_program
def sure_way(A: In, C: Out, T: Temp, N: int):
    for i in range(N):
        T[i] = twice(A[i])
    for i in range(N):
        C[i] = twice(T[i])


either_way = quick_way.then(sure_way)
"""`A + 2`; or, where that is in doubt because of a negative number, `4 * A`."""


@kernel("jobs_in_place", shape=lambda x: x)
def in_place(x):
    """`x + 1`, written into its operand, which belongs to others."""
    x += 1
    return x


_BUFFERS: dict[tuple[int, ...], np.ndarray] = {}


def kept(x, how):
    """`x + 1` in memory that is written again at the next call."""
    buffer = _BUFFERS.setdefault(x.shape, np.empty(x.shape))
    if not buffer.flags.writeable:
        buffer.flags.writeable = True
    np.add(x, 1, out=buffer)
    return {"array": buffer, "view": buffer[:], "read-only": read_only(buffer)}[how]


def read_only(buffer):
    view = buffer.view()
    view.flags.writeable = False
    return view


@kernel("jobs_kept", shape=lambda x, how: x)
def kept_array(x, *, how="array"):
    """The buffer itself, or a view of it."""
    return kept(x, how)


@kernel("jobs_odd", shape=lambda x, how: x)
def odd(x, *, how):
    """What a store does not hold."""
    return {
        "masked": np.ma.masked_less(x, 2),
        "structured": np.zeros(x.shape, [("a", float)]),
        "object": x.astype(object),
    }[how]


@tile_program
def changing(A: In, B: Out, C: Out, S: Temp, N: int):
    for i in range(N):
        S[i] = sleepy(A[i])
        B[i] = in_place(S[i])
    for i in range(N):
        C[i] = sleepy(S[i])


@tile_program
def keeping_arrays(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = kept_array(A[i], how="array")


@tile_program
def keeping_views(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = kept_array(A[i], how="view")


@tile_program
def keeping_read_only(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = kept_array(A[i], how="read-only")


@tile_program
def masking(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = odd(A[i], how="masked")


@tile_program
def structuring(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = odd(A[i], how="structured")


@tile_program
def objecting(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = odd(A[i], how="object")


class Unspeakable(Exception):
    """An error without a text."""

    def __str__(self):
        raise RuntimeError("no words")


class Unarguable(ValueError):
    """An error that does not tell what it was made of."""

    @property
    def args(self):
        raise RuntimeError("no arguments")


def ending(how):
    """End as told, or return with something left behind."""
    if how == "exit":
        raise SystemExit(0)
    if how == "vanish":
        print("{}", flush=True)
        os._exit(0)
    if how == "no text":
        raise Unspeakable
    if how == "no arguments":
        raise Unarguable("words")
    if how == "much":
        raise ValueError("x" * 1_000_000)
    if how == "over":
        raise Interrupted("the job goes on, in truth")
    if how == "fork":
        if os.fork() == 0:
            raise ValueError("another process")
        return
    if how == "thread":
        threading.Thread(target=threading.Event().wait).start()
        return
    raise ValueError("no text: \udcff")


@kernel("jobs_ending", shape=lambda x, how: x)
def ends(x, *, how):
    """`x + 1`, but a 13 ends it."""
    if (x == 13).any():
        ending(how)
    return x + 1


@tile_program
def exiting(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="exit")


@tile_program
def vanishing(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="vanish")


@tile_program
def speechless(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="no text")


@tile_program
def mumbling(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="bytes")


@tile_program
def unarguable(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="no arguments")


@tile_program
def wordy(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="much")


@tile_program
def interrupting(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="over")


@tile_program
def forking(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="fork")


@tile_program
def lingering(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ends(A[i], how="thread")


@kernel("jobs_hanging", shape=lambda x: x)
def hangs(x):
    """`x + 1`, but a 13 makes it wait inside of C, where Python sees no signals."""
    if (x == 13).any():
        Path(os.environ["JOBS_HUNG"]).touch()
        ctypes.CDLL(None).sleep(600)
    return x + 1


@tile_program
def hanging(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = hangs(A[i])


@kernel("jobs_seizing", shape=lambda x: x)
def seizes(x):
    """`x + 1`, but a 13 makes it wait inside of C without giving back the interpreter's lock."""
    if (x == 13).any():
        Path(os.environ["JOBS_HUNG"]).touch()
        ctypes.PyDLL(None).sleep(600)
    return x + 1


@tile_program
def seizing(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = seizes(A[i])


@kernel("jobs_held_up", shape=lambda x: x)
def waits(x):
    """`x + 1`, but a 13 waits for a file."""
    while (x == 13).any() and not Path(os.environ["JOBS_HELD"]).exists():
        time.sleep(0.02)
    return x + 1


@tile_program
def held_up(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = waits(A[i])
