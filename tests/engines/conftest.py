"""What all tests of engines share: a module of kernels and programs beside them, and clusters."""

from __future__ import annotations

import importlib
import os
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


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """Ray, connected to a cluster of four nodes, one for all tests of this process."""
    os.environ.update(
        RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",  # else loopback addresses are rewritten
        RAY_AUTH_MODE="disabled",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",  # else Ray warns, and warnings are errors here
    )
    import ray
    from ray.cluster_utils import Cluster

    each = {"num_cpus": 1, "object_store_memory": 200_000_000}
    cluster = Cluster(initialize_head=True, head_node_args={**each, "include_dashboard": False})
    try:
        for _ in range(3):
            cluster.add_node(**each)
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        _warm(ray)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def _warm(ray: Any) -> None:
    """Have every node start a worker, which takes seconds that no test should be charged for."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    load = ray.remote(num_cpus=1)(importlib.import_module)
    nodes = [node["NodeID"] for node in ray.nodes()]
    pinned = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    started = [load.options(scheduling_strategy=each).remote("linnet.engines.ray") for each in pinned]
    ray.wait(started, num_returns=len(started), timeout=120)
