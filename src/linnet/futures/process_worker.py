"""The process that makes calls for another one: `python -m linnet.futures.process_worker SOCKET`."""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from multiprocessing.connection import Connection

from linnet.futures.answering import answers


def main(socket: int) -> None:
    """Answer calls until the other end of the socket is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    connection = Connection(socket)
    calls: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, calls), daemon=True).start()
    while True:
        connection.send_bytes(answers(calls.get(), alone=True))


def _listen(connection: Connection, calls: queue.SimpleQueue[bytes]) -> None:
    try:
        while True:
            calls.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)  # nobody waits for what this computes


if __name__ == "__main__":
    main(int(sys.argv[1]))
