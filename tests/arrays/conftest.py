"""What all tests of arrays share."""

from __future__ import annotations

import sys
from pathlib import Path

# The strategies are modules beside the tests, imported by name.
sys.path.insert(0, str(Path(__file__).parent))
