from __future__ import annotations

import gzip
import zlib

import pytest

from breakeven.client import decode
from breakeven.client.decode import decoder_for
from breakeven.errors import ProtocolError

TEXT = b"data: a\n\n" * 100


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-15)
    return compressor.compress(data) + compressor.flush()


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", gzip.compress(TEXT)), ("x-gzip", gzip.compress(TEXT)), (" Deflate ", zlib.compress(TEXT)),
     ("deflate", raw_deflate(TEXT))],
    ids=["gzip", "x-gzip", "zlib", "raw"],
)  # fmt: skip
def test_gzip_and_both_kinds_of_deflate(coding: str, body: bytes) -> None:
    decoder = decoder_for(coding)
    assert decoder is not None
    assert b"".join(decoder(body[i : i + 7]) for i in range(0, len(body), 7)) == TEXT


def test_identity_needs_no_decoder() -> None:
    assert decoder_for("") is None
    assert decoder_for("identity") is None


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, br"])
def test_other_codings_are_named(coding: str) -> None:
    with pytest.raises(ProtocolError, match=coding):
        decoder_for(coding)


def test_broken_and_boundless_data_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = decoder_for("gzip")
    assert decoder is not None
    with pytest.raises(ProtocolError, match="broken"):
        decoder(b"not gzip at all")
    monkeypatch.setattr(decode, "MAX_READ_BYTES", 1000)
    bomb = decoder_for("gzip")
    assert bomb is not None
    with pytest.raises(ProtocolError, match="expands"):
        bomb(gzip.compress(b"0" * 100_000))


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_gzip_in_members(size: int) -> None:
    decoder = decoder_for("gzip")
    assert decoder is not None
    body = b"".join(gzip.compress(TEXT[i : i + 9]) for i in range(0, len(TEXT), 9))
    assert b"".join(decoder(body[i : i + size]) for i in range(0, len(body), size)) == TEXT
