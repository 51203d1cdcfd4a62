"""Tracebacks as users expect them: their own lines, without the machinery between."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

_LOOKED_AT = 64
_OURS = str(Path(__file__).parent)


def without_ours(trace: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of this room.

    What is far below was looked at when it passed through the parallel functions there.
    """
    kept: list[TracebackType] = []
    for _ in range(_LOOKED_AT):
        if trace is None:
            break
        if not trace.tb_frame.f_code.co_filename.startswith(_OURS):
            kept.append(trace)
        trace = trace.tb_next
    made = trace
    for each in reversed(kept):
        made = TracebackType(made, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return made
