"""Arrays in object stores and on the web: real servers on this machine, and what they refuse."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet as ln
from linnet.io import stores
from linnet.io.places import Place

zarr = pytest.importorskip("zarr")
obstore = pytest.importorskip("obstore")
pytest.importorskip("pyarrow")
pytest.importorskip("h5py")

VALUES = np.random.default_rng(0).random((300, 40))


def everywhere(folder: str, keywords: dict[str, Any]) -> None:
    """Every format, written and read back."""
    x = ln.asarray(VALUES, chunks=(100, 20))
    ln.to_zarr(x, f"{folder}/x.zarr", "inner", chunks=(50, 40), **keywords)
    ln.to_zarr(x, f"{folder}/s.zarr", chunks=(10, 20), shards=(50, 40), **keywords)
    ln.to_npy(x, f"{folder}/x.npy", **keywords)
    ln.to_csv(x, f"{folder}/x.csv", **keywords)
    ln.to_parquet(x, f"{folder}/x.parquet", **keywords)
    ln.to_parquet(x, f"{folder}/parts", **keywords)
    ln.to_zarr(x[:20] * 2, f"{folder}/x.zarr", "inner", region=(slice(40, 60), slice(0, 40)), **keywords)
    both = VALUES.copy()
    both[40:60] = VALUES[:20] * 2
    assert np.array_equal(ln.from_zarr(f"{folder}/x.zarr", "inner", **keywords).compute(), both)
    for found in (
        ln.from_zarr(f"{folder}/s.zarr", **keywords),
        ln.from_npy(f"{folder}/x.npy", chunks=(100, 20), **keywords),
        ln.read_csv(f"{folder}/x.csv", header=False, **keywords),
        ln.read_parquet(f"{folder}/x.parquet", **keywords),
        ln.read_parquet(f"{folder}/parts", **keywords),
    ):
        assert np.array_equal(found.compute(), VALUES)


@pytest.mark.slow
def test_objects_in_memory():
    everywhere("memory://urls/folder", {})
    with pytest.raises(ln.FileMissingError, match="memory://urls/no.npy: there is no such object"):
        ln.from_npy("memory://urls/no.npy")


@pytest.mark.slow
@pytest.mark.needs("weed")
def test_objects_in_s3(s3_server: Any, monkeypatch: pytest.MonkeyPatch):
    everywhere(f"{s3_server.url}/given", {"storage_options": s3_server.options})
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    everywhere(f"{s3_server.url}/environment", {})
    # zarr-python reads what we wrote.
    store = zarr.storage.ObjectStore(obstore.store.S3Store(s3_server.bucket, **s3_server.options))
    assert np.array_equal(zarr.open_array(store, path="given/s.zarr", mode="r")[...], VALUES)


@pytest.mark.slow
def test_s3_with_a_certificate_of_its_own(start_s3: Any, monkeypatch: pytest.MonkeyPatch):
    server = start_s3(tls=True)
    named = {"storage_options": {**server.options, "root_certificate": str(server.tls.authority)}}
    ln.to_npy(ln.asarray(VALUES), f"{server.url}/x.npy", **named)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    assert np.array_equal(ln.from_npy(f"{server.url}/x.npy").compute(), VALUES)


@pytest.mark.slow
@pytest.mark.needs("weed")
def test_what_s3_refuses_is_told_without_its_keys(s3_server: Any):
    given = s3_server.options
    with pytest.raises(ln.FileMissingError, match=r"s3://nobody/x.npy: there is no such object"):
        ln.from_npy("s3://nobody/x.npy", storage_options=given)
    with pytest.raises(ln.FileMissingError, match=r"there is no such object"):
        ln.from_zarr(f"{s3_server.url}/no.zarr", storage_options=given)
    wrong = {**given, "secret_access_key": "not-the-secret"}
    with pytest.raises(
        ln.FileDeniedError, match=r"x.npy may not be \w+: the server refused the credentials"
    ) as caught:
        ln.from_npy(f"{s3_server.url}/x.npy", storage_options=wrong)
    said = "".join(traceback.format_exception(caught.value))
    assert "not-the-secret" not in said
    assert s3_server.access_key not in str(caught.value)
    with pytest.raises(ln.FileError, match=r"storage_options \(.*no_such_option.*\) are not what it takes"):
        ln.from_npy(f"{s3_server.url}/x.npy", storage_options={**given, "no_such_option": "hush"})


@pytest.mark.slow
@pytest.mark.needs("weed")
def test_a_write_to_s3_that_fails_goes_on(s3_server: Any):
    url, given, calls = f"{s3_server.url}/resumed.zarr", {"storage_options": s3_server.options}, [0]

    def broken(tile: Any) -> Any:
        if tile.flat[0] >= 60:
            raise ArithmeticError("broken off")
        return tile

    def counted(tile: Any) -> Any:
        calls[0] += 1
        return tile

    x = ln.asarray(np.arange(100.0), chunks=10)
    with ln.init(workers=1), pytest.raises(ln.KernelError):
        ln.to_zarr(ln.map_blocks(broken, x, dtype=float), url, **given)
    with pytest.raises(ln.FileError, match=r"resumed.zarr is not complete"):
        ln.from_zarr(url, **given)
    notes = stores.listing(Place.of(f"{url}.unfinished/done", given["storage_options"]))
    assert 1 <= len(notes) <= 6
    ln.to_zarr(ln.map_blocks(counted, x, dtype=float), url, resume=True, **given)
    assert calls[0] == 10 - len(notes)
    assert np.array_equal(ln.from_zarr(url, **given).compute(), np.arange(100.0))


@pytest.mark.slow
def test_files_on_the_web(http_server: Any):
    folder = Path(http_server.folder)
    ln.to_zarr(ln.asarray(VALUES, chunks=(100, 40)), folder / "x.zarr")
    ln.to_hdf5(ln.asarray(VALUES), folder / "x.h5", "x", chunks=(100, 40))
    ln.to_csv(ln.asarray(VALUES), folder / "x.csv")
    ln.to_parquet(ln.asarray(VALUES), folder / "x.parquet")
    np.save(folder / "x.npy", VALUES)
    np.savez(folder / "x.npz", x=VALUES)
    url = http_server.url.rstrip("/")
    for found in (
        ln.from_zarr(f"{url}/x.zarr"),
        ln.from_hdf5(f"{url}/x.h5", "x"),
        ln.read_csv(f"{url}/x.csv", header=False),
        ln.read_parquet(f"{url}/x.parquet"),
        ln.from_npy(f"{url}/x.npy", chunks=(100, 20)),
        ln.from_npz(f"{url}/x.npz", "x"),
    ):
        assert np.array_equal(found.compute(), VALUES)
    with pytest.raises(ln.FileMissingError, match=r"no.npy: there is no such object"):
        ln.from_npy(f"{url}/no.npy")


def test_objects_in_gs(http_server: Any):
    """Google's store answers GET /bucket/key as any web server does."""
    folder = Path(http_server.folder) / "bucket"
    folder.mkdir(exist_ok=True)
    np.save(folder / "x.npy", VALUES)
    ln.to_csv(ln.asarray(VALUES), folder / "x.csv")
    account = {"gcs_base_url": http_server.url.rstrip("/"), "disable_oauth": True}
    account |= {"client_email": "", "private_key": "", "private_key_id": ""}
    given = {"storage_options": {"service_account_key": json.dumps(account), "allow_http": True}}
    assert np.array_equal(ln.from_npy("gs://bucket/x.npy", **given).compute(), VALUES)
    assert np.array_equal(ln.read_csv("gs://bucket/x.csv", header=False, **given).compute(), VALUES)


@pytest.mark.slow
def test_nobody_at_home():
    given = {
        "endpoint": "http://127.0.0.1:9",
        "access_key_id": "a",
        "secret_access_key": "hush",
        "region": "x",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stores, "_PATIENCE", stores.timedelta(milliseconds=200))
        with pytest.raises(
            ln.FileError, match=r"s3://bucket/x.npy cannot be opened: .*there is no answer"
        ) as caught:
            ln.from_npy("s3://bucket/x.npy", storage_options=given)
    assert "hush" not in "".join(traceback.format_exception(caught.value))
