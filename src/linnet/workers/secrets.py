"""Secrets on their way to workers that something else starts: in a file that only their owner reads.

Slurm keeps the environment of its jobs in a folder of its own, and Lithops on one machine writes that of its
functions into a file for everybody. So these get the path of a file with mode 0600 instead, one for each
worker, which takes what is in it into its environment and removes it.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from linnet.errors import JobError

NAMES = (
    "LINNET_LEDGER_PASSWORD", "LINNET_LEDGER_USER", "LINNET_QUEUE_PASSWORD", "LINNET_QUEUE_USER",
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY", "AZURE_STORAGE_SAS_KEY", "AZURE_CLIENT_SECRET", "GOOGLE_SERVICE_ACCOUNT_KEY",
)  # fmt: skip
"""Variables of the environment that are secret."""


def secrets_of(environment: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    """What workers need and nobody may see: from the environment, and what is given, which counts more.

    >>> secrets_of({"HOME": "/root", "LINNET_LEDGER_USER": "me"}, {"LINNET_LEDGER_PASSWORD": "x"})
    {'LINNET_LEDGER_USER': 'me', 'LINNET_LEDGER_PASSWORD': 'x'}
    """
    return {**{name: environment[name] for name in NAMES if name in environment}, **given}


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment that may be written down anywhere."""
    return {name: value for name, value in environment.items() if name not in NAMES}


def put_aside(secrets: Mapping[str, str], folder: Path) -> Path:
    """A new file in a folder with the secrets of one worker, which only its owner can read."""
    path = folder / f".linnet-{os.urandom(8).hex()}"
    file = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(file, "w", encoding="utf-8") as out:
        json.dump(dict(secrets), out)
    return path


def take(path: str | os.PathLike[str]) -> None:
    """Take the secrets in a file into the environment of this process, and remove the file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        with os.fdopen(file, encoding="utf-8") as given:
            found = os.fstat(file)
            if found.st_uid != os.getuid() or stat.S_IMODE(found.st_mode) & 0o077:
                raise JobError(
                    f"{path} belongs to somebody else, or others can read it: no secrets are taken"
                )
            told: Any = json.load(given)
        os.unlink(path)
    except (OSError, ValueError) as error:
        raise JobError(f"the secrets in {path} cannot be read: {type(error).__name__}") from None
    os.environ.update({name: str(told[name]) for name in NAMES if name in told})
