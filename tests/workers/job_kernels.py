"""Kernels and programs of the tests of jobs: workers import this module by its name."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import ctypes
import os
import time
from pathlib import Path

import numpy as np

from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program


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
