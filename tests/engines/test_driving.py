"""Runs that are driven, on a crew in this process: any order of ends, and any losses, give the same result."""

from __future__ import annotations

import gc
import itertools
import pickle
import random
import weakref
from collections.abc import Sequence
from typing import Any

import cloudpickle
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import linnet as ln
from linnet.engines import Threads
from linnet.engines.driven.engine import Driven
from linnet.engines.driven.lost_nodes import reassigned
from linnet.engines.driven.run import Ended
from linnet.engines.driven.tasks import Broken, Failed, Order, Report, attempt
from linnet.engines.remote_tiles import Lost, RemoteTiles
from linnet.errors import EngineClosedError, JobError, KernelError, ProgramError
from linnet.events import Events, TaskFinished, TileDropped
from linnet.planning.cluster import Node
from linnet.planning.placement import placed
from linnet.planning.workload import Workload
from linnet.programs import In, Out, Table, tile_program
from linnet.testing import kernels as programs
from linnet.testing.engines import numbers
from linnet.tiles import TiledArray


def in_a_message(value: Any) -> Any:
    """A tile (or several) as it may arrive: in the middle of something, across the words of memory."""
    if isinstance(value, list):
        return [in_a_message(each) for each in value]
    if not isinstance(value, np.ndarray) or not value.nbytes:
        return value
    order = "F" if value.flags.f_contiguous else "C"
    odd = np.empty(value.nbytes + 1, np.uint8)[1:].view(value.dtype).reshape(value.shape, order=order)
    odd[...] = value
    return odd


_refs = itertools.count(1)


class Crew:
    """Orders are done when somebody asks for the next end; which one is left to chance."""

    overwrites = True

    def __init__(
        self,
        key: str,
        job: str,
        brief: bytes,
        names: list[str],
        chance: random.Random,
        losses: int,
        values: dict[int, tuple[str, Any]],
        down: set[str],
    ) -> None:
        self.key, self.job, self.workers = key, job, [1] * len(names)
        self.names = names
        self.down = down
        """Names of nodes that went, also in runs within this one."""
        self.brief, self.chance, self.losses = brief, chance, losses
        self.values = values
        """What is there, and on which node; earlier runs may have left something."""
        self.waiting: dict[int, tuple[int, Order, list[int], list[int]]] = {}
        self.refs = 0
        """How many were given."""
        self.most = 0
        """Values that were there at the same time."""

    @property
    def dead(self) -> set[int]:
        return {node for node, name in enumerate(self.names) if name in self.down}

    def ref(self) -> int:
        self.refs += 1
        return next(_refs)  # never one that was there before

    def put(self, tiles: list[Any], node: int) -> list[int]:
        if node in self.dead:
            raise Lost("a node went")
        refs = [self.ref() for _ in tiles]
        self.values.update((ref, (self.names[node], tile)) for ref, tile in zip(refs, tiles, strict=True))
        return refs

    def submit(self, number: int, node: int, order: Order, operands: list[int]) -> list[int]:
        made = [self.ref() for _ in order.kept]
        self.waiting[number] = node, order, operands, made
        return made

    def ended(self, timeout: float) -> list[Ended]:
        if self.losses and self.chance.random() < 0.1:
            self.lose()
        ready = [
            number
            for number, (node, _, operands, _) in self.waiting.items()
            if node not in self.dead and all(ref in self.values for ref in operands)
        ]
        if not ready:
            return []
        found = [self.done(each) for each in self.chance.sample(ready, self.chance.randint(1, len(ready)))]
        return [each for each in found if each is not None]

    def done(self, number: int) -> Ended | None:
        node, order, operands, made = self.waiting.pop(number)
        if self.losses and self.chance.random() < 0.02:
            self.losses -= 1
            return Ended(number, None, Lost("a worker went"))
        values = [in_a_message(self.values[ref][1]) for ref in operands]
        outcome, parcels = attempt(self.job, lambda: self.brief, pickle.loads(pickle.dumps(order)), values)
        self.values.update((ref, (self.names[node], v)) for ref, v in zip(made, parcels, strict=True))
        self.most = max(self.most, len(self.values))
        if isinstance(outcome, Report):
            return Ended(number, outcome, None)
        return None if outcome is None else Ended(number, None, pickle.loads(pickle.dumps(outcome)))

    def lose(self) -> None:
        alive = [node for node in range(len(self.workers)) if node not in self.dead]
        self.losses -= 1
        if self.chance.random() < 0.5:
            self.names.append(f"{self.job}-{len(self.names)}")  # another comes for it
            self.workers.append(1)
        elif len(alive) == 1:
            return
        self.down.add(self.names[self.chance.choice(alive)])
        for ref in [ref for ref, value in self.values.items() if value[0] in self.down]:
            del self.values[ref]

    def fetch(self, refs: Sequence[int]) -> list[Any]:
        if any(ref not in self.values for ref in refs):
            raise Lost("a value went")
        return [self.values[ref][1] for ref in refs]

    def release(self, refs: Sequence[int]) -> None:
        for ref in refs:
            self.values.pop(ref, None)

    def cancel(self) -> None:
        self.waiting.clear()

    def finish(self) -> None:
        pass

    def there(self, refs: Sequence[int]) -> list[bool]:
        return [ref in self.values for ref in refs]

    def gone(self) -> set[int]:
        return set(self.dead)


class Here(Driven):
    """An engine on such crews."""

    def __init__(self, nodes: int = 3, seed: int = 0, losses: int = 0, policy: str = "auto") -> None:
        super().__init__(policy)
        self.nodes, self.losses = [str(node) for node in range(nodes)], losses
        self.chance = random.Random(seed)
        self.crew: Crew | None = None
        self.values: dict[int, tuple[str, Any]] = {}
        self.down: set[str] = set()

    def moved(self) -> list[int]:
        return [0] * len(self.nodes)

    def _nodes(self) -> dict[str, Node]:
        if self.crew is not None:  # nodes that went stay away, and those that came stay
            known = dict.fromkeys([*self.nodes, *self.crew.names])
            self.nodes = [name for name in known if name not in self.down]
        return {name: Node() for name in self.nodes}

    def lose(self, name: str) -> None:
        """A node goes, between two runs."""
        self.nodes.remove(name)
        self.crew = None
        for ref in [ref for ref, value in self.values.items() if value[0] == name]:
            del self.values[ref]

    def _gone(self) -> str:
        return ""

    def _there(self, refs: Sequence[int]) -> list[bool]:
        return [ref in self.values for ref in refs]

    @property
    def key(self) -> str:
        return f"here {id(self)}"

    def _shut_down(self) -> None:
        self.values.clear()

    def _pickled(self, code: object) -> bytes:
        return cloudpickle.dumps(code)

    def _crew(self, job: str, brief: bytes, nodes: dict[str, Node]) -> Crew:
        self.crew = Crew(
            self.key,
            f"{self.key} {job}",
            brief,
            list(nodes),
            self.chance,
            self.losses,
            self.values,
            self.down,
        )
        return self.crew


def product(n=3, k=4, tile=3):
    inputs = {
        "A": TiledArray.from_numpy(numbers((n * tile, k * tile)), tile),
        "B": TiledArray.from_numpy(numbers((k * tile, n * tile), seed=1), tile),
    }
    return programs.affine.bind(N=n, K=k), inputs


CASES = {
    "product": product,
    "tree": lambda: (programs.tree.bind(N=13), {"A": TiledArray.from_numpy(np.arange(52.0), 4)}),
    "ranges": lambda: (programs.ranges.bind(N=5, M=4), {"A": TiledArray.from_numpy(np.arange(20.0), 4)}),
    "several": lambda: (programs.several.bind(N=6), {"A": TiledArray.from_numpy(numbers((24,)), 4)}),
    "filled": lambda: (programs.filled.bind(N=4), {"A": TiledArray.from_numpy(numbers((8, 8)), 2)}),
    "chain": lambda: (programs.chain.bind(N=7, M=9), {"A": TiledArray.from_numpy(np.arange(14.0), 2)}),
}


@given(
    case=st.sampled_from(sorted(CASES)),
    nodes=st.integers(1, 5),
    losses=st.integers(0, 6),
    seed=st.integers(0, 10**6),
    policy=st.sampled_from(["auto", "round-robin"]),
)
def test_whatever_is_lost_the_result_is_the_same(case, nodes, losses, seed, policy):
    bound, inputs = CASES[case]()
    engine = Here(nodes, seed, losses, policy)
    try:
        found = engine.run(bound, inputs)
        arrays = {name: found[name].to_numpy() for name in found}
    except JobError as error:  # a task whose worker is lost again and again is given up
        assert losses >= 4
        assert "was lost 4 times" in str(error)
        return
    expected = Threads(1).run(bound, inputs)
    for name, array in arrays.items():
        assert np.array_equal(array, expected[name].to_numpy())


# ---- what earlier runs kept


@pytest.mark.slow
@settings(max_examples=12)
@given(seed=st.integers(0, 10**6), losses=st.integers(0, 2), victims=st.lists(st.integers(0, 3), max_size=3))
def test_what_was_kept_on_a_node_that_went_is_made_again(seed, losses, victims):
    engine = Here(4, seed)
    with ln.init(engine):
        x = ln.random.default_rng(seed).random((14, 11), chunks=4)
        expected = x.compute()
        y = (x * 2).persist()
        z = (y + ln.asarray(np.arange(11.0))).T.persist()
        del x
        for place, victim in enumerate(victims):
            engine.lose(engine.nodes[victim % len(engine.nodes)])
            if place == 1:
                y = None  # nobody holds what z was made from
        engine.losses = losses
        try:
            assert np.array_equal((z - 1).compute(), (expected * 2 + np.arange(11)).T - 1)
            assert np.array_equal(z.compute(), (expected * 2 + np.arange(11)).T)
            if y is not None:
                assert np.array_equal(y.compute(), expected * 2)
        except JobError as error:
            assert losses
            assert "times" in str(error)


def test_what_was_made_from_arrays_of_this_process_is_named():
    engine = Here(3)
    with ln.init(engine):
        y = (ln.asarray(np.ones((300, 100)), chunks=40) * 2).persist()
        engine.lose("1")
        words = (
            r"tiles of the array of shape \(300, 100\) and dtype float64, which was persisted, lay on a node that "
            r"is gone, .*: an array of 240\.0 kB of this process .* changed since\. Persist it again.*compute\(\)"
        )
        for ask in (lambda: y.compute(), lambda: (y + 1).compute(), lambda: y.sum().persist()):
            with pytest.raises(JobError, match=words):
                ask()


@pytest.mark.slow
def test_a_loop_that_persists_remembers_few_runs_and_keeps_no_tiles():
    engine = Here(2)
    with ln.init(engine):
        x = ln.random.default_rng(1).random((8, 8), chunks=4)
        expected = x.compute()
        x = x.persist()
        earlier = []
        for _ in range(40):
            earlier.append(weakref.ref(x.__node__.tiles.tiles))
            x = (x + 1).persist()
            expected = expected + 1
        gc.collect()
        assert not any(each() for each in earlier)
        deep, origin = 0, x.__node__.tiles.tiles.origin[0]
        while origin is not None:
            deep += 1
            (kept,) = [each for each in origin._inputs.values() if hasattr(each, "origin")] or [None]
            origin = None if kept is None else kept.origin
        assert deep <= 16
        assert np.array_equal(x.compute(), expected)
        engine.lose("0")
        with pytest.raises(JobError, match="it was made from the array of shape"):
            x.compute()


def test_how_tiles_arrive_changes_no_bit():
    bound, inputs = product(tile=50)
    expected = Threads(1, deterministic=True).run(bound, inputs)["C"].to_numpy()
    assert np.array_equal(Here().run(bound, inputs)["C"].to_numpy(), expected)


@pytest.mark.parametrize("case", sorted(CASES))
@pytest.mark.parametrize("seed", range(5))
def test_results_go_where_they_are_wanted(case, seed):
    bound, inputs = CASES[case]()
    expected = Threads(1).run(bound, inputs)
    whole = {name: np.zeros_like(expected[name].to_numpy()) for name in expected}
    out = {name: TiledArray.over(array, expected[name].layout) for name, array in whole.items()}
    engine = Here(losses=3, seed=seed)
    found = engine.run(bound, inputs, out=out)
    for name, array in whole.items():
        for index, tile in found.tiles(name).items():
            assert np.array_equal(tile, expected[name].tile(index))
            assert np.shares_memory(tile, array)
    assert engine.crew is not None
    assert not engine.crew.values  # nothing is left on the cluster


def test_a_node_that_goes_when_all_is_done_takes_no_result_along():
    """Nothing had to be done again, and results were left where they lay."""

    class Late(Crew):
        def gone(self):
            if not self.waiting and self.refs and not self.dead:
                self.down.add("1")  # it has made nothing
            return super().gone()

    class Engine(Here):
        def _crew(self, job, brief, nodes):
            self.crew = Late(self.key, job, brief, list(nodes), self.chance, 0, self.values, self.down)
            return self.crew

    place = np.full(4, np.nan)
    a = TiledArray.from_numpy(np.arange(4.0), 4)
    out = {"B": TiledArray.over(place, a.layout)}
    Engine(2, policy=Always(0)).run(programs.chain.bind(N=1, M=3), {"A": a}, out=out)
    assert np.array_equal(place, np.arange(4) + 3)


class Always:
    """A policy that takes one node."""

    name = "always"

    def __init__(self, node):
        self.node = node

    def place(self, work, cluster):
        return placed(work, cluster, np.full(work.count, self.node, np.int32))


def test_tiles_are_let_go_of_as_soon_as_nobody_will_read_them():
    engine = Here(nodes=1)
    events = Events()
    dropped: list[Any] = []
    events.subscribe(dropped.append, TileDropped)
    a = np.arange(8.0)
    bound = programs.chain.bind(N=2, M=100)
    found = engine.run(bound, {"A": TiledArray.from_numpy(a, 4)}, events=events)
    assert np.array_equal(found["B"].to_numpy(), a + 100)
    assert engine.crew is not None
    assert engine.crew.most <= 2 * (4 + 4)  # as many orders as a node may have, each with its tile
    assert len(dropped) == 2 * 100 + 2
    assert isinstance(found.tiles("B"), RemoteTiles)
    assert len(engine.crew.values) == len({id(place[0]) for place in found.tiles("B").places.values()})


def test_short_tasks_go_several_to_an_order():
    engine = Here(nodes=2)
    events = Events()
    done: list[Any] = []
    events.subscribe(done.append, TaskFinished)
    bound = programs.chain.bind(N=40, M=20)
    engine.run(bound, {"A": TiledArray.from_numpy(np.zeros(40), 1)}, events=events)
    assert len(done) == bound.count() == 840
    assert engine.crew is not None
    assert engine.crew.refs < 400


def test_what_stays_on_the_cluster_is_read_there():
    engine = Here()
    first = engine.run(programs.doubled.bind(N=6), {"B": TiledArray.from_numpy(np.arange(6.0), 1)})
    kept = TiledArray(first["D"].layout, np.dtype(float), first.tiles("D"))
    assert engine.plan(programs.doubled.bind(N=6), {"B": kept}).bytes_moved == 0  # type: ignore[union-attr]
    assert len(engine._homes({"B": kept}, ["0", "1", "2"])) == 6
    again = engine.run(programs.doubled.bind(N=6), {"B": kept})
    assert engine.crew is not None
    assert engine.crew.refs <= 6  # results, and no inputs
    assert np.array_equal(again["D"].to_numpy(), 4 * np.arange(6.0))
    assert np.array_equal(kept.to_numpy(), 2 * np.arange(6.0))


def test_a_closed_engine_has_no_tiles_and_runs_nothing():
    a = numbers((6, 4))
    engine = Here()
    with ln.init(engine):
        kept = (ln.asarray(a, chunks=2) + 1).persist()
        sums = kept.sum(axis=0)
        assert np.array_equal(kept.compute(), a + 1)
    lasting = kept * 2
    assert np.array_equal(lasting.compute(), (a + 1) * 2)  # the engine was given: it is open
    engine.close()
    engine.close()
    assert not engine.values
    gone = r"the array of shape \(6, 4\) and dtype float64 was kept on <.*Here.*>, which was closed: its tiles are"
    for made in (kept, lasting, sums, kept @ kept.T):
        with pytest.raises(EngineClosedError, match=gone):
            made.compute()
        with ln.init(Here()), pytest.raises(EngineClosedError, match=gone):
            made.compute()
        with ln.init("simulated"), pytest.raises(EngineClosedError, match=gone):
            made.persist().compute()
    with pytest.raises(
        EngineClosedError, match=r"<.*Here.*> was closed and runs nothing any more; make another"
    ):
        engine.run(*product())
    with pytest.raises(EngineClosedError, match="was closed and runs nothing"):
        engine.plan(*product())
    with pytest.raises(EngineClosedError, match="was closed and runs nothing"):
        engine.workers
    assert kept.shape == (6, 4)
    assert "6" in repr(kept)


def test_what_the_tiles_were_kept_in_is_freed_when_the_engine_is_closed():
    engine = Here()
    found = engine.run(programs.doubled.bind(N=6), {"B": TiledArray.from_numpy(np.arange(6.0), 1)})
    tiles = found.tiles("D")
    assert isinstance(tiles, RemoteTiles)
    refs = [place[0].ref for place in tiles.places.values()]
    assert None not in refs
    engine.close()
    assert [place[0].ref for place in tiles.places.values()] == [None] * 6
    assert len(tiles) == 6
    with pytest.raises(EngineClosedError, match="an array was kept on"):
        tiles[0,]
    with pytest.raises(EngineClosedError, match="an array was kept on"):
        dict(tiles.items())


def test_a_run_whose_engine_is_closed_meanwhile_says_so():
    engine = Here()
    events = Events()
    events.subscribe(lambda _: engine.close(), TaskFinished)
    with pytest.raises(EngineClosedError, match="was closed and runs nothing"):
        engine.run(
            programs.chain.bind(N=4, M=100), {"A": TiledArray.from_numpy(np.zeros(4), 1)}, events=events
        )


def test_an_error_ends_the_run_and_what_waits_for_it_is_broken():
    divisors = np.array([1.0, 2.0, 0.0, 4.0])
    inputs = {"A": TiledArray.from_numpy(np.ones(4), 1), "B": TiledArray.from_numpy(divisors, 1)}
    with pytest.raises(KernelError, match="a divisor is 0") as caught:
        Here().run(programs.divided.bind(N=4), inputs)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    order = Order((programs.divided.bind(N=1).program and (0, (0,)),), ((),), frozenset(), ((), ()))  # type: ignore[arg-type]
    outcome, made = attempt("never opened", lambda: b"", order, [Broken()])
    assert outcome is None
    assert [type(each) for each in made] == [Broken, Broken]


def test_a_brief_that_cannot_be_opened_says_what_workers_need():
    order = Order(((0, (0,)),), (), frozenset(), ())  # type: ignore[arg-type]
    gone = pickle.dumps((["linnet_no_such_module"], b"", b"", {}))
    outcome, _ = attempt("broken brief", lambda: gone, order, [])
    assert isinstance(outcome, Failed)
    assert "a worker cannot run this program, ModuleNotFoundError" in str(outcome.error)
    assert "workers need the modules that its kernels use" in str(outcome.error)


def test_tasks_that_wait_for_one_another_are_an_error():
    @tile_program(verify=False)
    def turning(A: In, B: Out, T: Table, N: int):
        for i in range(N):
            B[i] = add(A[i], B[T[i]])

    with pytest.raises(ProgramError):
        Here().run(turning.bind(N=2, T=[1, 0]), {"A": TiledArray.from_numpy(np.zeros(2), 1)})


def test_without_nodes_the_run_ends():
    engine = Here(nodes=1)
    made = engine._crew

    def dying(job: str, brief: bytes, nodes: dict[str, Node]) -> Crew:
        crew = made(job, brief, nodes)
        crew.down.add(crew.names[0])
        crew.put = lambda tiles, node: [crew.ref() for _ in tiles]  # type: ignore[method-assign]
        crew.submit = lambda number, node, order, operands: [crew.ref() for _ in order.kept]  # type: ignore[method-assign]
        return crew

    engine._crew = dying  # type: ignore[method-assign]
    with pytest.raises(JobError, match="every node of the cluster is gone; start one"):
        engine.run(programs.doubled.bind(N=2), {"B": TiledArray.from_numpy(np.zeros(2), 1)})


@given(seed=st.integers(0, 10**6), nodes=st.integers(2, 6))
def test_tasks_of_lost_nodes_are_shared_among_the_others(seed, nodes):
    bound, inputs = product(n=4, k=4)
    work = Workload.of(bound, inputs)
    rng = np.random.default_rng(seed)
    placed, homes = rng.integers(0, nodes, work.count), rng.integers(0, nodes, work.tiles)
    gone = set(rng.permutation(nodes)[: rng.integers(1, nodes)].tolist())
    left = [node for node in range(nodes) if node not in gone]
    after, homes_after = reassigned(work, placed, homes, gone, left)
    stayed = ~np.isin(placed, list(gone))
    assert np.array_equal(after[stayed], placed[stayed])
    assert set(after.tolist()) | set(homes_after.tolist()) <= set(left)
    moved = np.bincount(after[~stayed], work.flops[~stayed], nodes)[left]
    assert moved.max() <= work.flops[~stayed].sum() / len(left) + work.flops.max()
