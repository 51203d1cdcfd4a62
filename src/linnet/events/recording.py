"""Events as lines of JSON: to keep, to send, to make reports from later."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any, cast

from linnet.errors import RecordingError
from linnet.events.hub import Events
from linnet.events.types import ALL_EVENTS, Event

_KINDS = {kind.__name__: kind for kind in ALL_EVENTS}


def to_json(event: Event) -> str:
    """One line, without its end.

    >>> from linnet.events import WorkerStarted
    >>> to_json(WorkerStarted("job", 1.5, "w0"))
    '{"event":"WorkerStarted","job":"job","at":1.5,"worker":"w0"}'
    """
    values = {field.name: getattr(event, field.name) for field in dataclasses.fields(event)}
    return json.dumps({"event": type(event).__name__, **values}, separators=(",", ":"))


def from_json(line: str) -> Event:
    """The event of one line; `RecordingError` if it is none."""
    try:
        values = json.loads(line)
        kind = _KINDS[values.pop("event")]
        return kind(**{name: _tuples(value) for name, value in values.items()})
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        shown = line if len(line) <= 80 else line[:77] + "..."
        raise RecordingError(f"not a recorded event: {shown!r} ({type(error).__name__}: {error})") from error


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, cast("list[Any]", value))) if isinstance(value, list) else value


class Recorder:
    """Writes every event it hears to a file, a line each; a listener and a context manager.

    >>> import tempfile
    >>> from linnet.events import Progress
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Recorder(f"{folder}/run.jsonl") as recorder:
    ...         recorder(Progress("job", 0.0, done=1, tasks=2))
    ...     list(read_recording(f"{folder}/run.jsonl"))
    [Progress(job='job', at=0.0, done=1, tasks=2)]
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._file: IO[str] = Path(path).open("w", encoding="utf-8")  # noqa: SIM115  closed by `close`

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to all events; returns the function that unsubscribes."""
        return events.subscribe(self)

    def __call__(self, event: Event) -> None:
        self._file.write(to_json(event) + "\n")

    def close(self) -> None:
        """Write out what is buffered and close the file."""
        self._file.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def read_recording(path: str | os.PathLike[str]) -> Iterator[Event]:
    """The events of a file that a `Recorder` wrote."""
    with Path(path).open(encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield from_json(line)
            except RecordingError as error:
                raise RecordingError(f"{path}, line {number}: {error}") from error
