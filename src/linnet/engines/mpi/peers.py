"""The ranks of an MPI job: one thread of each talks, the others compute.

MPI moves long messages only while somebody is inside it. So each rank has a thread that does nothing
else: it sends what others lay into its outbox, receives, and looks after what is on its way, while kernels
run on other threads. In between it sleeps, for longer the longer nothing happens: ranks may share a core.
Whoever lays something into the outbox wakes it.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from linnet.engines.mpi.messages import (
    INLINE,
    LONGEST,
    TILES,
    Bytes,
    Header,
    Kind,
    as_bytes,
    contiguous,
    tile_header,
    unpacked,
)
from linnet.errors import InputError, MissingExtraError, missing_extra

_HEAD, _BODY = 1, 2
"""Tags: of headers, and of bodies that follow one."""
_SHORTEST, _LONGEST, _IDLE, _SILENT = 50e-6, 1e-3, 5e-3, 50e-3
"""Seconds between looks at MPI: after something happened, in a run, between runs, and where nobody sends
unasked."""
_TICK = 0.02
"""Seconds between ticks."""
_AT_ONCE = 4
"""Tiles on their way to one rank at a time: more would not come sooner, and a later one might be urgent."""


class Handler(Protocol):
    """Who understands messages; called by the thread that talks."""

    def place(self, header: Header, source: int) -> NDArray[Any] | None:
        """Where a long tile of these elements goes; None: memory of its own."""
        ...

    def handle(self, header: Header, source: int, body: Any) -> None:
        """A message is here: its tile, or its bytes."""
        ...

    def tick(self) -> None:
        """Some time has passed."""
        ...


class _Letter(NamedTuple):
    """A message in the outbox."""

    target: int
    kind: Kind
    run: int
    number: int
    body: Any
    """A tile, or bytes."""
    sent: Callable[[], None] | None
    """To be called when the body is needed no more."""


class Peers:
    """This process among the ranks."""

    def __init__(self) -> None:
        mpi = library()
        if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
            raise InputError(
                "this MPI lets only the main thread talk (MPI_THREAD_FUNNELED or less); Linnet needs "
                "MPI_THREAD_SERIALIZED: use an MPI built with threads, such as MPICH (pip install mpich)"
            )
        self._mpi = mpi
        self._comm = mpi.COMM_WORLD.Dup()
        self.rank: int = self._comm.rank
        """The number of this process."""
        self.size: int = self._comm.size
        """How many there are."""
        self.runs = 0
        """Runs under way here: while there are some, the thread looks more often."""
        self._outbox: deque[_Letter] = deque()
        self._later: dict[int, deque[_Letter]] = {}
        self._under_way: dict[int, int] = {}
        self._wake = threading.Event()
        self._handler: Handler | None = None
        self._active: list[Any] = []
        self._after: list[Callable[[], None]] = []
        self._quitting = False
        self._thread: threading.Thread | None = None
        self._inbox: Bytes = np.empty(LONGEST, np.uint8)

    def told_by_all(self, values: list[int]) -> NDArray[np.int64]:
        """Some numbers of every rank, a row each; all ranks must call this, before they start."""
        mine = np.array(values, np.int64)
        found = np.empty((self.size, len(values)), np.int64)
        self._comm.Allgather(mine, found)
        return found

    def start(self, handler: Handler) -> None:
        """Begin to talk."""
        self._handler = handler
        self._thread = threading.Thread(target=self._loop, name="linnet-mpi", daemon=True)
        self._thread.start()

    def send(
        self,
        target: int,
        kind: Kind,
        run: int = 0,
        number: int = 0,
        body: Any = b"",
        sent: Callable[[], None] | None = None,
    ) -> None:
        """Send a message: a tile, or bytes. The memory of a tile is left alone until `sent` is called."""
        self._outbox.append(_Letter(target, kind, run, number, body, sent))
        self._wake.set()

    def wake(self) -> None:
        """Something may have to be done."""
        self._wake.set()

    def quit(self) -> None:
        """Stop talking, when all that was laid into the outbox has gone."""
        thread, self._thread = self._thread, None
        if thread is not None:
            self._quitting = True
            self._wake.set()
            thread.join()

    # ---- the thread that talks

    def _loop(self) -> None:
        try:
            inbox = self._comm.Recv_init([self._inbox, self._mpi.BYTE], self._mpi.ANY_SOURCE, _HEAD)
            inbox.Start()
            self._talk(inbox)
            inbox.Cancel()
            inbox.Wait()
            inbox.Free()
        except BaseException:
            # Without this thread the job would wait for ever.
            print(f"linnet: rank {self.rank} cannot go on:", file=sys.stderr)
            traceback.print_exc()
            sys.stderr.flush()
            self._comm.Abort(1)
            os._exit(1)

    def _talk(self, inbox: Any) -> None:
        status = self._mpi.Status()
        pause, ticked = _SHORTEST, 0.0
        assert self._handler is not None
        while True:
            self._wake.clear()
            if time.monotonic() - ticked > _TICK:
                self._handler.tick()
                ticked = time.monotonic()
            busy = self._sent_some()
            busy |= self._received_some(inbox, status)
            busy |= self._completed_some()
            if busy:
                pause = _SHORTEST
                continue
            if self._quitting and not (self._outbox or self._active or any(self._later.values())):
                return
            self._wake.wait(pause)
            at_work = self.runs or self._active
            pause = min(2 * pause, _LONGEST if at_work else _IDLE if self.rank else _SILENT)

    def _sent_some(self) -> bool:
        some = False
        while self._outbox:
            letter, some = self._outbox.popleft(), True
            if letter.kind in TILES:
                self._later.setdefault(letter.target, deque()).append(letter)
            else:
                self._send_bytes(letter)
        for target, letters in self._later.items():
            while letters and self._under_way.get(target, 0) < _AT_ONCE:
                self._send_tile(letters.popleft())
                some = True
        return some

    def _send_bytes(self, letter: _Letter) -> None:
        header = Header(letter.kind, letter.run, letter.number, len(letter.body))
        self._post(letter, header, np.frombuffer(letter.body, np.uint8))

    def _send_tile(self, letter: _Letter) -> None:
        tile = contiguous(letter.body)
        header = tile_header(letter.kind, letter.run, letter.number, tile)
        self._under_way[letter.target] = self._under_way.get(letter.target, 0) + 1

        def sent() -> None:
            self._under_way[letter.target] -= 1
            if letter.sent is not None:
                letter.sent()

        self._post(letter._replace(sent=sent), header, as_bytes(tile))

    def _post(self, letter: _Letter, header: Header, body: Bytes) -> None:
        """Hand a message to MPI; the thread that receives posts its receives in the order of the headers."""
        head = header.packed()
        inline = header.size <= INLINE
        first = np.frombuffer(head + body.tobytes() if inline else head, np.uint8)
        done = letter.sent or _nothing
        self._track(
            self._comm.Isend([first, self._mpi.BYTE], letter.target, _HEAD),
            first,
            done if inline else _nothing,
        )
        if not inline:
            self._track(self._comm.Isend([body, self._mpi.BYTE], letter.target, _BODY), body, done)

    def _track(self, request: Any, memory: NDArray[Any], done: Callable[[], None]) -> None:
        """Look after a request; the memory it uses is kept until it is done."""

        def after(memory: NDArray[Any] = memory) -> None:
            done()

        self._active.append(request)
        self._after.append(after)

    def _received_some(self, inbox: Any, status: Any) -> bool:
        some = False
        while inbox.Test(status):
            some = True
            count = status.Get_count(self._mpi.BYTE)
            data = memoryview(self._inbox[:count].tobytes())
            source = status.Get_source()
            inbox.Start()
            header, rest = unpacked(data)
            if header.size <= INLINE:
                self._arrived(header, source, rest)
            else:
                self._receive(header, source)
        return some

    def _arrived(self, header: Header, source: int, rest: memoryview) -> None:
        assert self._handler is not None
        if header.kind in TILES:
            tile = header.empty()
            as_bytes(tile)[:] = np.frombuffer(rest, np.uint8)
            self._handler.handle(header, source, tile)
        else:
            self._handler.handle(header, source, rest)

    def _receive(self, header: Header, source: int) -> None:
        """Receive a body that follows."""
        handler = self._handler
        assert handler is not None
        if header.kind in TILES:
            given = handler.place(header, source)
            tile = header.empty() if given is None else given
            if given is None:
                request = self._comm.Irecv([as_bytes(tile), self._mpi.BYTE], source, _BODY)
            else:
                memory, kind = self._lying(tile, header.order)
                request = self._comm.Irecv([memory, 1, kind], source, _BODY)
                kind.Free()
            self._track(request, tile, lambda: handler.handle(header, source, tile))
        else:
            memory = np.empty(header.size, np.uint8)
            request = self._comm.Irecv([memory, self._mpi.BYTE], source, _BODY)
            self._track(request, memory, lambda: handler.handle(header, source, memory.data))

    def _lying(self, tile: NDArray[Any], order: str) -> tuple[Any, Any]:
        """The memory of a tile that may lie in pieces, as MPI takes it: elements in C or Fortran order."""
        kind = self._mpi.BYTE.Create_contiguous(tile.itemsize)
        axes = range(tile.ndim)
        for axis in reversed(axes) if order == "C" else axes:
            wider = kind.Create_hvector(tile.shape[axis], 1, tile.strides[axis])
            kind.Free()
            kind = wider
        kind.Commit()
        reach = sum((length - 1) * step for length, step in zip(tile.shape, tile.strides, strict=True))
        memory = self._mpi.memory.fromaddress(tile.ctypes.data, reach + tile.itemsize)
        return memory, kind

    def _completed_some(self) -> bool:
        if not self._active:
            return False
        places = self._mpi.Request.Testsome(self._active)
        if not places:
            return False
        finished = [self._after[place] for place in places]
        gone = set(places)
        self._active = [each for place, each in enumerate(self._active) if place not in gone]
        self._after = [each for place, each in enumerate(self._after) if place not in gone]
        for after in finished:
            after()
        return True


def library() -> Any:
    """MPI, as mpi4py gives it, begun."""
    try:
        import mpi4py  # pyright: ignore

        # It would begin when it is imported, and under the mpiexec of another MPI end the process.
        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
        from mpi4py import MPI  # pyright: ignore
    except ImportError as error:
        told = missing_extra('engine "mpi"', "mpi4py and an MPI", "mpi")
        raise MissingExtraError(
            f"{told} (which brings MPICH), or mpi4py for the MPI of your cluster ({error})"
        ) from None
    if not MPI.Is_initialized():
        _check_launcher(MPI.Get_library_version())
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
    return MPI


_LAUNCHED = {"Open MPI": "OMPI_COMM_WORLD_SIZE", "MPICH": "MPI_LOCALNRANKS"}
"""What the mpiexec of each MPI sets, and no other."""


def _check_launcher(version: str) -> None:
    """Refuse to begin under the mpiexec of another MPI: every rank would be alone, or be ended."""
    own = next((name for name in _LAUNCHED if name in version), None)
    other = next((name for name, variable in _LAUNCHED.items() if variable in os.environ), None)
    if own is not None and other is not None and own != other:
        raise InputError(
            f"the ranks were started by the mpiexec of {other}, but mpi4py here uses {own}: use the mpiexec "
            f"of {own} (if pip installed it, it is beside {sys.executable}), or an mpi4py made for {other}"
        )


def _nothing() -> None:
    pass
