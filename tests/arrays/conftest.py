"""What all tests of arrays share."""

from __future__ import annotations

import sys
from pathlib import Path

from linnet.arrays import evaluation

# The strategies are modules beside the tests, imported by name.
sys.path.insert(0, str(Path(__file__).parent))

# Arrays in tests are small: they would never be computed in the tiles they are cut into.
evaluation.TINY = 0
