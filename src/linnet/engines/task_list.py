"""What a run needs to know of a bound program, worked out once: tasks, urgency, calls, times.

Plans of moderate size are kept as long as their bound program is: a loop that runs one program
on new data again and again lists its tasks once, and knows which of them are short.
"""

from __future__ import annotations

import threading
import weakref
from bisect import bisect_right
from collections.abc import Mapping

from linnet.planning.schedule import Ranking
from linnet.programs import BoundProgram, Call, Task
from linnet.programs.enumeration import TaskArrays
from linnet.tiles import TiledArray

_KEPT = 50_000
"""Tasks of the largest plan that is kept: about 5 MB."""
_SHORT = 20e-6
"""Seconds in a kernel under which two workers would only wait for each other, at the interpreter's
lock. Measured with kernels that let go of it: from about here on two are faster than one."""
_DOUBT = 4
"""How many times longer than the last task of its statement one is believed to take, however long it took."""

_lock = threading.Lock()
_plans: weakref.WeakKeyDictionary[BoundProgram, TaskList] = weakref.WeakKeyDictionary()


class TaskList:
    """Tasks of a bound program by number, and how long those of each statement take."""

    def __init__(self, bound: BoundProgram) -> None:
        self.arrays: TaskArrays = bound.task_arrays()
        """All tasks and dependences."""
        self._rankings: dict[bool, Ranking] = {}
        self._bound = weakref.ref(bound)
        self._calls = bound.calls(self.arrays)
        self._offsets: list[int] = self.arrays.offsets.tolist()
        self._seconds: list[float | None] = [None] * len(self._calls)
        self._bytes = 0

    @classmethod
    def of(cls, bound: BoundProgram) -> TaskList:
        """The plan of a bound program, made now or before."""
        with _lock:
            plan = _plans.get(bound)
        if plan is None:
            plan = cls(bound)
            if len(plan.arrays) <= _KEPT:
                with _lock:
                    _plans[bound] = plan
        return plan

    def ranking(self, *, sparing: bool) -> Ranking:
        """Tasks by urgency, where memory is short or where it is not."""
        made = self._rankings.get(sparing)
        if made is None:
            made = self._rankings[sparing] = Ranking(self.arrays, sparing=sparing)
        return made

    def call(self, number: int) -> Call:
        """The kernel call that a task makes."""
        statement = bisect_right(self._offsets, number) - 1
        try:
            return self._calls[statement](number - self._offsets[statement])
        except Exception:
            bound = self._bound()
            assert bound is not None
            bound.call(self.task(number))  # raises with the place in the program
            raise

    def task(self, number: int) -> Task:
        """A task by its number."""
        return self.arrays.task(number)

    # ---- times

    def expect(self, inputs: Mapping[str, TiledArray]) -> None:
        """Forget how long tasks took if the arrays were of another size then."""
        size = sum(_bytes(array) for array in inputs.values())
        if not self._bytes <= 2 * size <= 4 * self._bytes:
            self._seconds = [None] * len(self._calls)
            self._bytes = size

    def took(self, number: int, seconds: float) -> None:
        """A task took so long in its kernel.

        A kernel never takes less than it needs, but may have to wait milliseconds for the
        interpreter's lock: a shorter time is believed at once, a longer one when it comes again.
        Soon, since tasks of a statement may differ: those of the last tiles can be tiny.
        """
        statement = bisect_right(self._offsets, number) - 1
        known = self._seconds[statement]
        if known is None or seconds < known:
            self._seconds[statement] = seconds
        else:
            self._seconds[statement] = min(seconds, _DOUBT * known)

    def short(self, number: int) -> bool:
        """Whether a task is known to be short, as are others of its statement."""
        known = self._seconds[bisect_right(self._offsets, number) - 1]
        return known is not None and known < _SHORT


def _bytes(array: TiledArray) -> int:
    size = array.dtype.itemsize
    for edges in array.layout.boundaries:
        size *= edges[-1]
    return size
