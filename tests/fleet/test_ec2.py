"""EC2 against moto: the suite of providers, whole bags, and a cloud that answers badly."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from cloud import Machines, Metadata, PriceList, Proxy

from linnet.errors import InputError
from linnet.fleet import EC2, Bag, Catalogue, Fleet, Price
from linnet.fleet.providers.provider import Provider
from linnet.testing.providers import ProviderSuite

pytestmark = pytest.mark.slow

HERE = str(Path(__file__).parent)
PRICES = "type,cores,memory_gb,on_demand,spot\nm5.large,2,8,0.96,0.36\n"


@pytest.fixture
def cloud(moto_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for key, value in moto_server.environment.items():
        if key != "AWS_ENDPOINT_URL":
            monkeypatch.setenv(key, value)
    moto_server.reset()
    monkeypatch.syspath_prepend(HERE)
    yield moto_server.client("ec2")
    moto_server.reset()


def make(moto_server: Any, cloud: Any, **options: Any) -> EC2:
    image = cloud.describe_images()["Images"][0]["ImageId"]
    given: dict[str, Any] = {
        "region": "us-east-1", "image": image, "servers": 3, "poll": 0.1, "patience": 20.0, "shutdown": [],
        "python": sys.executable, "endpoint": moto_server.endpoint, "metadata": "", "markets": ["spot"],
    }  # fmt: skip
    return EC2(["m5.large"], **{**given, **options})


@pytest.fixture
def prices(tmp_path: Path) -> Catalogue:
    (tmp_path / "prices.csv").write_text(PRICES)
    return Catalogue.from_csv(tmp_path / "prices.csv")


def living(cloud: Any) -> list[Any]:
    return [
        each
        for group in cloud.describe_instances()["Reservations"]
        for each in group["Instances"]
        if each["State"]["Name"] in ("pending", "running")
    ]


@pytest.mark.slow
class TestSuite(ProviderSuite):
    @pytest.fixture
    def provider(self, moto_server: Any, cloud: Any, prices: Catalogue, monkeypatch) -> Iterator[Provider]:
        monkeypatch.setattr(Catalogue, "shipped", lambda: prices)
        self.cloud = cloud
        with Machines(moto_server.client("ec2")):
            yield make(moto_server, cloud)

    def take_away(self, provider: Provider, name: str) -> None:
        for each in living(self.cloud):
            if {"Key": "linnet-server", "Value": name} in each["Tags"]:
                self.cloud.terminate_instances(InstanceIds=[each["InstanceId"]])


@pytest.mark.slow
def test_a_bag_on_spot_servers_and_its_bill(tmp_path, moto_server, cloud, prices):
    bag = Bag("bag_jobs:square", {"x": list(range(6))}, folder=tmp_path / "bag", cores=2)
    with Machines(moto_server.client("ec2")):
        table = bag.run(Fleet([make(moto_server, cloud)], prices=prices)).table()
    assert table["result"] == [{"square": x * x} for x in range(6)]
    assert table["server"] == ["m5.large"] * 6
    assert living(cloud) == []
    state = bag.state()
    seconds = sum((each.ended - each.launched) * 3600 for each in state.servers)
    assert bag.status().cost == pytest.approx(seconds * 0.36 / 3600)


@pytest.mark.slow
def test_no_capacity_throttling_and_lost_answers(tmp_path, moto_server, cloud, prices):
    asked = Counter()

    def fault(action: str) -> str | None:
        asked[action] += 1
        if action == "RunInstances":
            return {1: "InsufficientInstanceCapacity", 2: "RequestLimitExceeded", 3: "lost"}.get(
                asked[action]
            )
        return "RequestLimitExceeded" if action == "DescribeInstances" and asked[action] == 3 else None

    seen: list[str] = []
    bag = Bag("bag_jobs:square", {"x": list(range(4))}, folder=tmp_path / "bag", cores=2)
    with Machines(moto_server.client("ec2")), Proxy(moto_server.endpoint) as proxy:
        proxy.fault = fault
        fleet = Fleet([make(moto_server, cloud, endpoint=proxy.url)], prices=prices)
        table = bag.run(fleet, progress=lambda now: seen.extend(now.reasons)).table()
    assert table["result"] == [{"square": x * x} for x in range(4)]
    assert table["failures"] == [0] * 4
    assert living(cloud) == []
    names = Counter(
        tag["Value"]
        for group in cloud.describe_instances()["Reservations"]
        for each in group["Instances"]
        for tag in each["Tags"]
        if tag["Key"] == "linnet-server"
    )
    assert set(names.values()) == {1}  # a request without an answer was not made twice


def test_two_instances_of_one_name_become_one(tmp_path, moto_server, cloud, prices):
    from linnet.fleet.providers.provider import Place, Wanted

    provider = make(moto_server, cloud)
    (tmp_path / "servers").mkdir()
    provider.open(Place("b", tmp_path))
    wanted = Wanted("ec2-b-0", provider.offers(None, prices)[0], 0)
    provider._ask(wanted)
    provider._ask(wanted)  # moto ignores the client token
    assert len(living(cloud)) == 2
    provider.seen()
    assert len(living(cloud)) == 1
    provider.release(["ec2-b-0"])
    assert living(cloud) == []


@pytest.mark.slow
def test_a_notice_reaches_the_job(tmp_path, moto_server, cloud, prices):
    script = tmp_path / "job.sh"
    script.write_text(
        "#!/bin/sh\n"
        "trap 'echo > \"$LINNET_CHECKPOINTS/saved\"; exit 9' TERM\n"
        'if [ -e "$LINNET_CHECKPOINTS/saved" ]; then echo 1 > "$LINNET_RESULT"; exit 0; fi\n'
        'echo > "$LINNET_CHECKPOINTS/begun"\n'
        "while :; do sleep 0.05; done\n"
    )
    script.chmod(0o755)
    bag = Bag(str(script), [{}], folder=tmp_path / "bag", cores=2, retries=0)
    with Machines(moto_server.client("ec2")), Metadata() as metadata:

        def give_notice(now: Any) -> None:
            metadata.notice = (bag.folder / "checkpoints" / "0" / "begun").exists() and now.preemptions == 0

        fleet = Fleet([make(moto_server, cloud, metadata=metadata.url)], prices=prices)
        table = bag.run(fleet, progress=give_notice).table()
    assert table["result"] == [1]
    assert table["preemptions"] == [1]
    assert table["failures"] == [0]


CODE = """
import json, os, sys
sys.path.insert(0, sys.argv[3])
from linnet.fleet import Bag, Catalogue, Fleet
from linnet.fleet.fleet import provider_from_json
provider = provider_from_json(json.loads(sys.argv[2]))
ask = provider._cloud.run_instances
def killed(**request):
    ask(**request)
    os.kill(os.getpid(), 9)
if os.environ.get("KILL"):
    provider._cloud.run_instances = killed
fleet = Fleet([provider], prices=Catalogue.from_csv(sys.argv[4]))
Bag("bag_jobs:square", {"x": [1, 2, 3]}, folder=sys.argv[1], cores=2).run(fleet)
"""


@pytest.mark.slow
def test_killed_after_the_request_and_before_its_answer(tmp_path, moto_server, cloud, prices):
    import json

    folder = tmp_path / "bag"
    provider = make(moto_server, cloud, servers=1).to_json()
    command = [
        sys.executable,
        "-c",
        CODE,
        str(folder),
        json.dumps(provider),
        HERE,
        str(tmp_path / "prices.csv"),
    ]
    with Machines(moto_server.client("ec2")):
        child = subprocess.run(command, env={**os.environ, "KILL": "1"}, timeout=120, check=False)
        assert child.returncode == -signal.SIGKILL
        assert len(living(cloud)) == 1  # nobody stored that it is there
        subprocess.run(command, timeout=150, check=True)
        assert living(cloud) == []
    bag = Bag.open(folder)
    assert bag.table()["result"] == [{"square": 1}, {"square": 4}, {"square": 9}]
    all_of_them = [
        each for group in cloud.describe_instances()["Reservations"] for each in group["Instances"]
    ]
    assert len(all_of_them) == 1  # it was found again, not asked for twice
    state = bag.state()
    assert bag.status().cost == pytest.approx(
        sum(each.ended - each.launched for each in state.servers) * 0.36
    )


def test_catalogues(tmp_path, cloud):
    shipped = Catalogue.shipped()
    assert shipped.find("p3.2xlarge").cores == 8
    assert shipped.age > 1000
    assert "days old: bring it up to date" in str(shipped)
    with pytest.raises(InputError, match=r"no price of 'm99\.large'"):
        shipped.find("m99.large")
    shipped.to_csv(tmp_path / "again.csv")
    assert Catalogue.from_csv(tmp_path / "again.csv").rows == shipped.rows
    new = shipped.refresh("us-east-1", ["m5.large"], client=cloud)
    found = new.find("m5.large", "us-east-1")
    assert isinstance(found, Price)
    assert found.cores == 2
    assert new.age == 0
    kept = new.find("p3.2xlarge", "us-east-1b")
    assert kept.on_demand == 3.06
    (tmp_path / "bad.csv").write_text("type,cores\na,1\n")
    with pytest.raises(ValueError, match="columns type, cores, memory_gb and spot or on_demand"):
        Catalogue.from_csv(tmp_path / "bad.csv")
    (tmp_path / "bad.csv").write_text("type,cores,memory_gb,spot\na,1,2,-3\n")
    with pytest.raises(ValueError, match=r"bad\.csv:2: '-3' is no price"):
        Catalogue.from_csv(tmp_path / "bad.csv")


def test_on_demand_prices_are_asked_for_too(cloud):
    import boto3

    with PriceList() as prices:
        pricing = boto3.client("pricing", region_name="us-east-1", endpoint_url=prices.url)
        new = Catalogue.shipped().refresh("us-east-1", ["m5.large"], client=cloud, pricing=pricing)
        with_unknown = new.refresh("us-east-1", ["m5.large", "m5.xlarge"], client=cloud, pricing=pricing)
    assert new.find("m5.large").on_demand == 0.096
    assert with_unknown.find("m5.xlarge").on_demand is None
    assert new.find("p3.2xlarge", "us-east-1b").on_demand == 3.06  # nobody asked for it


def place_in(folder: Path) -> Any:
    from linnet.fleet.providers.provider import Place

    (folder / "servers").mkdir()
    return Place("abc", folder)


@pytest.mark.parametrize("market", ["spot", "on-demand"])
def test_fleet_requests_where_there_are_several_zones(tmp_path, moto_server, cloud, prices, market):
    from linnet.fleet.fleet import provider_from_json
    from linnet.fleet.providers.provider import Wanted

    with Proxy(moto_server.endpoint) as proxy:
        provider = make(
            moto_server, cloud, endpoint=proxy.url, zones=["us-east-1a", "us-east-1b"], markets=[market]
        )
        assert provider_from_json(provider.to_json()).to_json() == provider.to_json()
        provider.open(place_in(tmp_path))
        wanted = Wanted("ec2-abc-0", provider.offers(None, prices)[0], 0)
        provider.launch([wanted])
        provider.launch([wanted])
        assert "RunInstances" not in proxy.actions
        assert proxy.actions.count("CreateFleet") == 1
    (made,) = living(cloud)
    tags = {each["Key"]: each["Value"] for each in made["Tags"]}
    assert tags["linnet-server"] == "ec2-abc-0"
    assert tags["linnet-bag"] == "abc"
    assert made.get("InstanceLifecycle") == ("spot" if market == "spot" else None)
    script = cloud.describe_instance_attribute(InstanceId=made["InstanceId"], Attribute="userData")
    assert "LINNET_AGENT" in base64.b64decode(script["UserData"]["Value"]).decode()
    assert cloud.describe_launch_templates()["LaunchTemplates"] == []


def test_fleet_requests_that_are_refused_lost_or_not_allowed(tmp_path, moto_server, cloud, prices):
    from linnet.fleet.providers.provider import Wanted

    faults = iter(["UnfulfillableCapacity", "RequestLimitExceeded", "lost", "UnauthorizedOperation"])
    with Proxy(moto_server.endpoint) as proxy:
        proxy.fault = lambda action: next(faults, None) if action == "CreateFleet" else None
        provider = make(moto_server, cloud, endpoint=proxy.url, zones=["us-east-1a", "us-east-1b"])
        provider.open(place_in(tmp_path))
        offer = provider.offers(None, prices)[0]
        provider.launch([Wanted("ec2-abc-0", offer, 0)])
        refused = provider.seen()["ec2-abc-0"]
        assert refused.condition == "refused"
        assert "UnfulfillableCapacity" in refused.why
        provider.launch(
            [Wanted("ec2-abc-1", offer, 1)]
        )  # throttled: asked again at the next look; lost: found
        for _ in range(3):
            assert provider.seen()["ec2-abc-1"].condition == "starting"
        provider.launch([Wanted("ec2-abc-2", offer, 2)])  # not allowed: a single request
        assert provider.no_fleets == "UnauthorizedOperation"
        assert proxy.actions.count("RunInstances") == 1
    names = sorted(tag["Value"] for each in living(cloud) for tag in each["Tags"] if tag["Key"] == "Name")
    assert names == ["ec2-abc-1", "ec2-abc-2"]


def test_todays_metadata_want_a_token(tmp_path):
    from linnet.fleet.agent import Agent

    (tmp_path / "servers" / "s").mkdir(parents=True)
    with Metadata() as metadata:
        agent = Agent({"folder": str(tmp_path), "name": "s", "metadata": metadata.url})
        agent.ask()
        metadata.rebalance = True
        agent.ask()
        assert (tmp_path / "servers" / "s" / "rebalance").exists()
        assert not agent.warned
        metadata.notice = True
        agent.ask()
        assert agent.warned


def test_bad_options_are_told(tmp_path):
    with pytest.raises(InputError, match="give one zone, or a list of several"):
        EC2(["m5.large"], region="us-east-1", zones="us-east-1a")
    with pytest.raises(InputError, match="give a list of instance types"):
        EC2("m5.large", region="us-east-1")
    bag = Bag("echo", [{}], hours=1.0, folder=tmp_path / "bag")
    with pytest.raises(InputError, match="give the machine image"):
        bag.run(Fleet([EC2(["p3.2xlarge"], region="us-east-1")]))
