"""SeaweedFS: an object store that speaks S3 and enforces its keys and its conditional writes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from servers.process import Process, free_ports, program

if TYPE_CHECKING:
    from servers.certificates import Certificates

REGION = "us-east-1"


class S3Server:
    """One store with one user, and the bucket `linnet` made for a start."""

    access_key = "linnet-tests"
    secret_key = "a-secret-for-tests-only"

    def __init__(self, folder: Path, *, tls: Certificates | None = None, bucket: str = "linnet") -> None:
        self.folder, self.tls, self.bucket = folder, tls, bucket
        self.port, *self._others = free_ports(8)
        self._process: Process | None = None

    @property
    def endpoint(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The bucket."""
        return f"s3://{self.bucket}"

    @property
    def options(self) -> dict[str, Any]:
        """Keywords for `obstore.store.S3Store(bucket, **options)`."""
        client = {"timeout": "20s", **({} if self.tls else {"allow_http": True})}
        return {
            "endpoint": self.endpoint,
            "access_key_id": self.access_key,
            "secret_access_key": self.secret_key,
            "region": REGION,
            "client_options": client,
        }

    @property
    def environment(self) -> dict[str, str]:
        """The same as variables, as a user would set them; boto3 and obstore both read these."""
        names = {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": self.access_key,
            "AWS_SECRET_ACCESS_KEY": self.secret_key,
            "AWS_REGION": REGION,
            "AWS_DEFAULT_REGION": REGION,
        }
        return (
            {**names, "AWS_CA_BUNDLE": str(self.tls.authority)}
            if self.tls
            else {**names, "AWS_ALLOW_HTTP": "true"}
        )

    def client(self) -> Any:
        """A boto3 client."""
        import boto3
        from botocore.config import Config

        return boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=self.access_key,
            aws_secret_access_key=self.secret_key,
            region_name=REGION,
            verify=str(self.tls.authority) if self.tls else None,
            config=Config(connect_timeout=5, read_timeout=20, retries={"total_max_attempts": 1}),
        )

    def command(self) -> list[str | Path]:
        master, master_grpc, volume, volume_grpc, filer, filer_grpc, s3_grpc = self._others
        users = self.folder / "users.json"
        credentials = [{"accessKey": self.access_key, "secretKey": self.secret_key}]
        user = {
            "name": "tests",
            "credentials": credentials,
            "actions": ["Admin", "Read", "Write", "List", "Tagging"],
        }
        users.write_text(json.dumps({"identities": [user]}), encoding="utf-8")
        files = self.folder / "files"
        files.mkdir(exist_ok=True)
        words: list[str | Path] = [
            program("weed"),
            "server",
            f"-dir={files}",
            "-ip=127.0.0.1",
            "-ip.bind=127.0.0.1",
        ]
        words += [f"-master.port={master}", f"-master.port.grpc={master_grpc}", "-master.telemetry=false"]
        words += [f"-volume.port={volume}", f"-volume.port.grpc={volume_grpc}", "-volume.max=500"]
        words += [f"-filer.port={filer}", f"-filer.port.grpc={filer_grpc}", "-master.volumeSizeLimitMB=1024"]
        words += [
            "-s3",
            f"-s3.port.grpc={s3_grpc}",
            f"-s3.config={users}",
            "-s3.port.iceberg=0",
            "-s3.port.lance=0",
        ]
        words += [f"-s3.port={self.port}", "-volume.preStopSeconds=0"]
        if self.tls:
            words += [f"-s3.cert.file={self.tls.certificate}", f"-s3.key.file={self.tls.key}"]
        return words

    def start(self) -> None:
        self._process = Process(self.command(), self.folder / "weed.log", {"HOME": str(self.folder)})
        self._process.wait_until(self._makes_the_bucket, seconds=60)

    def _makes_the_bucket(self) -> bool:
        """The store answers long before it can make anything."""
        from botocore.exceptions import BotoCoreError, ClientError

        client = self.client()
        try:
            if self.bucket not in {each["Name"] for each in client.list_buckets()["Buckets"]}:
                client.create_bucket(Bucket=self.bucket)
            client.put_object(Bucket=self.bucket, Key="ready", Body=b"yes")
            client.delete_object(Bucket=self.bucket, Key="ready")
        except (BotoCoreError, ClientError):
            return False
        finally:
            client.close()
        return True

    def stop(self) -> None:
        """Asked to end it would take ten seconds; its files are of no use to anybody any more."""
        if self._process is not None:
            self._process.kill()
        for port in (self.port, *self._others):  # it puts sockets there whatever it is told
            for left in Path(tempfile.gettempdir()).glob(f"seaweedfs-*-{port}.sock"):
                left.unlink()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
