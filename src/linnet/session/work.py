"""The one place that joins the stages: an expression is lowered, and then run, planned or submitted.

Whoever makes expressions (arrays, programs) says one thing of them: what they are, as a program, in a given
setting. What can be done with that stands here, once.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from linnet.engines import Engine, Outputs
from linnet.errors import LinAlgError, warn_of
from linnet.events import Sink
from linnet.events.resident import resident
from linnet.events.watching import sink_of_run
from linnet.kernels import get as get_kernel
from linnet.planning.cluster import Cluster
from linnet.programs import BoundProgram, Out
from linnet.programs.compose import compose
from linnet.programs.program import TileProgram
from linnet.records import record
from linnet.tiles import TiledArray, TileKey

if TYPE_CHECKING:  # who only computes arrays does not wait for planning and workers to be imported
    from linnet.planning.placement import Policy
    from linnet.planning.plan import Plan
    from linnet.planning.workload import Workload
    from linnet.workers.array_specs import Asked
    from linnet.workers.client import Job
    from linnet.workers.second_parts import Gate


class Setting(NamedTuple):
    """Where a program will run: all that its choice may depend on."""

    nodes: int = 1
    """Among how many nodes work is spread."""
    grid: tuple[int, ...] | None = None
    """How they are arranged, if somebody said so."""
    memory: int | None = None
    """Bytes that tiles may take; None: there is no limit."""
    at_hand: bool = False
    """Whether workers share this process's memory, without a limit, and bits may depend on it: tiles in
    between then cost nothing."""
    workers: int = 1
    """How many tasks run side by side; told only where tiles are at hand."""
    trusting: bool = True
    """Whether a program may run whose results are looked at afterwards, and perhaps not taken."""

    @classmethod
    def of(cls, engine: Engine) -> Setting:
        """That of an engine."""
        at_hand = engine.shares_memory and engine.memory is None and not engine.deterministic
        here = cls.on(engine.cluster)
        return here._replace(memory=engine.memory, at_hand=at_hand, workers=engine.workers if at_hand else 1)

    @classmethod
    def on(cls, cluster: Cluster | None) -> Setting:
        """That of a cluster; None: one node."""
        return cls() if cluster is None or cluster.count == 1 else cls(cluster.count, cluster.grid)


@record
class Work:
    """What an expression is in a setting."""

    bound: BoundProgram
    """The program."""
    inputs: Mapping[str, TiledArray]
    """What it reads."""
    asked: Asked | None = None
    """Which arrays are wanted of it; None: the outputs of a program as such."""
    conditions: tuple[str, ...] = ()
    """Outputs of one number each that say how well systems could be solved: they are told as warnings."""
    doubt: str | None = None
    """The output, one number, that is not 0 if nothing of a run is to be taken: the expression is then
    lowered again, for a setting without trust."""


class Expression(Protocol):
    """What can be run, planned and submitted."""

    def lowered(self, setting: Setting) -> Work:
        """What it is in a setting."""
        ...


@record
class Program:
    """A program with its inputs, as an expression."""

    bound: BoundProgram
    inputs: Mapping[str, TiledArray] = field(default_factory=dict[str, TiledArray])

    def lowered(self, setting: Setting) -> Work:
        """The program is the same everywhere."""
        return Work(self.bound, self.inputs)


def run(
    expression: Expression,
    engine: Engine,
    *,
    out: Callable[[Work], Mapping[str, TiledArray]] | None = None,
    events: Sink | None = None,
) -> tuple[Work, Outputs]:
    """Run an expression; `out` makes places for results once it is known what the program is.

    Where its own results say that they are not to be trusted, it is run again without trust; so it is where
    something failed that may have had such results before it.
    """
    setting = Setting.of(engine)
    work = expression.lowered(setting)
    try:
        results = engine.run(
            work.bound,
            work.inputs,
            out=None if out is None else out(work),
            events=_sink(work, engine, events),
        )
        doubted = work.doubt is not None and _number(results, work.doubt) != 0
    except LinAlgError:
        if work.doubt is None:
            raise
        doubted = True
    if doubted:
        work = expression.lowered(setting._replace(trusting=False))
        results = engine.run(
            work.bound,
            work.inputs,
            out=None if out is None else out(work),
            events=_sink(work, engine, events),
        )
    for name in work.conditions:
        warn_of(_number(results, name))  # type: ignore[possibly-undefined]
    return work, results  # type: ignore[possibly-undefined]


def _sink(work: Work, engine: Engine, events: Sink | None) -> Sink:
    """Where a run sends its events: to who asked for them, and to all who watch this process."""
    return sink_of_run(
        events,
        engine,
        tasks=getattr(engine, "tells_tasks", False),
        budget=engine.memory,
        base=None if engine.memory is None else resident(),
        ran=Ran.of(work),
    )


class Ran(NamedTuple):
    """What ran, for reports. It keeps neither arrays nor the program, which may hold functions of users."""

    program: weakref.ref[TileProgram]
    sizes: Mapping[str, int]
    tables: Mapping[str, Any]
    inputs: Mapping[str, tuple[Any, Any]]
    """Layouts and dtypes."""

    @classmethod
    def of(cls, work: Work) -> Ran:
        """What is about to run."""
        bound = work.bound
        inputs = {name: (array.layout, array.dtype) for name, array in work.inputs.items()}
        return cls(weakref.ref(bound.program), bound.sizes, bound.tables, inputs)

    def workload(self) -> Workload | None:
        """What its tasks compute; None: the program is gone."""
        from linnet.planning.workload import Workload

        program = self.program()
        if program is None:
            return None
        bound = program.bind(**self.sizes, **{name: self.tables[name].array for name in program.tables})
        inputs = {name: TiledArray(layout, dtype, {}) for name, (layout, dtype) in self.inputs.items()}
        return Workload.of(bound, inputs)


def _number(made: Outputs, name: str) -> float:
    """The only number of an output."""
    (tile,) = made.tiles(name).values()
    return float(tile[0])


def plan(
    expression: Expression,
    engine: Engine | None,
    cluster: Cluster | None = None,
    policy: str | Policy = "auto",
) -> Plan:
    """How an expression would run on a cluster, or on an engine, whose plan it is if that makes one."""
    from linnet.planning.choosing import choose
    from linnet.planning.workload import Workload

    if cluster is None:
        assert engine is not None
        cluster = engine.cluster
        if cluster is None:
            cluster = Cluster(nodes=1, workers=engine.workers, memory=engine.memory)
        work = expression.lowered(Setting.of(engine))
        of_engine = engine.plan(work.bound, work.inputs) if policy == "auto" else None
        return (
            choose(Workload.of(work.bound, work.inputs), cluster, policy) if of_engine is None else of_engine
        )
    work = expression.lowered(Setting.on(cluster))
    return choose(Workload.of(work.bound, work.inputs), cluster, policy)


def submit(expression: Expression, **options: Any) -> Job:
    """Give an expression to stateless workers; `options` are those of `workers.client.submit`.

    Where results may have to be made again without trust, the job holds both programs, and workers decide;
    but for an expression in which something could fail for having such results before it: that is not
    trusted from the beginning.
    """
    from linnet.reports.registry import register

    job = _submitted(expression, options)
    register("job", job.spec.program.name, job.address)
    return job


def _submitted(expression: Expression, options: dict[str, Any]) -> Job:
    from linnet.workers import client

    work = expression.lowered(Setting())
    if work.doubt is None:
        return client.submit(work.bound, work.inputs, asked=work.asked, **options)
    careful = expression.lowered(Setting(trusting=False))
    if any(get_kernel(each.kernel).refuses for each in work.bound.program.statements):
        return client.submit(careful.bound, careful.inputs, asked=careful.asked, **options)
    bound, gate = _both(work, careful)
    return client.submit(bound, work.inputs, asked=work.asked, gate=gate, **options)


def _both(first: Work, second: Work) -> tuple[BoundProgram, Gate]:
    """Two programs for the same results as the parts of one, of which the first says whether it is enough."""
    from linnet.workers.second_parts import Gate

    one, other = first.bound.program.tree, second.bound.program.tree
    joined = compose(one, other, {}, {}, keep=True)
    added = [each.name for each in joined.parameters[len(one.parameters) :] if isinstance(each.role, Out)]
    instead = dict(zip(other.roles(Out), added, strict=True))
    assert first.doubt is not None
    gate = Gate(len(first.bound.program.statements), TileKey(first.doubt, (0,)), instead)
    return TileProgram(joined, verify=False).bind(), gate
