from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from breakeven.eagle.card import FILE, write_cards
from breakeven.eagle.evaluate import run as evaluate
from breakeven.eagle.recipe import DataSettings, Recipe, Target
from breakeven.eagle.stage import Stage
from breakeven.errors import RunFormatError, UsageError

CHECKED = {
    "tensors": 15,
    "parameters": 1_234_567,
    "n_bytes": 2_500_000,
    "weight_type": "bfloat16",
    "logits": 100,
    "same_choice": 0.96,
}


def interval(estimate: float) -> dict[str, float]:
    return {"estimate": estimate, "low": estimate - 0.01, "high": estimate + 0.01}


def part(length: float) -> dict[str, Any]:
    chained = {
        "accepted_by_position": [interval(0.61), interval(0.34), None],
        "conditional_by_position": [interval(0.61), interval(0.56), None],
        "acceptance_length": interval(length),
        "tokens_per_step": interval(length - 0.1),
    }
    return {"replies": 40, "output_tokens": 9_000, "chained": chained}


EVALUATION: dict[str, Any] = {
    "k": 3,
    "reply_temperature": 0.0,
    **part(2.25),
    "by_category": {"code": part(2.75), "chat | odd": part(1.75)},
    "drafters": [
        {"drafter": "recorded", "settings": {"source": "acc_eagle3"}, "tokens_per_step": 2.15},
        {"drafter": "vllm-ngram", "settings": {"k": 3}, "tokens_per_step": 1.31},
    ],
    "warnings": ["few replies"],
    "definitions": {"acceptance_length": "1 + accepted tokens / drafts", "combined": "not shown"},
}


def stage(recipe: Recipe, folder: str, name: str, settings: Any, found: Any, **inputs: str) -> Stage:
    made = Stage(recipe.stage(folder), name, settings, inputs)
    file = made.folder / "best" / "head.safetensors"
    file.parent.mkdir()
    file.write_text(name)
    made.finish([file], found)
    return made


def made(folder: Path, *, evaluated: Any = EVALUATION, model: str = "org/target", **train: Any) -> Recipe:
    recipe = Recipe(folder / "recipe.toml", Target(model), DataSettings(("runs/monday",)))
    sources = {"sources": ["runs/monday"], "url": "http://secret.host/v1", "max_length": 2048}
    stage(recipe, "data", "data", sources, {"samples": 1_000, "coverage": 0.987, "left_out": {}})
    stage(recipe, "states", "states", {"dtype": "bfloat16"}, {"layers": [2, 18, 33]})
    stage(recipe, "train", "train", {"style": "eagle3.1", **train}, {"loss": 1.25, "steps": 400})
    head = orjson.loads((recipe.stage("train") / "stage.json").read_bytes())["outputs"][
        "best/head.safetensors"
    ]
    engines = {name: {"checked": CHECKED, "notes": [f"{name} takes it"]} for name in ("vllm", "sglang")}
    exported = {"target": "/home/me/models/x", "k": 3, "engines": engines}
    stage(recipe, "export", "export", {"k": 3}, exported, **{"train/best/head.safetensors": head})
    for name in engines:
        (recipe.stage("export") / name).mkdir()
    if evaluated is not None:
        done = stage(recipe, evaluate.FOLDER, "evaluate", {"k": 3}, {"replies": 40}, head=head)
        (done.folder / evaluate.FILE).write_bytes(orjson.dumps(evaluated))
    return recipe


def card(recipe: Recipe, engine: str = "vllm") -> str:
    write_cards(recipe)
    return (recipe.stage("export") / engine / FILE).read_text()


def test_one_card_for_each_engine(tmp_path: Path):
    recipe = made(tmp_path)
    assert write_cards(recipe) == [recipe.stage("export") / name / FILE for name in ("vllm", "sglang")]
    vllm, sglang = card(recipe), card(recipe, "sglang")
    assert '--speculative-config \'{"method":"eagle3","model":"FOLDER","num_speculative_tokens":3}\'' in vllm
    assert "--speculative-algorithm EAGLE3" in sglang
    assert "library_name: speculators" in vllm and "library_name" not in sglang
    assert "- sglang takes it" in sglang


def test_figures_are_those_of_the_evaluation(tmp_path: Path):
    text = card(made(tmp_path))
    assert "Acceptance length **2.25 [2.24 to 2.26]** with drafts of 3 tokens, on 40 held-out replies" in text
    assert "| 1 | 61.0 % \\[60.0 % to 62.0 %\\] |" in text
    assert "| 3 | – | – |" in text
    assert "| code | 40 | 2.75 \\[2.74 to 2.76\\] |" in text
    assert "| vllm-ngram (k 3) | 1.31 |" in text
    assert "- few replies" in text
    assert "accepted tokens / drafts" in text and "not shown" not in text


def test_where_it_comes_from(tmp_path: Path):
    text = card(made(tmp_path))
    assert "| data | sources runs/monday; max\\_length 2,048 | samples 1,000; coverage 0.987 |" in text
    assert "| train | style eagle3.1 | loss 1.25; steps 400 |" in text
    assert "| train/best/head.safetensors | `" in text
    assert "\nVersions: " in text


def test_what_was_not_measured_is_said(tmp_path: Path):
    text = card(made(tmp_path))
    unmeasured = text.partition("## What was not measured")[2].partition("## ")[0]
    assert "- Speed." in unmeasured
    assert "- Acceptance on other traffic" in unmeasured
    assert "- Acceptance in bfloat16" in unmeasured and "96.0 %" in unmeasured
    assert "- vLLM itself" in unmeasured
    assert "beyond 2,048 tokens" in unmeasured
    assert "license" in unmeasured


def test_without_an_evaluation_there_is_no_figure(tmp_path: Path):
    text = card(made(tmp_path, evaluated=None))
    assert "Not evaluated" in text
    assert "was not evaluated on held-out prompts" in text
    assert "Acceptance length" not in text


def test_an_evaluation_of_another_head_is_not_shown(tmp_path: Path):
    recipe = made(tmp_path)
    file = recipe.stage(evaluate.FOLDER) / "stage.json"
    said = orjson.loads(file.read_bytes())
    file.write_bytes(orjson.dumps({**said, "inputs": {"head": "0" * 64}}))
    assert "Not evaluated" in card(recipe)


def test_the_target_by_its_name(tmp_path: Path):
    assert "\nbase_model: org/target\n" in card(made(tmp_path))


def test_no_path_and_no_url_of_this_machine(tmp_path: Path):
    (tmp_path / "models" / "mine").mkdir(parents=True)
    text = card(made(tmp_path, model=str(tmp_path / "models" / "mine")))
    assert "# EAGLE-3 draft head for mine\n" in text
    assert "base_model" not in text
    assert str(tmp_path) not in text and "/home/me" not in text and "secret.host" not in text


def test_a_control_is_called_one(tmp_path: Path):
    assert "It is a control" in card(made(tmp_path, shuffled=True))
    assert "It is a control" not in card(made(tmp_path / "other", shuffled=False))


def test_what_others_wrote_is_no_markup(tmp_path: Path):
    odd = {
        **EVALUATION,
        "by_category": {"a|b\n# <b>x</b>\x1b[31m": part(2.0)},
        "warnings": ["hf_" + "a" * 30],
    }
    text = card(made(tmp_path, evaluated=odd))
    assert "| a\\|b \\# \\<b\\>x\\</b\\> \\[31m | 40 |" in text
    assert "\x1b" not in text
    assert "hf_aaa" not in text and "hf\\_aaa" not in text


def test_before_an_export(tmp_path: Path):
    recipe = Recipe(tmp_path / "recipe.toml", Target("org/target"), DataSettings(("runs/monday",)))
    with pytest.raises(UsageError, match="breakeven eagle export RECIPE  first"):
        write_cards(recipe)


def test_a_damaged_evaluation_is_named(tmp_path: Path):
    recipe = made(tmp_path)
    (recipe.stage(evaluate.FOLDER) / evaluate.FILE).write_text("{")
    with pytest.raises(RunFormatError, match="breakeven eagle evaluate RECIPE --fresh"):
        write_cards(recipe)


def test_a_card_is_written_anew(tmp_path: Path):
    recipe = made(tmp_path)
    first = card(recipe)
    assert card(recipe) == first
    assert card(replace(recipe, target=Target("org/other"))) != first


def test_a_head_that_was_trained_again_is_not_told_of_an_older_export(tmp_path: Path):
    recipe = made(tmp_path)
    before = card(recipe)
    path = recipe.stage("train") / "stage.json"
    said = orjson.loads(path.read_bytes())
    path.write_bytes(orjson.dumps({**said, "outputs": {"best/head.safetensors": "0" * 64}}))
    with pytest.raises(UsageError, match=r"holds another head than .*breakeven eagle export RECIPE --fresh"):
        write_cards(recipe)
    assert (recipe.stage("export") / "vllm" / FILE).read_text() == before
