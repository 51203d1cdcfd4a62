"""Calls on the workers of a Ray cluster: what is sent together is one task of Ray's."""

from __future__ import annotations

from typing import Any

from linnet.engines.ray import Ray
from linnet.futures.answering import answers
from linnet.futures.carrying import Answered, ClusterCalls
from linnet.futures.travelling import Lost


class RayCalls(ClusterCalls):
    """Takes calls to Ray."""

    def __init__(self, engine: Ray) -> None:
        import ray

        self._remote: Any = ray.remote(num_cpus=1, max_retries=0)(_made)
        self._pinned: dict[str, Any] = {}
        super().__init__(engine)

    def room(self, workers: int) -> int:
        return 4 * workers  # a worker finds its next call there when it ends one

    def begin(self, sent: bytes, node: str | None, answered: Answered) -> None:
        ref = (self._remote if node is None else self._on(node)).remote(sent)
        self.wait_for(ref, answered)
        ref._on_completed(lambda found: self.hear((ref, found)))

    def _on(self, node: str) -> Any:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        found = self._pinned.get(node)
        if found is None:
            strategy = NodeAffinitySchedulingStrategy(node, soft=False)
            found = self._pinned[node] = self._remote.options(scheduling_strategy=strategy)
        return found

    def open(self, heard: list[Any]) -> None:
        for ref, found in heard:
            self.answer(ref, found if isinstance(found, bytes) else Lost(_said(found)))


def _said(found: Any) -> str:
    """What Ray says of a task that gave nothing, in one line."""
    lines = [line.strip() for line in str(found).splitlines() if line.strip()]
    return f"Ray says {type(found).__name__}: {lines[0] if lines else ''}"


def _made(body: bytes) -> bytes:
    """Calls, on a worker of Ray, which makes one at a time."""
    return answers(body, alone=True)
