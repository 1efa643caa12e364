from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.client.endpoint import ApiKey, Endpoint, normalise_url
from breakeven.errors import BreakevenError, UsageError


@pytest.mark.parametrize(
    "typed",
    [
        "http://h:8000",
        "http://h:8000/",
        "http://h:8000/v1",
        "http://h:8000/v1/",
        "http://h:8000/v1/chat/completions",
        "http://h:8000/v1/chat/completions/",
        "http://h:8000/v1/completions",
        "http://h:8000/v1/models",
        "h:8000",
        "h:8000/v1",
        "HTTP://H:8000",
        "  http://h:8000  ",
    ],
)
def test_case_19_every_way_to_type_a_server_is_one(typed: str) -> None:
    endpoint = Endpoint(typed)
    assert endpoint.base_url == "http://h:8000/v1"
    assert endpoint.request_url == "http://h:8000/v1/chat/completions"
    assert Endpoint(typed, api="completions").request_url == "http://h:8000/v1/completions"


@pytest.mark.parametrize(
    ("typed", "base"),
    [
        ("http://h/proxy/v1", "http://h/proxy/v1"),
        ("http://h/proxy", "http://h/proxy/v1"),
        ("https://h:443", "https://h/v1"),
        ("http://h:80/v1", "http://h/v1"),
        ("localhost", "http://localhost/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("https://h/v1beta/openai/chat/completions", "https://h/v1beta/openai"),
        ("http://h:1/v3", "http://h:1/v3"),
    ],
)
def test_prefixes_ports_and_versions_are_kept(typed: str, base: str) -> None:
    assert normalise_url(typed) == base


def test_paths_are_found_beside_the_version() -> None:
    endpoint = Endpoint("http://h/proxy/v1")
    assert endpoint.url_of("/metrics") == "http://h/proxy/metrics"
    assert endpoint.url_of("/v1/models") == endpoint.models_url == "http://h/proxy/v1/models"


@pytest.mark.parametrize(
    "typed",
    ["", "http://", "ftp://h", "http://h:99999", "http://h:x", "http://u:p@h", "http://h?x=1", "http://h#f",
     "h h", "http://hä", "http://[::1", "http://" + "h" * 64, "http://a..b"],
)  # fmt: skip
def test_a_bad_url_says_what_to_type(typed: str) -> None:
    with pytest.raises(UsageError, match=r"type|the URL"):
        Endpoint(typed)


@given(st.text(max_size=40))
def test_any_text_is_a_url_in_normal_form_or_a_usage_error(typed: str) -> None:
    try:
        base = normalise_url(typed)
    except UsageError:
        return
    assert normalise_url(base) == base


def test_bad_headers_and_apis_are_refused() -> None:
    with pytest.raises(UsageError, match="--header"):
        Endpoint("h", headers={"X": "a\r\nInjected: b"})
    with pytest.raises(UsageError, match="--header"):
        Endpoint("h", headers={"bad name": "a"})
    with pytest.raises(UsageError, match="--api chat"):
        Endpoint("h", api="embeddings")  # type: ignore[arg-type]


def test_a_key_is_never_shown_nor_stored(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret ")
    key = ApiKey.from_env_or_file(env="MY_KEY")
    assert key is not None and key.reveal() == "sk-secret"
    endpoint = Endpoint("h", api_key=key, headers={"X-Token": "tok-secret"})
    for shown in (
        repr(endpoint),
        str(endpoint),
        repr(key),
        str(key),
        f"{key}",
        repr(replace(endpoint, model="m")),
    ):
        assert "secret" not in shown
    with pytest.raises(TypeError):
        pickle.dumps(key)
    assert key.redact("wrong key sk-secret!") == "wrong key [API key]!"


def test_a_key_comes_from_a_file_too(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("sk-file\n")
    assert ApiKey.from_env_or_file(file=tmp_path / "key") == ApiKey("sk-file")
    assert ApiKey.from_env_or_file() is None


def test_a_missing_key_says_how_to_give_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("NO_KEY", raising=False)
    with pytest.raises(UsageError, match="export NO_KEY="):
        ApiKey.from_env_or_file(env="NO_KEY")
    with pytest.raises(UsageError, match="--api-key-file"):
        ApiKey.from_env_or_file(file=tmp_path / "absent")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(BreakevenError, match="empty"):
        ApiKey.from_env_or_file(file=tmp_path / "empty")
    with pytest.raises(UsageError, match="not both"):
        ApiKey.from_env_or_file(env="A", file="b")
