"""Hugging Face hub: `hf:org/repo/file.gguf[@revision]`, under HF_ENDPOINT, with HF_TOKEN where it is set."""

from __future__ import annotations

import os
import re
import urllib.error
from dataclasses import dataclass
from email.message import Message
from pathlib import Path
from urllib.parse import quote

from breakeven.errors import DownloadError, UsageError
from breakeven.models.download import Source, download
from breakeven.models.files import Progress, silent
from breakeven.models.http import NETWORK_ERRORS, Location, opened, reason, shown

DEFAULT_ENDPOINT = "https://huggingface.co"
PREFIX = "hf:"


@dataclass(frozen=True, slots=True)
class HubFile:
    """One file of a model repository."""

    repo: str
    """`org/name`."""
    file: str
    """Path inside the repository."""
    revision: str = "main"

    @classmethod
    def parse(cls, spec: str) -> HubFile:
        """Read `hf:org/repo/file.gguf[@revision]`. Raises UsageError with the form."""
        match = re.fullmatch(r"hf:([\w.-]+/[\w.-]+)/([^@\0]+?)(?:@([\w./-]+))?", spec)
        parts = [*match[1].split("/"), *match[2].split("/"), match[3] or "main"] if match else [".."]
        if match is None or any(part in ("", ".", "..") for part in parts) or ".." in parts[-1]:
            raise UsageError(f"{spec} is not a hub file: type  hf:org/repo/file.gguf  or  hf:…@revision")
        return cls(match[1], match[2], match[3] or "main")

    def cached_as(self) -> Path:
        """Where it is kept, below the cache folder."""
        return Path("hub", self.repo, self.revision.replace("/", "--"), self.file)

    def url(self) -> str:
        """Where the hub serves it."""
        endpoint = os.environ.get("HF_ENDPOINT") or DEFAULT_ENDPOINT
        revision = quote(self.revision, safe="")
        return f"{endpoint.rstrip('/')}/{self.repo}/resolve/{revision}/{quote(self.file)}"


def fetch(file: HubFile, target: Path, progress: Progress = silent) -> Path:
    """Write the hub's file to the target; a target that is there is returned without asking the hub.

    Its checksum and size are those that the hub announces. Raises DownloadError with what to type instead.
    """
    if target.exists():
        return target
    return download(_source(file), target, progress)


def _source(file: HubFile) -> Source:
    token = os.environ.get("HF_TOKEN")
    where = Location.parse(file.url())
    where = Location(where.url, f"Bearer {token}" if token else where.secret)
    headers = _headers(file, where)
    etag = headers.get("X-Linked-ETag", "").strip('"')
    length = headers.get("X-Linked-Size", "")
    return Source(
        where,
        etag if re.fullmatch(r"[0-9a-f]{64}", etag) else None,
        int(length) if length.isdigit() else None,
    )


def _headers(file: HubFile, where: Location) -> Message:
    """What the hub itself says of the file, before it sends one on to where the bytes are."""
    try:
        with opened(where, {"Accept-Encoding": "identity"}, "HEAD", leave_host=False) as response:
            return response.headers
    except urllib.error.HTTPError as error:
        if 300 <= error.code < 400:
            return error.headers
        raise DownloadError(_refused(file, error)) from error
    except NETWORK_ERRORS as error:
        raise DownloadError(
            f"the hub {shown(where.url)} cannot be reached: {reason(error)}; set HF_ENDPOINT to a mirror, "
            "or give the path of a GGUF file, or type  --model smollm2"
        ) from error


def _refused(file: HubFile, error: urllib.error.HTTPError) -> str:
    said = f"the hub does not give out {file.repo}/{file.file} at {file.revision}: {reason(error)}"
    if error.code in (401, 403):
        return f"{said}; set HF_TOKEN to a token that may read it, and check the name"
    if error.code == 404:
        return f"{said}; check the repository, the file and the revision"
    return f"{said}; try again, or give the path of a GGUF file"
