"""A worker that is killed at a given moment of a job: `python dying_worker.py ADDRESS NAME MOMENT`.

NAME is a task or seed; MOMENT is when it dies: before the ledger is told that NAME is done ("written"), after
that ("told"), or when what follows from it is in the queue ("put").
"""

from __future__ import annotations

import os
import signal
import sys

from linnet.workers.embedded import EmbeddedLedger, EmbeddedQueue
from linnet.workers.remote.redis_ledger import RedisLedger
from linnet.workers.remote.redis_queue import RedisQueue
from linnet.workers.serving import serve


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def deadly(name, moment):
    """Let ledgers and queues of this process end it at the moment."""
    completed = False

    def dying_complete(complete):
        def replaced(self, completions):
            nonlocal completed
            hit = any(each.name == name and each.last for each in completions)
            if hit and moment == "written":
                die()
            found = complete(self, completions)
            if hit and moment == "told":
                die()
            completed = completed or hit
            return found

        return replaced

    def dying_put(put):
        def replaced(self, *given, **more):
            found = put(self, *given, **more)
            if completed and moment == "put":
                die()
            return found

        return replaced

    for ledger in (EmbeddedLedger, RedisLedger):
        ledger.complete = dying_complete(ledger.complete)
    for queue in (EmbeddedQueue, RedisQueue):
        queue.put = dying_put(queue.put)


if __name__ == "__main__":
    address, name, moment = sys.argv[1:]
    deadly(name, moment)
    serve(address, allowed=["job_kernels"])
