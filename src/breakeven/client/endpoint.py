"""Endpoint: where requests go, as what, and with which credentials."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import SplitResult, urlsplit

from breakeven.client.apikey import ApiKey
from breakeven.errors import UsageError

__all__ = ["ApiKey", "Endpoint", "normalise_url"]

DEFAULT_PORTS = {"http": 80, "https": 443}
REQUEST_PATHS = {"chat": "/chat/completions", "completions": "/completions"}
_ENDS_IN_REQUEST_PATH = re.compile(r"/(chat/completions|completions|models)$")
_VERSION_SEGMENT = re.compile(r"/v\d\w*(/|$)")
_ENDS_IN_VERSION = re.compile(r"/v\d\w*$")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_EXAMPLE = "type http://HOST:PORT, such as http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An OpenAI-compatible server. Raises UsageError on a URL or header that cannot be used."""

    base_url: str
    """Any form a user may type; kept in its normal form, such as `http://host:8000/v1`."""
    api: Literal["chat", "completions"] = "chat"
    model: str | None = None
    """None until `preflight` has found the only model there is."""
    api_key: ApiKey | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Further request headers; not shown, because some carry credentials."""
    verify_tls: bool = True
    ca_file: Path | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "base_url", normalise_url(self.base_url))
        if self.api not in REQUEST_PATHS:
            raise UsageError(f"no API is called {self.api!r}: type --api chat or --api completions")
        for name, value in self.headers.items():
            if not _HEADER_NAME.fullmatch(name) or not value.isprintable() or not _is_latin1(value):
                raise UsageError(
                    f"the header {name!r} cannot be sent: type --header NAME:VALUE in plain text"
                )

    @property
    def request_url(self) -> str:
        return self.base_url + REQUEST_PATHS[self.api]

    @property
    def models_url(self) -> str:
        return self.base_url + "/models"

    @property
    def root_url(self) -> str:
        """Where `/metrics` and `/health` are: the base URL without its version."""
        return _ENDS_IN_VERSION.sub("", self.base_url)

    def url_of(self, path: str) -> str:
        """The URL of a path as documented for the server, such as `/metrics` or `/v1/models`."""
        if path.startswith("/v1/"):
            return self.base_url + path[3:]
        return self.root_url + (path if path.startswith("/") else f"/{path}")


def normalise_url(text: str) -> str:
    """One form for `h:p`, `http://h:p`, `http://h:p/v1/` and `http://h:p/v1/chat/completions`.

    A prefix is kept. `/v1` is appended unless some segment of the path is a version already.
    Raises UsageError with what to type.
    """
    typed = text.strip()
    parts = _split(typed if "://" in typed else f"http://{typed}", typed)
    path = _ENDS_IN_REQUEST_PATH.sub("", parts.path.rstrip("/")).rstrip("/")
    if not _VERSION_SEGMENT.search(path):
        path += "/v1"
    return f"{parts.scheme}://{_authority(parts)}{path}"


def _split(url: str, typed: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
        (host or "").encode("idna")  # as the resolver does: raises for labels that no name has
    except ValueError as error:
        raise UsageError(f"{typed!r} is not a URL ({error}): {_EXAMPLE}") from error
    if parts.scheme not in DEFAULT_PORTS:
        raise UsageError(f"{typed!r} is neither http nor https: {_EXAMPLE}")
    if not host or not typed.isascii() or not typed.isprintable() or " " in typed:
        raise UsageError(f"{typed!r} is not a URL: {_EXAMPLE}")
    if parts.username is not None or parts.password is not None:
        raise UsageError(
            "leave user and password out of the URL: type --api-key-env, or --header Authorization:…"
        )
    if parts.query or parts.fragment:
        raise UsageError(f"leave what follows ? or # out of the URL: type {url.split('?')[0].split('#')[0]}")
    return parts


def _authority(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    return host if parts.port in (None, DEFAULT_PORTS[parts.scheme]) else f"{host}:{parts.port}"


def _is_latin1(text: str) -> bool:
    return all(ord(character) < 256 for character in text)
