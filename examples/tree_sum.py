"""A sum over many tiles as a tree: own kernels, a nonlinear program, called on an array and run by an engine.

python examples/tree_sum.py
"""

import numpy as np

import linnet as ln
from linnet.engines import Threads
from linnet.tiles import TiledArray


@ln.kernel("example_square_sum", shape=lambda x: (1,), flops=lambda x: 2 * x[0])
def square_sum(x):
    return np.array([x @ x])


@ln.kernel("example_join", shape=lambda x, y: x, flops=lambda x, y: x[0])
def join(x, y):
    return x + y


@ln.tile_program
def tree_sum(A: ln.In, R: ln.Out, P: ln.Temp, N: int):
    """Partial sums of neighbours meet at distance 1, 2, 4, ...; an odd one out goes on alone."""
    assert N >= 1
    for i in range(N):
        P[i, 0] = example_square_sum(A[i])
    for level in range(ceil(log2(N))):
        for i in range(0, N, 2 ** (level + 1)):
            if i + 2**level < N:
                P[i, level + 1] = example_join(P[i, level], P[i + 2**level, level])
            else:
                P[i, level + 1] = copy(P[i, level])
    R[0] = copy(P[0, ceil(log2(N))])


def main() -> None:
    x = np.random.default_rng(0).standard_normal(1_000_003)
    print(tree_sum)
    root = ln.sqrt(tree_sum(ln.asarray(x, chunks=50_000)))  # an array like any other: nothing has run
    print(f"\n{root!r}: {ln.plan(root).tasks} tasks; norm {root.compute()[0]:.6f}")
    assert np.isclose(root.compute()[0], np.linalg.norm(x))

    # The same without arrays: bound to its size, asked questions, run by an engine on tiles.
    tiles = TiledArray.from_numpy(x, tile=50_000)
    bound = tree_sum.bind(N=tiles.grid[0])
    print(f"\n{bound}: {bound.count()} tasks, {bound.profile().critical_path} steps deep")
    task = ln.Task(statement=1, indices=(0, 2))
    print(f"{task} waits for {bound.parents(task)} and is waited for by {bound.children(task)}")
    total = Threads().run(bound, {"A": tiles})["R"].to_numpy()[0]
    print(f"sum of squares {total:.6f}, NumPy's {x @ x:.6f}")
    assert np.isclose(total, x @ x)


if __name__ == "__main__":
    main()
