"""The stage, on small heads with random weights."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")
from safetensors.torch import load_file, save_file  # noqa: E402

from breakeven.eagle.export import run as module  # noqa: E402
from breakeven.eagle.export.check import check_folder  # noqa: E402
from breakeven.eagle.export.run import FORMATS, run_export  # noqa: E402
from breakeven.eagle.export.source import source_of  # noqa: E402
from breakeven.eagle.head_file import load_head  # noqa: E402
from breakeven.eagle.recipe import ExportSettings, Recipe, Target  # noqa: E402
from breakeven.eagle.stage import checksum  # noqa: E402
from breakeven.errors import BreakevenError, RunFormatError, StorageError, UsageError  # noqa: E402
from tests.unit.eagle.export.heads import DRAFT_IDS, TARGET, trained  # noqa: E402
from tests.unit.eagle.full_disk import fill_disk  # noqa: E402

pytestmark = pytest.mark.eagle
ALL_IDS = tuple(range(64))


def exported(recipe: Recipe) -> Any:
    return run_export(recipe, lambda words: None)


@pytest.mark.parametrize("weight_type", ["bfloat16", "float16", "float32"])
@pytest.mark.parametrize(
    ("style", "draft_ids"), [("eagle3", DRAFT_IDS), ("eagle3.1", DRAFT_IDS), ("eagle3", ALL_IDS)]
)
def test_both_folders_hold_the_head(tmp_path: Path, style: str, draft_ids: tuple[int, ...], weight_type: str):
    recipe = trained(tmp_path, style=style, draft_ids=draft_ids, weight_type=weight_type)
    made = exported(recipe)
    head = load_file(recipe.stage("train") / "best" / "head.safetensors")
    for engine, layer, extra in (
        ("vllm", "layers.0.", {"embed_tokens.weight"}),
        ("sglang", "midlayer.", set()),
    ):
        folder = recipe.stage("export") / engine
        found = load_file(folder / "model.safetensors")
        assert set(found) == {name.replace("layers.0.", layer) for name in head} | extra
        for name, tensor in head.items():
            one = found[name.replace("layers.0.", layer)]
            kind = getattr(torch, weight_type) if tensor.is_floating_point() else tensor.dtype
            assert one.dtype == kind and one.equal(tensor.to(kind)), name
        checked = made.found["engines"][engine]["checked"]
        assert checked["tensors"] == len(found)
        assert checked["parameters"] == sum(one.numel() for one in head.values() if one.is_floating_point())
        assert checked["logits"] == 3 * 16 * len(draft_ids)
        assert (checked["same_choice"] == 1) or weight_type != "float32"
        assert made.outputs[f"{engine}/model.safetensors"] == checksum(folder / "model.safetensors")


def test_the_draft_vocabulary_is_mapped(tmp_path: Path):
    recipe = trained(tmp_path)
    exported(recipe)
    for engine in FORMATS:
        found = load_file(recipe.stage("export") / engine / "model.safetensors")
        assert (found["d2t"] + torch.arange(len(DRAFT_IDS))).tolist() == list(DRAFT_IDS)
        assert found["t2d"].nonzero()[:, 0].tolist() == list(DRAFT_IDS)


@pytest.mark.parametrize("style", ["eagle3", "eagle3.1"])
def test_evaluate_drafts_with_both_as_with_the_trained_head(tmp_path: Path, style: str):
    recipe = trained(tmp_path, style=style, weight_type="float32")
    exported(recipe)
    embedding = load_file(recipe.stage("states") / "target.safetensors")["embed_tokens.weight"]
    tokens, states = torch.arange(12) * 5, torch.randn(12, 3, 32)
    drafts = []
    for folder in ("train/best", "export/vllm", "export/sglang"):
        head = load_head(recipe.stage(folder), (2, 4, 5), 8, embedding, torch.device("cpu"))
        entries = head.entries(tokens, states)
        drafts.append(torch.stack(list(head.chains(entries, torch.arange(12), 4))))
    assert drafts[0].equal(drafts[1]) and drafts[0].equal(drafts[2])


def test_the_library_loads_the_folder_of_vllm(tmp_path: Path):
    from speculators.models.eagle3 import Eagle3SpeculatorConfig

    recipe = trained(tmp_path, style="eagle3.1")
    exported(recipe)
    config = Eagle3SpeculatorConfig.from_pretrained(str(recipe.stage("export") / "vllm"))
    assert config.fc_norm and config.norm_output and not config.norm_before_residual
    assert config.transformer_layer_config.rope_parameters["rope_theta"] == TARGET["rope_theta"]
    assert config.speculators_config.verifier.name_or_path == "org/target"


def test_a_server_that_is_another_user_reads_them(tmp_path: Path):
    recipe = trained(tmp_path)
    exported(recipe)
    plain = tmp_path / "plain"
    plain.write_text("")
    for file in recipe.stage("export").rglob("*.*"):
        assert file.stat().st_mode == plain.stat().st_mode


def test_what_is_whole_is_not_done_again(tmp_path: Path):
    recipe = trained(tmp_path)
    first = exported(recipe)
    file = recipe.stage("export") / "vllm" / "model.safetensors"
    before = file.stat().st_mtime_ns
    assert exported(recipe) == first
    assert file.stat().st_mtime_ns == before


def test_other_engines_need_a_fresh_export(tmp_path: Path):
    recipe = trained(tmp_path)
    exported(recipe)
    with pytest.raises(UsageError, match=r"engines.*--fresh"):
        exported(replace(recipe, export=ExportSettings(("vllm",))))


def test_layers_of_the_recipe_reach_both(tmp_path: Path):
    recipe = trained(tmp_path, layers=(1, 3, 8))
    exported(recipe)
    ids = "eagle_aux_hidden_state_layer_ids"
    vllm, sglang = (
        json.loads((recipe.stage("export") / engine / "config.json").read_text())
        for engine in ("vllm", "sglang")
    )
    assert (vllm[ids], sglang["eagle_config"][ids]) == ([1, 3, 8], [0, 2, 7])


def test_an_engine_that_cannot_serve_it_is_refused_before_anything_is_written(tmp_path: Path):
    target = {**TARGET, "model_type": "deepseek_v3"}
    recipe = trained(tmp_path, layers=(1, 3, 8), target=target)
    with pytest.raises(UsageError, match="SGLang cannot be told"):
        exported(recipe)
    assert not recipe.stage("export").exists()
    assert exported(replace(recipe, export=ExportSettings(("vllm",)))).found["engines"]


@pytest.mark.parametrize(
    "stage_and_file", ["train/best/head.safetensors", "states/target.safetensors", "train/best/head.json"]
)
def test_a_file_that_changed_is_refused(tmp_path: Path, stage_and_file: str):
    recipe = trained(tmp_path)
    file = recipe.stage(stage_and_file)
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)
    with pytest.raises(RunFormatError, match="restore it from a copy, or type  breakeven eagle"):
        exported(recipe)


def test_an_earlier_stage_that_is_not_whole_is_named(tmp_path: Path):
    recipe = trained(tmp_path)
    (recipe.stage("train") / "stage.json").unlink()
    with pytest.raises(UsageError, match="breakeven eagle train RECIPE  first"):
        exported(recipe)


def spoilt(recipe: Recipe, engine: str, change: Any) -> None:
    """A folder whose tensors were changed after it was written."""
    file = recipe.stage("export") / engine / "model.safetensors"
    tensors = load_file(file)
    change(tensors)
    save_file({name: one.contiguous() for name, one in tensors.items()}, file)


def swap_rows(tensors: Any) -> None:
    tensors["fc.weight"] = tensors["fc.weight"].flip(0)


def shift_map(tensors: Any) -> None:
    tensors["d2t"] = tensors["d2t"].float()


def forget_norm(tensors: Any) -> None:
    del tensors["norm.weight"]


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize(
    ("change", "says"),
    [(swap_rows, "drafts otherwise"), (shift_map, "d2t is float32"), (forget_norm, "norm.weight is missing")],
)
def test_reading_again_finds_what_went_wrong(tmp_path: Path, engine: str, change: Any, says: str):
    recipe = trained(tmp_path)
    exported(recipe)
    spoilt(recipe, engine, change)
    source = source_of(recipe)
    with pytest.raises(BreakevenError, match=says):
        check_folder(recipe.stage("export") / engine, FORMATS[engine], source, source.tensors())


@pytest.mark.parametrize(
    ("engine", "field", "value"),
    [
        ("vllm", "norm_output", True),
        ("vllm", "eagle_aux_hidden_state_layer_ids", [1, 3, 4]),
        ("vllm", "norm_before_residual", True),
        ("sglang", "rope_theta", 10_000.0),
        ("sglang", "eagle_config", {"eagle_aux_hidden_state_layer_ids": [2, 4, 5]}),
    ],
)
def test_reading_again_finds_a_configuration_of_another_head(
    tmp_path: Path, engine: str, field: str, value: Any
):
    recipe = trained(tmp_path)
    exported(recipe)
    file = recipe.stage("export") / engine / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), field: value}))
    source = source_of(recipe)
    with pytest.raises(BreakevenError, match="do not serve it"):
        check_folder(file.parent, FORMATS[engine], source, source.tensors())


def test_a_head_that_overflows_is_refused(tmp_path: Path):
    recipe = trained(tmp_path, weight_type="float16")
    file = recipe.stage("train") / "best" / "head.safetensors"
    tensors = load_file(file)
    tensors["norm.weight"] *= 1e6
    save_file(tensors, file)
    source = source_of(recipe)
    with pytest.raises(UsageError, match="overflows in float16"):
        run = FORMATS["vllm"]
        from breakeven.eagle.export.folder import write_folder

        write_folder(tmp_path / "out", run, source, source.tensors(), 3)
        check_folder(tmp_path / "out", run, source, source.tensors())


class Stop(BaseException):
    """As a kill: nothing catches it."""


def files(recipe: Recipe) -> dict[str, bytes]:
    folder = recipe.stage("export")
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.glob("*/*")}


@pytest.mark.parametrize("at", ["write_folder", "check_folder"])
@pytest.mark.parametrize("nth", [0, 1])
def test_what_was_killed_ends_with_the_same_bytes(
    at: str, nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    whole, cut = trained(tmp_path / "whole"), trained(tmp_path / "cut")
    exported(whole)
    calls, real = iter(range(9)), getattr(module, at)

    def killed(*given: Any) -> Any:
        if next(calls) == nth:
            raise Stop
        return real(*given)

    monkeypatch.setattr(module, at, killed)
    with pytest.raises(Stop):
        exported(cut)
    monkeypatch.undo()
    assert not (cut.stage("export") / "stage.json").exists()
    exported(cut)
    assert files(cut) == files(whole)


@pytest.mark.parametrize("nth", range(6))
def test_a_full_disk_is_told_and_loses_nothing(nth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    whole, cut = trained(tmp_path / "whole"), trained(tmp_path / "cut")
    exported(whole)
    fill_disk(monkeypatch, nth)
    with pytest.raises(StorageError, match="the disk is full"):
        exported(cut)
    monkeypatch.undo()
    exported(cut)
    assert files(cut) == files(whole)


def test_fresh_removes_nothing_where_the_head_cannot_be_exported(tmp_path: Path):
    recipe = trained(tmp_path)
    exported(recipe)
    before = files(recipe)
    (recipe.stage("train") / "best" / "head.json").write_text("{}")
    with pytest.raises(RunFormatError):
        run_export(recipe, lambda words: None, fresh=True)
    assert files(recipe) == before


def test_another_target_than_the_states_are_of_is_refused(tmp_path: Path):
    recipe = trained(tmp_path, inputs={"target/config.json": "0" * 64})
    assert exported(replace(recipe, target=Target("org/elsewhere"))).found["target"] == "org/elsewhere"
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text("{}")
    named = replace(recipe, target=Target("model"))
    with pytest.raises(UsageError, match=r"model/config\.json is not the one that .*states"):
        run_export(named, lambda words: None, fresh=True)


def test_a_recipe_that_was_edited_since_is_refused(tmp_path: Path):
    recipe = trained(tmp_path)
    edited = replace(recipe, train=replace(recipe.train, style="eagle3.1"))
    with pytest.raises(UsageError, match=r"style = 'eagle3', and .* says 'eagle3\.1' by now"):
        exported(edited)


def test_a_head_that_was_trained_again_needs_a_fresh_export(tmp_path: Path):
    recipe = trained(tmp_path)
    exported(recipe)
    shutil.rmtree(recipe.stage("states"))
    shutil.rmtree(recipe.stage("train"))
    trained(tmp_path, draft_ids=DRAFT_IDS[1:])
    with pytest.raises(UsageError, match=r"was begun with another train/best/head.*--fresh"):
        exported(recipe)


def test_a_second_one_meanwhile_is_refused(tmp_path: Path):
    recipe, told = trained(tmp_path), []

    def say(words: str) -> None:
        told.append(words)
        with pytest.raises(UsageError, match="another breakeven is at work"):
            run_export(recipe, print, fresh=True)

    assert run_export(recipe, say).found["engines"] and told
