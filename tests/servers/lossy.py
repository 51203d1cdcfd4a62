"""A way to a server on which answers are lost: what was asked is done, and who asked does not hear of it."""

from __future__ import annotations

import contextlib
import itertools
import random
import socket
import threading
import time
from typing import Self

_SURELY = 10
"""The answer that is lost for sure."""


class LossyProxy:
    """Passes on what it gets, in both directions; now and then it ends a connection instead of an answer.

    It does so with the tenth answer, whatever chance says: short jobs do not get many.
    """

    def __init__(self, port: int, share: float, seed: int) -> None:
        self._to = port
        self._share, self._random = share, random.Random(seed)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._answers = itertools.count(1)
        self.lost = 0
        """Answers that were lost."""

    def _accept(self) -> None:
        while self._listener.fileno() >= 0:
            try:
                near, _ = self._listener.accept()
            except OSError:  # closed; or too many are open for now, and whoever asks asks again
                time.sleep(0.01)
                continue
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._to)) as far:
            asking = threading.Thread(target=self._ask, args=(near, far), daemon=True)
            asking.start()
            while answer := far.recv(1 << 16):
                if next(self._answers) == _SURELY or self._random.random() < self._share:
                    self.lost += 1
                    break
                near.sendall(answer)
            for side in (near, far):
                with contextlib.suppress(OSError):
                    side.shutdown(socket.SHUT_RDWR)
            asking.join()

    @staticmethod
    def _ask(near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while asked := near.recv(1 << 16):
                far.sendall(asked)
            far.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()
