"""Moto: the programming interfaces of SQS, S3 and EC2, emulated in memory by a process of its own."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any, Self

from servers.process import Process, accepts, free_ports, program

REGION = "us-east-1"


class MotoServer:
    """One emulated cloud. Any keys will do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports()
        self._process: Process | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """Variables under which boto3 and obstore talk to this server."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "anybody",
            "AWS_SECRET_ACCESS_KEY": "anything",
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
            "AWS_ALLOW_HTTP": "true",
        }

    def client(self, service: str) -> Any:
        """A boto3 client of "sqs", "s3" or "ec2"."""
        import boto3

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            aws_access_key_id="anybody",
            aws_secret_access_key="anything",
            region_name=REGION,
        )

    def reset(self) -> None:
        """Forgets every queue, bucket and server."""
        request = urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")
        with urllib.request.urlopen(request, timeout=20):
            pass

    def start(self) -> None:
        command = [program("moto_server"), "-H", "127.0.0.1", "-p", str(self.port)]
        self._process = Process(command, self.folder / "moto.log")
        self._process.wait_until(lambda: accepts(self.port))

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
