"""`breakeven models` as a user types it, with a cache folder of its own and no network."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-c", "from breakeven.cli import main; main()", "models"]


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def models(cache: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "BREAKEVEN_CACHE": str(cache), "HF_ENDPOINT": "http://127.0.0.1:9"}
    env["PIP_INDEX_URL"] = "http://127.0.0.1:9/simple"
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, env=env, timeout=60)


def test_list(cache: Path) -> None:
    shown = models(cache, "list")
    assert shown.returncode == 0
    assert "smollm2-moe   not here" in shown.stdout and "random, not learned" in shown.stdout
    listed = json.loads(models(cache, "list", "--json").stdout)
    assert listed["folder"] == str(cache)
    assert [(m["model"], m["present"], m["size_bytes"]) for m in listed["models"]] == [
        ("smollm2", False, None),
        ("smollm2-moe", False, None),
    ]


def test_upcycle_and_path(cache: Path, tiny_model: Path, tmp_path: Path) -> None:
    out = tmp_path / "moe.gguf"
    words = ("upcycle", str(tiny_model), "--experts", "4", "--top-k", "2", "--out", str(out))
    made = models(cache, *words, "--json")
    assert made.returncode == 0
    answer = json.loads(made.stdout)
    assert answer["path"] == str(out) and answer["size_bytes"] == out.stat().st_size
    assert "Routing is random, not learned." in made.stderr
    again = models(cache, *words)
    assert again.returncode == 2 and "--force to replace it" in again.stderr
    assert models(cache, *words, "--force").returncode == 0
    assert models(cache, "path", str(out)).stdout == f"{out}\n"
    itself = models(cache, "upcycle", str(out), "--out", str(out), "--force")
    assert itself.returncode == 2 and "is the model itself" in itself.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("path", "smollm2"), 2, "type  breakeven models pull smollm2"),
        (("path", "hf:org/repo/f.gguf"), 2, "type  breakeven models pull hf:org/repo/f.gguf"),
        (("pull", "smollm3"), 2, "did you mean smollm2?"),
        (("pull", "hf:org/repo/f.gguf"), 3, "--model smollm2"),
        (("pull", "smollm2"), 3, "set PIP_INDEX_URL"),
    ],
)
def test_what_cannot_be_done_says_what_to_type(
    cache: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = models(cache, *words)
    assert done.returncode == code and message in done.stderr and done.stdout == ""


def test_files_that_were_put_beside_the_hubs_are_not_listed(cache: Path) -> None:
    for name in ("a.gguf", "org/b.gguf", "org/repo/c.gguf", "org/repo/main/d.gguf"):
        (cache / "hub" / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / "hub" / name).touch()
    listed = json.loads(models(cache, "list", "--json").stdout)["models"]
    assert [m["model"] for m in listed if m["model"].startswith("hf:")] == ["hf:org/repo/d.gguf"]
