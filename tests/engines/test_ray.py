"""Ray as an engine: the shipped suite, and what its placing promises."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from driven_cases import DrivenCases, check_closing, check_script, outlives, survives

from linnet.engines.ray import Ray
from linnet.kernels import kernel
from linnet.programs import In, Out, tile_program
from linnet.testing.engines import EngineSuite
from linnet.testing.models import ModelSuite
from linnet.tiles import TiledArray

pytestmark = [pytest.mark.slow, pytest.mark.needs("ray"), pytest.mark.usefixtures("ray_cluster")]


@pytest.mark.sample(4)
class TestRay(EngineSuite):
    @pytest.fixture
    def engine(self):
        return Ray()


class TestModelsOnRay(ModelSuite):
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


def test_what_was_persisted_on_a_node_that_goes(ray_cluster):
    node = ray_cluster.add_node(num_cpus=2, object_store_memory=100_000_000)
    ray_cluster.wait_for_nodes()
    outlives(Ray(), lambda: ray_cluster.remove_node(node, allow_graceful=False))


def test_a_script_with_a_cluster_and_kernels_of_its_own(tmp_path):
    check_script("ray", tmp_path)


def test_a_session_ends_the_cluster_that_it_started(tmp_path):
    check_closing("ray", tmp_path)


NAP = 0.6


@kernel("ray_marks")
def marks(folder):
    time.sleep(NAP)
    (Path(folder.tobytes().decode()) / uuid4().hex).touch()
    return folder


@tile_program
def marking(A: In, B: Out, N: int):
    for i in range(N):
        B[i] = ray_marks(A[0])


def test_orders_that_were_broken_off_and_had_to_wait_are_not_run(tmp_path):
    name = np.frombuffer(str(tmp_path).encode(), np.uint8)

    def interrupt():
        while not list(tmp_path.iterdir()):
            time.sleep(0.02)
        signal.raise_signal(signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        Ray().run(marking.bind(N=200), {"A": TiledArray.from_numpy(name, len(name))})
    marked, before = len(list(tmp_path.iterdir())), 0
    while before < marked < 200:  # what ran then may go on to its end, and nothing begins
        time.sleep(3 * NAP)
        before, marked = marked, len(list(tmp_path.iterdir()))
    assert 0 < marked < 200
