"""Calls on the workers of a Dask cluster.

Each call is bound to one worker. Dask runs a task again elsewhere if its worker dies, which must not happen
to a call that may have effects; one that is bound waits instead, and is found here to be lost.
"""

from __future__ import annotations

import itertools
import os
import time
from collections import Counter
from concurrent.futures import CancelledError
from typing import Any

from linnet.engines.dask import Dask
from linnet.futures.answering import answers
from linnet.futures.carrying import Answered, ClusterCalls
from linnet.futures.travelling import Lost

_AWAY = 0.5
"""Seconds between looks for workers that are gone."""


class DaskCalls(ClusterCalls):
    """Takes calls to Dask."""

    look_every = _AWAY

    def __init__(self, engine: Dask) -> None:
        self._client = engine.client
        self._name = f"linnet-call-{os.urandom(6).hex()}"
        self._numbers = itertools.count()
        self._threads: dict[str, int] = {}
        self._where: dict[Any, str] = {}
        """The worker of each call."""
        self._looked = 0.0
        super().__init__(engine)

    def begin(self, sent: bytes, node: str | None, answered: Answered) -> None:
        with self._lock:
            where = node or self._idlest()
            key = f"{self._name}-{next(self._numbers)}"
            self._where[key] = where
        self.wait_for(key, answered)
        made = self._client.submit(_made, sent, key=key, workers=[where], pure=False)
        made.add_done_callback(self.hear)

    def _idlest(self) -> str:
        """The worker with the fewest calls."""
        calls = Counter(self._where.values())
        return min(self.names, key=lambda each: calls[each])

    def open(self, heard: list[Any]) -> None:
        ended = [each for each in heard if each.status == "finished"]
        try:
            found: Any = dict(zip([each.key for each in ended], self._client.gather(ended), strict=True))
        except Exception:
            found = {}
        for each in heard:
            with self._lock:
                self._where.pop(each.key, None)
            self.answer(each.key, found[each.key] if each.key in found else _answer_of(each))
            each.release()
        if time.monotonic() > self._looked + _AWAY:
            self.look()

    def look(self) -> None:
        self._looked: float = time.monotonic()
        try:
            there = set(self._client.nthreads())
        except Exception as error:
            there, why = set[str](), f"Dask's scheduler does not answer: {type(error).__name__}: {error}"
        else:
            why = "its worker is gone"
        with self._lock:
            lost = {key: where for key, where in self._where.items() if where not in there}
            for key in lost:
                del self._where[key]
        if lost:
            self._seen: float = 0.0  # no further call goes there
        for key, where in lost.items():
            self.answer(key, Lost(f"{why} ({where})"))

    def let_go(self) -> None:
        with self._lock:
            self._where.clear()
        super().let_go()


def _answer_of(future: Any) -> bytes | BaseException:
    try:
        return future.result(timeout=30)
    except CancelledError:
        return Lost(f"Dask says {future.status}")
    except Exception as error:
        return Lost(f"Dask says {type(error).__name__}: {error}")


def _made(body: bytes) -> bytes:
    """Calls, on a worker of Dask; its threads make several at a time."""
    return answers(body)
