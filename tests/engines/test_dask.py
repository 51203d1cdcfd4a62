"""Dask as an engine: the shipped suite, and what its placing promises."""

from __future__ import annotations

import os
import signal
import time

import pytest
from driven_cases import DrivenCases, check_closing, check_script, outlives, survives

from linnet.engines.dask import Dask
from linnet.testing.engines import EngineSuite
from linnet.testing.models import ModelSuite

pytestmark = [pytest.mark.slow, pytest.mark.needs("distributed")]


@pytest.mark.sample(4)
class TestDask(EngineSuite):
    @pytest.fixture
    def engine(self, dask_client):
        return Dask(client=dask_client)


class TestModelsOnDask(ModelSuite):
    @pytest.fixture
    def engine(self, dask_client):
        return Dask(client=dask_client)


class TestDaskCluster(DrivenCases):
    @pytest.fixture
    def engine(self, dask_client):
        return Dask(client=dask_client)

    @pytest.fixture
    def unplanned(self, dask_client):
        return Dask(client=dask_client, policy="engine")


@pytest.mark.parametrize("policy", ["auto", "engine"])
def test_a_worker_that_is_killed(dask_client, policy):
    victim = dask_client.cluster.workers[1].process.pid
    survives(Dask(client=dask_client, policy=policy), lambda: os.kill(victim, signal.SIGKILL))
    dask_client.wait_for_workers(4, timeout=60)  # Dask starts another one


def test_what_was_persisted_on_a_worker_that_is_killed(dask_client):
    victim = dask_client.cluster.workers[2].process.pid
    outlives(Dask(client=dask_client), lambda: lost(dask_client, victim))
    dask_client.wait_for_workers(4, timeout=60)


def lost(client, victim):
    before = set(client.nthreads())
    os.kill(victim, signal.SIGKILL)
    while before <= set(client.nthreads()):
        time.sleep(0.1)


def test_a_script_with_a_cluster_and_kernels_of_its_own(tmp_path):
    check_script("dask", tmp_path)


def test_a_session_ends_the_cluster_that_it_started(tmp_path):
    check_closing("dask", tmp_path)
