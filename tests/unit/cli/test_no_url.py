"""What is no URL in the place of one: what is said to type instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from breakeven.cli.no_url import refuse_no_url
from breakeven.cost.calibration import save_calibration
from breakeven.errors import UsageError
from breakeven.servers.fake import FakeServer, Script
from breakeven.trace.disk import META
from tests.e2e.command import breakeven
from tests.unit.cost.test_calibration import CALIBRATION


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "https://smollm2", "127.0.0.1:8000", "localhost:8000"]
)
def test_a_url_is_let_pass(url: str):
    refuse_no_url(url)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("smollm2", "smollm2"),
        ("smolm2", "smollm2"),
        ("smollm2-moe", "smollm2-moe"),
        ("my/model.gguf", "my/model.gguf"),
        ("hf:org/repo/file.gguf", "hf:org/repo/file.gguf"),
    ],
)
def test_a_model_is_guessed(typed: str, meant: str):
    with pytest.raises(
        UsageError, match=f"did you mean --model {meant}[?] Type  breakeven calibrate --model"
    ):
        refuse_no_url(typed)


def test_a_calibration_is_shown_not_made(tmp_path: Path):
    save_calibration(replace(CALIBRATION), tmp_path / "calibration.json")
    with pytest.raises(UsageError, match=f"type  breakeven show {tmp_path}"):
        refuse_no_url(str(tmp_path))


@pytest.mark.parametrize("model", ["fake-model", "smollm2"])
def test_of_a_run_its_own_server_is_meant(tmp_path: Path, model: str):
    out = tmp_path / "run"
    with FakeServer(Script(n_tokens=4)).in_thread() as server:
        breakeven("measure", "--url", server.url, "--prompts", "brief", "--max-tokens", 4, "--out", out)
    text = (out / META).read_text()
    (out / META).write_text(text.replace("fake-model", model))
    with pytest.raises(UsageError, match="is a record, no URL") as refusal:
        refuse_no_url(str(out))
    assert f"breakeven calibrate {server.url}" in str(refusal.value)
    assert ("--model smollm2" in str(refusal.value)) == (model == "smollm2")


def test_other_folders_and_files_are_named(tmp_path: Path):
    with pytest.raises(UsageError, match="is a folder, no URL: type  breakeven calibrate http://HOST:PORT"):
        refuse_no_url(str(tmp_path))
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(UsageError, match="is a file, no URL"):
        refuse_no_url(str(tmp_path / "notes.txt"))
