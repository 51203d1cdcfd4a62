"""Two programs as one: a Cholesky factorisation, then a forward solve that starts as tiles appear.

python examples/factor_and_solve.py
"""

import numpy as np
from scipy.linalg import solve_triangular

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.engines import Threads
from linnet.events import Events, Metrics
from linnet.tiles import TiledArray


@ln.kernel("example_forward", shape=lambda l, b: b)
def forward_tile(l, b):
    return solve_triangular(l, b, lower=True)


@ln.kernel("example_subtract", shape=lambda w, l, x: w)
def subtract_tile(w, l, x):
    return w - l @ x


@ln.tile_program
def forward(L: ln.In, B: ln.In, X: ln.Out, W: ln.Temp("B"), N: int):
    for i in range(N):
        X[i, 0] = example_forward(L[i, i], W[i, i, 0])
        for k in range(i + 1, N):
            W[i + 1, k, 0] = example_subtract(W[i, k, 0], L[k, i], X[i, 0])


def main() -> None:
    rng = np.random.default_rng(1)
    g = rng.standard_normal((900, 900))
    a, b = g @ g.T + 900 * np.eye(900), rng.standard_normal((900, 4))
    # Programs called on arrays give arrays: nothing runs yet, and both are one program when it does.
    factor = cholesky(A=ln.asarray(a, chunks=150))
    x = forward(L=factor, B=ln.asarray(b, chunks=(150, 4)))
    print(f"{x!r}: {ln.plan(x).tasks} tasks, one program")
    found = x.compute()
    expected = np.linalg.solve(np.linalg.cholesky(a), b)
    print(f"largest difference from NumPy: {np.abs(found - expected).max():.1e}")
    assert np.allclose(found, expected)

    # The same two as a program of its own, to be bound, run, printed or sent elsewhere.
    both = cholesky.then(forward, L="O")  # the factor O of the first is the input L of the second
    print(f"\n{both}")
    inputs = {"A": TiledArray.from_numpy(a, tile=(150, 150)), "B": TiledArray.from_numpy(b, tile=(150, 4))}
    bound = both.bind(N=6)
    events, metrics = Events(), Metrics()
    events.subscribe(metrics)
    again = Threads().run(bound, inputs, events=events)["X"].to_numpy()
    print(f"\n{bound}: {bound.count()} tasks in {bound.profile().critical_path} steps, one program")
    print({name: kernel.tasks for name, kernel in metrics.kernels.items()})
    assert np.allclose(again, expected)


if __name__ == "__main__":
    main()
