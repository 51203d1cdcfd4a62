"""What all tests of engines share: a module of kernels and programs beside them, and clusters."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # imported by name

# Importing it a second time under another name, as a doctest run would, registers each kernel twice.
collect_ignore = ["engine_samples.py"]


@pytest.fixture(scope="session")
def dask_client() -> Iterator[Any]:
    """A client of a Dask cluster with four worker processes, one for all tests of this process."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=4,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit="1GB",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        client.run(
            importlib.import_module, "linnet.engines.dask"
        )  # seconds that no test should be charged for
        yield client
