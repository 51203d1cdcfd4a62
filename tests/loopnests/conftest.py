"""What tests of loops share: the oracle is the undecorated function on NumPy's arrays."""

from __future__ import annotations

import sys
from pathlib import Path

# The programs are modules beside the tests, imported by name.
sys.path.insert(0, str(Path(__file__).parent))
