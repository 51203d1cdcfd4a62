"""Events without an engine: the hub, and each consumer."""

from __future__ import annotations

import io
import threading

import pytest

from linnet.errors import RecordingError
from linnet.events import (
    ALL_EVENTS,
    Events,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    KernelTotal,
    Metrics,
    PlanMade,
    Progress,
    ProgressBar,
    ProgressLines,
    Recorder,
    TaskFailed,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileRead,
    TilesWritten,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
    from_json,
    read_recording,
    show_progress,
    to_json,
)

ONE_OF_EACH = [
    JobStarted("j", 1.0, program="cholesky", tasks=4, workers=2),
    PlanMade("j", 1.0, text="4 tasks on 2 nodes", moved=800, least=None),
    WorkerStarted("j", 1.0, worker="w0"),
    TaskReady("j", 1.0, task=(0, (0,))),
    TaskStarted("j", 1.0, task=(0, (0,)), kernel="chol", worker="w0"),
    TileRead("j", 1.5, array="A", index=(0, 0), bytes=32, worker="w0"),
    TileWritten("j", 1.5, array="O", index=(0, 0), bytes=32, worker="w0"),
    TileWritten("j", 1.5, array="S", index=(1, 1, 1), bytes=16, worker="w0"),
    TaskFinished("j", 1.5, task=(0, (0,)), kernel="chol", worker="w0", seconds=0.5),
    TilesWritten("j", 1.5, tiles=(("O", (1, 0)), ("O", (2, 0)))),
    TileDropped("j", 1.5, array="S", index=(1, 1, 1), bytes=16),
    Progress("j", 2.0, done=1, tasks=4),
    KernelTotal("j", 2.0, kernel="chol", tasks=1, seconds=0.5),
    TaskFailed("j", 2.0, task=(2, (0, 1, 1)), kernel="syrk", worker="w0", error="ValueError: no"),
    WorkerStopped("j", 2.0, worker="w0"),
    JobFinished("j", 3.0, seconds=2.0),
    JobFailed("j", 3.0, error="ValueError: no", seconds=2.0),
    JobCancelled("j", 3.0, done=1, seconds=2.0),
]


def test_one_of_each_is_all_of_them():
    assert {type(event) for event in ONE_OF_EACH} == set(ALL_EVENTS)


def test_listeners_hear_what_they_asked_for():
    events = Events()
    heard = []
    assert events.wanted == frozenset()
    stop = events.subscribe(heard.append, Progress, JobFinished)
    assert events.wanted == {Progress, JobFinished}
    for event in ONE_OF_EACH:
        events.emit(event)
    assert [type(event) for event in heard] == [Progress, JobFinished]
    stop()
    stop()
    assert events.wanted == frozenset()
    events.subscribe(heard.append)
    assert events.wanted == set(ALL_EVENTS)


def test_a_listener_that_raises_is_let_go_and_the_others_still_hear():
    events = Events()
    heard = []

    def broken(event):
        raise ZeroDivisionError("oh")

    events.subscribe(broken)
    events.subscribe(heard.append)
    with pytest.warns(RuntimeWarning, match="raised ZeroDivisionError: oh on a Progress event"):
        events.emit(Progress("j", 0.0, done=0, tasks=1))
    events.emit(Progress("j", 0.0, done=1, tasks=1))
    assert len(heard) == 2


def test_listeners_are_never_called_twice_at_once():
    events = Events()
    inside = [0]
    seen = []

    def listener(event):
        inside[0] += 1
        seen.append(inside[0])
        inside[0] -= 1

    events.subscribe(listener)
    threads = [
        threading.Thread(target=lambda: [events.emit(ONE_OF_EACH[0]) for _ in range(200)]) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1] * 800


def test_every_event_survives_a_recording(tmp_path):
    path = tmp_path / "run.jsonl"
    events = Events()
    with Recorder(path) as recorder:
        recorder.listen(events)
        for event in ONE_OF_EACH:
            events.emit(event)
    assert list(read_recording(path)) == ONE_OF_EACH
    assert [from_json(to_json(event)) for event in ONE_OF_EACH] == ONE_OF_EACH


@pytest.mark.parametrize(
    "line", ["", "{", "[]", "3", '{"event": "Nope"}', '{"event": "Progress"}', '{"x": 1}']
)
def test_garbage_in_a_recording_is_named(tmp_path, line):
    path = tmp_path / "run.jsonl"
    path.write_text(to_json(ONE_OF_EACH[0]) + "\n" + line + "\n")
    with pytest.raises(RecordingError, match="line 2: not a recorded event"):
        list(read_recording(path))


def test_metrics_add_up():
    events = Events()
    metrics = Metrics()
    metrics.listen(events)
    for event in ONE_OF_EACH[:-2]:
        events.emit(event)
    assert (metrics.jobs, metrics.tasks, metrics.failed_tasks) == (1, 1, 1)
    assert (metrics.bytes_read, metrics.bytes_written) == (32, 48)
    assert (metrics.bytes_live, metrics.bytes_peak) == (32, 48)
    assert (metrics.seconds, metrics.busy_seconds) == (2.0, 0.5)


def test_lines_say_little_and_often_enough():
    out = io.StringIO()
    lines = ProgressLines(out, every=5.0)
    lines(JobStarted("j", 0.0, program="qr", tasks=1000, workers=2))
    for second in range(1, 12):
        lines(Progress("j", float(second), done=second * 50, tasks=1000))
    lines(JobFailed("j", 12.0, error="x", seconds=12.0))
    assert out.getvalue().splitlines() == [
        "qr: 1,000 tasks on 2 workers",
        "qr: 250 of 1,000 tasks (25%), 5.0 s, 50.0 tasks/s, 2 workers, 15.0 s left",
        "qr: 500 of 1,000 tasks (50%), 10.0 s, 50.0 tasks/s, 2 workers, 10.0 s left",
        "qr: failed after 12.0 s",
    ]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar():
    events, out = Events(), Terminal()
    with show_progress(events, out):
        events.emit(JobStarted("j", 0.0, program="tsqr", tasks=8, workers=2))
        events.emit(Progress("j", 0.5, done=3, tasks=8))
        events.emit(JobFinished("j", 1.0, seconds=1.0))
    assert "tsqr" in out.getvalue()
    assert "3/8" in out.getvalue()
    assert "finished in 1.0 s; 8 of 8 tasks" in out.getvalue()
    assert events.wanted == frozenset()


def test_a_bar_says_how_a_job_ended():
    out = Terminal()
    with ProgressBar(out) as bar:
        bar(Progress("unknown", 0.0, done=1, tasks=2))
        bar(JobStarted("j", 0.0, program="tsqr", tasks=8, workers=2))
        bar(JobCancelled("j", 1.0, done=2, seconds=1.0))
    assert "cancelled after 1.0 s" in out.getvalue()
