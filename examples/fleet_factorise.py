"""A factorisation on servers that are killed by a law of preemption: the price before, the bill after.

Servers are processes of this machine, and an hour is a second.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

import linnet as ln
from linnet.fleet import Fleet, Lifetimes, Local


def main() -> None:
    random = np.random.default_rng(0)
    lifetimes = np.where(
        random.random(300) < 0.3, random.exponential(4.0, 300), random.exponential(60.0, 300)
    )
    model = Lifetimes(lifetimes, cap=24).fit("hyperexponential2")
    print(model)

    x = random.standard_normal((600, 600))
    x = x @ x.T + 600 * np.eye(600)
    factor = ln.linalg.cholesky(ln.asarray(x, chunks=100))
    fleet = Fleet([Local(3, price=0.03, model=model, speed=3600, seed=1)])
    print(ln.estimate(factor, fleet=fleet, workers=2, runs=5))

    with tempfile.TemporaryDirectory() as folder:
        with ln.submit(factor, store=Path(folder, "store"), workers=2, launcher=fleet) as job:
            job.wait(timeout=300)
            found = np.asarray(job.result())
            job.report(Path(folder, "report.html"))
        page = Path(folder, "report.html").read_text()
    assert np.allclose(found, np.linalg.cholesky(x))
    start = page.index("dollars:") - 8
    print("bill:", page[start : start + 60].split("<")[0].split(">")[-1])


if __name__ == "__main__":
    main()
