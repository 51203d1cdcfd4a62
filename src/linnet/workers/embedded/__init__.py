"""Queue and ledger for one host: a SQLite database in the job's directory, no server to start."""

from linnet.workers.embedded.database import Database, HeldLedgerError
from linnet.workers.embedded.ledger import EmbeddedLedger
from linnet.workers.embedded.queue import EmbeddedQueue

__all__ = ["Database", "EmbeddedLedger", "EmbeddedQueue", "HeldLedgerError"]
