"""Logins, TLS, restarts and refusals of the server that holds a queue and a ledger."""

from __future__ import annotations

import threading
import time

import pytest

from linnet.errors import AddressError, StoreError
from linnet.workers.ledger import Child, Completion, Start
from linnet.workers.queue import Entry
from linnet.workers.remote import open_ledger, open_queue
from linnet.workers.remote.connection import Connection, Script
from linnet.workers.remote.redis_ledger import RedisLedger
from linnet.workers.remote.redis_queue import RedisQueue

SECRET = "open-sesame-9731"


def used(url):
    """A job made, used and dropped at a server."""
    ledger, queue = open_ledger(url, "used"), open_queue(url, "used")
    ledger.create(1)
    queue.put([Entry("0.1")])
    (lease,) = queue.lease(1, 60)
    (begun,) = ledger.begin([Start(lease.name)], "here/1")
    ledger.complete([Completion(lease.name, begun.token)])
    queue.remove([lease])
    assert ledger.status().state == "finished"
    ledger.drop()
    for each in (ledger, queue):
        assert SECRET not in each.url + repr(each)
        each.close()
    return ledger.url


def test_passwords(start_redis, monkeypatch):
    server = start_redis(password=SECRET)
    assert used(server.url) == f"redis://127.0.0.1:{server.port}/0"
    open_url = f"redis://127.0.0.1:{server.port}/0"
    monkeypatch.setenv("LINNET_LEDGER_PASSWORD", SECRET)
    used(open_url)
    monkeypatch.setenv("LINNET_LEDGER_PASSWORD", "wrong-5511")
    with pytest.raises(StoreError, match="did not accept the login; put the right password") as caught:
        open_ledger(open_url, "x")
    assert "wrong-5511" not in str(caught.value)
    monkeypatch.delenv("LINNET_LEDGER_PASSWORD")
    with pytest.raises(StoreError, match="did not accept the login"):
        open_queue(open_url, "x")
    with pytest.raises(StoreError) as caught:
        open_queue(f"redis://somebody:{SECRET}x@127.0.0.1:{server.port}/0", "x")
    assert SECRET not in str(caught.value)


def test_users_with_few_rights(start_redis, monkeypatch):
    server = start_redis()
    with server.client() as client:
        client.execute_command(
            "ACL", "SETUSER", "worker", "on", f">{SECRET}", "~linnet:*", "+@all", "-@dangerous", "+info"
        )
        client.execute_command("ACL", "SETUSER", "guest", "on", f">{SECRET}", "~other:*", "+@all")
    used(f"redis://worker:{SECRET}@127.0.0.1:{server.port}/0")
    monkeypatch.setenv("LINNET_LEDGER_USER", "worker")
    monkeypatch.setenv("LINNET_LEDGER_PASSWORD", SECRET)
    used(f"redis://127.0.0.1:{server.port}/0")
    ledger = open_ledger(f"redis://guest:{SECRET}@127.0.0.1:{server.port}/0", "x")
    with pytest.raises(StoreError, match=r"may not run what is needed; allow it with `ACL SETUSER"):
        ledger.create(1)
    ledger.close()


@pytest.mark.slow
@pytest.mark.needs("redis-server")
def test_tls(start_redis):
    server = start_redis(tls=True, password=SECRET)
    shown = used(server.url)
    assert shown.startswith(f"rediss://127.0.0.1:{server.port}/0?ssl_ca_certs=/")
    with pytest.raises(StoreError, match=r"did not answer for [\d.]+ s"):
        RedisLedger(f"rediss://127.0.0.1:{server.port}/0", "x", patience=0)  # its authority is not known


def test_a_server_that_may_forget_is_refused(start_redis):
    server = start_redis(memory="100mb")
    with server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        with pytest.raises(StoreError, match=r"maxmemory-policy is allkeys-lru.*maxmemory-policy noeviction"):
            open_ledger(server.url, "x")
        client.config_set("maxmemory-policy", "noeviction")
    open_ledger(server.url, "x").close()


@pytest.mark.slow
def test_a_full_server(start_redis):
    server = start_redis(memory="3mb")
    ledger = open_ledger(server.url, "x")
    ledger.create(10)
    with pytest.raises(StoreError, match="is full; raise its maxmemory, then resume the job"):
        ledger.log([f"{i} {'x' * 10_000}" for i in range(1000)])
    assert ledger.status().total == 10
    ledger.close()


@pytest.mark.slow
def test_restarts_are_waited_for(start_redis):
    """The server goes away twice while four threads run rows of tasks: nothing is lost."""
    server = start_redis(persist=True)
    rows, steps = 12, 12
    ledger, queue = open_ledger(server.url, "x"), open_queue(server.url, "x")
    ledger.create(rows * steps)
    (seed,) = ledger.begin([Start("@")], "here/0")
    children = [Child(f"0.{row}.0", 0) for row in range(rows)]
    ledger.complete([Completion("@", seed.token, children, counted=False)])
    queue.put([Entry(child.name) for child in children])
    errors = []

    def work(number):
        mine, tasks = open_ledger(server.url, "x"), open_queue(server.url, "x")
        try:
            while mine.touch([], f"here/{number}").state == "running":
                leases = tasks.lease(2, 3)
                if not leases:
                    tasks.put([Entry(name) for name in mine.overdue(3, 100)])
                    time.sleep(0.01)
                for lease in leases:
                    run_one(mine, tasks, lease, f"here/{number}")
        except Exception as error:
            errors.append(error)
        finally:
            mine.close()
            tasks.close()

    def run_one(mine, tasks, lease, worker):
        _, row, step = lease.name.split(".")
        parents = [f"0.{row}.{int(step) - 1}"] if step != "0" else []
        (begun,) = mine.begin([Start(lease.name, parents)], worker)
        if begun.state == "run":
            time.sleep(0.01)
            more = [Child(f"0.{row}.{int(step) + 1}", 1)] if int(step) + 1 < steps else []
            (done,) = mine.complete([Completion(lease.name, begun.token, more, parents)])
            tasks.put([Entry(name) for name in done.ready])
        tasks.remove([lease])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    server.restart()
    time.sleep(0.2)
    server.kill()
    time.sleep(0.5)
    server.start()
    for thread in threads:
        thread.join()
    assert errors == []
    status = ledger.status()
    assert (status.state, status.done) == ("finished", rows * steps)
    assert queue.size().dead == 0
    ledger.close()
    queue.close()


@pytest.mark.slow
def test_a_server_that_stays_away(start_redis):
    server = start_redis()
    queue = RedisQueue(server.url, "x", patience=0.3)
    server.kill()
    with pytest.raises(
        StoreError, match=r"did not answer for [\d.]+ s .*start it again, then resume the job"
    ):
        queue.size()
    queue.close()


def test_scripts_a_server_forgot(redis_server):
    queue = open_queue(redis_server.url, "forgetful")
    queue.put([Entry("0.1")])
    with redis_server.client() as client:
        client.script_flush()
    assert queue.size() == (1, 0, 0)
    queue.clear()
    queue.close()


def test_a_script_that_fails_is_told(redis_server):
    server = Connection(redis_server.url, "x")
    with pytest.raises(StoreError, match="refused a step: .*no such thing"):
        server.run(Script("return redis.error_reply('ERR no such thing')"))
    assert server.run(Script("return cmsgpack.pack(A[1] + 1)"), 2**52) == 2**52 + 1
    server.close()


def test_names_are_kept_apart(redis_server):
    """Jobs share a server, never a key."""
    one, other = open_ledger(redis_server.url, "a"), open_ledger(redis_server.url, "ab")
    one.create(1)
    with pytest.raises(AddressError, match="holds no job 'ab'"):
        other.status()
    other.create(2)
    one.drop()
    assert other.status().total == 2
    other.drop()
    one.close()
    other.close()


@pytest.mark.parametrize("url", ["redis://host:notaport/0", "redis://host:6379/0?nonsense=1"])
def test_wrong_addresses(url):
    with pytest.raises((StoreError, AddressError)) as caught:
        open_queue(url, "x")
    assert "expected redis://HOST:PORT/0" in str(caught.value)
