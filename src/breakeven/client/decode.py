"""Content-Encoding: bytes as sent → bytes as meant, read by read.

`identity` is asked for; a proxy that compresses all the same is understood, at the price of a warning,
because a compressor may hold chunks back.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

from breakeven.errors import ProtocolError

MAX_READ_BYTES = 64 * 1024 * 1024
"""Most that one read may expand to: a bomb ends here."""
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_RAW = -zlib.MAX_WBITS

Decoder = Callable[[bytes], bytes]


def decoder_for(content_encoding: str) -> Decoder | None:
    """None if nothing is to be done. Raises ProtocolError for a coding other than gzip and deflate."""
    coding = content_encoding.strip().lower()
    if coding in ("", "identity"):
        return None
    if coding in ("gzip", "x-gzip", "deflate"):
        return Inflate(may_be_raw=coding == "deflate")
    raise ProtocolError(
        f"the reply is compressed as {coding!r}, though identity was asked for: turn that off in the proxy"
    )


class Inflate:
    """gzip or zlib, told apart by the header; or raw deflate, which some servers mean by `deflate`.

    gzip may come in members, one after the other (RFC 1952, 2.2): some servers flush by ending one.
    """

    __slots__ = ("_decompressor", "_may_be_raw")

    def __init__(self, may_be_raw: bool) -> None:
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
        self._may_be_raw = may_be_raw

    def __call__(self, data: bytes) -> bytes:
        text = bytearray()
        while data:
            if self._decompressor.eof:
                self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
            text += self._member(data)
            if self._decompressor.unconsumed_tail or len(text) > MAX_READ_BYTES:
                raise ProtocolError(
                    "the compressed reply expands beyond all measure: turn compression off in the proxy"
                )
            data = self._decompressor.unused_data.lstrip(b"\0")
        return bytes(text)

    def _member(self, data: bytes) -> bytes:
        try:
            text = self._decompressor.decompress(data, MAX_READ_BYTES)
        except zlib.error as error:
            text = self._as_raw(data, error)
        self._may_be_raw = False
        return text

    def _as_raw(self, data: bytes, first_error: zlib.error) -> bytes:
        error = first_error
        if self._may_be_raw:
            self._decompressor = zlib.decompressobj(_RAW)
            try:
                return self._decompressor.decompress(data, MAX_READ_BYTES)
            except zlib.error as raw_error:
                error = raw_error
        raise ProtocolError(
            f"the compressed reply is broken ({error}): turn compression off in the proxy"
        ) from error
