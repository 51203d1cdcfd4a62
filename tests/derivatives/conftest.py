"""Cases of derivatives are modules beside the tests."""

from __future__ import annotations

import sys
from pathlib import Path

from linnet.arrays.lowering import evaluate

sys.path.insert(0, str(Path(__file__).parent))

# Arrays in tests are small: they would never be computed in the tiles they are cut into.
evaluate.TINY = 0
