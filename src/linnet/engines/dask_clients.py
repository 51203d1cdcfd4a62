"""Clients of Dask: one that is given or in use, of a scheduler elsewhere, or of a cluster started here."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

from linnet.engines.main_guard import check_guarded
from linnet.engines.reachable import DASK, reach, unreachable
from linnet.errors import InputError, missing_extra
from linnet.tiles import amount

if TYPE_CHECKING:
    from distributed import Client


def close(client: Any, process: int) -> None:
    """Close a client, and the cluster that it started; tiles that are lost with it need no warning each."""
    if os.getpid() != process:
        return  # a forked child: both are its parent's
    logger = logging.getLogger("distributed.scheduler")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        client.close()
    finally:
        logger.setLevel(before)


def found_client(
    client: Client | None,
    address: str | None,
    workers: int | None,
    memory: float | str | None,
    timeout: float,
) -> tuple[Any, bool]:
    """The client to use, and whether it is closed with the engine; a cluster that it started ends with it."""
    try:
        import distributed
    except ImportError as error:
        raise missing_extra('engine "dask"', "distributed", "dask") from error
    if client is not None:
        if not isinstance(client, distributed.Client):
            raise InputError(f"client={client!r}: give a distributed.Client")
        return client, False
    if address is not None:
        return _connected(address, timeout), True
    try:
        return distributed.get_client(), False
    except ValueError:
        from dask.config import get as setting

        if setting("distributed.worker.multiprocessing-method", "spawn") != "fork":
            check_guarded('ln.init("dask")')
        limit = "auto" if memory is None else amount(memory)
        started = distributed.Client(
            n_workers=workers,
            threads_per_worker=1,
            memory_limit=limit,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            set_as_default=False,
        )
        return started, True


def _connected(address: str, timeout: float) -> Any:
    """A client of the scheduler at an address."""
    import distributed

    plain = address if "://" in address else f"tcp://{address}"
    if plain.startswith("tcp://"):  # others begin otherwise
        reach("dask", address, timeout, DASK, "dask scheduler")
    try:
        return distributed.Client(address, set_as_default=False, timeout=timeout)
    except OSError as error:
        raise unreachable("dask", address, f"{error}, within {timeout:g} s", "dask scheduler") from error
