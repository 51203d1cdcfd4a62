"""The last steps of tasks: tiles stored, the ledger told, children put into the queue; and undoing losses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Literal

from linnet.errors import DamagedTileError, JobFailedError, MissingTileError, StoreError
from linnet.programs import Task
from linnet.tiles import TileKey
from linnet.workers.array_specs import tile_key
from linnet.workers.attempt import Attempt, Calls
from linnet.workers.expansion import children_of
from linnet.workers.job_parts import Parts
from linnet.workers.ledger import PAGE, Completion
from linnet.workers.names import Seed, name_of, named
from linnet.workers.queue import Lease
from linnet.workers.second_parts import calls_for_more
from linnet.workers.spec import JobSpec, spec_key
from linnet.workers.traffic import Traffic
from linnet.workers.worker_events import Teller

_DELETED_AT_ONCE = 500

Recovery = Literal["over", "again"]
"""The attempt is over, and its task waits or is done; it should be begun again."""


class Completions:
    """What a worker does with attempts that were computed."""

    def __init__(self, parts: Parts, spec: JobSpec, calls: Calls, traffic: Traffic, teller: Teller) -> None:
        self._teller = teller
        self._ledger, self._queue = parts.ledger, parts.queue
        self._folder = parts.folder
        self._store, self._job = parts.store, parts.address.job
        self._spec, self._calls, self._traffic = spec, calls, traffic

    def write(self, attempt: Attempt) -> None:
        """Store the results of an attempt under its token; if they decide, see what they say."""
        self._teller.written(self._calls.write(attempt, self._traffic))
        gate = self._spec.gate
        if gate is not None and attempt.name == self._spec.decider:
            # From the store, since the attempt may have been computed, and its tiles written, elsewhere.
            (tile,) = self._traffic.read([tile_key(self._folder, gate.tile, attempt.token)])
            attempt.calls_for_more = calls_for_more(tile)

    def complete(self, attempts: Sequence[Attempt], claim: int) -> tuple[list[Lease], int]:
        """Tell the ledger, put ready children into the queue, take the tasks out of it.

        Up to `claim` of the children are leased at once: their leases are returned, and how many tasks
        were done by this, and not by others before.
        """
        late: list[Attempt] = []
        first = 0
        over: list[Lease] = []
        void: list[Lease] = []
        with self._ledger.grouped():
            ready: dict[str, None] = {}
            pages = [self._completion(each) for each in attempts]
            for attempt, done in zip(attempts, self._ledger.complete(pages), strict=True):
                if done.ready:
                    ready.update(dict.fromkeys(done.ready))
                if done.token == attempt.token:
                    self._teller.finished(attempt)
                    first += not isinstance(attempt.task, Seed)
                else:
                    late.append(attempt)
                if attempt.lease is not None:
                    (over if done.token else void).append(attempt.lease)
            self._teller.ready(list(ready))
            self._teller.flush()
            entries = self._spec.entries(ready)
            entries.sort(key=lambda entry: -entry.priority)
            leases = self._queue.put(entries, claim=claim, seconds=self._spec.options.lease)
            self._queue.remove(over)
            self._queue.release(void)  # these count no more, and perhaps nobody else does the task
        for attempt in late:
            # Another attempt was first: nobody will ever read these tiles.
            self._delete(tile_key(self._folder, key, attempt.token) for key in self._outputs(attempt.name))
        return leases, first

    def _completion(self, attempt: Attempt) -> Completion:
        """The last page of children of an attempt; those before it are told at once."""
        counted = not isinstance(attempt.task, Seed)
        bound, gate = self._calls.bound, self._spec.gate
        children = children_of(bound, attempt.task, None if gate is None else gate.statement)
        page = list(islice(children, PAGE))
        while following := list(islice(children, PAGE)):
            (done,) = self._ledger.complete(
                [Completion(attempt.name, attempt.token, page, (), last=False, counted=counted)]
            )
            self._teller.ready(done.ready)
            self._teller.flush()
            self._put(done.ready)
            page = following
        last = Completion(
            attempt.name, attempt.token, page, attempt.parents, counted=counted, seconds=attempt.seconds
        )
        if gate is None or not attempt.calls_for_more:
            return last
        return last._replace(chosen=gate.seeds(bound), total=self._spec.total)

    def _put(self, names: Iterable[str]) -> None:
        self._queue.put(self._spec.entries(names))

    # ---- what nobody needs

    def delete_unneeded(self, grace: float) -> bool:
        """Delete tiles of tasks whose children are all done, for at least `grace` seconds, some at a time.

        Whether there were any.
        """
        told = self._ledger.discarded(grace, _DELETED_AT_ONCE)
        gone = [
            (key, token)
            for name, token in told
            for key in self._outputs(name)
            if self._calls.is_temporary(key)
        ]
        self._delete(tile_key(self._folder, key, token) for key, token in gone)
        for key, _ in gone:
            self._teller.dropped(key)
        return bool(told)

    def _delete(self, keys: Iterable[str]) -> None:
        """Delete tiles; what the store does not delete now is swept away when the job is finished."""
        with suppress(StoreError):
            self._traffic.delete(keys)

    def delete_of_deleted(self, attempts: Mapping[int, str]) -> None:
        """The job was deleted while its ledger was not looked at: delete what these attempts wrote.

        A ledger that was lost is built anew from such tiles, so they stay where the job does.
        """
        with suppress(StoreError):
            if not self._is_stored():
                written = ((key, token) for token, name in attempts.items() for key in self._outputs(name))
                self._delete(tile_key(self._folder, key, token) for key, token in written)

    def _is_stored(self) -> bool:
        """Whether the job is in its store; another one may have its name by now."""
        try:
            there = JobSpec.from_bytes(memoryview(self._store.get(spec_key(self._job))))
        except MissingTileError:
            return False
        return there.identity == self._spec.identity

    def _outputs(self, name: str) -> list[TileKey]:
        task = named(name)
        return self._calls.written(self._calls.bound.call(task)) if isinstance(task, Task) else []

    # ---- what was lost

    def recover(self, attempt: Attempt) -> Recovery:
        """Let the tasks whose tiles an attempt misses run again.

        An attempt whose task was done meanwhile misses its tiles because they were deleted: it is over.
        JobFailedError if an input is lost, which no task writes.
        """
        (published,) = self._ledger.published([attempt.name])
        if published:
            return "over"
        assert attempt.call is not None
        lost = [key for key in self._calls.operands(attempt.call) if not self._readable(attempt, key)]
        gone = next(filter(self._calls.is_input, lost), None)
        if gone is not None:
            raise JobFailedError(self._calls.lost_input(gone))
        bound = self._calls.bound
        waits = bool(lost)
        for writer in {bound.writer(key) for key in lost}:
            assert writer is not None
            name = name_of(writer)
            parents = [name_of(each) for each in bound.parents(writer)]
            if self._ledger.reopen(name, attempt.published[name], parents, attempt.name):
                self._put([name])
            else:
                waits = False
        return "over" if waits else "again"

    def _readable(self, attempt: Attempt, key: TileKey) -> bool:
        source = self._calls.source(key, attempt.published)
        if not isinstance(source, str):
            return True
        try:
            self._traffic.read([source])
        except (MissingTileError, DamagedTileError):
            self._delete([] if self._calls.is_input(key) else [source])
            return False
        return True
