"""Each server answers, keeps strangers out where it should, and is gone when it was stopped."""

from __future__ import annotations

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from servers.http import HttpServer
from servers.moto import MotoServer
from servers.process import Process, accepts, free_ports
from servers.redis import RedisServer
from servers.s3 import S3Server
from servers.slurm import SlurmCluster


def test_a_server_that_ends_is_an_error_with_what_it_said(tmp_path):
    process = Process(["sh", "-c", "echo no licence; exit 3"], tmp_path / "log")
    with pytest.raises(RuntimeError, match=r"ended with 3; it said:\nno licence"):
        process.wait_until(lambda: False)


def test_a_server_that_stays_silent_is_stopped(tmp_path):
    process = Process(["sleep", "100"], tmp_path / "log")
    with pytest.raises(RuntimeError, match=r"did not answer within 0.1 s"):
        process.wait_until(lambda: False, seconds=0.1)
    assert not process.alive


def test_free_ports_are_different_and_free():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert not any(accepts(port) for port in ports)


def test_redis_runs_scripts_and_streams(redis_server: RedisServer):
    with redis_server.client() as client:
        assert client.eval("return redis.call('incrby', KEYS[1], ARGV[1])", 1, "smoke", 5) == 5
        client.xadd("smoke-stream", {"task": "1"})
        assert client.xlen("smoke-stream") == 1
        client.delete("smoke", "smoke-stream")


def test_redis_wants_its_password(start_redis: Callable[..., RedisServer]):
    import redis

    server = start_redis(password="sesame")
    with server.client() as client:
        assert client.ping()
    server.password = None
    with pytest.raises(redis.AuthenticationError), server.client() as stranger:
        stranger.ping()


@pytest.mark.slow
@pytest.mark.parametrize("stopped", ["stop", "kill"])
def test_redis_that_persists_comes_back_with_everything(
    start_redis: Callable[..., RedisServer], stopped: str
):
    server = start_redis(persist=True)
    with server.client() as client:
        client.set("kept", "yes")
    getattr(server, stopped)()
    assert not accepts(server.port)
    server.restart()
    with server.client() as client:
        assert client.get("kept") == b"yes"


@pytest.mark.slow
@pytest.mark.needs("redis-server")
def test_redis_over_tls(start_redis: Callable[..., RedisServer]):
    import redis

    server = start_redis(tls=True, password="sesame")
    with server.client() as client:
        assert client.ping()
    stranger = redis.Redis.from_url(f"rediss://:sesame@127.0.0.1:{server.port}/0")
    with pytest.raises(redis.ConnectionError, match="certificate verify failed"), stranger:
        stranger.ping()


@pytest.mark.slow
def test_s3_enforces_keys_and_conditions(s3_server: S3Server):
    from botocore.exceptions import ClientError

    client = s3_server.client()
    client.put_object(Bucket=s3_server.bucket, Key="smoke", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        client.put_object(Bucket=s3_server.bucket, Key="smoke", Body=b"second", IfNoneMatch="*")
    assert client.get_object(Bucket=s3_server.bucket, Key="smoke")["Body"].read() == b"first"
    client.delete_object(Bucket=s3_server.bucket, Key="smoke")
    client.close()
    stranger = S3Server(s3_server.folder)
    stranger.port, stranger.secret_key = s3_server.port, "guessed"
    client = stranger.client()
    with pytest.raises(ClientError, match="SignatureDoesNotMatch"):
        client.list_objects_v2(Bucket=s3_server.bucket)
    client.close()


@pytest.mark.slow
def test_s3_through_obstore_by_options_and_by_environment(
    s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
):
    from obstore.store import S3Store

    S3Store(s3_server.bucket, **s3_server.options).put("smoke", b"tile")
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    store = S3Store(s3_server.bucket)
    assert bytes(store.get("smoke").bytes()) == b"tile"
    store.delete("smoke")


@pytest.mark.slow
def test_s3_over_tls(start_s3: Callable[..., S3Server]):
    server = start_s3(tls=True)
    client = server.client()
    assert [each["Name"] for each in client.list_buckets()["Buckets"]] == [server.bucket]
    client.close()


@pytest.mark.slow
def test_moto_redelivers_a_message_whose_time_is_over(moto_server: MotoServer):
    sqs = moto_server.client("sqs")
    queue = sqs.create_queue(QueueName="smoke")["QueueUrl"]
    sqs.send_message(QueueUrl=queue, MessageBody="task")
    received = [
        sqs.receive_message(QueueUrl=queue, VisibilityTimeout=seconds, WaitTimeSeconds=3)["Messages"][0]
        for seconds in (1, 30)
    ]
    assert [each["Body"] for each in received] == ["task", "task"]
    assert received[0]["ReceiptHandle"] != received[1]["ReceiptHandle"]
    sqs.close()
    moto_server.reset()


@pytest.mark.slow
def test_slurm_runs_a_job_and_puts_it_back_when_its_node_goes(slurm: SlurmCluster, tmp_path: Path):
    def state(job: str, field: str = "%T") -> str:
        return slurm.run("squeue", "--noheader", f"--jobs={job}", f"--format={field}")

    def wait(job: str, wanted: str) -> None:
        end = time.monotonic() + 30
        while state(job) != wanted:
            assert time.monotonic() < end, state(job)
            time.sleep(0.05)

    script = f"echo $SLURMD_NODENAME >>{tmp_path}/ran; sleep 60"
    job = slurm.run("sbatch", "--parsable", f"--output={tmp_path}/said", f"--wrap={script}")
    wait(job, "RUNNING")
    node = state(job, "%N")
    slurm.preempt(node)
    wait(job, "PENDING")
    slurm.start_now(job)
    wait(job, "RUNNING")
    assert state(job, "%N") != node
    slurm.give_back(node)
    slurm.run("scancel", job)
    wait(job, "")
    assert slurm.states()[node].startswith("idle")
    assert (tmp_path / "ran").read_text().split()[0] == node


def test_http_serves_files_and_ranges(http_server: HttpServer):
    (http_server.folder / "smoke.bin").write_bytes(bytes(range(100)))
    url = f"{http_server.url}/smoke.bin"

    def get(**headers: str) -> tuple[int, bytes]:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=10) as answer:
            return answer.status, answer.read()

    assert get() == (200, bytes(range(100)))
    assert get(Range="bytes=10-19") == (206, bytes(range(10, 20)))
    assert get(Range="bytes=-5") == (206, bytes(range(95, 100)))
    assert [each.range for each in http_server.requests[-3:]] == [None, "bytes=10-19", "bytes=-5"]
    with pytest.raises(urllib.error.HTTPError, match="416"):
        get(Range="bytes=100-")
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{http_server.url}/nothing", timeout=10)


@pytest.mark.needs("obstore")
def test_http_through_obstore(http_server: HttpServer):
    from obstore.store import HTTPStore

    (http_server.folder / "smoke.bin").write_bytes(bytes(range(100)))
    store = HTTPStore.from_url(http_server.url, client_options={"allow_http": True})
    assert bytes(store.get_range("smoke.bin", start=7, length=3)) == bytes([7, 8, 9])
    assert store.head("smoke.bin")["size"] == 100


def test_http_over_tls(tmp_path: Path):
    from servers.certificates import make_certificates

    (tmp_path / "smoke.txt").write_text("hello")
    with HttpServer(tmp_path, tls=make_certificates(tmp_path)) as server:
        assert server.tls
        trusting = ssl.create_default_context(cafile=server.tls.authority)
        with urllib.request.urlopen(f"{server.url}/smoke.txt", timeout=10, context=trusting) as answer:
            assert answer.read() == b"hello"
