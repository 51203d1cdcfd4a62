"""Servers of Amazon EC2, spot and on-demand, through boto3.

Each server is an instance with two tags, the bag and the server's name, given in the request itself: so
there is no
moment at which an instance runs that nobody knows. A request whose answer was lost is followed by a look at
the
tags, not by a second request; should there be two instances of one name, the younger one is ended.

Servers must see the bag's folder under the path it has here: a file system that they mount in `setup` (EFS,
FSx,
NFS). They need Python 3.8 or later and nothing else; the agent travels in the instance's user data.
"""

from __future__ import annotations

import base64
import json
import shlex
import time
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, cast

from linnet.errors import InputError, JobError, missing_extra
from linnet.fleet.elapsed import elapsed
from linnet.fleet.model import Model
from linnet.fleet.model_text import model_to_json
from linnet.fleet.offers import Market, Offer
from linnet.fleet.prices import Catalogue
from linnet.fleet.providers.fleet_requests import ask_fleet
from linnet.fleet.providers.provider import Place, Seen, Wanted, agent_file

METADATA = "http://169.254.169.254"
_NO_CAPACITY = {
    "InsufficientInstanceCapacity", "InsufficientHostCapacity", "SpotMaxPriceTooLow", "InstanceLimitExceeded",
    "MaxSpotInstanceCountExceeded", "VcpuLimitExceeded", "UnfulfillableCapacity", "Unsupported",
}  # fmt: skip
_THROTTLED = {"RequestLimitExceeded", "Throttling", "ThrottlingException", "RequestThrottled"}
GIVE_UP = 300.0
"""Seconds for which a server is asked for again, while EC2 asks to wait or does not answer."""
SILENT = 900.0
"""Seconds that the agent of a running instance may take to begin, at least."""
_LIVING = {"pending": "starting", "running": "alive"}


class EC2:
    """Servers of Amazon EC2.

    Parameters
    ----------
    types : instance types, such as ["c7i.large"]; their prices are the fleet's catalogue's
    region, zone : where; a zone narrows the region
    zones : several zones of the region: each server is asked for by a fleet request, which takes it where it
        is to be had. Where fleet requests are not allowed, single ones are made
    image : the machine image; it must have Python 3.8 or later
    servers : how many of each type and market there may be at once
    markets : "spot", "on-demand", or both
    setup : shell commands that run first on a server, such as the mount of the bag's file system
    options : further ones for `run_instances`: network, security, key, volumes
    model : how long spot servers live; None: the fleet's
    boot : hours until a server takes its first job, as far as is known beforehand
    endpoint : another address of the interface, for tests
    metadata : where servers hear of interruptions
    shutdown : the command by which a server ends itself when nobody needs it
    """

    speed: float = 1.0

    def __init__(
        self,
        types: Sequence[str],
        *,
        region: str,
        zone: str | None = None,
        zones: Sequence[str] = (),
        image: str | None = None,
        servers: int = 20,
        markets: Sequence[Market] = ("spot", "on-demand"),
        setup: str = "",
        options: Mapping[str, Any] | None = None,
        model: Model | None = None,
        boot: float = 2 / 60,
        poll: float = 5.0,
        idle: float = 900.0,
        patience: float = 60.0,
        endpoint: str | None = None,
        metadata: str = METADATA,
        python: str = "python3",
        shutdown: Sequence[str] = ("shutdown", "-h", "now"),
        name: str = "ec2",
    ) -> None:
        if isinstance(types, str) or not types:
            raise InputError(f"EC2(types={types!r}): give a list of instance types")
        self.types: list[str] = list(types)
        self.region: str = region
        if isinstance(zones, str) or (zone is not None and zones):
            raise InputError(f"zone={zone!r}, zones={zones!r}: give one zone, or a list of several")
        self.zone: str | None = zone or (zones[0] if len(zones) == 1 else None)
        self.zones: list[str] = list(zones)
        self.no_fleets: str = ""
        """Why fleet requests are no longer made, if they are not."""
        self.image: str | None = image
        self.servers: int = servers
        self.markets: list[Market] = list(markets)
        self.setup: str = setup
        self.options: dict[str, Any] = dict(options or {})
        self.model: Model | None = model
        self.boot: float = boot
        self.poll: float = poll
        self.idle: float = idle
        self.patience: float = patience
        self.endpoint: str | None = endpoint
        self.metadata: str = metadata
        self.python: str = python
        self.shutdown: list[str] = list(shutdown)
        self.name: str = name
        self._place: Place | None = None
        self._made: Any = None
        self._refused: dict[str, str] = {}
        self._again: dict[str, tuple[Wanted, float]] = {}
        """Servers to be asked for again, and since when."""
        self._silent: dict[str, float] = {}
        """Since when instances run whose agents have not said a word."""

    def offers(self, model: Model | None, prices: Catalogue | None) -> list[Offer]:
        """Each type, spot and on-demand, as far as prices are known."""
        catalogue = prices or Catalogue.shipped()
        found: list[Offer] = []
        for kind in self.types:
            rows = [catalogue.find(kind, each) for each in self.zones or [self.zone]]
            # Which zone it will be is not known: the dearest counts, so that no budget is passed.
            row = max(rows, key=lambda each: (each.spot or 0.0, each.on_demand or 0.0))
            for market, price in (("spot", row.spot), ("on-demand", row.on_demand)):
                if price is not None and market in self.markets:
                    law = (self.model or model) if market == "spot" else None
                    found.append(
                        Offer(
                            self.name, kind, row.cores, price, market, self.servers,
                            row.memory_gb * 2**30, self.boot, law, row.zone,
                        )
                    )  # fmt: skip
        if not found:
            raise InputError(f"no price of {', '.join(self.types)} on {' or '.join(self.markets)} is known")
        return found

    def open(self, place: Place) -> None:
        self._place = place
        if self.image is None:
            raise InputError("EC2(image=…): give the machine image that servers start from")

    @property
    def place(self) -> Place:
        """The bag it works for."""
        if self._place is None:
            raise InputError("this provider works for no bag yet; give it to a Fleet, and run a bag on that")
        return self._place

    @property
    def _cloud(self) -> Any:
        if self._made is None:
            try:
                import boto3  # pyright: ignore[reportMissingTypeStubs]
                from botocore.config import Config  # pyright: ignore[reportMissingTypeStubs]
            except ImportError as error:
                raise missing_extra("servers of EC2", "boto3", "ec2") from error
            # Without retries of its own: a request is made again only after a look at what the last one did.
            settings = Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=30)
            self._made = cast("Any", boto3).client(
                "ec2", region_name=self.region, endpoint_url=self.endpoint, config=settings
            )
        return self._made

    # ---- asking

    def launch(self, wanted: Sequence[Wanted]) -> None:
        there = self.seen()
        for each in wanted:
            if each.name not in there or there[each.name].condition == "gone":
                self._ask(each)

    def _ask(self, wanted: Wanted) -> None:
        from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore

        try:
            if self._ask_in_zones(wanted):
                return
            self._cloud.run_instances(**self._request(wanted))
        except ClientError as error:
            code = str(cast("Any", error).response["Error"]["Code"])
            if code in _THROTTLED:
                self._wait(wanted, code)
            elif code in _NO_CAPACITY:
                self._refused[wanted.name] = code
            else:
                raise JobError(f"EC2 refused a server: {error}") from error
        except BotoCoreError as error:
            self._wait(wanted, str(error))  # no answer: whether there is an instance, the tags tell
        else:
            self._again.pop(wanted.name, None)

    def _wait(self, wanted: Wanted, why: str) -> None:
        """Ask again at the next look; what was not to be had for long is refused, so that it is told."""
        since = self._again.setdefault(wanted.name, (wanted, elapsed()))[1]
        if elapsed() - since > GIVE_UP:
            del self._again[wanted.name]
            self._refused[wanted.name] = f"{why}, for {GIVE_UP / 60:g} minutes"

    def _ask_in_zones(self, wanted: Wanted) -> bool:
        """Make a fleet request, if there are several zones; False: single requests are to be made."""
        from botocore.exceptions import ClientError  # pyright: ignore

        if len(self.zones) < 2 or self.no_fleets:
            return False
        try:
            codes = ask_fleet(self._cloud, wanted.name, self._request(wanted), self.zones)
        except ClientError as error:
            code = str(cast("Any", error).response["Error"]["Code"])
            if code in _THROTTLED | _NO_CAPACITY:
                raise
            codes = [code]
        if not codes:
            self._again.pop(wanted.name, None)
            return True
        if set(codes) <= _NO_CAPACITY:
            self._refused[wanted.name] = f"{', '.join(sorted(set(codes)))} in {', '.join(self.zones)}"
            return True
        if throttled := set(codes) & _THROTTLED:
            self._wait(wanted, ", ".join(sorted(throttled)))
            return True
        self.no_fleets = f"{', '.join(sorted(set(codes)))}"  # not allowed, or not there: ask as before
        return False

    def _request(self, wanted: Wanted) -> dict[str, Any]:
        tags = [
            {"Key": "linnet-bag", "Value": self.place.id},
            {"Key": "linnet-server", "Value": wanted.name},
            {"Key": "Name", "Value": wanted.name},
        ]
        request: dict[str, Any] = {
            "ImageId": self.image,
            "InstanceType": wanted.offer.type,
            "MinCount": 1,
            "MaxCount": 1,
            "ClientToken": wanted.name,
            "InstanceInitiatedShutdownBehavior": "terminate",
            "UserData": self.user_data(wanted.name),
            "TagSpecifications": [{"ResourceType": "instance", "Tags": tags}],
        }
        if self.zone:
            request["Placement"] = {"AvailabilityZone": self.zone}
        if wanted.offer.market == "spot":
            request["InstanceMarketOptions"] = {
                "MarketType": "spot",
                "SpotOptions": {"SpotInstanceType": "one-time", "InstanceInterruptionBehavior": "terminate"},
            }
        return {**request, **self.options}

    def user_data(self, name: str) -> str:
        """What a new server runs: the setup, then the agent, whose source is in it."""
        given = {
            "folder": str(self.place.folder), "name": name, "poll": min(self.poll, 1.0), "idle": self.idle,
            "metadata": self.metadata, "shutdown": self.shutdown, "grace": 10.0,
        }  # fmt: skip
        quoted = json.dumps(given).replace("'", "'\\''")
        packed = base64.b85encode(zlib.compress(agent_file().read_bytes(), 9)).decode()
        agent = f"import base64, zlib\nexec(zlib.decompress(base64.b85decode({packed!r})))"
        text = (
            f"#!/bin/sh\n{self.setup}\n{self.python} - '{quoted}' <<'LINNET_AGENT'\n{agent}\nLINNET_AGENT\n"
            f"{shlex.join(self.shutdown)}\n"  # also after an agent that was killed or could not begin
        )
        if len(text.encode()) > 16 * 1024:
            raise InputError(
                "the setup is too long: EC2 takes 16 KB, of which the agent needs 6; put it in the image"
            )
        return text

    # ---- looking

    def _instances(self) -> list[Any]:
        """Instances of the bag, the oldest first; asked again while the cloud is busy or silent."""
        from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore

        wait = 0.2
        while True:
            try:
                filters = [{"Name": "tag:linnet-bag", "Values": [self.place.id]}]
                pages = self._cloud.get_paginator("describe_instances").paginate(Filters=filters)
                found = [
                    each for page in pages for group in page["Reservations"] for each in group["Instances"]
                ]
                return sorted(found, key=lambda each: (each["LaunchTime"], each["InstanceId"]))
            except ClientError as error:
                if cast("Any", error).response["Error"]["Code"] not in _THROTTLED or wait > 30:
                    raise JobError(f"EC2 does not say which servers there are: {error}") from error
            except BotoCoreError as error:
                if wait > 30:
                    raise JobError(f"EC2 does not answer: {error}") from error
            time.sleep(wait)
            wait *= 2

    def seen(self) -> Mapping[str, Seen]:
        found: dict[str, Seen] = {name: Seen("refused", why) for name, why in self._refused.items()}
        twice: list[str] = []
        for each in self._instances():
            name = _tag(each, "linnet-server")
            if not name.startswith(f"{self.name}-"):
                continue
            condition = _LIVING.get(each["State"]["Name"])
            if condition is None:
                why = each.get("StateReason", {}).get("Message", "") or each["State"]["Name"]
                found.setdefault(name, Seen("gone", why))
            elif name in found and found[name].condition in ("starting", "alive"):
                twice.append(each["InstanceId"])
            else:
                found[name] = self._running(name, condition)
        if twice:
            self._terminate(twice)
        for name, (wanted, _) in list(self._again.items()):
            if name in found and found[name].condition != "refused":
                del self._again[name]
            else:
                found[name] = Seen("starting", "EC2 asked to wait, or did not answer; asked again")
                self._ask(wanted)
        return found

    def _running(self, name: str, condition: str) -> Seen:
        """An instance that runs without its agent for long is given up: it costs, and takes no job."""
        if (self.place.server(name) / "up").exists():
            self._silent.pop(name, None)
            return Seen("alive")
        if condition == "alive":
            late = max(SILENT, 10 * self.boot * 3600)
            if elapsed() - self._silent.setdefault(name, elapsed()) > late:
                return Seen(
                    "gone",
                    f"its agent did not begin within {late / 60:.0f} minutes: look at its console output; "
                    f"are there Python 3.8 and the folder {self.place.folder}?",
                )
        return Seen("starting")

    def release(self, names: Sequence[str]) -> None:
        for name in names:
            self._refused.pop(name, None)
            self._silent.pop(name, None)
            self._again.pop(name, None)
            if (folder := self.place.server(name)).exists():
                (folder / "leave").touch()
        wanted = set(names)
        self._terminate(
            [
                each["InstanceId"]
                for each in self._instances()
                if each["State"]["Name"] in _LIVING and _tag(each, "linnet-server") in wanted
            ]
        )

    def _terminate(self, ids: Sequence[str]) -> None:
        """End instances; what the cloud did not hear is ended at the next look, as an orphan."""
        from botocore.exceptions import BotoCoreError, ClientError  # pyright: ignore

        if not ids:
            return
        try:
            self._cloud.terminate_instances(InstanceIds=list(ids))
        except ClientError as error:
            code = str(cast("Any", error).response["Error"]["Code"])
            if code not in _THROTTLED and not code.startswith("InvalidInstanceID"):
                raise JobError(f"EC2 did not end {', '.join(ids)}: {error}") from error
        except BotoCoreError:
            return

    def close(self) -> None:
        """Nothing is held."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "ec2", "types": self.types, "region": self.region,
            "zone": None if self.zones else self.zone, "zones": self.zones, "image": self.image,
            "servers": self.servers, "markets": self.markets, "setup": self.setup, "options": self.options,
            "model": model_to_json(self.model), "boot": self.boot, "poll": self.poll, "idle": self.idle,
            "patience": self.patience, "endpoint": self.endpoint, "metadata": self.metadata,
            "python": self.python, "shutdown": self.shutdown, "name": self.name,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"EC2({self.types!r}, region={self.region!r})"


def _tag(instance: Any, key: str) -> str:
    return next((str(each["Value"]) for each in instance.get("Tags", ()) if each["Key"] == key), "")
