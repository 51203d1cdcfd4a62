"""Ray as an engine: the shipped suite, and what its placing promises."""

from __future__ import annotations

import pytest
from driven_cases import DrivenCases, check_script, survives

from linnet.engines.ray import Ray
from linnet.testing.engines import EngineSuite

pytestmark = [pytest.mark.slow, pytest.mark.needs("ray"), pytest.mark.usefixtures("ray_cluster")]


class TestRay(EngineSuite):
    @pytest.fixture
    def engine(self):
        return Ray()


class TestRayCluster(DrivenCases):
    @pytest.fixture
    def engine(self):
        return Ray()

    @pytest.fixture
    def unplanned(self):
        return Ray(policy="engine")


@pytest.mark.parametrize("policy", ["auto", "engine"])
def test_a_node_that_goes(ray_cluster, policy):
    node = ray_cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
    ray_cluster.wait_for_nodes()
    survives(Ray(policy=policy), lambda: ray_cluster.remove_node(node, allow_graceful=False))


def test_a_script_with_a_cluster_and_kernels_of_its_own(tmp_path):
    check_script("ray", tmp_path)
