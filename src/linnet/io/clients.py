"""How object stores are opened through obstore: options for its HTTP client, and those for the service.

Users give them side by side; obstore wants them apart, and reads those of the client from the environment
only when it is given none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linnet.errors import StoreError

_CLIENT = {
    "allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only", "http2_only",
    "pool_idle_timeout", "pool_max_idle_per_host", "proxy_url", "proxy_excludes", "read_timeout",
    "root_certificate", "timeout", "user_agent",
}  # fmt: skip
# The beginnings of schemes, and of the variables of the service.
_SERVICES = {"s3": "AWS", "gs": "GOOGLE", "az": "AZURE", "abfs": "AZURE"}


def keywords(
    scheme: str, given: Mapping[str, Any], defaults: Mapping[str, Any], retry: Mapping[str, Any]
) -> dict[str, Any]:
    """Options as obstore takes them; `defaults` are those of the client.

    >>> keywords("memory", {"timeout": "9s", "region": "x"}, {"timeout": "5s"}, {"max_retries": 0})
    {'client_options': {'timeout': '9s'}, 'retry_config': {'max_retries': 0}, 'config': {'region': 'x'}}
    """
    left = dict(given)
    client = {**defaults, **_from_environment(scheme), **left.pop("client_options", {})}
    client |= {name: left.pop(name) for name in list(left) if name in _CLIENT}
    client = {name: _client_value(name, value) for name, value in client.items()}
    config = {"config": left} if left else {}
    return {"client_options": client, "retry_config": dict(retry), **config}


def is_plain(scheme: str, given: Mapping[str, Any]) -> bool:
    """Whether the endpoint that is given, or is in the environment, is one without encryption.

    >>> is_plain("s3", {"endpoint": "http://127.0.0.1:9000"}), is_plain("https", {"endpoint": "https://x"})
    (True, False)
    """
    names = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
    around = next((os.environ[name] for name in names if name in os.environ), "")
    return scheme == "http" or str(given.get("endpoint") or around).startswith("http://")


def _from_environment(scheme: str) -> dict[str, str]:
    service = next((name for start, name in _SERVICES.items() if scheme.startswith(start)), None)
    if service is None:
        return {}
    settings = {name: os.environ.get(f"{service}_{name.upper()}") for name in _CLIENT}
    settings["root_certificate"] = os.environ.get("AWS_CA_BUNDLE") if service == "AWS" else None
    return {name: value for name, value in settings.items() if value}


def _client_value(name: str, value: Any) -> Any:
    if name == "root_certificate" and isinstance(value, str) and "-----BEGIN" not in value:
        return _pem(value)
    if name.startswith(("allow_", "http1", "http2")) and isinstance(value, str):
        return value.lower() in ("1", "true", "yes")
    return value


def _pem(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        why = f"root_certificate={path}: {error.strerror}"
        raise StoreError(f"{why}; give a file with certificates (AWS_CA_BUNDLE may name it, too)") from None
