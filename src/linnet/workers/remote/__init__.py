"""Queues and ledgers that workers of many hosts share: Redis or Valkey, and SQS for the queue alone."""

from linnet.workers.remote.opening import open_ledger, open_queue

__all__ = ["open_ledger", "open_queue"]
