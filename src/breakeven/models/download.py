"""One downloader for all weights: resumed, retried, checked; a broken file never gets the name."""

from __future__ import annotations

import contextlib
import http.client
import re
import time
import urllib.error
from collections.abc import Callable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from breakeven.errors import DownloadError
from breakeven.models.files import (
    BLOCK_BYTES,
    Progress,
    commit,
    locked,
    need_space,
    part_of,
    sha256,
    silent,
    storing,
)
from breakeven.models.http import NETWORK_ERRORS, Location, opened, reason, shown
from breakeven.units import size

ATTEMPTS = 4
"""In a row without a byte received; any progress starts the count again."""
BACKOFF_S = 0.5
"""Pause after the first failure, doubled after each further one."""
RETRIED_STATUS = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True, slots=True)
class Source:
    """What to fetch, and how to know that it came whole. `size_bytes` and `sha256` are None where unknown."""

    where: Location
    sha256: str | None = None
    size_bytes: int | None = None


class _Dropped(Exception):
    """The connection ended before the body did."""


class _Stale(Exception):
    """What was fetched before does not belong to what the server has now: start from the first byte."""


def download(
    source: Source, target: Path, progress: Progress = silent, sleep: Callable[[float], None] = time.sleep
) -> Path:
    """Fetch the source into the target; return the target at once if it is there already.

    What came before an interruption stays in `<target>.part` and is continued by the next call. Raises
    DownloadError when the network gives up or the file is not the one expected, StorageError for the disk.
    """
    with locked(target):
        if target.exists():
            return target
        _fetch(source, target, progress, sleep)
        _verify(source, part_of(target))
        commit(part_of(target), target)
        _etag_file(target).unlink(missing_ok=True)
    return target


def _fetch(source: Source, target: Path, progress: Progress, sleep: Callable[[float], None]) -> None:
    failures = 0
    while True:
        before = _length(part_of(target))
        try:
            _fetch_rest(source, target, progress)
            return
        except _Stale:
            _discard(target)
        except (_Dropped, *NETWORK_ERRORS) as error:
            failures = 1 if _length(part_of(target)) > before else failures + 1
            if failures >= ATTEMPTS or _is_final(error):
                raise DownloadError(_gave_up(source, target, error)) from error
            sleep(BACKOFF_S * 2 ** (failures - 1))


def _is_final(error: BaseException) -> bool:
    return isinstance(error, urllib.error.HTTPError) and error.code not in RETRIED_STATUS


def _gave_up(source: Source, target: Path, error: BaseException) -> str:
    kept = _length(part_of(target))
    again = f"; {size(kept)} are kept: the same command goes on from there" if kept else ""
    return f"cannot download {shown(source.where.url)}: {reason(error)}{again}"


def _fetch_rest(source: Source, target: Path, progress: Progress) -> None:
    """One request for what is missing."""
    have = _length(part_of(target))
    if source.size_bytes is not None and have == source.size_bytes:
        return
    try:
        with opened(source.where, _range_headers(source, target, have)) as response:
            start = _start_of(response, have)
            total = _total(response, start)
            _check_size(source, total)
            if start == 0:
                _remember_etag(response, target)
            need_space(target.parent, (total or source.size_bytes or have) - start)
            _append(response, part_of(target), start, total, progress)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") != f"bytes */{have}":
            raise _Stale from None


def _range_headers(source: Source, target: Path, have: int) -> dict[str, str]:
    """Ask for the rest where what is there can be trusted: the server's ETag, or a checksum in the end."""
    headers = {"Accept-Encoding": "identity"}
    etag = _etag_file(target).read_text() if _etag_file(target).exists() else None
    if have and etag:
        return headers | {"Range": f"bytes={have}-", "If-Range": etag}
    if have and source.sha256:
        return headers | {"Range": f"bytes={have}-"}
    return headers


def _start_of(response: http.client.HTTPResponse, have: int) -> int:
    """First byte of the body: `have` of a partial answer, 0 of a whole one."""
    if response.status != 206:
        return 0
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != have:
        raise _Stale
    return have


def _total(response: http.client.HTTPResponse, start: int) -> int | None:
    length = response.headers.get("Content-Length")
    return start + int(length) if length and length.isdigit() else None


def _check_size(source: Source, total: int | None) -> None:
    if total is not None and source.size_bytes is not None and total != source.size_bytes:
        raise DownloadError(
            f"{shown(source.where.url)} has {total:,} bytes and {source.size_bytes:,} were expected: "
            "it is not the same file; check the index or the address"
        )


def _append(
    response: http.client.HTTPResponse, part: Path, start: int, total: int | None, progress: Progress
) -> None:
    with storing(part):
        file = FileIO(part, "ab" if start else "wb")
    done = start
    with file:
        while block := response.read(BLOCK_BYTES):
            with storing(part):
                _write_all(file, block)
            done += len(block)
            progress(done, total)
    if total is not None and done < total:
        raise _Dropped(f"the connection ended after {size(done)} of {size(total)}")


def _write_all(file: FileIO, block: bytes) -> None:
    """Unbuffered, so that an interruption loses nothing; a raw write may take less than it was given."""
    rest = memoryview(block)
    while rest:
        rest = rest[file.write(rest) :]


def _verify(source: Source, part: Path) -> None:
    """Refuse and delete a file that is not the one expected."""
    if source.size_bytes is not None and _length(part) != source.size_bytes:
        found, expected = f"{_length(part):,} bytes", f"{source.size_bytes:,} bytes"
    elif source.sha256 is not None and (digest := sha256(part)) != source.sha256:
        found, expected = f"sha256 {digest}", f"sha256 {source.sha256}"
    else:
        return
    _discard(part.with_name(part.name.removesuffix(".part")))
    raise DownloadError(
        f"{shown(source.where.url)} is not the expected file, and was deleted: "
        f"expected {expected}, got {found}; try again, or give the path of a copy that you trust"
    )


def _discard(target: Path) -> None:
    part_of(target).unlink(missing_ok=True)
    _etag_file(target).unlink(missing_ok=True)


def _remember_etag(response: http.client.HTTPResponse, target: Path) -> None:
    """Keep a strong ETag, the only kind that If-Range takes (RFC 9110, 13.1.5)."""
    _etag_file(target).unlink(missing_ok=True)
    etag = response.headers.get("ETag", "")
    if etag.startswith('"'):
        with storing(target):
            _etag_file(target).write_text(etag)


def _etag_file(target: Path) -> Path:
    return target.with_name(f"{target.name}.part.etag")


def _length(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0
