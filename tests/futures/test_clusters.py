"""Calls on the nodes of clusters."""

from __future__ import annotations

import importlib
import os
import time

import pytest
from calls_conformance import OutsideConformance, dies_in_a_call, dies_once_in_a_call, process, square

import linnet as ln


class ClusterConformance(OutsideConformance):
    """What Ray and Dask have in common."""

    # First what needs all nodes: workers that are killed take a while to come back.

    def test_a_node_is_where_the_call_runs(self, engine):
        with ln.init(engine):
            places = [ln.submit_call(self.place, node=node) for node in (0, 1, 1, 0)]
            a, b, c, d = [each.result(120) for each in places]
            assert a == d != b == c
            run = [ln.submit_call(process, 1) for _ in range(8)]
            assert all(each.result(120) != os.getpid() for each in run)

    def test_closing_tells_who_waits(self, engine):
        again = self.another(engine)
        with ln.init(again):
            future = ln.submit_call(time.sleep, 3)
            again.close()
            with pytest.raises(ln.EngineClosedError):
                future.result(60)
            with pytest.raises(ln.EngineClosedError):
                ln.submit_call(square, 1).result(60)

    def test_a_pure_call_is_made_again_where_its_worker_dies(self, engine, tmp_path):
        with ln.init(engine):
            assert dies_once_in_a_call(str(tmp_path / "died"), os.getpid()) == "lived"

    def test_a_call_that_may_have_effects_is_made_once(self, engine):
        with ln.init(engine):
            with pytest.raises(ln.JobError, match=r"posix._exit was lost: .*it was not called again"):
                ln.submit_call(os._exit, 3).result(120)
            assert ln.submit_call(square, 3).result(120) == 9

    @pytest.mark.slow
    def test_a_call_that_always_kills_its_worker_is_named(self, engine):
        with ln.init(engine), pytest.raises(ln.JobError, match=r"dies was lost, 3 times"):
            dies_in_a_call(os.getpid())


@pytest.mark.slow
@pytest.mark.needs("ray")
class TestRay(ClusterConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls, ray_cluster):
        from linnet.engines.ray import Ray

        return Ray()

    @staticmethod
    def place():
        import ray

        return ray.get_runtime_context().get_node_id()

    @staticmethod
    def another(engine):
        from linnet.engines.ray import Ray

        return Ray()


@pytest.mark.slow
@pytest.mark.needs("distributed")
class TestDask(ClusterConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def engine(cls):
        from distributed import Client, LocalCluster

        from linnet.engines.dask import Dask

        with (
            LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=None,
                memory_limit="1GB",
            ) as cluster,
            Client(cluster, set_as_default=False) as client,
        ):
            client.run(importlib.import_module, "linnet.engines.dask")
            yield Dask(client=client)

    @staticmethod
    def place():
        return os.getpid()

    @staticmethod
    def another(engine):
        from linnet.engines.dask import Dask

        return Dask(client=engine.client)
