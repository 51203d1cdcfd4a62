"""What all tests of engines share: a module of kernels and programs beside them."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # imported by name

# Importing it a second time under another name, as a doctest run would, registers each kernel twice.
collect_ignore = ["engine_samples.py"]
