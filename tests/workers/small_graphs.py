"""Small jobs, as the parents of each task, of which every way is gone through."""

from __future__ import annotations

CHAIN = {"0.0": [], "0.1": ["0.0"]}
FORK = {"0.0": [], "0.1": ["0.0"], "0.2": ["0.0"]}
JOIN = {"0.0": [], "0.1": [], "0.2": ["0.0", "0.1"]}
DIAMOND = {"0.0": [], "0.1": ["0.0"], "0.2": ["0.0"], "0.3": ["0.1", "0.2"]}
FIVE = {**DIAMOND, "0.4": ["0.0", "0.3"]}
ONE = {"0.0": []}
MORE = {"1.0": []}
MUCH_MORE = {"1.0": [], "1.1": ["1.0"]}
NO, YES, EITHER = (False,), (True,), (False, True)
"""What attempts at a decision may find."""
