"""What tests of futures share: a module that workers outside this process import by name."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

collect_ignore = ["calls_conformance.py"]
