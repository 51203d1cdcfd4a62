"""Workers as cloud functions, through Lithops: one call for each worker, for as long as the worker lives.

Lithops calls functions in any cloud it supports; its configuration says in which. Calls are long and few:
a call for each task would take longer than the tasks.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from linnet.errors import missing_extra
from linnet.workers.launcher import Limits, Order
from linnet.workers.secrets import put_aside


class Lithops:
    """Calls a function of Lithops for each worker.

    `config` is a configuration of Lithops, `options` go to its `FunctionExecutor`. The functions must have
    Linnet and reach the store and the ledger.
    """

    def __init__(self, *, config: Mapping[str, Any] | None = None, **options: Any) -> None:
        try:
            lithops = importlib.import_module("lithops")
        except ImportError:
            raise missing_extra('launcher "lithops"', "lithops", "lithops") from None
        given = None if config is None else dict(config)
        self._executor: Any = lithops.FunctionExecutor(config=given, **options)
        self._here = self._executor.backend == "localhost"
        self._aside: Path | None = None
        self._calls: dict[str, Any] = {}
        self._told: set[str] = set()

    def start(self, order: Order) -> None:
        shared = {
            "address": order.address,
            "limits": asdict(order.limits),
            "imports": list(order.imports),
            "files": list(order.files),
        }
        for name in order.names:
            given = {**shared, "name": name}
            if self._here and order.secrets:
                # It would write the environment of its functions into a file for everybody.
                given["secrets"] = str(put_aside(order.secrets, self._folder()))
            env = {} if self._here else dict(order.secrets)
            self._calls[name] = self._executor.call_async(work, {"given": given}, extra_env=env)

    def _folder(self) -> Path:
        """Where secrets are put aside for functions of this machine."""
        if self._aside is None:
            self._aside = Path(tempfile.mkdtemp(prefix="linnet-lithops-"))
        return self._aside

    def coming(self) -> list[str]:
        return [name for name, call in self._calls.items() if not call.done]

    def ended(self) -> list[str]:
        found = [name for name, call in self._calls.items() if name not in self._told and call.done]
        self._told.update(found)
        return found

    def problem(self) -> str | None:
        for name, call in reversed(self._calls.items()):
            if call.done and call.error:
                said = call._exception[1]  # its only record of the error
                return f"the call of Lithops for worker {name} failed: {said}"
        return None

    def close(self) -> None:
        self._executor.clean(clean_cloudobjects=False)
        if self._aside is not None:
            with suppress(OSError):  # workers that have not begun still need what is there
                self._aside.rmdir()

    def __repr__(self) -> str:
        return f"Lithops(backend={self._executor.backend!r})"


def work(given: dict[str, Any]) -> str:
    """What a cloud function does: be a worker."""
    from linnet.workers.secrets import take
    from linnet.workers.serving import serve

    if "secrets" in given:
        take(given["secrets"])
    limits = Limits(**given["limits"])
    return serve(given["address"], given["name"], limits, given["imports"], files=given["files"])
