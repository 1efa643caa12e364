"""The stage: the same shards whatever interrupts it, and nothing begun where data and target do not fit."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
from safetensors.torch import load_file  # noqa: E402

from breakeven.eagle.recipe import Recipe  # noqa: E402
from breakeven.eagle.stage import checksum, start_over  # noqa: E402
from breakeven.eagle.states import loaded, run  # noqa: E402
from breakeven.eagle.states.run import make_states  # noqa: E402
from breakeven.errors import RunFormatError, StorageError, UsageError  # noqa: E402
from tests.unit.eagle.full_disk import fill_disk  # noqa: E402
from tests.unit.eagle.states.tiny import (  # noqa: E402
    HIDDEN,
    LENGTHS,
    VOCAB,
    Counted,
    edit_config,
    make_recipe,
    refused,
    write_data,
    write_model,
)

pytestmark = pytest.mark.eagle


@pytest.fixture
def recipe(model: Path, tmp_path: Path) -> Recipe:
    made = make_recipe(tmp_path, model)
    write_data(made)
    return made


@pytest.fixture(scope="module")
def uninterrupted(model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    made = make_recipe(tmp_path_factory.mktemp("whole"), model)
    write_data(made)
    make_states(made, Counted())
    return kept(made)


def kept(recipe: Recipe) -> dict[str, bytes]:
    """All that is in the folder and does not tell the time."""
    folder = recipe.stage("states")
    return {
        path.name: path.read_bytes()
        for path in folder.iterdir()
        if path.name not in ("begun.json", "stage.json")
    }


def test_a_whole_stage(recipe: Recipe) -> None:
    watch = Counted()
    made = make_states(recipe, watch)
    samples = write_data(recipe)
    folder = recipe.stage("states")
    lines = [json.loads(line) for line in (folder / "shards.jsonl").read_text().splitlines()]
    assert [name for line in lines for name in line["samples"]] == [sample.id for sample in samples]
    for line in lines:
        tensors = load_file(folder / line["shard"])
        assert checksum(folder / line["shard"]) == line["sha256"]
        assert len(tensors) == 3 * len(line["samples"])
        for name in line["samples"]:
            length = len(samples[int(name, 16)].input_ids)
            assert tensors[f"{name}.hidden_states"].shape == (length, 4, HIDDEN)
            assert tensors[f"{name}.top_ids"].shape == (length, 4)
            assert tensors[f"{name}.top_logprobs"].dtype == torch.float32
    assert made.found["tokens"] == sum(LENGTHS) == watch.total == watch.done
    assert made.found["shards"] == len(lines) > 3
    assert made.found["layers"] == [2, 4, 5]
    assert {"hidden": HIDDEN, "vocab": VOCAB, "dtype": "float32"}.items() <= made.found.items()
    on_disk = sum((folder / line["shard"]).stat().st_size for line in lines)
    assert made.found["bytes"] <= on_disk <= made.found["bytes"] + 1000 * len(lines)
    assert set(made.outputs) == {"shards.jsonl", "target.safetensors", "target_config.json"}
    assert set(load_file(folder / "target.safetensors")) == {
        "embed_tokens.weight",
        "norm.weight",
        "lm_head.weight",
    }


def test_what_is_whole_is_not_made_again(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_states(recipe, Counted())
    monkeypatch.setattr(loaded, "Loaded", None)
    assert make_states(recipe, Counted()) == made


class Stop(BaseException):
    """As a kill: nothing catches it."""


@pytest.mark.parametrize("passes", range(6))
def test_an_interrupted_run_ends_with_the_same_bytes(
    passes: int, recipe: Recipe, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    left = 0
    real = loaded.Loaded.passes

    def stopping(self: loaded.Loaded, batch: Sequence[Sequence[int]]) -> Any:
        nonlocal left
        if left == 0:
            raise Stop
        left -= 1
        return real(self, batch)

    monkeypatch.setattr(loaded.Loaded, "passes", stopping)
    stops = 0
    for allowed in (passes, passes, 1000):
        left = allowed
        try:
            make_states(recipe, Counted())
        except Stop:
            stops += 1
    assert stops > 0
    assert kept(recipe) == uninterrupted


@pytest.mark.parametrize("writes", range(20))
def test_a_disk_that_fills_up_anywhere_loses_nothing(
    writes: int, recipe: Recipe, uninterrupted: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch, writes)
    with pytest.raises(StorageError, match="full"):
        make_states(recipe, Counted())
    monkeypatch.undo()
    folder = recipe.stage("states")
    before = {path: path.stat().st_mtime_ns for path in folder.glob("shard-*")}
    listed = (folder / "shards.jsonl").read_bytes() if (folder / "shards.jsonl").exists() else b""
    make_states(recipe, Counted())
    assert kept(recipe) == uninterrupted
    remade = {path.name for path, at in before.items() if path.stat().st_mtime_ns != at}
    assert not any(name.encode() in listed for name in remade)


def test_a_shard_that_was_lost_or_damaged_is_made_again_alone(
    recipe: Recipe, uninterrupted: dict[str, bytes]
) -> None:
    before = make_states(recipe, Counted())
    folder = recipe.stage("states")
    (folder / "shard-00001.safetensors").unlink()
    damaged = folder / "shard-00002.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"\x7f")
    (folder / "target.safetensors").write_bytes(b"no")
    watch = Counted()
    made = make_states(recipe, watch, recheck=True)
    assert 0 < watch.done < sum(LENGTHS)
    assert kept(recipe) == uninterrupted
    assert made.outputs == before.outputs


def test_other_settings_are_refused_until_it_starts_over(recipe: Recipe) -> None:
    make_states(recipe, Counted())
    other = replace(recipe, states=replace(recipe.states, batch=3))
    with pytest.raises(UsageError, match=r"batch = 2, not 3.*--fresh"):
        make_states(other, Counted())
    start_over(recipe.stage("states"))
    assert make_states(other, Counted()).settings["batch"] == 3


def test_another_checkpoint_is_noticed(recipe: Recipe, model: Path, tmp_path: Path) -> None:
    make_states(recipe, Counted())
    other = write_model(tmp_path / "other", tie_word_embeddings=True)
    with pytest.raises(UsageError, match="was begun with"):
        make_states(replace(recipe, target=replace(recipe.target, model=str(other))), Counted())


def test_starting_over_removes_no_folder_of_others(tmp_path: Path) -> None:
    start_over(tmp_path / "none")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(UsageError, match="no stage's folder"):
        start_over(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_without_data(model: Path, tmp_path: Path) -> None:
    refused(make_recipe(tmp_path, model), "breakeven eagle data RECIPE")


def test_damaged_data(recipe: Recipe) -> None:
    (recipe.stage("data") / "samples.parquet").write_bytes(b"PAR1")
    refused(recipe, r"samples\.parquet", RunFormatError)


def test_a_token_that_the_target_lacks(recipe: Recipe) -> None:
    start_over(recipe.stage("data"))
    write_data(recipe, vocab=VOCAB + 40)
    refused(recipe, f"has {VOCAB} tokens: .*another model")


def test_a_vocabulary_of_another_size(recipe: Recipe) -> None:
    path = recipe.stage("data") / "vocabulary.json"
    path.write_text(json.dumps({"target_size": 99, "draft_ids": [1, 98], "coverage": 1.0}))
    refused(recipe, "target of 99 tokens")


def test_a_sample_longer_than_the_target_reaches(recipe: Recipe) -> None:
    start_over(recipe.stage("data"))
    write_data(recipe, lengths=(5, 129))
    refused(recipe, "max_length = 128")


@pytest.mark.parametrize("layers", [(2, 4, 9), (0, 1, 2), (1, 2), (3, 2, 4)])
def test_layers_that_there_are_not(layers: tuple[int, ...], recipe: Recipe) -> None:
    refused(replace(recipe, states=replace(recipe.states, layers=layers)), "three rising numbers from 1 to 8")


def test_a_target_of_too_few_layers(tmp_path: Path) -> None:
    recipe = make_recipe(tmp_path, write_model(tmp_path / "flat", num_hidden_layers=5))
    write_data(recipe)
    refused(recipe, r"a target of 5 layers.*layers = \[1, 2, 3\]")
    chosen = replace(recipe, states=replace(recipe.states, layers=(1, 2, 3)))
    assert make_states(chosen, Counted()).found["layers"] == [1, 2, 3]


def test_more_top_tokens_than_there_are(recipe: Recipe) -> None:
    refused(replace(recipe, states=replace(recipe.states, top=VOCAB + 1)), "top = 65")


def test_a_hidden_size_that_the_weights_do_not_have(recipe: Recipe, model: Path, tmp_path: Path) -> None:
    other = Path(shutil.copytree(model, tmp_path / "other"))
    edit_config(other, hidden_size=HIDDEN * 2)
    refused(replace(recipe, target=replace(recipe.target, model=str(other))), "different models")


def test_no_room_for_all_of_it(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(recipe.path.parent)
    monkeypatch.setattr(run.shutil, "disk_usage", lambda _: usage._replace(free=1000))
    refused(recipe, "take .* kB, and .* has 1.0 kB free", StorageError)


def test_states_that_overflow(recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    real = loaded.Loaded.passes

    def overflow(self: loaded.Loaded, batch: Sequence[Sequence[int]]) -> Any:
        found = real(self, batch)
        with torch.inference_mode():
            found[0].hidden_states[-1, 1, 3] = torch.inf
        return found

    monkeypatch.setattr(loaded.Loaded, "check", lambda *_: None)
    monkeypatch.setattr(loaded.Loaded, "passes", overflow)
    refused(recipe, "not finite in float32")


def test_a_server_is_needed_for_states_from_one(recipe: Recipe) -> None:
    pytest.importorskip("speculators")
    asked = replace(recipe, states=replace(recipe.states, source="vllm"))
    refused(replace(asked, target=replace(recipe.target, url=None)), "\\[target\\] has none")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
def test_another_target_than_the_data_s_is_refused(
    file: str, recipe: Recipe, model: Path, tmp_path: Path
) -> None:
    """Of as many tokens, and spelled otherwise."""
    first, other = (Path(shutil.copytree(model, tmp_path / name)) for name in ("first", "other"))
    for folder in (first, other):
        (folder / "tokenizer.json").write_text(json.dumps({"of": "first"}))
    start_over(recipe.stage("data"))
    made_with = {f"target/{name}": checksum(first / name) for name in ("config.json", "tokenizer.json")}
    write_data(recipe, inputs=made_with)
    (other / file).write_text((other / file).read_text() + "\n")
    refused(of_target(recipe, other), rf"other/{file} is not the one that .*breakeven eagle data RECIPE")
    assert make_states(of_target(recipe, first), Counted()).stage == "states"


def of_target(recipe: Recipe, folder: Path) -> Recipe:
    return replace(recipe, target=replace(recipe.target, model=str(folder)))


def test_fresh_makes_all_anew(recipe: Recipe, uninterrupted: dict[str, bytes]) -> None:
    before = make_states(recipe, Counted())
    watch = Counted()
    made = make_states(recipe, watch, fresh=True)
    assert made.began > before.began and watch.done == sum(LENGTHS)
    assert kept(recipe) == uninterrupted


def test_fresh_removes_nothing_where_the_target_does_not_fit(recipe: Recipe, tmp_path: Path) -> None:
    make_states(recipe, Counted())
    before = kept(recipe)
    for wrong in (tmp_path / "none", write_model(tmp_path / "small", vocab_size=VOCAB // 2)):
        with pytest.raises(UsageError):
            make_states(of_target(recipe, wrong), Counted(), fresh=True)
        assert kept(recipe) == before
