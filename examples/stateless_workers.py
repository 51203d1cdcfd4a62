"""A factorisation on stateless worker processes, one of which is killed on the way; then the client leaves.

python examples/stateless_workers.py
"""

import os
import signal
import tempfile
import time

import numpy as np

import linnet as ln
from linnet.workers.launcher import Limits
from linnet.workers.launchers.processes import Processes
from linnet.workers.spec import Options

SIZE, TILE = 1000, 100


def main() -> None:
    g = np.random.default_rng(0).standard_normal((SIZE, SIZE))
    a = g @ g.T + SIZE * np.eye(SIZE)
    launcher = Processes()
    with tempfile.TemporaryDirectory() as folder:
        job = ln.submit(
            ln.linalg.cholesky(ln.asarray(a, chunks=TILE)),
            store=folder,
            workers=2,
            launcher=launcher,
            limits=Limits(timeout=1.0),
            options=Options(lease=2.0),
        )
        print(f"submitted: {job.address}")
        while job.progress().done < 30:
            time.sleep(0.005)
        os.kill(launcher.pids[0], signal.SIGKILL)
        print(f"one worker killed at {job.progress().done} of {job.progress().total} tasks")

        # Whoever has the address can watch, wait and fetch: this could be another process, or tomorrow.
        with ln.attach(job.address) as again:
            again.wait(timeout=60)
            found = again.result().compute()
            print(again.progress())
        job.delete()
        job.close()
    print(f"largest difference from NumPy: {abs(found - np.linalg.cholesky(a)).max():.1e}")


if __name__ == "__main__":
    main()
