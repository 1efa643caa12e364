from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from breakeven.cli.eagle_card import card
from breakeven.cli.eagle_export import export
from breakeven.errors import UsageError

RECIPE = """
[target]
model = "org/target"

[data]
sources = ["runs/monday"]

[evaluate]
k = 3
"""


def run(command: object, *words: object) -> Result:
    return CliRunner().invoke(
        command,
        [str(word) for word in words],
        catch_exceptions=False,
        env={"COLUMNS": "200"},  # type: ignore[arg-type]
    )


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE)
    return path


def test_a_stage_that_is_missing_is_named(recipe: Path):
    with pytest.raises(UsageError, match="type  breakeven eagle states RECIPE  first"):
        run(export, recipe)
    with pytest.raises(UsageError, match="type  breakeven eagle export RECIPE  first"):
        run(card, recipe)


@pytest.fixture
def trained(recipe: Path) -> Path:
    pytest.importorskip("torch")
    pytest.importorskip("speculators")
    from tests.unit.eagle.export.heads import trained as make

    make(recipe.parent)
    return recipe


@pytest.mark.eagle
def test_the_output_ends_with_what_to_type(trained: Path):
    done = run(export, trained)
    folder = trained.parent.resolve() / "eagle" / "export"
    trial = "breakeven trial --server systemd:UNIT --method eagle3 --draft"
    assert f"{trial} {folder / 'vllm'} --k 3" in done.stdout
    *_, flags, last = done.stdout.splitlines()
    assert f"--speculative-draft-model-path {folder / 'sglang'}" in flags
    assert last == f"Next: breakeven eagle card {trained}"
    assert "read again: all 16 tensors fit" in done.stdout
    assert "Traceback" not in done.output


@pytest.mark.eagle
def test_json_is_one_object(trained: Path):
    said = json.loads(run(export, trained, "--json").stdout)
    assert set(said["engines"]) == {"vllm", "sglang"}
    vllm = said["engines"]["vllm"]
    assert json.loads(vllm["flags"].split("'")[1])["model"] == vllm["folder"]
    assert vllm["weight_type"] == "bfloat16" and vllm["notes"]
    assert vllm["trial"].endswith("--k 3")


@pytest.mark.eagle
def test_fresh_begins_anew_and_leaves_the_rest(trained: Path):
    run(export, trained)
    stray = trained.parent / "eagle" / "export" / "stray"
    stray.write_text("x")
    run(export, trained, "--fresh", "--json")
    assert not stray.exists()
    assert (trained.parent / "eagle" / "train" / "best" / "head.json").exists()


@pytest.mark.eagle
def test_the_card_stands_beside_both(trained: Path):
    run(export, trained)
    said = json.loads(run(card, trained, "--json").stdout)
    assert [Path(path).parent.name for path in said["cards"]] == ["vllm", "sglang"]
    assert all(Path(path).is_file() for path in said["cards"])
    assert run(card, trained).stdout.splitlines() == said["cards"]
