"""`linnet plan script.py`: the plan of everything that a script would compute; nothing runs."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from linnet.tiles.amounts import total_memory

if TYPE_CHECKING:
    from collections.abc import Mapping

    from linnet.engines import Outputs
    from linnet.planning.cluster import Cluster
    from linnet.planning.plan import Plan
    from linnet.programs import BoundProgram
    from linnet.tiles import TiledArray


def plan(
    script: Annotated[Path, typer.Argument(help="The script.", exists=True, dir_okay=False)],
    arguments: Annotated[list[str] | None, typer.Argument(help="What the script is given.")] = None,
    nodes: Annotated[int, typer.Option(min=1, help="Nodes to plan for.")] = 1,
    workers: Annotated[int | None, typer.Option(min=1, help="Workers of a node; by default, cores.")] = None,
    memory: Annotated[str | None, typer.Option(help="Memory of a node, such as '64 GB'.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a plan, a line each.")] = False,
) -> None:
    """Print the plan of every computation of a script, without running any.

    Results are zeros of the right shape, so a script that looks at values may take another way than it would.
    With --json, what the script itself prints goes to stderr.
    """
    from linnet.cli.run import run_to_its_end
    from linnet.engines import available_cores
    from linnet.planning.cluster import Cluster
    from linnet.session import init

    budget: dict[str, Any] = {} if memory is None else {"memory": memory}
    cluster = Cluster(nodes=nodes, workers=workers or available_cores(), **budget)
    sys.argv = [str(script), *(arguments or [])]
    sys.path.insert(0, str(script.resolve().parent))
    engine = Planning(cluster, as_json)
    with ExitStack() as stack:
        if as_json:
            stack.enter_context(redirect_stdout(sys.stderr))
        stack.callback(init(engine).close)
        run_to_its_end(script)
    if not engine.plans:
        typer.echo("linnet: the script computes nothing that would be planned", err=True)


class Planning:
    """An engine that plans what it is given, tells of it, and makes results of zeros."""

    shares_memory = False
    deterministic = True

    def __init__(self, cluster: Cluster, as_json: bool) -> None:
        self.cluster = cluster
        self.memory: int | None = cluster.nodes[0].memory or total_memory()
        """Of a node; results take none, since nobody writes to them."""
        self.plans = 0
        """How many were told."""
        self._json = as_json
        self._told = sys.stdout

    @property
    def workers(self) -> int:
        """How many tasks would run side by side."""
        return self.cluster.workers

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Plan:
        """What a run would follow."""
        from linnet.planning.choosing import choose
        from linnet.planning.workload import Workload

        return choose(Workload.of(bound, inputs), self.cluster, "auto")

    def run(
        self, bound: BoundProgram, inputs: Mapping[str, TiledArray], *, out: Any = None, events: Any = None
    ) -> Outputs:
        """Tell the plan; results are zeros."""
        from linnet.programs import Out
        from linnet.programs.outputs import Outputs
        from linnet.programs.shapes import Shapes
        from linnet.tiles import TileKey

        self._tell(self.plan(bound, inputs), bound)
        shapes = Shapes(bound, inputs)
        written: dict[str, Mapping[Any, Any]] = {}
        for name, role in bound.program.arrays.items():
            if not isinstance(role, Out):
                continue
            if out and name in out:
                written[name] = out[name].tiles
                continue
            keys = [TileKey(name, index) for index in np.ndindex(*bound.grid(name))]
            written[name] = {key.index: _zeros(shapes.describe(key)) for key in keys if bound.writer(key)}
        return Outputs(bound, written)

    def _tell(self, made: Plan, bound: BoundProgram) -> None:
        self.plans += 1
        if self._json:
            told = {
                "program": bound.program.name,
                "tasks": made.work.count,
                "seconds": made.seconds,
                "bytes_moved": made.bytes_moved,
                "lower_bound": made.lower_bound,
                "peak_memory": np.asarray(made.peak_memory).tolist(),
                "policy": made.policy,
            }
            typer.echo(json.dumps(told), file=self._told)
        else:
            typer.echo(f"{self.plans}. {made!r}\n")

    def zeros(self, shape: tuple[int, ...], dtype: Any) -> Any:
        """An array for results."""
        return np.zeros(shape, dtype)

    def close(self) -> None:
        """There is nothing to close."""


def _zeros(described: Any) -> Any:
    """A tile of zeros that takes no memory."""
    return np.broadcast_to(np.zeros((), described.dtype), described.shape)
