"""A server that writes exactly the bytes a test gives it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

CLOSE = None
"""In a list of pieces: close the connection here."""


@dataclass
class RawServer:
    """Answers request number i with replies[i], further ones with the last. A float waits."""

    replies: Sequence[Sequence[bytes | float | None]]
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while request := await _read_request(reader):
                self.requests.append(request)
                pieces = self.replies[min(len(self.requests), len(self.replies)) - 1]
                for piece in pieces:
                    if piece is CLOSE:
                        return
                    if isinstance(piece, float):
                        await asyncio.sleep(piece)
                    else:
                        writer.write(piece)
                        await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


async def _read_request(reader: asyncio.StreamReader) -> bytes:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return head + (await reader.readexactly(int(lengths[0].split(b":")[1])) if lengths else b"")


@asynccontextmanager
async def _running(*replies: Sequence[bytes | float | None], ssl: object = None) -> AsyncIterator[RawServer]:
    server = RawServer(replies)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=ssl, limit=2**26)
    port = listener.sockets[0].getsockname()[1]
    server.url = f"{'https' if ssl else 'http'}://127.0.0.1:{port}"
    try:
        yield server
    finally:
        listener.close()


@pytest.fixture
def raw_server() -> Callable[..., object]:
    """`async with raw_server([b"…", 0.1, b"…"], …) as server`."""
    return _running
