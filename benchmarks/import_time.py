"""How long `import linnet; linnet.asarray([1])` takes beyond the import of NumPy and SciPy themselves.

Fresh processes by turns, ten of each; medians of wall-clock time and of CPU time.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys

LIMIT = 0.25
RUNS = 10
TIMED = """
import numpy, scipy.linalg
import time
wall, cpu = time.perf_counter(), time.process_time()
import linnet
linnet.asarray([1])
print(time.perf_counter() - wall, time.process_time() - cpu)
"""


def main() -> int:
    # Compiled modules are kept by the first process, whatever the shell says: users have them.
    here = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    runs = [
        subprocess.run(
            [sys.executable, "-c", TIMED], check=True, capture_output=True, text=True, env=here
        ).stdout
        for _ in range(RUNS + 1)
    ][1:]
    wall, cpu = (statistics.median(float(run.split()[k]) for run in runs) for k in (0, 1))
    kept = wall <= LIMIT
    print(
        f"import and first array: {wall:.3f} s (CPU {cpu:.3f} s), median of {RUNS}, at most {LIMIT} s: ",
        end="",
    )
    print("kept" if kept else "MISSED")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
