"""The hub: what a spec means, the token, the checksum it announces, and what to type without it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import DownloadError, UsageError
from breakeven.models.hub import HubFile, fetch
from tests.unit.models.file_server import FileServer, Served

BODY = os.urandom(100_000)
DIGEST = hashlib.sha256(BODY).hexdigest()
FILE = HubFile("org/repo", "sub/file.gguf")
PATH = "/org/repo/resolve/main/sub/file.gguf"


def offer(files: FileServer, monkeypatch: pytest.MonkeyPatch, announced: str = DIGEST) -> None:
    """The hub on 127.0.0.1 sends one on to `localhost`, which is another host."""
    monkeypatch.setenv("HF_ENDPOINT", files.url("/"))
    linked = {"X-Linked-ETag": f'"{announced}"', "X-Linked-Size": str(len(BODY))}
    files.paths[PATH] = Served(redirect=files.url("/cdn", host="localhost"), headers=linked)
    files.paths["/cdn"] = Served(BODY, etag='"cdn"')


def test_a_file_is_checked_by_the_checksum_that_the_hub_announces(
    files: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(files, monkeypatch)
    assert fetch(FILE, tmp_path / "f").read_bytes() == BODY
    offer(files, monkeypatch, announced="0" * 64)
    with pytest.raises(DownloadError, match="expected sha256 0000"):
        fetch(FILE, tmp_path / "other")
    asked = len(files.seen)
    assert fetch(FILE, tmp_path / "f").exists() and len(files.seen) == asked


def test_an_announced_etag_that_is_no_checksum_is_not_taken_for_one(
    files: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(files, monkeypatch, announced="d41d8cd98f00b204e9800998ecf8427e")
    assert fetch(FILE, tmp_path / "f").read_bytes() == BODY


def test_a_hub_that_serves_the_file_itself_is_fine(
    files: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(files, monkeypatch)
    files.paths[PATH] = Served(BODY)
    assert fetch(FILE, tmp_path / "f").read_bytes() == BODY


def test_the_token_goes_to_the_hub_only_and_into_no_message(
    files: FileServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    offer(files, monkeypatch)
    files.paths[PATH].needs = "Bearer hf_secret"
    with pytest.raises(DownloadError, match=r"HTTP 401.*set HF_TOKEN"):
        fetch(FILE, tmp_path / "f")
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    files.seen.clear()
    assert fetch(FILE, tmp_path / "f").read_bytes() == BODY
    sent = [(seen.path, seen.headers["Authorization"]) for seen in files.seen]
    assert sent == [(PATH, "Bearer hf_secret"), (PATH, "Bearer hf_secret"), ("/cdn", None)]
    del files.paths[PATH]
    with pytest.raises(DownloadError, match=r"HTTP 404.*check the repository") as caught:
        fetch(FILE, tmp_path / "g")
    assert "hf_secret" not in str(caught.value)


def test_a_hub_out_of_reach_says_what_to_type(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"cannot be reached.*path of a GGUF file.*--model smollm2"):
        fetch(FILE, tmp_path / "f")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("hf:org/repo/file.gguf", HubFile("org/repo", "file.gguf")),
        ("hf:o-1/r_2.x/a/b c.gguf", HubFile("o-1/r_2.x", "a/b c.gguf")),
        ("hf:org/repo/file.gguf@v1.0", HubFile("org/repo", "file.gguf", "v1.0")),
        ("hf:org/repo/file.gguf@refs/pr/1", HubFile("org/repo", "file.gguf", "refs/pr/1")),
    ],
)
def test_specs(spec: str, expected: HubFile) -> None:
    assert HubFile.parse(spec) == expected


def test_addresses_are_quoted() -> None:
    file = HubFile("org/repo", "a/b c.gguf", "refs/pr/1")
    assert file.url() == "https://huggingface.co/org/repo/resolve/refs%2Fpr%2F1/a/b%20c.gguf"


@pytest.mark.parametrize(
    "spec",
    [
        "hf:",
        "hf:org/repo",
        "hf:file.gguf",
        "hf:org/repo/",
        "hf:org/repo/../../x",
        "hf:../../x",
        "hf:o/r/f@",
        "x",
    ],
)
def test_what_is_no_spec_is_refused_with_the_form(spec: str) -> None:
    with pytest.raises(UsageError, match="type  hf:org/repo/file"):
        HubFile.parse(spec)


@given(st.text(alphabet="ab./@-_ \\\x00é"))
def test_no_spec_leaves_the_cache_folder(rest: str) -> None:
    try:
        path = HubFile.parse(f"hf:{rest}").cached_as()
    except UsageError:
        return
    assert not path.is_absolute() and ".." not in path.parts and path.parts[0] == "hub"
