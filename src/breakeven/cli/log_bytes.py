"""The bytes of a log as they lie: without the compression of gzip, and refused where they are no log."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from typing import Any

from breakeven.errors import UsageError
from breakeven.units import size

CHUNK_BYTES = 64 * 1024
GZIP = b"\x1f\x8b"
MOST_NULS = 64 * 1024 * 1024
"""That a rotated log may begin with."""
FREE_BYTES = 1 << 30
"""What a packed log may always come to; more only as …"""
MOST_RATIO = 200
"""… so many times its packed size. Deflate packs what is all alike 1,032 times at most."""


def bytes_of(stream: Any, where: str) -> Iterator[bytes]:
    """Its pieces, unpacked where it is packed. Raises UsageError for what is no log, and what gzip raises."""
    yield from _of_a_log(_unpacked(stream, where), where)


def pieces(stream: Any) -> Iterator[bytes]:
    """As they come, of any size."""
    while piece := stream.read1(CHUNK_BYTES):
        yield piece


class _Begun:
    """A stream of which the first bytes were read already: a pipe cannot go back."""

    def __init__(self, first: bytes, stream: Any) -> None:
        self._first, self._stream = first, stream
        self.given = 0
        """Bytes."""

    def read(self, count: int) -> bytes:
        first, self._first = self._first[:count], self._first[count:]
        data: bytes = first or self._stream.read(count)
        self.given += len(data)
        return data


def _unpacked(stream: Any, where: str) -> Iterator[bytes]:
    first = stream.read1(CHUNK_BYTES)
    if first.startswith(GZIP):
        begun = _Begun(first, stream)
        packed: Any = begun
        yield from _in_bounds(pieces(gzip.GzipFile(fileobj=packed)), begun, where)
        return
    yield first
    yield from pieces(stream)


def _in_bounds(unpacked: Iterator[bytes], packed: _Begun, where: str) -> Iterator[bytes]:
    """The pieces. Raises UsageError where a few bytes expand without end."""
    came = 0
    for piece in unpacked:
        came += len(piece)
        if came > max(FREE_BYTES, MOST_RATIO * packed.given):
            raise UsageError(
                f"{where} expands to more than {size(came)} from {size(packed.given)}, as no log does: name "
                "the log itself, or a part of it:  zcat FILE | head -c 1G | breakeven diagnose --logs -"
            )
        yield piece


def _of_a_log(unpacked: Iterator[bytes], where: str) -> Iterator[bytes]:
    """The pieces. Raises UsageError where they begin as a page of /metrics does, or hold nothing but NULs."""
    nuls, is_first = 0, True
    for piece in unpacked:
        if is_first and piece.lstrip(b"\0\r\n\t ").startswith((b"# HELP ", b"# TYPE ")):
            raise UsageError(
                f"{where} is a page of /metrics, and no log: type  --url http://HOST:PORT  to have it read "
                "twice, and --logs with what the server prints"
            )
        is_only_nuls = nuls >= 0 and not piece.strip(b"\0")
        nuls = nuls + len(piece) if is_only_nuls else -1
        if nuls > MOST_NULS:
            break
        is_first = is_first and is_only_nuls
        yield piece
    if nuls > 0:
        raise UsageError(f"{where} holds nothing but NUL bytes: name the log of the server")
