"""What every provider of servers must do: a suite to subclass::

    from linnet.testing.providers import ProviderSuite

    class TestMine(ProviderSuite):
        @pytest.fixture
        def provider(self):
            return Mine(limit=2)

        def take_away(self, provider, name):
            ...  # as its owner would: without asking

A provider that has no servers yet is wanted for each test, with room for two. Its servers really run jobs
here, from
the folder of a bag; a cloud's must be made to, by what the cloud would do with a new server.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from linnet.fleet.fleet import provider_from_json
from linnet.fleet.providers.provider import Place, Provider, Wanted

PATIENCE = 120.0


def wait_for(true: Callable[[], Any], what: str) -> Any:
    """Wait for an event, not for a time."""
    until = time.monotonic() + PATIENCE
    while not (found := true()):
        if time.monotonic() > until:
            pytest.fail(f"waited in vain for {what}")
        time.sleep(0.02)
    return found


class ProviderSuite:
    """Subclass this with a fixture `provider`, and `take_away`."""

    @pytest.fixture
    def provider(self) -> Provider:
        """The provider under test."""
        pytest.fail("a subclass of ProviderSuite gives the fixture `provider`")

    def take_away(self, provider: Provider, name: str) -> None:
        """Take a server away as its owner would."""
        pytest.fail("a subclass of ProviderSuite says how a server is taken away")

    @pytest.fixture
    def place(self, tmp_path: Path) -> Place:
        """An empty bag's folder."""
        for name in ("servers", "attempts", "done"):
            (tmp_path / name).mkdir()
        (tmp_path / "heartbeat").touch()
        return Place(os.urandom(4).hex(), tmp_path)

    @pytest.fixture(autouse=True)
    def _ended(self, provider: Provider, place: Place) -> Any:
        provider.open(place)
        yield
        provider.release(list(provider.seen()))
        provider.close()

    def wanted(self, provider: Provider, place: Place, number: int) -> Wanted:
        """A server to ask for."""
        offer = provider.offers(None, None)[0]
        return Wanted(f"{provider.name}-{place.id}-{number}", offer, number)

    def start(self, provider: Provider, place: Place, *numbers: int) -> list[str]:
        """Servers that are up."""
        wanted = [self.wanted(provider, place, number) for number in numbers]
        provider.launch(wanted)
        names = [each.name for each in wanted]
        wait_for(lambda: all((place.server(name) / "up").exists() for name in names), "servers to be up")
        wait_for(lambda: self.alive(provider) >= set(names), "servers to be seen")
        return names

    def alive(self, provider: Provider) -> set[str]:
        """Servers that are there."""
        return {name for name, each in provider.seen().items() if each.condition in ("starting", "alive")}

    def run(self, place: Place, server: str, attempt: int, *argv: str) -> Path:
        """Give a server a job; where its files are."""
        folder = place.folder / "attempts" / str(attempt)
        folder.mkdir(parents=True)
        kept = place.folder / "checkpoints"
        variables = {"LINNET_RESULT": str(folder / "result.json"), "LINNET_CHECKPOINTS": str(kept)}
        orders = place.server(server) / "orders"
        orders.mkdir(parents=True, exist_ok=True)
        part = orders / "part"
        part.write_text(json.dumps({"argv": argv, "environment": variables}))
        part.rename(orders / f"{attempt}.json")
        return folder

    # ---- what is tested

    def test_offers_say_what_can_be_had(self, provider: Provider) -> None:
        offers = provider.offers(None, None)
        assert offers
        for offer in offers:
            assert offer.provider == provider.name
            assert offer.cores >= 1
            assert offer.price >= 0
            assert offer.limit is None or offer.limit >= 2

    def test_servers_come_run_jobs_and_go(self, provider: Provider, place: Place) -> None:
        first, second = self.start(provider, place, 0, 1)
        one = self.run(place, first, 0, "sh", "-c", "echo 1 > $LINNET_RESULT")
        two = self.run(place, second, 1, "sh", "-c", "exit 3")
        wait_for(lambda: (place.folder / "done" / "0").exists(), "the first job")
        wait_for(lambda: (place.folder / "done" / "1").exists(), "the second job")
        assert json.loads((one / "exit.json").read_text())["status"] == 0
        assert json.loads((one / "result.json").read_text()) == 1
        assert json.loads((two / "exit.json").read_text())["status"] == 3
        provider.release([first])
        wait_for(lambda: self.alive(provider) == {second}, "the first server to be gone")
        provider.release([first, second, f"{provider.name}-{place.id}-99"])
        wait_for(lambda: not self.alive(provider), "all servers to be gone")

    def test_asking_twice_gives_one_server(self, provider: Provider, place: Place) -> None:
        wanted = self.wanted(provider, place, 0)
        provider.launch([wanted])
        wait_for(lambda: (place.server(wanted.name) / "up").exists(), "the server to be up")
        provider.launch([wanted])
        folder = self.run(place, wanted.name, 0, "sh", "-c", "echo $$ >> ../count")
        wait_for(lambda: (place.folder / "done" / "0").exists(), "the job")
        assert len((folder / "count").read_text().splitlines()) == 1
        assert self.alive(provider) == {wanted.name}

    def test_a_server_that_is_taken_away_is_seen_to_be(self, provider: Provider, place: Place) -> None:
        (name,) = self.start(provider, place, 0)
        folder = self.run(place, name, 0, "sh", "-c", "echo $$ > ../number; sleep 600")
        number = wait_for(lambda: (folder / "number").exists() and (folder / "number").read_text(), "the job")
        self.take_away(provider, name)
        wait_for(lambda: name not in self.alive(provider), "the server to be gone")
        provider.release([name])  # as the controller does with whatever is gone
        wait_for(lambda: _gone(int(number)), "its job to be gone")
        assert not (folder / "exit.json").exists() or json.loads((folder / "exit.json").read_text())["status"]

    def test_release_ends_jobs_too(self, provider: Provider, place: Place) -> None:
        (name,) = self.start(provider, place, 0)
        folder = self.run(
            place, name, 0, "sh", "-c", "trap '' TERM; echo $$ > ../number; while :; do sleep 1; done"
        )
        number = wait_for(lambda: (folder / "number").exists() and (folder / "number").read_text(), "the job")
        provider.release([name])
        wait_for(lambda: _gone(int(number)), "its job to be gone")

    def test_another_object_finds_the_servers_again(self, provider: Provider, place: Place) -> None:
        (name,) = self.start(provider, place, 0)
        provider.close()
        other = provider_from_json(json.loads(json.dumps(provider.to_json())))
        other.open(place)
        assert self.alive(other) == {name}
        other.release([name])
        wait_for(lambda: not self.alive(other), "the server to be gone")
        other.close()

    def test_other_bags_are_left_alone(self, provider: Provider, place: Place, tmp_path: Path) -> None:
        (name,) = self.start(provider, place, 0)
        (tmp_path / "other" / "servers").mkdir(parents=True)
        other = provider_from_json(json.loads(json.dumps(provider.to_json())))
        other.open(Place("another", tmp_path / "other"))
        assert not other.seen()
        other.close()
        assert self.alive(provider) == {name}


def _gone(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True
    return state in "ZX"
