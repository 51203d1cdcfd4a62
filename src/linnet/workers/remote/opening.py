"""Which queue or ledger a URL stands for."""

from __future__ import annotations

from urllib.parse import urlsplit

from linnet.errors import AddressError
from linnet.workers.address import without_secret
from linnet.workers.ledger import Ledger
from linnet.workers.queue import Queue

_SHOWN = 40
"""Characters of a job's name in those of its queues, of which SQS allows 80."""
_REDIS = ("redis", "rediss", "valkey", "valkeys", "unix")


def open_ledger(url: str, job: str, identity: str = "", *, silence: float = 5.0) -> Ledger:
    """The ledger of a job.

    >>> open_ledger("mysql://host/0", "7")
    Traceback (most recent call last):
    linnet.errors.AddressError: no ledger is known for mysql://host/0: expected redis://HOST:PORT/0, or ...
    """
    if urlsplit(url).scheme in _REDIS:
        from linnet.workers.remote.redis_ledger import RedisLedger

        return RedisLedger(url, job, identity, silence=silence)
    raise AddressError(
        f"no ledger is known for {without_secret(url)}: expected redis://HOST:PORT/0, or rediss:// for TLS"
    )


def open_queue(url: str, job: str, identity: str = "") -> Queue:
    """The queue of a job.

    >>> open_queue("amqp://host", "7")
    Traceback (most recent call last):
    linnet.errors.AddressError: no queue is known for amqp://host: expected redis://HOST:PORT/0, ...
    """
    scheme = urlsplit(url).scheme
    if scheme in _REDIS:
        from linnet.workers.remote.redis_queue import RedisQueue

        return RedisQueue(url, job, identity)
    if scheme == "sqs":
        from linnet.workers.remote.sqs_queue import SqsQueue

        return SqsQueue(url, f"{job[:_SHOWN]}-{identity}" if identity else job)
    raise AddressError(
        f"no queue is known for {without_secret(url)}: expected redis://HOST:PORT/0, rediss:// for TLS, "
        "or sqs://REGION/PREFIX"
    )
