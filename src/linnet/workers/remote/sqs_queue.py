"""The queue of a job in SQS.

SQS has no priorities, so there are three queues, `PREFIX-JOB-0` to `-2`, from urgent to not. Which one
a task goes into is told by its rank among the priorities this process has put lately. They are asked
in order; so a task of a lower band waits for those above, as long as one worker finds any there.

Visibility is the lease: a message that was received is invisible until its time is over, by the clock
of SQS; the receipt handle names that one delivery. SQS may take an old handle for a new one, so a process
counts the seconds of its leases, too, and does nothing with one whose time is over.

A message holds the task's name, and how often it was delivered before (a task that was given back is a
new message). SQS may deliver a message twice, and the same task may be there twice: workers are made
for that. Messages that are no names of tasks are removed.

`sqs://REGION/PREFIX` says where; keys come from the environment, as boto3 reads it.
"""

from __future__ import annotations

import bisect
import importlib
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, TypeVar
from urllib.parse import urlsplit

from linnet.errors import AddressError, StoreError, WireError, missing_extra
from linnet.workers.names import named
from linnet.workers.queue import Entry, Lease, QueueSize

BANDS = 3
_AT_ONCE = 10
"""Messages in one request, at most: a rule of SQS."""
_LONGEST = 43_200
"""Seconds that a message can stay invisible: a rule of SQS."""
_REMEMBERED = 1000
"""Priorities by which new ones are ranked."""
_DEAD = "dead"

T = TypeVar("T")


class SqsQueue:
    """Ready tasks as messages; what was delivered too often goes to a queue `PREFIX-JOB-dead`."""

    def __init__(self, url: str, job: str, *, most_deliveries: int = 50) -> None:
        parts = urlsplit(url)
        self._prefix = parts.path.strip("/") or "linnet"
        if not parts.netloc:
            raise AddressError(f"{url} names no region: expected sqs://REGION/PREFIX")
        self.url: str = f"sqs://{parts.netloc}/{self._prefix}"
        self._job = job
        self._most = most_deliveries
        self._client, self._refusals = _client(self.url, parts.netloc)
        self._ranks = _Ranks()
        self._ends: dict[str, float] = {}
        """When the time of each lease is over, by the clock of this process."""
        self._make()

    def _make(self) -> None:
        """Make the queues, as far as they are not there."""
        names = [f"{self._prefix}-{self._job}-{band}" for band in (*range(BANDS), _DEAD)]
        *self._bands, self._dead = (self._do("create_queue", QueueName=name)["QueueUrl"] for name in names)

    def __repr__(self) -> str:
        return f"SqsQueue({self.url}, job {self._job})"

    def _do(self, action: str, passed_over: Any = (), **arguments: Any) -> Any:
        try:
            return getattr(self._client, action)(**arguments)
        except passed_over:
            return None
        except self._refusals as error:
            raise StoreError(
                f"{self.url} refused {action}: {error}; see the keys and rights of this process "
                "(AWS_ACCESS_KEY_ID, sqs:* on the queues of this prefix), and the region"
            ) from None

    # ---- in

    def put(self, entries: Sequence[Entry], *, claim: int = 0, seconds: float = 0) -> list[Lease]:
        """Nothing is claimed: SQS does not let a message be received by its sender at once."""
        by_band: dict[int, list[str]] = {}
        for name in dict.fromkeys(entry.name for entry in entries):
            priority = max(entry.priority for entry in entries if entry.name == name)
            by_band.setdefault(self._ranks.band(priority), []).append(name)
        for band, names in by_band.items():
            self._send(self._bands[band], [f"{name} 0" for name in names])
        return []

    def _send(self, place: str, bodies: Sequence[str]) -> None:
        for page in _pages(bodies):
            entries = [{"Id": str(i), "MessageBody": body} for i, body in enumerate(page)]
            self._settled(self._do("send_message_batch", QueueUrl=place, Entries=entries), "were not put")

    def _settled(self, answer: Any, what: str) -> None:
        failed = answer.get("Failed", [])
        if failed:
            raise StoreError(f"{self.url}: {len(failed)} tasks {what}: {failed[0].get('Message', '')}")

    # ---- leases

    def lease(self, limit: int, seconds: float) -> list[Lease]:
        found: list[Lease] = []
        for band, place in enumerate(self._bands):
            while len(found) < limit:
                start = time.monotonic()
                got = self._received(place, min(limit - len(found), _AT_ONCE), seconds)
                if not got:
                    break
                leases = [lease for message in got if (lease := self._leased(band, message)) is not None]
                self._ends.update((lease.receipt, start + _whole(seconds)) for lease in leases)
                found += leases
        self._ends = {receipt: end for receipt, end in self._ends.items() if end > time.monotonic()}
        return found

    def _received(self, place: str, limit: int, seconds: float) -> list[Any]:
        answer = self._do(
            "receive_message",
            QueueUrl=place,
            MaxNumberOfMessages=limit,
            VisibilityTimeout=_whole(seconds),
            MessageSystemAttributeNames=["ApproximateReceiveCount"],
        )
        return answer.get("Messages", [])

    def _leased(self, band: int, message: Any) -> Lease | None:
        """The lease of a message, unless it is no task, or was delivered too often."""
        handle, place = message["ReceiptHandle"], self._bands[band]
        name, _, earlier = message["Body"].partition(" ")
        try:
            named(name)
            deliveries = int(message["Attributes"]["ApproximateReceiveCount"]) + int(earlier or 0)
        except (WireError, ValueError):
            self._do("delete_message", QueueUrl=place, ReceiptHandle=handle)
            return None
        if deliveries > self._most:
            self._send(self._dead, [name])
            self._do("delete_message", QueueUrl=place, ReceiptHandle=handle)
            return None
        return Lease(name, f"{band} {handle}", deliveries)

    def renew(self, leases: Sequence[Lease], seconds: float) -> list[bool]:
        """One request for ten leases of a band."""
        current = self._current(leases)
        for place, page in self._by_place(current):
            start = time.monotonic()
            entries = [
                {"Id": str(i), "ReceiptHandle": self._parts(lease)[1], "VisibilityTimeout": _whole(seconds)}
                for i, lease in enumerate(page)
            ]
            answer = self._do("change_message_visibility_batch", QueueUrl=place, Entries=entries)
            kept = {each["Id"] for each in answer.get("Successful", [])}
            for i, lease in enumerate(page):
                self._ends[lease.receipt] = start + _whole(seconds) if str(i) in kept else 0.0
        held = {lease.receipt for lease in self._current(current)}
        return [lease.receipt in held for lease in leases]

    def release(self, leases: Sequence[Lease]) -> None:
        """SQS counts every delivery, so a task given back is a new message that knows its count."""
        for place, page in self._by_place(self._current(leases)):
            self._send(place, [f"{lease.name} {lease.deliveries - 1}" for lease in page])
            self._delete(place, page)

    def remove(self, leases: Sequence[Lease]) -> None:
        for place, page in self._by_place(self._current(leases)):
            self._delete(place, page)

    def _current(self, leases: Sequence[Lease]) -> list[Lease]:
        """Those whose time is not over; counted from before SQS was asked, so that nobody else has them."""
        now = time.monotonic()
        return [lease for lease in leases if self._ends.get(lease.receipt, 0.0) > now]

    def _delete(self, place: str, page: Sequence[Lease]) -> None:
        entries = [{"Id": str(i), "ReceiptHandle": self._parts(lease)[1]} for i, lease in enumerate(page)]
        self._settled(self._do("delete_message_batch", QueueUrl=place, Entries=entries), "were not removed")

    def _by_place(self, leases: Sequence[Lease]) -> Iterator[tuple[str, Sequence[Lease]]]:
        """Leases of one band, ten at most at a time."""
        for place in self._bands:
            for page in _pages([lease for lease in leases if self._parts(lease)[0] == place]):
                yield place, page

    def _parts(self, lease: Lease) -> tuple[str, str]:
        """The queue and the receipt handle of a lease."""
        band, _, handle = lease.receipt.partition(" ")
        return self._bands[int(band)], handle

    # ---- the whole

    def size(self) -> QueueSize:
        """As SQS tells it: roughly, and a little late."""
        counts = [self._counts(place) for place in self._bands]
        dead = sum(self._counts(self._dead))
        return QueueSize(sum(ready for ready, _ in counts), sum(leased for _, leased in counts), dead)

    def _counts(self, place: str) -> tuple[int, int]:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        answer = self._do("get_queue_attributes", QueueUrl=place, AttributeNames=names)
        return int(answer["Attributes"][names[0]]), int(answer["Attributes"][names[1]])

    def dead(self) -> list[str]:
        found: list[Any] = []
        while got := self._received(self._dead, _AT_ONCE, 60):
            found += got
        for message in found:
            self._do(
                "change_message_visibility",
                QueueUrl=self._dead,
                ReceiptHandle=message["ReceiptHandle"],
                VisibilityTimeout=0,
            )
        return sorted({message["Body"] for message in found})

    def clear(self) -> None:
        """SQS empties a queue at most once a minute; until then, what can be received is deleted.

        Messages under lease come back then. They name tasks that are done, or are done twice.
        """
        gone, purged = (
            getattr(self._client.exceptions, name) for name in ("QueueDoesNotExist", "PurgeQueueInProgress")
        )
        self._make()  # somebody may have deleted them
        for place in (*self._bands, self._dead):
            if self._do("purge_queue", (gone, purged), QueueUrl=place) is None:
                self._drain(place, gone)
        self._ends.clear()

    def _drain(self, place: str, gone: Any) -> None:
        """Delete what can be received."""
        ask: dict[str, Any] = {"MaxNumberOfMessages": _AT_ONCE, "VisibilityTimeout": 60}
        while answer := self._do("receive_message", gone, QueueUrl=place, **ask):
            got: list[Any] = answer.get("Messages", [])
            if not got:
                return
            handles = [{"Id": str(i), "ReceiptHandle": each["ReceiptHandle"]} for i, each in enumerate(got)]
            self._do("delete_message_batch", gone, QueueUrl=place, Entries=handles)

    def drop(self) -> None:
        gone = self._client.exceptions.QueueDoesNotExist
        for place in (*self._bands, self._dead):
            self._do("delete_queue", gone, QueueUrl=place)

    def grouped(self) -> AbstractContextManager[object]:
        return nullcontext()

    def close(self) -> None:
        self._client.close()


class _Ranks:
    """Bands of priorities by their rank among those seen lately.

    >>> ranks = _Ranks()
    >>> [ranks.band(priority) for priority in (5, 5, 9, 1, 5)]
    [1, 1, 0, 2, 1]
    """

    def __init__(self) -> None:
        self._sorted: list[int] = []

    def band(self, priority: int) -> int:
        """0 for the highest third, BANDS - 1 for the lowest."""
        seen = self._sorted
        if len(seen) >= _REMEMBERED:
            del seen[random.randrange(len(seen))]
        bisect.insort(seen, priority)
        middle = (bisect.bisect_left(seen, priority) + bisect.bisect_right(seen, priority)) / 2
        return BANDS - 1 - min(int(BANDS * middle / len(seen)), BANDS - 1)


def _client(url: str, region: str) -> tuple[Any, Any]:
    try:
        boto3: Any = importlib.import_module("boto3")
        errors: Any = importlib.import_module("botocore.exceptions")
    except ImportError as error:
        raise missing_extra(url, "boto3", "sqs") from error
    return boto3.client("sqs", region_name=region), (errors.BotoCoreError, errors.ClientError)


def _whole(seconds: float) -> int:
    """SQS takes whole seconds."""
    return max(0, min(_LONGEST, -int(-seconds // 1)))


def _pages(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), _AT_ONCE):
        yield items[start : start + _AT_ONCE]
