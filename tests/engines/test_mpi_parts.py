"""The parts of MPI as an engine, without MPI: messages, what is left of a run, and ranks in one process."""

from __future__ import annotations

import queue
import random
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from linnet.algorithms.cholesky import cholesky
from linnet.engines import Threads
from linnet.engines.mpi import messages, news, peers
from linnet.engines.mpi.derived import Plans, going_on, what_is_left
from linnet.engines.mpi.messages import Header, Kind
from linnet.engines.mpi.orders import Order, Problem, held_inputs, packed_plan, read_order, read_problem
from linnet.engines.mpi.parts import below
from linnet.engines.mpi.share import outputs_of
from linnet.engines.mpi.work import Work
from linnet.engines.run_events import Telling
from linnet.engines.worker_blas import BlasThreads
from linnet.errors import InputError, MissingExtraError
from linnet.events import Events, TaskFinished, TaskReady, TaskStarted
from linnet.kernels import get as get_kernel
from linnet.planning.choosing import FAMILIES
from linnet.planning.cluster import Cluster
from linnet.planning.workload import Workload
from linnet.programs.results import matched
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray, TileKey

# ---- messages


@given(
    npst.arrays(
        st.sampled_from(["<f8", ">f4", "c16", "bool", "M8[s]", "S3", "U2", "i1"]),
        npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
        elements=None,
        fill=st.nothing(),
    ).map(np.ascontiguousarray),
    st.sampled_from(["C", "F", "step", "swapped"]),
)
def test_a_tile_is_the_same_on_the_other_side(tile, lying):
    if lying == "F":
        tile = np.asfortranarray(tile)
    elif lying == "step" and tile.ndim:
        tile = np.repeat(tile, 2, axis=0)[::2]
    elif lying == "swapped" and tile.ndim > 2:
        tile = tile.swapaxes(0, 1)
    whole = messages.contiguous(tile)
    header = messages.tile_header(Kind.TILE, 7, 2**40, whole)
    found, rest = messages.unpacked(memoryview(header.packed() + messages.as_bytes(whole).tobytes()))
    assert found == header
    made = found.empty()
    messages.as_bytes(made)[:] = np.frombuffer(rest, np.uint8)
    assert made.dtype == tile.dtype
    assert made.tobytes() == tile.tobytes()


def test_headers_fit_the_inbox():
    widest = Header(Kind.TILE, 2**32 - 1, 2**62, messages.INLINE, "F", (1,) * 64, "<U1000000")
    assert len(widest.packed()) + messages.INLINE <= messages.LONGEST


def test_tiles_that_cannot_be_sent():
    with pytest.raises(InputError, match="a tile of dtype object cannot go to another rank"):
        messages.check_sendable(np.array([None]))


def test_everybody_hears_of_a_run_once():
    for size in range(1, 40):
        heard = [0]
        for rank in heard:
            heard += below(rank, size)
        assert sorted(heard) == list(range(size))


def test_what_is_said_of_a_run_is_little_and_comes_across():
    bound = cholesky.bind(N=40)
    inputs = {"A": TiledArray.from_numpy(np.zeros((400, 400)), 10)}
    homes = {"A": np.arange(1600) % 4}
    problem = Problem(bound, inputs, homes, Cluster(4, memory="1 GB", grid=(2, 2)), "auto")
    order = Order("cholesky-1", ("TaskFinished",), ("O",), {"divide": "warn"}, ("numpy",), b"code")
    plan, found = read_order(order.packed(packed_plan(problem)))
    assert found == order
    assert len(plan) - homes["A"].nbytes < 4096
    read = read_problem(plan)
    assert (read.cluster, read.policy, read.bound.sizes) == (problem.cluster, "auto", bound.sizes)
    assert (
        read.home
        == problem.home
        == {TileKey("A", (i, j)): (40 * i + j) % 4 for i in range(40) for j in range(40)}
    )
    assert packed_plan(read) == plan


def test_where_inputs_are_that_stayed_with_ranks():
    pairs = np.array([[3, 8], [3, 9]], np.int64)
    found = held_inputs(Order("a", held={"A": pairs.tobytes()}), {"A": TiledArray.from_numpy(np.zeros(2), 1)})
    assert found == {TileKey("A", (0,)): (3, 8), TileKey("A", (1,)): (3, 9)}


def test_without_mpi4py(monkeypatch):
    monkeypatch.setitem(sys.modules, "mpi4py", None)
    with pytest.raises(
        MissingExtraError,
        match=r'needs mpi4py and an MPI; install it with: pip install "linnet-array\[mpi\]"',
    ):
        peers.library()


# ---- events


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_events_of_many_ranks_are_one_story(rng):
    bound = programs.tree.bind(N=6)
    tasks = bound.task_arrays()
    ranks = [rng.randrange(3) for _ in range(len(tasks))]
    order = Workload.of(bound, {"A": TiledArray.from_numpy(np.zeros(6), 1)}).order.tolist()
    said = [[], [], []]
    for number in order:
        name = tuple(tasks.task(number))
        said[ranks[number]] += [
            TaskStarted("j", 0.0, name, "k", "w"),
            TaskFinished("j", 0.0, name, "k", "w", 0.0),
        ]
    events, found = Events(), []
    events.subscribe(found.append)
    story = news.InOrder(events, "j", 3, tasks)
    story.begin()
    while any(said):
        rank = rng.choice([rank for rank in range(3) if said[rank]])
        count = rng.randint(1, len(said[rank]))
        story.add(rank, news.unpacked(news.packed(said[rank][:count])))
        del said[rank][:count]
    place = {(type(event), event.task): n for n, event in enumerate(found)}
    assert len(place) == len(found) == 3 * len(tasks)
    for task in bound.tasks():
        assert place[TaskReady, task] < place[TaskStarted, task] < place[TaskFinished, task]
        for parent in bound.parents(task):
            assert place[TaskFinished, parent] < place[TaskReady, task]


# ---- ranks in one process


CASES = {
    "affine": (programs.affine, {"N": 3, "K": 3}, {"A": (6, 6), "B": (6, 6)}, 2),
    "tree": (programs.tree, {"N": 7}, {"A": (14,)}, 2),
    "chain": (programs.chain, {"N": 4, "M": 3}, {"A": (8,)}, 2),
    "filled": (programs.filled, {"N": 3}, {"A": (6, 6)}, 2),
    "several": (programs.several, {"N": 5}, {"A": (10,)}, 2),
    "ranges": (programs.ranges, {"N": 3, "M": 2}, {"A": (6,)}, 2),
}


def problem_of(case, ranks, policy, memory=None, workers=1):
    program, sizes, shapes, tile = CASES[case]
    rng = np.random.default_rng(0)
    inputs = {
        name: TiledArray.from_numpy(rng.integers(1, 9, shape) * 1.0, tile) for name, shape in shapes.items()
    }
    cluster = Cluster(ranks, workers=workers, memory=memory)
    return Problem(program.bind(**sizes), inputs, {}, cluster, policy)


class Together:
    """Ranks that reach one another through a bag of messages, out of which any may come next."""

    def __init__(self, problem, rng, memory, stored=None):
        """`stored` has tiles that an earlier run has written down."""
        self.rng, self.stored = rng, stored or {}
        self.messages, self.ended, self.problem = queue.SimpleQueue(), set(), problem
        ranks = problem.cluster.count
        packed = packed_plan(problem)
        bits = b""
        self.works = []
        for rank in range(ranks):
            derived = Plans(rank).get(packed, problem)
            if self.stored:
                known = np.array(
                    [derived.work.key(tile) in self.stored for tile in range(derived.work.tiles)]
                )
                bits = np.packbits(known).tobytes()
            derived = going_on(derived, bits, rank)
            self.derived = derived
            self.works.append(
                Work(
                    derived,
                    Order("job"),
                    {} if rank else problem.inputs,
                    {},
                    Telling(Events(), "job"),
                    BlasThreads([], 1),
                    _Post(self, rank),
                    rank=rank,
                    workers=problem.cluster.nodes[rank].workers,
                    memory=memory,
                )
            )

    def outputs(self):
        for work in self.works:
            work.begin({})
        bag = []
        while len(self.ended) < len(self.works):
            try:
                bag.append(self.messages.get(timeout=0 if bag else 10))
                continue
            except queue.Empty:
                assert bag, f"stuck: {len(self.ended)} of {len(self.works)} ranks are done"
            bag.pop(self.rng.randrange(len(bag)))()
        found = dict(self.works[0].tiles.results())
        for work in self.works[1:]:
            for tile, value in work.held().items():
                key = self.derived.work.key(tile)
                found[key.array][key.index] = value
        return found


class _Post:
    def __init__(self, together, rank):
        self.together, self.rank = together, rank

    def say(self, message):
        self.together.messages.put(message)

    def want(self, source, tiles):
        self.say(lambda: self.together.works[source].wanted(self.rank, tiles))

    def give(self, target, tile, value, sent):
        self.say(lambda: (self.together.works[target].arrived(tile, value.copy(), Kind.TILE), sent()))

    def load(self, tiles):
        for tile in tiles:
            value = self.together.stored[self.together.derived.work.key(tile)].copy()
            self.say(lambda tile=tile, value=value: self.together.works[self.rank].arrived(tile, value))

    def ended(self):
        self.say(lambda: self.together.ended.add(self.rank))

    def failed(self, error, task):
        def fail():
            raise error

        self.say(fail)


def same(found, expected, problem):
    for name in expected:
        tiles = expected.tiles(name)
        assert found[name].keys() == tiles.keys()
        assert all(np.array_equal(found[name][index], tile) for index, tile in tiles.items()), problem


@pytest.mark.slow
@settings(max_examples=40)
@given(
    case=st.sampled_from(sorted(CASES)),
    ranks=st.integers(1, 5),
    workers=st.integers(1, 2),
    policy=st.sampled_from(sorted(set(FAMILIES) - {"grid", "boxes"})),
    memory=st.sampled_from([None, 1, 100]),
    seed=st.integers(0, 2**32),
)
def test_nothing_gets_stuck_however_little_memory_there_is(case, ranks, workers, policy, memory, seed):
    problem = problem_of(case, ranks, policy, workers=workers)
    expected = Threads(1).run(problem.bound, problem.inputs)
    same(Together(problem, random.Random(seed), memory).outputs(), expected, problem)


@pytest.mark.slow
@settings(max_examples=40)
@given(
    case=st.sampled_from(sorted(CASES)),
    ranks=st.integers(1, 4),
    seed=st.integers(0, 2**32),
    share=st.floats(0, 1),
)
def test_a_run_goes_on_from_any_tiles(case, ranks, seed, share):
    problem = problem_of(case, ranks, "round-robin")
    rng = random.Random(seed)
    expected = Threads(1).run(problem.bound, problem.inputs)
    written = all_tiles(problem)
    kept = {key: tile for key, tile in written.items() if rng.random() < share}
    together = Together(problem, rng, None, kept)
    same(together.outputs(), expected, problem)
    work, left = together.derived.work, together.derived.left
    wanted = outputs_of(work) & (work.producer >= 0)
    have = np.array([work.key(tile) in kept for tile in range(work.tiles)], bool)
    made = np.zeros(work.tiles, bool)
    for task in np.flatnonzero(left.active).tolist():
        made[work.writes(task)] = True
        wanted[work.reads(task)] = True
    assert (wanted <= (made | have | (work.producer < 0))).all()
    if share == 1:
        assert not left.active.any()


def all_tiles(problem):
    """All tiles that a run writes."""
    bound, written = problem.bound, {}
    tiles = {key: tile for name, array in problem.inputs.items() for key, tile in array.keyed(name)}

    def value(item):
        if isinstance(item, TileKey):
            return tiles[item] if item in tiles else np.full((2, 2), 7.0)  # only `filled` reads such tiles
        return [value(each) for each in item] if isinstance(item, list) else item

    for task in bound.tasks():
        call = bound.call(task)
        kernel = get_kernel(call.kernel)
        result = kernel.function(*map(value, call.args), **call.attributes)
        for key, tile in matched(result, kernel.outputs, call):
            written[key] = tiles[key] = np.array(tile)
    return written


def test_what_is_left_when_nothing_is_stored():
    work = Workload.of(programs.chain.bind(N=2, M=2), {"A": TiledArray.from_numpy(np.zeros(2), 1)})
    left = what_is_left(work, work.order, np.zeros(work.tiles, bool))
    assert left.active.all()
    assert not len(left.loads)
