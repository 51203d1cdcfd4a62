"""Every provider passes the same suite; here the one of this machine."""

from __future__ import annotations

import json
import os
import signal

import pytest

from linnet.fleet import Local
from linnet.fleet.providers.provider import Provider
from linnet.testing.providers import ProviderSuite

pytestmark = pytest.mark.slow


class TestLocal(ProviderSuite):
    @pytest.fixture
    def provider(self) -> Provider:
        return Local(2)

    def take_away(self, provider: Provider, name: str) -> None:
        assert isinstance(provider, Local)
        number, _ = json.loads((provider.place.server(name) / "pid").read_text())
        os.kill(number, signal.SIGKILL)  # its job goes on: the provider ends it when it finds out
