"""What a request looks like on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

from breakeven.client.endpoint import Endpoint
from breakeven.client.proxy import Proxy


@dataclass(frozen=True, slots=True)
class Call:
    """A method, a URL and a body: a POST of JSON if there is a body, else a GET."""

    url: str
    body: bytes | None = None
    accept: str = "*/*"


def encode_request(call: Call, endpoint: Endpoint, proxy: Proxy | None) -> bytes:
    """Head and body in one piece. Headers of the endpoint replace those made here, whatever their case."""
    parts = urlsplit(call.url)
    via_absolute_form = proxy is not None and parts.scheme == "http"
    target = call.url if via_absolute_form else parts.path or "/"
    headers = {
        "Host": parts.netloc,
        "User-Agent": "breakeven",
        "Accept": call.accept,
        "Accept-Encoding": "identity",
    }
    if endpoint.api_key is not None:
        headers["Authorization"] = f"Bearer {endpoint.api_key.reveal()}"
    if proxy is not None and via_absolute_form and proxy.authorization:
        headers["Proxy-Authorization"] = proxy.authorization
    if call.body is not None:
        headers["Content-Type"] = "application/json"
    overridden = {name.lower() for name in endpoint.headers}
    lines = [f"{name}: {value}" for name, value in headers.items() if name.lower() not in overridden]
    lines += [
        f"{name}: {value}" for name, value in endpoint.headers.items() if name.lower() != "content-length"
    ]
    if call.body is not None:
        lines.append(f"Content-Length: {len(call.body)}")
    method = "GET" if call.body is None else "POST"
    head = "\r\n".join([f"{method} {target} HTTP/1.1", *lines, "", ""])
    return head.encode("latin-1") + (call.body or b"")
