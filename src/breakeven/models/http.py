"""Requests to package indexes and hubs: credentials stay with their host and out of every message.

The standard library does it: it honours proxies and SSL_CERT_FILE, needs no dependency for a handful of
requests, and its speed is of no matter beside the network's.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import os
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit

from breakeven.errors import DownloadError

TIMEOUT_S = 20.0
"""Of the connection, and of each wait for data."""

USER_AGENT = "breakeven"
NETWORK_ERRORS = (OSError, http.client.HTTPException)
"""What urllib and http.client raise when a connection cannot be made or breaks; URLError is an OSError."""


@dataclass(frozen=True, slots=True, repr=False)
class Location:
    """An address without credentials, and the headers that open it."""

    url: str
    secret: str | None = None
    """Value of the Authorization header."""

    def __repr__(self) -> str:
        return f"Location({shown(self.url)!r})"

    @classmethod
    def parse(cls, url: str) -> Location:
        """Take `user:password@` out of a URL. Raises DownloadError unless it is http or https."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DownloadError(f"{shown(url)} is not an http or https address")
        if parts.username is None:
            return cls(url)
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return cls(bare, "Basic " + base64.b64encode(pair.encode()).decode())

    def headers(self) -> dict[str, str]:
        """Headers of every request to it."""
        secret = {"Authorization": self.secret} if self.secret else {}
        return {"User-Agent": USER_AGENT, **secret}

    def join(self, url: str) -> Location:
        """A link found there; the credentials go along only to the same host."""
        other = Location.parse(url)
        if other.secret is None and origin(other.url) == origin(self.url):
            return Location(other.url, self.secret)
        return other


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Scheme, host and port: what credentials belong to."""
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def shown(url: str) -> str:
    """The URL as a message may show it: without credentials, nor a query, which may be a signature."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment=""))


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects with the same method, and with credentials only on the same host."""

    def __init__(self, leave_host: bool) -> None:
        self.leave_host = leave_host

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        same = origin(newurl) == origin(req.full_url)
        if not same and not self.leave_host:
            return None
        kept = {k: v for k, v in req.headers.items() if same or k.lower() != "authorization"}
        return urllib.request.Request(Location.parse(newurl).url, headers=kept, method=req.get_method())  # noqa: S310


@contextlib.contextmanager
def opened(
    where: Location, headers: Mapping[str, str], method: str = "GET", leave_host: bool = True
) -> Iterator[http.client.HTTPResponse]:
    """One request. Raises urllib.error.HTTPError for 400 and above, and for a redirect that is not followed.

    Other network errors are those of NETWORK_ERRORS.
    """
    request = urllib.request.Request(  # noqa: S310  Location.parse took http and https only
        where.url, headers={**where.headers(), **headers}, method=method
    )
    opener = urllib.request.build_opener(
        _Redirects(leave_host), urllib.request.HTTPSHandler(context=_trust())
    )
    with opener.open(request, timeout=TIMEOUT_S) as response:
        yield response


def get(where: Location, accept: str) -> tuple[bytes, Message, str]:
    """Body, headers and final URL of a small document. Raises DownloadError with the reason."""
    try:
        with opened(where, {"Accept": accept}) as response:
            return response.read(), response.headers, response.url
    except NETWORK_ERRORS as error:
        raise DownloadError(f"cannot read {shown(where.url)}: {reason(error)}") from error


def reason(error: BaseException) -> str:
    """Why a request failed, in words, with what to set where that helps."""
    if isinstance(error, urllib.error.HTTPError):
        return f"HTTP {error.code} {error.reason}"
    cause = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({cause.verify_message}); "
            "set SSL_CERT_FILE to your organisation's certificates"
        )
    if isinstance(cause, TimeoutError):
        return f"no answer within {TIMEOUT_S:g} s"
    return str(cause) or type(cause).__name__


def _trust() -> ssl.SSLContext:
    """Python's own trust (SSL_CERT_FILE included) and the bundle that pip is told to use."""
    context = ssl.create_default_context()
    bundle = os.environ.get("PIP_CERT") or os.environ.get("REQUESTS_CA_BUNDLE")
    if bundle:
        with contextlib.suppress(OSError):
            context.load_verify_locations(bundle)
    return context
