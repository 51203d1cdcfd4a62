"""Prices: which types of servers there are, how large, and what they cost. A table with a date, never a
promise.

The package has a small one (GPU servers of Amazon, 2020; see `data/README.md`), whose age is shown wherever
it is
used. One's own is a CSV file, and `refresh` asks the cloud.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from linnet.errors import FormatError, InputError, missing_extra
from linnet.fleet.reading import read_rows

OLD = 30
"""Days after which a catalogue says that it is old."""


@dataclass(frozen=True, slots=True)
class Price:
    """One type of server in one zone."""

    type: str
    zone: str
    cores: int
    memory_gb: float
    on_demand: float | None
    """Dollars an hour; None: not known."""
    spot: float | None
    """Dollars an hour; None: not known."""
    date: date
    """When these prices were seen."""


class Catalogue:
    """Types of servers with their prices.

    Parameters
    ----------
    rows : prices; see `Catalogue.from_csv` and `Catalogue.shipped`
    source : where they are from, for people

    Examples
    --------
    >>> from linnet.fleet import Catalogue
    >>> shipped = Catalogue.shipped()
    >>> shipped.find("p3.2xlarge", "us-east-1b").cores
    8
    """

    def __init__(self, rows: Iterable[Price], source: str = "given") -> None:
        self.rows: tuple[Price, ...] = tuple(rows)
        self.source = source
        if not self.rows:
            raise InputError("a catalogue needs at least one price")

    @classmethod
    def from_csv(cls, path: str | os.PathLike[str]) -> Catalogue:
        """Read `type, cores, memory_gb, on_demand, spot` and, if there are such columns, `zone` and `date`.

        Prices are dollars an hour; an empty field is a price that is not known. Without dates, the file's
        counts.
        """
        changed = date.today().isoformat()
        if Path(path).exists():
            changed = datetime.fromtimestamp(os.stat(path).st_mtime, UTC).date().isoformat()
        rows = [_price(row, f"{os.fspath(path)}:{line}", changed) for line, row in read_rows(path)]
        if not rows:
            raise FormatError(f"{os.fspath(path)} has a heading and no prices")
        return cls(rows, os.fspath(path))

    @classmethod
    def shipped(cls) -> Catalogue:
        """The one in the package: GPU servers of Amazon in 2020. Its age is shown; for other types give "
        "your own."""
        found = cls.from_csv(Path(__file__).parent / "data" / "aws_2020.csv")
        return cls(found.rows, "the package")

    @property
    def age(self) -> int:
        """Days since its latest price was seen."""
        return max(0, (date.today() - max(row.date for row in self.rows)).days)

    def find(self, type: str, zone: str | None = None) -> Price:
        """The price of a type, in a zone or where spot is cheapest; one without a zone holds in all."""
        named = [row for row in self.rows if row.type == type]
        found = [row for row in named if zone is None or (row.zone and row.zone.startswith(zone))]
        found = found or [row for row in named if not row.zone]
        if not found:
            types = sorted({row.type for row in self.rows})
            raise InputError(
                f"no price of {type!r}{f' in {zone}' if zone else ''}: the catalogue of {self.source} has "
                f"{', '.join(types[:12])}{', …' if len(types) > 12 else ''}; give your own with "
                "Catalogue.from_csv(path), or bring it up to date with catalogue.refresh(...)"
            )
        return min(found, key=lambda row: (row.spot is None, row.spot or 0.0))

    def refresh(
        self, region: str, types: Sequence[str], *, client: Any = None, pricing: Any = None
    ) -> Catalogue:
        """The same with today's prices, cores and memory of these types, from Amazon's interfaces.

        Parameters
        ----------
        region : "us-east-1", …
        types : which types to ask for
        client : a boto3 client of "ec2"; by default one is made from your settings (extra `ec2`)
        pricing : a boto3 client of "pricing", for on-demand prices; by default one is made if `client` is not
            given. On-demand prices that it does not tell stay as they were
        """
        if client is None and pricing is None:
            pricing = _client("us-east-1", "pricing")  # prices of all regions are told there
        cloud = client or _client(region)
        sure_prices = {} if pricing is None else {each: _on_demand(pricing, region, each) for each in types}
        shapes = {
            each["InstanceType"]: (each["VCpuInfo"]["DefaultVCpus"], each["MemoryInfo"]["SizeInMiB"] / 1024)
            for page in _pages(cloud.describe_instance_types, InstanceTypes=list(types))
            for each in page["InstanceTypes"]
        }
        latest: dict[tuple[str, str], tuple[Any, float]] = {}
        for page in _pages(
            cloud.describe_spot_price_history, InstanceTypes=list(types), ProductDescriptions=["Linux/UNIX"]
        ):
            for each in page["SpotPriceHistory"]:
                key = (each["InstanceType"], each["AvailabilityZone"])
                if key not in latest or each["Timestamp"] > latest[key][0]:
                    latest[key] = (each["Timestamp"], float(each["SpotPrice"]))
        if not latest:
            raise InputError(f"EC2 in {region} told no spot price of {', '.join(types)}")
        old = {(row.type, row.zone): row for row in self.rows}
        for (type, zone), (_, price) in latest.items():
            cores, memory = shapes[type]
            before = old.get((type, zone))
            sure = sure_prices.get(type) or (before.on_demand if before is not None else None)
            old[type, zone] = Price(type, zone, cores, memory, sure, price, date.today())
        return Catalogue(old.values(), f"{self.source}, refreshed from {region}")

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write it so that `from_csv` reads it."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in fields(Price)])
            for row in self.rows:
                writer.writerow(["" if value is None else value for value in asdict(row).values()])

    def scaled(self, factor: float) -> Catalogue:
        """All prices times a factor: what if they rise?"""
        times = [
            replace(
                row,
                spot=None if row.spot is None else row.spot * factor,
                on_demand=None if row.on_demand is None else row.on_demand * factor,
            )
            for row in self.rows
        ]
        return Catalogue(times, self.source)

    def __str__(self) -> str:
        latest = max(row.date for row in self.rows)
        old = f"{self.age} days old" + (
            ": bring it up to date before you rely on it" if self.age > OLD else ""
        )
        return f"{len(self.rows)} prices of {self.source}, the latest of {latest} ({old})"


def _price(row: dict[str, str], where: str, changed: str) -> Price:
    missing = {"type", "cores", "memory_gb"} - row.keys()
    if missing or not {"spot", "on_demand"} & row.keys():
        raise FormatError(
            f"{where}: columns type, cores, memory_gb and spot or on_demand are expected, and there are "
            f"{', '.join(row)}"
        )
    try:
        return Price(
            row["type"],
            row.get("zone", ""),
            int(row["cores"]),
            float(row["memory_gb"]),
            _dollars(row.get("on_demand", "")),
            _dollars(row.get("spot", "")),
            date.fromisoformat(row.get("date") or changed),
        )
    except ValueError as error:
        raise FormatError(f"{where}: {error}") from None


def _dollars(text: str) -> float | None:
    if not text:
        return None
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text!r} is no price; dollars an hour are expected")
    return value


def _pages(call: Any, **options: Any) -> Iterator[Any]:
    token: str | None = None
    while True:
        page = call(**options, **({"NextToken": token} if token else {}))
        yield page
        token = page.get("NextToken")
        if not token:
            return


def _on_demand(pricing: Any, region: str, type: str) -> float | None:
    """Dollars an hour of a Linux server of this type on demand; None if the price list does not say."""
    wanted = {
        "instanceType": type, "regionCode": region, "operatingSystem": "Linux", "tenancy": "Shared",
        "preInstalledSw": "NA", "capacitystatus": "Used",
    }  # fmt: skip
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    parts = [
        part
        for page in _pages(pricing.get_products, ServiceCode="AmazonEC2", Filters=filters)
        for text in page["PriceList"]
        for term in json.loads(text).get("terms", {}).get("OnDemand", {}).values()
        for part in term["priceDimensions"].values()
        if part.get("unit") == "Hrs"
    ]
    found = [float(part["pricePerUnit"].get("USD", 0)) for part in parts]
    return min((each for each in found if each > 0), default=None)


def _client(region: str, service: str = "ec2") -> Any:
    try:
        import boto3  # pyright: ignore[reportMissingTypeStubs]
    except ImportError as error:
        raise missing_extra("asking EC2", "boto3", "ec2") from error
    return boto3.client(service, region_name=region)  # pyright: ignore
