"""Opening a connection: name look-up, TCP, a proxy's tunnel, TLS; and what to type when that fails."""

from __future__ import annotations

import asyncio
import errno
import ssl
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from breakeven.client.connection import Connection
from breakeven.client.endpoint import DEFAULT_PORTS, Endpoint
from breakeven.client.inbox import Inbox
from breakeven.client.proxy import Proxy, proxy_for
from breakeven.client.tls import tls_context
from breakeven.client.tunnel import open_tunnel
from breakeven.errors import ConnectFailed, TimedOut


@dataclass(frozen=True, slots=True)
class Origin:
    """What a connection is good for: requests to one host, verified one way, through one proxy."""

    scheme: str
    host: str
    port: int
    proxy: Proxy | None
    verify_tls: bool
    ca_file: Path | None

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"


def origin_of(endpoint: Endpoint) -> Origin:
    parts = urlsplit(endpoint.base_url)
    host, port = parts.hostname or "", parts.port or DEFAULT_PORTS[parts.scheme]
    proxy = proxy_for(parts.scheme, host, port)
    return Origin(parts.scheme, host, port, proxy, endpoint.verify_tls, endpoint.ca_file)


async def connect(origin: Origin, inbox: Inbox, timeout_s: float) -> Connection:
    """Raises TimedOut, ConnectFailed, and UsageError for a CA file that cannot be used."""
    context = tls_context(origin.verify_tls, origin.ca_file) if origin.scheme == "https" else None
    try:
        async with asyncio.timeout(timeout_s):
            return await _open(origin, inbox, context)
    except TimeoutError as error:
        raise TimedOut("connect", timeout_s, "--connect-timeout") from error
    except (OSError, ssl.SSLError) as error:
        raise ConnectFailed(_advice(origin, error)) from error


async def _open(origin: Origin, inbox: Inbox, context: ssl.SSLContext | None) -> Connection:
    loop = asyncio.get_running_loop()
    connection = Connection(inbox)
    if origin.proxy is not None and context is not None:
        await open_tunnel(origin.proxy, origin.host, origin.port, context, connection)
        return connection
    host, port = (origin.proxy.host, origin.proxy.port) if origin.proxy else (origin.host, origin.port)
    await loop.create_connection(lambda: connection, host, port, ssl=context)
    return connection


def _advice(origin: Origin, error: OSError) -> str:
    through = f" through the proxy {origin.proxy.host}:{origin.proxy.port}" if origin.proxy else ""
    where = f"{origin}{through}"
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        return f"the certificate of {where} is not trusted ({why}): type --ca-file FILE, or --insecure"
    if isinstance(error, ssl.SSLError):
        return f"no TLS at {where} ({error.reason}): if the server speaks plain http, type http://…"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return "too many open connections for this process: type  ulimit -n 65536  first"
    return f"nothing answers at {where} ({_reason(error)}): start the server, or check the URL"


def _reason(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).strip()
