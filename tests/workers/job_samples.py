"""Jobs that many tests submit, and what they give when nobody disturbs them."""

from __future__ import annotations

import time

import numpy as np

from linnet.algorithms.cholesky import cholesky
from linnet.engines import Threads
from linnet.tiles import TiledArray
from linnet.workers.job_parts import open_parts


def matrix(n, seed=0):
    """A positive definite matrix."""
    a = np.random.default_rng(seed).standard_normal((n, n))
    return a @ a.T + n * np.eye(n)


def factorisation(n, tile):
    """A program that factorises a matrix, bound, and its inputs."""
    return cholesky.bind(N=n // tile), {"A": TiledArray.from_numpy(matrix(n), tile)}


def until(happened, seconds=120):
    """Wait for something that must happen, however slow the machine is."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


def workers_left(job):
    """Wait until no worker is at work on a job: they leave when it is cancelled."""
    parts = open_parts(job.address)
    until(lambda: all(each.left or not each.facts for each in parts.ledger.workers()))
    parts.close()


def undisturbed(bound, inputs):
    """The outputs of a program run here, with the bits that every run must give."""
    return Threads(1, deterministic=True).run(bound, inputs)
