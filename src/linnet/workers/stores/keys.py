"""The names under which stores keep things: the same rules for all of them, whatever each could take."""

from __future__ import annotations

import re

from linnet.errors import StoreError

MAX_KEY = 900
"""S3 takes 1,024 bytes, some of which are the prefix of the store."""
MAX_PART = 200
"""Directories take 255 bytes for a name."""

_PART = r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*"
_KEY = re.compile(rf"{_PART}(?:/{_PART})*")
_PREFIX = re.compile(rf"(?:{_PART}/)*(?:{_PART})?")


def checked(key: str) -> str:
    """`key`, if it is one.

    >>> checked("job/A/0.1.2/17")
    'job/A/0.1.2/17'
    >>> checked("../secrets")
    Traceback (most recent call last):
    linnet.errors.StoreError: '../secrets' is no key of a store: give names of letters, digits and ...
    """
    if not _KEY.fullmatch(key):
        raise StoreError(
            f"{key[:80]!r} is no key of a store: give names of letters, digits and ._=- separated by /, "
            f"none of which starts with a dot"
        )
    if len(key) > MAX_KEY or (len(key) > MAX_PART and max(map(len, key.split("/"))) > MAX_PART):
        raise StoreError(
            f"the key {key[:80]!r}... has {len(key)} characters: give at most {MAX_KEY} in all, "
            f"and {MAX_PART} from one / to the next"
        )
    return key


def checked_prefix(prefix: str) -> str:
    """`prefix`, if keys can start with it.

    >>> checked_prefix("job/A/0."), checked_prefix("job/"), checked_prefix("")
    ('job/A/0.', 'job/', '')
    """
    if not _PREFIX.fullmatch(prefix) or len(prefix) > MAX_KEY:
        raise StoreError(f"no key of a store starts with {prefix[:80]!r}: give the beginning of a key")
    return prefix
