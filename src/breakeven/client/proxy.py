"""Which proxy, if any, stands between here and a host: from the environment, as curl and others read it."""

from __future__ import annotations

import base64
import ipaddress
import urllib.request
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from breakeven.errors import UsageError


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. Plain http goes through it in absolute form, https through a CONNECT tunnel."""

    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)
    """Value of Proxy-Authorization."""


def proxy_for(scheme: str, host: str, port: int) -> Proxy | None:
    """From http_proxy, https_proxy, all_proxy and no_proxy, in either case. Loopback is never proxied.

    Raises UsageError for a proxy that is not an HTTP proxy.
    """
    if is_loopback(host):
        return None
    proxies = urllib.request.getproxies_environment()
    url = proxies.get(scheme) or proxies.get("all")
    bypassed = urllib.request.proxy_bypass_environment  # type: ignore[attr-defined]  # not in typeshed
    if not url or bypassed(f"{host}:{port}", proxies):
        return None
    return parse_proxy(url, f"{scheme}_proxy")


def parse_proxy(url: str, variable: str) -> Proxy:
    """Raises UsageError that names the variable, but not the URL: it may hold a password."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(
            f"the proxy in {variable} is not a URL: type  export {variable}=http://HOST:PORT"
        ) from error
    if parts.scheme != "http" or not host:
        raise UsageError(
            f"the proxy in {variable} is not an http:// one: "
            f"type  export {variable}=http://HOST:PORT, or  unset {variable}"
        )
    return Proxy(host, port or 80, _basic(parts))


def is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _basic(parts: SplitResult) -> str | None:
    if parts.username is None:
        return None
    credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return "Basic " + base64.b64encode(credentials.encode()).decode()
