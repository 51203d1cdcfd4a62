"""MPI: ranks that exchange tiles as peers, each following a plan that it makes for itself.

```text
 rank 0                                     another rank
 engine ─ order (a few KB) ───────────────▶ parts: makes the same plan
 root ── its own part ── work ◀── tiles ──▶ work: tasks, tiles, threads
 news, results ◀─────────────────────────── peers: the thread that talks
```
"""

from linnet.engines.mpi.engine import MPI

__all__ = ["MPI"]
