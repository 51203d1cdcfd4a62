"""EC2 that says the same wrong thing for ever: what the provider makes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from linnet.fleet import EC2
from linnet.fleet.offers import Offer
from linnet.fleet.providers.ec2 import GIVE_UP, SILENT
from linnet.fleet.providers.provider import Place, Wanted

pytestmark = pytest.mark.needs("boto3")


class Cloud:
    """An EC2 that says one thing for ever."""

    def __init__(self, instances: list[Any], error: str = "") -> None:
        self.instances, self.error, self.ended = instances, error, set()

    def run_instances(self, **given: Any) -> None:
        from botocore.exceptions import ClientError

        raise ClientError({"Error": {"Code": self.error, "Message": "as told"}}, "RunInstances")

    def get_paginator(self, name: str) -> Any:
        return self

    def paginate(self, **given: Any) -> list[Any]:
        return [{"Reservations": [{"Instances": self.instances}]}]

    def terminate_instances(self, InstanceIds: list[str]) -> None:
        self.ended.update(InstanceIds)


def instance(number: int, server: str, state: str = "running") -> dict[str, Any]:
    return {
        "InstanceId": f"i-{number}", "LaunchTime": number, "State": {"Name": state},
        "Tags": [{"Key": "linnet-server", "Value": server}],
    }  # fmt: skip


def lying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cloud: Cloud) -> tuple[EC2, list[float]]:
    """A provider before such a cloud, and its clock."""
    now = [0.0]
    monkeypatch.setattr("linnet.fleet.providers.ec2.elapsed", lambda: now[0])
    found = EC2(["m5.large"], region="us-east-1", image="ami-1")
    found._made = cloud
    found.open(Place("1", tmp_path))
    return found, now


def test_throttled_for_ever_is_refused_with_the_reason(tmp_path, monkeypatch):
    offer = Offer("ec2", "m5.large", 2, 0.1, "spot", 3, None, 0.0, None)
    ec2, now = lying(tmp_path, monkeypatch, Cloud([], "RequestLimitExceeded"))
    ec2.launch([Wanted("ec2-1-0", offer, 0)])
    now[0] = GIVE_UP - 1
    assert ec2.seen()["ec2-1-0"].condition == "starting"
    now[0] = GIVE_UP + 1
    ec2.seen()
    told = ec2.seen()["ec2-1-0"]
    assert (told.condition, told.why) == ("refused", "RequestLimitExceeded, for 5 minutes")
    ec2.release(["ec2-1-0"])
    assert ec2.seen() == {}


def test_an_instance_that_runs_without_its_agent_is_given_up(tmp_path, monkeypatch):
    cloud = Cloud([instance(0, "ec2-1-0"), instance(1, "ec2-1-1"), instance(2, "ec2-1-2", "pending")])
    ec2, now = lying(tmp_path, monkeypatch, cloud)
    (tmp_path / "servers" / "ec2-1-1").mkdir(parents=True)
    assert {name: each.condition for name, each in ec2.seen().items()} == dict.fromkeys(
        ("ec2-1-0", "ec2-1-1", "ec2-1-2"), "starting"
    )
    (tmp_path / "servers" / "ec2-1-1" / "up").touch()
    now[0] = 10 * ec2.boot * 3600 + SILENT
    told = ec2.seen()
    assert [told[f"ec2-1-{i}"].condition for i in range(3)] == ["gone", "alive", "starting"]
    assert "its agent did not begin" in told["ec2-1-0"].why
    ec2.release(["ec2-1-0"])
    assert cloud.ended == {"i-0"}


def test_a_cloud_that_says_a_server_lives_and_is_gone(tmp_path, monkeypatch):
    cloud = Cloud(
        [
            instance(0, "ec2-1-0", "terminated"),
            instance(1, "ec2-1-0"),
            instance(2, "ec2-1-0"),
            instance(3, "other"),
        ]
    )
    ec2, _ = lying(tmp_path, monkeypatch, cloud)
    assert {name: each.condition for name, each in ec2.seen().items()} == {"ec2-1-0": "starting"}
    assert cloud.ended == {"i-2"}  # the younger of two that live
