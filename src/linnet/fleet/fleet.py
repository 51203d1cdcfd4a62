"""A fleet: providers, the law by which their servers are lost, and prices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linnet.errors import InputError
from linnet.fleet.model import Model
from linnet.fleet.model_text import model_from_json, model_to_json
from linnet.fleet.offers import Offer
from linnet.fleet.prices import Catalogue
from linnet.fleet.providers.ec2 import EC2
from linnet.fleet.providers.local import Local
from linnet.fleet.providers.provider import Provider
from linnet.fleet.providers.simulated import Simulated
from linnet.fleet.providers.slurm import Slurm


class Fleet:
    """Servers to run bags on.

    Parameters
    ----------
    providers : one or several of `Local`, `Slurm`, `EC2`, `Simulated`, or your own
    model : how long their servers live (`Lifetimes.fit`); providers may have their own
    prices : a `Catalogue`; by default the one in the package, for providers that need prices
    servers : how many servers there may be at once, of all kinds

    Examples
    --------
    >>> from linnet.fleet import Fleet, Local
    >>> Fleet([Local(2)])
    Fleet([Local(2)])
    """

    def __init__(
        self,
        providers: Provider | Sequence[Provider],
        *,
        model: Model | None = None,
        prices: Catalogue | None = None,
        servers: int | None = None,
    ) -> None:
        self.providers: list[Provider] = list(providers) if isinstance(providers, Sequence) else [providers]
        if not self.providers:
            raise InputError("a fleet needs at least one provider, such as Local(4)")
        names = [each.name for each in self.providers]
        if len(set(names)) < len(names):
            raise InputError(f"two providers have one name ({', '.join(names)}); give them others with name=")
        speeds = {each.speed for each in self.providers}
        if len(speeds) > 1:
            raise InputError(f"providers with clocks of different speed ({speeds}) cannot be one fleet")
        if servers is not None and (not isinstance(servers, int) or servers < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"servers={servers!r}: give a whole number of at least 1, or None")
        self.model: Model | None = model
        self.prices: Catalogue | None = prices
        self.servers: int | None = servers

    @property
    def speed(self) -> float:
        """Hours of a bag in an hour of the clock."""
        return self.providers[0].speed

    def provider(self, name: str) -> Provider:
        """One of them by name."""
        return next(each for each in self.providers if each.name == name)

    def offers(self) -> list[Offer]:
        """Everything that can be asked for."""
        return [offer for each in self.providers for offer in each.offers(self.model, self.prices)]

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a bag, so that `linnet bag resume` finds it again. Prices are in its "
        "offers."""
        return {
            "providers": [each.to_json() for each in self.providers],
            "model": model_to_json(self.model),
            "servers": self.servers,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any], prices: Catalogue | None = None) -> Fleet:
        """The fleet that `to_json` wrote."""
        providers = [provider_from_json(each) for each in data["providers"]]
        return cls(
            providers, model=model_from_json(data.get("model")), prices=prices, servers=data.get("servers")
        )

    def __repr__(self) -> str:
        return f"Fleet([{', '.join(map(repr, self.providers))}])"


def provider_from_json(data: dict[str, Any]) -> Provider:
    """A provider from its kind and options."""
    options = dict(data)
    kind = options.pop("kind", None)
    known = _kinds()
    if kind not in known:
        raise InputError(f"no provider is called {kind!r}; there are {', '.join(known)}")
    if "model" in options:
        options["model"] = model_from_json(options["model"])
    try:
        return known[kind](**options)
    except TypeError as error:
        raise InputError(f"provider {kind!r}: {error}") from None


def _kinds() -> dict[str, Any]:
    return {"local": Local, "slurm": Slurm, "ec2": EC2, "simulated": Simulated}
