"""Programs that are refused: the error, and what its carets point at."""

from __future__ import annotations

import pytest

from linnet.errors import ProgramError
from linnet.programs import TileProgram


def refused(source: str) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        TileProgram.from_source(source)
    return caught.value


def underlined(error: ProgramError) -> list[str]:
    """The source text above each row of carets in the message."""
    lines = str(error).splitlines()
    marks = [n for n, line in enumerate(lines) if line.strip() and set(line.strip()) == {"^"}]
    spans = [(lines[n - 1], lines[n].index("^"), lines[n].rindex("^") + 1) for n in marks]
    return [text[start:end] for text, start, end in spans]
