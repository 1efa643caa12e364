"""A TLS connection through an HTTP proxy: CONNECT, then TLS with the server itself (RFC 9110, 9.3.6)."""

from __future__ import annotations

import asyncio
import ssl

from breakeven.client.connection import Connection
from breakeven.client.proxy import Proxy
from breakeven.errors import ConnectFailed

MAX_REPLY_BYTES = 65536


class _Handshake(asyncio.Protocol):
    """Collects the proxy's answer to CONNECT."""

    def __init__(self) -> None:
        self.reply: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        if b"\r\n\r\n" in self._received or len(self._received) > MAX_REPLY_BYTES:
            self._give(self._received)

    def connection_lost(self, error: Exception | None) -> None:
        self._give(self._received)

    def _give(self, reply: bytes) -> None:
        if not self.reply.done():
            self.reply.set_result(reply)


async def open_tunnel(proxy: Proxy, host: str, port: int, context: ssl.SSLContext, inner: Connection) -> None:
    """Gives `inner` a transport whose other end is the server. Raises ConnectFailed if the proxy refuses."""
    loop = asyncio.get_running_loop()
    transport, handshake = await loop.create_connection(_Handshake, proxy.host, proxy.port)
    try:
        transport.write(_connect_request(proxy, host, port))
        _check(await handshake.reply, proxy)
        transport.set_protocol(inner)
        secured = await loop.start_tls(transport, inner, context, server_hostname=host)
    except BaseException:
        transport.abort()
        raise
    if secured is None:
        raise ConnectFailed(f"the proxy {proxy.host}:{proxy.port} closed the tunnel: check https_proxy")
    inner.connection_made(secured)


def _connect_request(proxy: Proxy, host: str, port: int) -> bytes:
    authority = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    lines = [f"CONNECT {authority} HTTP/1.1", f"Host: {authority}"]
    if proxy.authorization:
        lines.append(f"Proxy-Authorization: {proxy.authorization}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def _check(reply: bytes, proxy: Proxy) -> None:
    status_line = reply.split(b"\r\n", 1)[0]
    if status_line.startswith(b"HTTP/1.") and status_line[8:11] == b" 20":
        return
    said = status_line[:80].decode("latin-1") or "nothing"
    hint = (
        "put user and password into https_proxy"
        if b" 407" in status_line
        else "check https_proxy and no_proxy"
    )
    raise ConnectFailed(f"the proxy {proxy.host}:{proxy.port} refused the tunnel ({said}): {hint}")
