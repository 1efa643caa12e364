"""`breakeven eagle evaluate`: its report, its JSON, and what it refuses before it drafts."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from breakeven.cli.eagle_evaluate import evaluate
from breakeven.errors import UsageError

RECIPE = '[target]\nmodel = "target"\n[data]\nsources = ["none"]\n'


def ran(*words: object) -> Result:
    return CliRunner().invoke(evaluate, list(map(str, words)), catch_exceptions=False)


def test_a_recipe_that_is_none_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match=r"name a recipe\.toml"):
        ran(tmp_path / "recipe.toml")


@pytest.mark.eagle
def test_stages_that_are_not_there_are_asked_for(tmp_path: Path):
    pytest.importorskip("torch")
    (tmp_path / "recipe.toml").write_text(RECIPE)
    with pytest.raises(UsageError, match="breakeven eagle train RECIPE  first"):
        ran(tmp_path / "recipe.toml")
    assert not (tmp_path / "eagle" / "evaluation").exists()


@pytest.mark.eagle
def test_report_and_json_say_the_same(tmp_path: Path):
    pytest.importorskip("torch")
    from tests.unit.eagle.evaluate.stages import write_stages

    recipe = write_stages(tmp_path).path
    told = ran(recipe)
    assert told.exit_code == 0
    body = json.loads(ran(recipe, "--json").stdout)
    assert set(body) >= {
        "k",
        "chained",
        "teacher_forced",
        "by_category",
        "drafters",
        "combined",
        "definitions",
    }
    length = body["chained"]["acceptance_length"]["estimate"]
    assert f"acceptance length {length:.2f}" in told.stdout
    assert "At k = 3" in told.stdout and "in hindsight" in told.stdout
    assert body["combined"]["hindsight"] is True
    rates = [f"{one['estimate']:.3f}" for one in body["chained"]["accepted_by_position"]]
    assert f"--per-position {','.join(rates)}" in told.stdout
    assert f"Next: breakeven eagle export {recipe}" in told.stdout
    (tmp_path / "eagle" / "evaluation" / "evaluation.json").unlink()
    assert ran(recipe, "--fresh").exit_code == 0
    assert (tmp_path / "eagle" / "evaluation" / "evaluation.json").exists()


@pytest.mark.parametrize(
    ("head", "command"),
    [
        (None, "breakeven eagle evaluate 'my recipe.toml'"),
        (Path("its head"), "breakeven eagle evaluate 'my recipe.toml' --head 'its head'"),
    ],
)
def test_what_goes_on_after_an_interruption_names_the_same_head(
    head: Path | None, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    Path("my recipe.toml").write_text(RECIPE)
    Path("eagle/evaluation").mkdir(parents=True)
    Path("eagle/evaluation/replies.jsonl").touch()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("breakeven.eagle.evaluate.run.evaluate", interrupted)
    words = ["my recipe.toml", *(() if head is None else ("--head", str(head)))]
    with pytest.raises(click.Abort) as failure:
        evaluate.main(words, standalone_mode=False)
    cause = failure.value.__cause__
    assert cause is not None
    assert cause.__notes__ == [f"what was drafted is saved: type  {command}"]
