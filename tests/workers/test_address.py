"""Addresses of jobs: read back as they were, and never with a secret."""

from __future__ import annotations

from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.errors import AddressError
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray
from linnet.workers.address import Address, without_secret
from linnet.workers.client import submit
from linnet.workers.launchers.processes import Processes
from linnet.workers.spec import Options

NAMES = st.text("abcXYZ019_-", min_size=1, max_size=10)
PLACES = st.sampled_from(["/data/jobs", "s3://bucket/jobs?endpoint=http://h:9000&region=eu", "memory://x"])
SERVERS = st.none() | st.sampled_from(["redis://h:1/0", "rediss://h:2/0?ssl_ca_certs=/ca.pem", "sqs://eu/q"])


@given(PLACES, NAMES, SERVERS, SERVERS)
def test_what_is_written_is_read(store, job, ledger, queue):
    address = Address(store, job, ledger, queue)
    assert Address.parse(address.text) == address
    assert address.secrets == {}


@pytest.mark.parametrize(
    "ledger",
    [
        "redis://:hush@host:6379/0",
        "redis://me:hush@host:6379/0",
        "redis://host:6379/0?password=hush",
        "rediss://host/0?username=me&password=hush&ssl_ca_certs=/ca.pem",
        "redis://me:hush%40hush@host/0",
    ],
)
def test_passwords_of_servers_leave_the_address_for_the_environment(ledger):
    address = Address("/jobs", "7", ledger=ledger, queue="redis://:quiet@other/1")
    for text in (address.text, repr(address), without_secret(ledger)):
        assert "hush" not in text
        assert "quiet" not in text
        assert "me" not in text.partition("#")[2]
    assert address.secrets["LINNET_LEDGER_PASSWORD"].startswith("hush")
    assert address.secrets["LINNET_QUEUE_PASSWORD"] == "quiet"
    assert address.secrets.get("LINNET_LEDGER_USER", "me") == "me"


def test_keys_of_object_stores_are_refused_in_a_url():
    with pytest.raises(AddressError, match="has secret_access_key, .* environment") as caught:
        Address("s3://bucket/jobs?region=eu&secret_access_key=hush", "7", ledger="redis://h/0")
    assert "hush" not in str(caught.value)
    assert "hush" not in without_secret("s3://bucket?endpoint=https://me:hush@h&secret_access_key=hush")


@pytest.mark.parametrize(
    "text", ["s3://b#ledger=redis://:hush@h/0", "s3://b?token=hush", "/jobs#job=7&password=hush", "#job=hush"]
)
def test_errors_about_addresses_tell_no_secret(text):
    with pytest.raises(AddressError, match=r"no address of a job: expected STORE#job=NAME") as caught:
        Address.parse(text)
    assert "hush" not in str(caught.value)


@pytest.mark.slow
def test_queue_and_ledger_on_servers_with_passwords_of_their_own(start_redis, tmp_path):
    ledger, queue = start_redis(password="hush-hush"), start_redis(password="quiet-quiet")
    inputs = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    with submit(
        programs.slow.bind(N=20),
        inputs,
        store=str(tmp_path / "jobs"),
        ledger=ledger.url,
        queue=queue.url,
        launcher=Processes(),
        options=Options(lease=2.0),
    ) as job:
        assert "hush" not in job.address
        assert "quiet" not in job.address
        job.wait(150)
        assert job.progress().done == 20


@pytest.mark.parametrize("mark", ["/", "#", "?", "/x@", "@/", "[", ":8:", "#@", "?a="])
@pytest.mark.parametrize("role", ["ledger", "queue"])
def test_a_password_that_is_not_escaped_is_not_shown(tmp_path, mark, role):
    """Such a URL cannot be taken apart as it was meant; what is refused must not be told."""
    url = f"redis://:swordfish{mark}sesame@localhost:1/0"
    said = []
    for act in (
        lambda: Address(str(tmp_path), "job", **{role: url}),
        lambda: Address.parse(f"{tmp_path}#job=job&{role}={url}"),
        lambda: Address.parse(f"{tmp_path}#job=job&{role}={quote(url)}"),
    ):
        try:
            made = act()
        except AddressError as error:
            said += [str(error), repr(error), str(error.__context__ or ""), str(error.__cause__ or "")]
            assert "%2F" in str(error) or "no address" in str(error)
        else:
            said += [made.text, repr(made)]
    assert not [each for each in said if "swordfish" in each or "sesame" in each]


def test_a_password_that_is_escaped_is_understood(tmp_path):
    address = Address(str(tmp_path), "job", "redis://:a%2Fb%23c%3Fd%40@localhost/0")
    assert address.secrets == {"LINNET_LEDGER_PASSWORD": "a/b#c?d@"}
    assert address.text.endswith("ledger=redis://localhost/0")


def test_a_store_with_the_mark_of_addresses_in_its_name_is_refused_or_written_as_a_url(tmp_path):
    """Workers could not read such an address: the job would never begin."""
    with pytest.raises(AddressError, match="has a # in its name"):
        Address(str(tmp_path / "a#b"), "job")
    inputs = {"A": TiledArray.from_numpy(np.ones(1), 1)}
    store = f"file://{tmp_path}/a%23b"
    with submit(programs.slow.bind(N=2), inputs, store=store, launcher="threads") as job:
        job.wait(60)
        assert Address.parse(job.address).store == store
    assert (tmp_path / "a#b").is_dir()


@pytest.mark.parametrize("given", [5, None, b"/jobs#job=a"])
def test_what_is_no_text_is_no_address(given):
    with pytest.raises(AddressError, match=r"is no address of a job: give the text"):
        Address.parse(given)
