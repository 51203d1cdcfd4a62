"""The threads engine: what it tells while it runs."""

from __future__ import annotations

import pytest
from engine_samples import chains, failing, matrix, run

from linnet.errors import KernelError
from linnet.events import (
    Events,
    JobFailed,
    JobFinished,
    JobStarted,
    Progress,
    TaskFailed,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
)


def test_events_tell_the_whole_story():
    events, heard = Events(), []
    events.subscribe(heard.append)
    run(chains, {"A": matrix()}, events=events, N=3, M=4)
    kinds = [type(event) for event in heard]
    assert kinds[0] is JobStarted
    assert kinds[-1] is JobFinished
    assert (
        heard[0].tasks
        == kinds.count(TaskReady)
        == kinds.count(TaskStarted)
        == kinds.count(TaskFinished)
        == 15
    )
    assert kinds.count(WorkerStarted) == kinds.count(WorkerStopped) == 2
    assert kinds.count(TileWritten) == 15
    assert kinds.count(TileDropped) == 12
    assert heard[-2 if kinds[-2] is Progress else -1].done == 15
    for task in {event.task for event in heard if isinstance(event, TaskReady)}:
        moments = [kinds.index(kind) for kind in (TaskReady, TaskStarted, TaskFinished)]
        assert moments == sorted(moments), task
    position = {(type(e), e.task): k for k, e in enumerate(heard) if hasattr(e, "task")}
    bound = chains.bind(N=3, M=4)
    for task in bound.tasks():
        assert position[TaskReady, task] < position[TaskStarted, task] < position[TaskFinished, task]
        for parent in bound.parents(task):
            assert position[TaskFinished, parent] < position[TaskReady, task]


def test_events_tell_of_failure():
    events, heard = Events(), []
    events.subscribe(heard.append, TaskFailed, JobFailed, JobFinished)
    with pytest.raises(KernelError):
        run(failing("e_boom"), {"A": matrix(1, 1)}, events=events)
    assert [type(event) for event in heard] == [TaskFailed, JobFailed]
    assert "ZeroDivisionError" in heard[0].error
