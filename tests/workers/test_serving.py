"""What a worker sets for its process while it works, and lets go of when it ends, well or not."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
import scipy.linalg.cython_lapack  # noqa: F401  its BLAS is loaded before anybody counts
import threadpoolctl

from linnet.machine.blas_threads import blas_holders, one_blas_thread
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray
from linnet.workers import serving
from linnet.workers.client import submit
from linnet.workers.launcher import Limits
from linnet.workers.serving import serve
from linnet.workers.worker import Worker

ALLOWED = ["linnet.testing.kernels"]


def threads_of_blas():
    return [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]


@pytest.fixture
def job(tmp_path):
    given = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(programs.slow.bind(N=1000), given, store=tmp_path / "jobs", launcher=None) as made:
        yield made
        made.delete()


class Crew:
    """Workers in threads of this process, each told to go by its number."""

    def __init__(self, address, count):
        self.workers = [None] * count
        self.there = threading.Barrier(count + 1)
        self.threads = [threading.Thread(target=self.serve, args=(address, i)) for i in range(count)]

    def serve(self, address, number):
        def started(worker):
            self.workers[number] = worker
            self.there.wait(60)

        serve(address, "", Limits(), ALLOWED, started=started)

    def send_away(self, number):
        self.workers[number].stop()
        self.threads[number].join(60)


@pytest.fixture
def nobody_holds_blas():
    """Workers that tests before left behind have gone: they would hold BLAS, too."""
    until = time.monotonic() + 60
    while blas_holders() and time.monotonic() < until:
        time.sleep(0.05)
    assert not blas_holders(), [each.name for each in threading.enumerate()]


def test_what_somebody_else_sets_while_blas_is_held_is_limited_by_the_next_holder(nobody_holds_blas):
    with threadpoolctl.threadpool_limits(2, user_api="blas"):  # puts back what was
        with one_blas_thread():
            threadpoolctl.threadpool_limits(3, user_api="blas")
            with one_blas_thread():
                assert set(threads_of_blas()) == {1}
        assert set(threads_of_blas()) == {3}


@pytest.mark.slow
def test_blas_has_one_thread_until_the_last_worker_of_a_process_has_gone(job, nobody_holds_blas):
    with threadpoolctl.threadpool_limits(3, user_api="blas"):
        crew = Crew(job.address, 3)
        for thread in crew.threads:
            thread.start()
        crew.there.wait(60)
        while job.progress().done < 5:
            pass
        seen = [threads_of_blas()]
        for number in range(3):
            crew.send_away(number)
            seen.append(threads_of_blas())
        one, three = [1] * len(seen[0]), [3] * len(seen[0])
        assert seen == [one, one, one, three]


def test_a_worker_that_cannot_begin_closes_what_it_opened(job, monkeypatch):
    closed = []
    real = serving.open_traffic

    def watched(*given):
        traffic, cache = real(*given)
        for each in (traffic, cache):
            monkeypatch.setattr(
                each, "close", lambda each=each, close=each.close: (closed.append(each), close())
            )
        return traffic, cache

    def broken(*_):
        raise RuntimeError("no worker today")

    monkeypatch.setattr(serving, "open_traffic", watched)
    monkeypatch.setattr(Worker, "run", broken)
    before = threads_of_blas()
    with pytest.raises(RuntimeError, match="no worker today"):
        serve(job.address, "", Limits(cache=2**20), ALLOWED)
    assert [type(each).__name__ for each in closed] == ["Traffic", "TileCache"]
    assert threads_of_blas() == before


@pytest.mark.slow
def test_libraries_that_run_no_kernel_do_not_keep_workers_away(tmp_path):
    """A process that has OpenMP in it, as scikit-learn brings it, gives its jobs to workers that have not."""
    code = """
import sys
import sklearn.cluster  # brings OpenMP along
import numpy as np, linnet as ln, threadpoolctl
assert any(each["user_api"] == "openmp" for each in threadpoolctl.threadpool_info())
if __name__ == "__main__":
    with ln.submit(ln.asarray(np.arange(4.0), chunks=2) + 1, store=sys.argv[1], workers=1) as job:
        job.wait(timeout=100)
        print(np.asarray(job.result()))
        job.delete()
"""
    script = tmp_path / "script.py"
    script.write_text(code)
    done = subprocess.run(
        [sys.executable, script, tmp_path / "jobs"], capture_output=True, text=True, timeout=150, check=False
    )
    assert done.stdout == "[1. 2. 3. 4.]\n", done.stderr
