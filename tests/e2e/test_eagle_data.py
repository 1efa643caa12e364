"""`breakeven eagle init` and `data` as a user runs them: answered, killed, gone on with, the same bytes."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tests.tiny_gguf as tiny
from breakeven.eagle.data.samples import SAMPLES, read_samples
from breakeven.eagle.data.vocabulary import VOCABULARY
from breakeven.eagle.stage import WHOLE
from breakeven.engines.llamacpp import baseline_settings
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trace.tokens import load_tokens
from tests.e2e.command import Command, answered, breakeven, fake_process, soon
from tests.unit.eagle.data.fake_target import said, write_fake_target
from tests.unit.eagle.data.plain import write_recipe, write_target

N = 24
PROMPTS = [f"prompt number {number}" for number in range(N)]
KEYS = {
    "folder", "model", "samples", "held_out", "tokens", "loss_tokens", "target_vocabulary", "cut", "absent",
    "draft_vocabulary", "coverage", "coverage_held_out", "duplicates", "left_out", "sources", "replies",
    "warnings",
}  # fmt: skip


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_fake_target(tmp_path_factory.mktemp("target"))


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    words = ("--ttft-ms", 5, "--tpot-ms", 2, "--tokens", 30, "--reasoning", 5)
    with fake_process(*words) as (address, _):
        yield address


def recipe(folder: Path, target: Path, url: str | None, **settings: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "a.jsonl").write_text("".join(json.dumps({"prompt": one}) + "\n" for one in PROMPTS))
    how = {"concurrency": 2, "max_tokens": 30, "held_out": 0.2, "draft_vocabulary": 300, **settings}
    return write_recipe(folder, target, ["a.jsonl"], url=url, **how)


def made(path: Path) -> tuple[bytes, bytes]:
    folder = path.parent / "eagle/data"
    return (folder / SAMPLES).read_bytes(), (folder / VOCABULARY).read_bytes()


def copied(whole: Path, folder: Path) -> Path:
    """The recipe with all that was made of it, in another folder."""
    shutil.copytree(whole.parent, folder, dirs_exist_ok=True)
    return folder / whole.name


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, target: Path, url: str) -> Path:
    """A recipe whose data were made without an interruption."""
    path = recipe(tmp_path_factory.mktemp("whole"), target, url)
    breakeven("eagle", "data", path).succeeded()
    return path


def test_words_and_json_say_what_was_made(whole: Path) -> None:
    words = breakeven("eagle", "data", whole).succeeded().out
    assert "24 samples" in words and "held out" in words and "Draft vocabulary: 300 of 5,000 tokens" in words
    assert "Warning: " in words and f"breakeven eagle states {whole}" in words
    values = breakeven("eagle", "data", whole, "--json").succeeded().json()
    assert values.keys() >= KEYS
    assert (values["samples"], values["loss_tokens"], values["duplicates"]) == (N, N * 30, 0)
    kept = list(read_samples(whole.parent / "eagle/data" / SAMPLES))
    replies = sorted(one.input_ids[one.loss_mask].tolist() for one in kept)
    assert replies == sorted(said(prompt, 30) for prompt in PROMPTS)


@pytest.mark.parametrize("after", [1, N // 2, N - 1])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_what_was_killed_goes_on_to_the_same_bytes(
    after: int, number: signal.Signals, whole: Path, target: Path, url: str, tmp_path: Path
) -> None:
    path = recipe(tmp_path, target, url)
    replies = tmp_path / "eagle/data/replies"
    command = Command("eagle", "data", path)
    assert soon(lambda: len(answered(replies)) >= after)
    command.signal(number)
    done = command.end()
    before = set(answered(replies))
    if number == signal.SIGINT and not (tmp_path / "eagle/data" / WHOLE).exists():
        assert done.code == 130 and f"breakeven eagle data {path}" in done.err
    breakeven("eagle", "data", path).succeeded()
    assert made(path) == made(whole)
    assert before <= set(answered(replies)) and len(answered(replies)) == N


def test_a_second_one_meanwhile_is_refused_and_disturbs_nothing(
    whole: Path, target: Path, url: str, tmp_path: Path
) -> None:
    path = recipe(tmp_path, target, url)
    command = Command("eagle", "data", path)
    assert soon(lambda: len(answered(tmp_path / "eagle/data/replies")) >= 2)
    command.signal(signal.SIGSTOP)
    for more in ((), ("--fresh",), ("--ask-again",)):
        breakeven("eagle", "data", path, *more).refused(2, "another breakeven is at work in")
    command.signal(signal.SIGCONT)
    command.end().succeeded()
    assert made(path) == made(whole)


@pytest.mark.parametrize("kept", [("samples.parquet", "vocabulary.json"), ("samples.parquet",), ()])
@pytest.mark.parametrize("replies", ["whole", "begun", "none"])
def test_a_kill_between_any_two_files_makes_the_same_bytes(
    kept: tuple[str, ...], replies: str, whole: Path, tmp_path: Path
) -> None:
    """The states that a kill leaves behind, made by removing what is written later."""
    path = copied(whole, tmp_path)
    folder = tmp_path / "eagle/data"
    for name in {"stage.json", SAMPLES, VOCABULARY} - set(kept):
        (folder / name).unlink()
    if replies != "whole":
        shutil.rmtree(folder / "replies")
    if replies == "begun":
        (folder / "replies").mkdir()
        (folder / "replies/journal.jsonl").touch()
    breakeven("eagle", "data", path).succeeded()
    assert made(path) == made(whole)


def test_answers_without_their_run_are_not_thrown_away(whole: Path, tmp_path: Path) -> None:
    path = copied(whole, tmp_path)
    folder = tmp_path / "eagle/data"
    (folder / "replies/run.json").unlink()
    breakeven("eagle", "data", path, "--fresh").refused(2, "holds answers", "--ask-again")
    assert (folder / "replies/requests.parquet").exists()
    breakeven("eagle", "data", path, "--ask-again").succeeded()


def test_recorded_replies_need_no_server(whole: Path, target: Path, tmp_path: Path) -> None:
    run = whole.parent / "eagle/data/replies"
    settings = {"regenerate": False, "held_out": 0.0, "draft_vocabulary": 0}
    path = write_recipe(tmp_path, target, [run], **settings)
    values = breakeven("eagle", "data", path, "--json").succeeded().json()
    assert (values["samples"], values["held_out"], values["coverage"]) == (N, 0, 1.0)
    absent = {key for key, value in values.items() if value is None}
    assert absent == set(values["absent"]) == {"replies", "coverage_held_out"}
    breakeven("eagle", "data", path, "--model", "x").succeeded()


def test_another_setting_is_refused_and_fresh_keeps_the_replies(
    whole: Path, target: Path, tmp_path: Path
) -> None:
    path = copied(whole, tmp_path)
    recipe(tmp_path, target, "http://127.0.0.1:9", max_length=24)
    breakeven("eagle", "data", path).refused(2, "max_length = 2048, not 24", "--fresh")
    values = breakeven("eagle", "data", path, "--fresh", "--json").succeeded().json()
    assert values["cut"] == values["samples"] == N
    breakeven("eagle", "data", path, "--ask-again").refused(3, "127.0.0.1:9")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("no [target]", "breakeven eagle init")),
        ('[target]\nmodel = "none"\n[data]\nsources = ["a"]', ("none is no model's folder",)),
    ],
)
def test_a_recipe_that_is_wrong_is_told(text: str, words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text(text)
    breakeven("eagle", "data", "recipe.toml", cwd=tmp_path).refused(2, *words)


def test_a_full_disk_loses_nothing(whole: Path, target: Path, url: str, tmp_path: Path) -> None:
    path = recipe(tmp_path, target, url)
    breakeven("eagle", "data", path, most_file_bytes=20_000).refused(3, f"breakeven eagle data {path}")
    breakeven("eagle", "data", path).succeeded()
    assert made(path) == made(whole)


def test_init_writes_a_recipe_and_never_over_one(tmp_path: Path) -> None:
    out = breakeven("eagle", "init", cwd=tmp_path).succeeded().out
    assert "breakeven eagle data recipe.toml" in out
    text = (tmp_path / "recipe.toml").read_text()
    assert "[target]" in text and "#" in text
    (tmp_path / "recipe.toml").write_text("mine")
    breakeven("eagle", "init", cwd=tmp_path).refused(2, "recipe.toml exists", "--out")
    assert (tmp_path / "recipe.toml").read_text() == "mine"
    breakeven("eagle", "init", "--out", "b.toml", cwd=tmp_path).succeeded()
    assert (tmp_path / "b.toml").read_text() == text
    breakeven("eagle", "init", "--out", "none/b.toml", cwd=tmp_path).refused(3, "cannot write")


@pytest.fixture(scope="module")
def spelling_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, which says small letters alone: text of other bytes has other tokens."""
    letters = [tiny.TOKENS.index(f"<0x{byte:02X}>") for byte in range(ord("a"), ord("z") + 1)]

    def tensors(unsaid: int) -> dict[str, np.ndarray]:
        made = plain(unsaid)
        output = np.zeros_like(made["output.weight"])
        output[letters] = made["output.weight"][letters]
        return {**made, "output.weight": output}

    plain = tiny._tensors
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiny, "_tensors", tensors)
        return tiny.write_tiny(tmp_path_factory.mktemp("letters") / "letters.gguf")


async def test_a_real_llamacpp_answers_and_its_tokenizer_gives_the_ids(
    spelling_model: Path, tmp_path: Path
) -> None:
    target = write_target(tmp_path / "target", len(tiny.TOKENS), eos_token_id=2)

    async with EmbeddedServer() as server:
        url = await server.start(spelling_model, baseline_settings(), "tiny", tmp_path / "engine.log")
        path = recipe(tmp_path, target, url, max_tokens=16, draft_vocabulary=0)
        replies = tmp_path / "eagle/data/replies"
        command = Command("eagle", "data", path)
        assert soon(lambda: len(answered(replies)) >= 2)
        command.signal(signal.SIGKILL)
        command.end()
        values = Command("eagle", "data", path, "--json").end().succeeded().json()
    assert values["samples"] == N and values["replies"]["engine"] == "llama.cpp"
    tokens = load_tokens(replies)
    assert tokens is not None and tokens.header.incomplete is None
    for one in read_samples(tmp_path / "eagle/data" / SAMPLES):
        made = tokens.get(f"{one.id}#0")
        assert made is not None and made.counts_match is True
        assert one.input_ids.tolist() == [*made.prompt.tolist(), *made.output.tolist()]
        assert one.prompt_tokens == len(made.prompt)
