"""Tiles as bytes: what comes back is what was given, and bytes that are no tile are refused."""

from __future__ import annotations

import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from linnet.errors import DamagedTileError, InputError, MissingExtraError
from linnet.tiles import codec
from linnet.tiles.codec import decoded, encoded, size_of

COMPRESSIONS = [
    None,
    pytest.param("zstd", marks=pytest.mark.needs("zstandard")),
    pytest.param("lz4", marks=pytest.mark.needs("lz4")),
]

dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(16, 32, 64)),
    hnp.complex_number_dtypes(endianness="?", sizes=(64, 128)),
    hnp.datetime64_dtypes(endianness="?"),
    hnp.timedelta64_dtypes(endianness="?"),
    st.sampled_from(
        [
            np.dtype("S3"),
            np.dtype(">U2"),
            np.dtype("M8[25s]"),
            np.dtype("m8"),
            np.dtype(np.longdouble),
            np.dtype(np.clongdouble),
        ]
    ),
)


@st.composite
def tiles(draw):
    """Arrays of any dtype, shape and memory order, also such that are not contiguous."""
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=6))
    dtype = draw(dtypes)
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    size = 2 * int(np.prod(shape))
    numbers = rng.integers(0, 100, size).astype("int64")
    flat = numbers.astype(dtype) if dtype.kind in "Mm" else numbers.astype("u1").astype(dtype)
    made = flat[::2].copy().reshape(shape, order=draw(st.sampled_from("CF")))
    if draw(st.booleans()) and made.ndim:
        made = np.repeat(made, 2, axis=0)[::2]
    return made.transpose(draw(st.permutations(range(made.ndim))))


def joined(tile, compression=None):
    return b"".join(encoded(tile, compression))


def forged(header_fields, text=b"<f8", shape=(3,), payload=b"\0" * 24):
    """A tile with both checksums right, whatever its header says."""
    fields = {
        "version": 1,
        "axes": len(shape),
        "order": b"C",
        "code": 0,
        "size": len(payload),
        "stored": len(payload),
    }
    fields |= header_fields
    start = fields.get("start", -(-(40 + len(text) + 8 * len(shape) + 8) // 64) * 64)
    head = struct.pack(
        "<4sHBcBBH4x",
        b"LNTL",
        fields["version"],
        fields["axes"],
        fields["order"],
        fields["code"],
        len(text),
        start,
    )
    head += struct.pack("<QQQ", fields["size"], fields["stored"], xxhash.xxh3_64_intdigest(payload))
    head = (head + text + struct.pack(f"<{len(shape)}Q", *shape)).ljust(start - 8, b"\0")
    return head + struct.pack("<Q", xxhash.xxh3_64_intdigest(head)) + payload


class TestBack:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @given(tile=tiles())
    def test_what_was_given_comes_back(self, compression, tile):
        found = decoded(joined(tile, compression))
        assert found.dtype == tile.dtype.newbyteorder("=")
        assert found.dtype.isnative
        assert found.shape == tile.shape
        assert np.array_equal(found, tile)
        assert not found.flags.writeable
        assert found.flags.c_contiguous or found.flags.f_contiguous

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_the_order_is_kept(self, compression, order):
        tile = np.asarray(np.arange(60.0).reshape(3, 4, 5), order=order)
        found = decoded(joined(tile, compression))
        assert found.strides == tile.strides

    def test_tiles_with_gaps_keep_their_order_too(self):
        tile = np.arange(60.0).reshape(3, 4, 5)[:, ::2]
        assert decoded(joined(tile)).flags.c_contiguous
        assert decoded(joined(tile.T)).flags.f_contiguous
        assert decoded(joined(tile.transpose(0, 2, 1))).flags.f_contiguous

    @pytest.mark.parametrize(
        "bits", [0x7FF0000000000001, 0x8000000000000000, 0x0000000000000001, 0xFFF8000000000123]
    )
    def test_bits_are_kept(self, bits):
        tile = np.array([bits], "u8").view("f8")
        assert decoded(joined(tile)).view("u8")[0] == bits

    @pytest.mark.parametrize("order", ["C", "F"])
    def test_nothing_is_copied(self, order):
        tile = np.zeros((7, 9), order=order)
        _, payload = encoded(tile)
        assert np.frombuffer(payload, "u1").ctypes.data == tile.ctypes.data
        stored = joined(tile)
        found = decoded(stored)
        assert found.ctypes.data == np.frombuffer(stored, "u1").ctypes.data + 128

    def test_the_payload_is_at_a_boundary_of_64_bytes(self):
        for axes in range(33):
            header, _ = encoded(np.zeros((1,) * axes))
            assert len(header) % 64 == 0

    @given(tile=tiles(), shift=st.integers(1, 63))
    def test_from_memory_that_is_not_aligned(self, tile, shift):
        found = decoded(memoryview(b"x" * shift + joined(tile))[shift:])
        assert np.array_equal(found, tile)
        assert found.flags.aligned

    def test_from_memory_that_can_be_written_to(self):
        assert not decoded(bytearray(joined(np.zeros(3)))).flags.writeable

    @pytest.mark.parametrize("compression", COMPRESSIONS[1:])
    def test_compression_makes_tiles_smaller_or_leaves_them(self, compression):
        assert size_of(encoded(np.zeros((100, 100)), compression)) < 2000
        noise = np.frombuffer(np.random.default_rng(0).bytes(800), "f8")
        assert size_of(encoded(noise, compression)) == size_of(encoded(noise))

    def test_other_byte_orders_of_other_machines(self):
        numbers = np.arange(3.0)
        found = decoded(forged({}, b">f8", payload=numbers.astype(">f8").tobytes()))
        assert found.dtype == np.dtype("=f8")
        assert np.array_equal(found, numbers)


class TestRefused:
    @pytest.mark.parametrize("dtype", ["O", "V8", [("a", "f8")], np.dtypes.StringDType()])
    def test_dtypes_that_are_no_numbers(self, dtype):
        with pytest.raises(
            InputError, match="tiles in a store hold numbers, Booleans, datetime64, timedelta64, or bytes"
        ):
            encoded(np.zeros(2, dtype))

    def test_other_compressions(self):
        with pytest.raises(InputError, match="compression='gzip': give 'zstd', 'lz4' or None"):
            encoded(np.zeros(2), "gzip")

    @pytest.mark.parametrize(("compression", "package"), [("zstd", "zstandard"), ("lz4", "lz4")])
    def test_a_missing_package_is_named(self, compression, package, monkeypatch):
        monkeypatch.setitem(sys.modules, {"zstd": "zstandard", "lz4": "lz4.block"}[compression], None)
        with pytest.raises(
            MissingExtraError,
            match=rf'needs {package}; install it with: pip install "linnet-array\[compression\]"',
        ):
            encoded(np.zeros(2), compression)


class TestDamaged:
    @pytest.mark.parametrize("compression", COMPRESSIONS)
    @given(data=st.data())
    def test_any_change_is_found(self, compression, data):
        stored = bytearray(joined(np.arange(40.0).reshape(5, 8), compression))
        place = data.draw(st.integers(0, len(stored) - 1))
        stored[place] ^= data.draw(st.integers(1, 255))
        with pytest.raises(DamagedTileError, match="^A/0/1: .*; resume the job"):
            decoded(stored, "A/0/1")

    def test_every_byte(self):
        stored = joined(np.arange(3.0))
        for place in range(len(stored)):
            changed = bytearray(stored)
            changed[place] ^= 1
            with pytest.raises(DamagedTileError):
                decoded(changed)

    @pytest.mark.parametrize("compression", COMPRESSIONS)
    def test_every_length(self, compression):
        stored = joined(np.zeros((9, 9)), compression)
        for length in range(len(stored)):
            with pytest.raises(DamagedTileError, match="truncated|too few|cannot be right"):
                decoded(stored[:length])
        for more in (1, 64, 4096):
            with pytest.raises(DamagedTileError, match="something was added"):
                decoded(stored + b"\0" * more)

    @given(st.binary(max_size=300))
    def test_any_bytes(self, raw):
        with pytest.raises(DamagedTileError):
            decoded(raw)
        with pytest.raises(DamagedTileError):
            decoded(b"LNTL\1\0" + raw)

    @given(
        fields=st.fixed_dictionaries(
            {},
            optional={
                "version": st.integers(0, 65535),
                "axes": st.integers(0, 255),
                "order": st.binary(min_size=1, max_size=1),
                "code": st.integers(0, 255),
                "size": st.integers(0, 2**64 - 1),
                "stored": st.integers(0, 2**64 - 1),
                "start": st.integers(48, 1000).map(lambda n: n * 64),
            },
        ),
        text=st.one_of(
            st.binary(max_size=20),
            st.sampled_from([b"<f8", b"|O", b"<U6", b"|S8", b"|V8", b"<M8[0s]", b"f8,f8", b"<f8/63"]),
        ),
        shape=st.lists(st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1)), max_size=6),
        payload=st.one_of(st.binary(max_size=40), st.just(b"\0" * 24)),
    )
    def test_forged_tiles(self, fields, text, shape, payload):
        """Whatever passes is an array of exactly the bytes that are there."""
        stored = forged(fields, text, tuple(shape), payload)
        try:
            found = decoded(stored)
        except DamagedTileError:
            return
        assert found.nbytes == len(payload) or fields["code"] in (1, 2)
        assert found.dtype.kind in "biufcmMSU"

    @pytest.mark.parametrize(
        ("fields", "text", "shape", "words"),
        [
            ({"version": 2}, b"<f8", (3,), "version 2 of the tile format, this Linnet reads 1"),
            ({"order": b"K"}, b"<f8", (3,), "order b'K' and compression 0"),
            ({"code": 3}, b"<f8", (3,), "order b'C' and compression 3"),
            ({}, b"|O", (3,), "its dtype b'|O' is none that tiles have"),
            ({}, b"<f8", (4,), r"float64 of shape (4,) in 24 bytes, not compressed, cannot be"),
            ({"size": 2**63}, b"<f8", (2**60,), "cannot be"),
            ({"size": 0, "stored": 0}, b"<f8", (0, 2**63), "its shape is (0, 9223372036854775808)"),
        ],
    )
    def test_words(self, fields, text, shape, words):
        with pytest.raises(DamagedTileError) as caught:
            decoded(forged(fields, text, shape, b"" if fields.get("stored") == 0 else b"\0" * 24), "A/0/1")
        assert words in str(caught.value)

    @pytest.mark.parametrize(
        "code",
        [
            pytest.param(1, marks=pytest.mark.needs("zstandard"), id="zstandard"),
            pytest.param(2, marks=pytest.mark.needs("lz4"), id="lz4"),
        ],
    )
    def test_a_bomb_takes_no_memory(self, code):
        elements = 2**22
        size = 8 * elements
        if code == 1:
            import zstandard

            packed = zstandard.ZstdCompressor().compress(bytes(size))
        else:
            import lz4.block

            packed = lz4.block.compress(bytes(size), store_size=False)
        # The header claims less than the payload holds: it is not expanded beyond that.
        modest = forged({"code": code, "size": 800, "stored": len(packed)}, shape=(100,), payload=packed)
        # It claims more than the payload can hold, or than a compressed tile may have.
        greedy = forged(
            {"code": code, "size": 8 * 2**40, "stored": len(packed)}, shape=(2**40,), payload=packed
        )
        tiny = forged({"code": code, "size": size, "stored": 4}, shape=(elements,), payload=packed[:4])
        tracemalloc.start()
        try:
            for stored in (modest, greedy, tiny):
                with pytest.raises(DamagedTileError, match="cannot be|expanded|where the header says"):
                    decoded(stored)
            assert tracemalloc.get_traced_memory()[1] < 4 << 20
        finally:
            tracemalloc.stop()
        honest = forged(
            {"code": code, "size": size, "stored": len(packed)}, shape=(elements,), payload=packed
        )
        assert decoded(honest).nbytes == size

    @pytest.mark.needs("zstandard")
    def test_zstd_frames_that_lie(self):
        import zstandard

        packed = zstandard.ZstdCompressor().compress(bytes(80))
        nameless = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(80))
        for payload in (
            packed + packed,
            packed[:-2],
            nameless,
            b"\x50\x2a\x4d\x18\4\0\0\0abcd",
            b"(\xb5/\xfd",
        ):
            with pytest.raises(DamagedTileError):
                decoded(forged({"code": 1, "size": 80, "stored": len(payload)}, shape=(10,), payload=payload))

    @given(payload=st.binary(max_size=60), code=st.sampled_from([1, 2]), elements=st.integers(0, 1000))
    def test_payloads_that_were_never_compressed(self, payload, code, elements):
        stored = forged(
            {"code": code, "size": 8 * elements, "stored": len(payload)}, shape=(elements,), payload=payload
        )
        try:
            found = decoded(stored)
        except DamagedTileError:
            return
        assert found.shape == (elements,)


@pytest.mark.needs("lz4")
def test_large_tiles_are_not_compressed(monkeypatch):
    monkeypatch.setattr(codec, "MAX_COMPRESSED", 100)
    assert size_of(encoded(np.zeros(100), "lz4")) == 64 + 800


@pytest.mark.slow
def test_reading_needs_no_package_unless_compressed():
    code = "import sys, linnet.tiles.codec; print([m for m in ('zstandard', 'lz4', 'obstore') if m in sys.modules])"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "[]\n"
    )
