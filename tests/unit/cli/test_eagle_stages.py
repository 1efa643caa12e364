"""`breakeven eagle data`, `states` and `train`: what is typed to go on after an interruption."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest

from breakeven.cli.eagle import STAGES as ALL
from breakeven.cli.eagle import run
from breakeven.cli.eagle_data import data
from breakeven.cli.eagle_export import export
from breakeven.cli.eagle_init import init
from breakeven.cli.eagle_states import states
from breakeven.cli.eagle_train import train
from breakeven.errors import StorageError, UsageError
from tests.unit.eagle.full_disk import fill_disk

RECIPE = '[target]\nmodel = "target"\n[data]\nsources = ["none"]\n'
FILES = ("begun.json", "x")
STAGES = {
    "data": (data, "breakeven.eagle.data.make.make_data", "replies/run.json"),
    "states": (states, "breakeven.cli.eagle_states._make", "shards.jsonl"),
    "train": (train, "breakeven.eagle.train.run.train_head", "checkpoint-000005/x"),
}


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = Path("my recipe.toml")
    path.write_text(RECIPE)
    return path


def interrupted(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def notes(command: click.Command, *words: object) -> list[str]:
    with pytest.raises(click.Abort) as failure:
        command.main([str(word) for word in words], standalone_mode=False)
    return list(getattr(failure.value.__cause__, "__notes__", ()))


@pytest.mark.parametrize(
    ("stage", "words", "said"),
    [
        ("data", (), "what was answered is saved: type  breakeven eagle data 'my recipe.toml'"),
        (
            "data",
            ("--fresh", "--model", "a b", "--api-key-env", "KEY"),
            "what was answered is saved: type  breakeven eagle data 'my recipe.toml' --model 'a b' "
            "--api-key-env KEY",
        ),
        (
            "states",
            ("--api-key-env", "KEY", "--recheck"),
            "what was made is saved: type  breakeven eagle states 'my recipe.toml' --api-key-env KEY",
        ),
        ("train", (), "what was trained is saved: type  breakeven eagle train 'my recipe.toml'"),
    ],
)
def test_the_same_command_goes_on(
    stage: str, words: tuple[str, ...], said: str, recipe: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command, works, sign = STAGES[stage]
    monkeypatch.setenv("KEY", "secret")
    monkeypatch.setattr(works, interrupted)
    assert notes(command, recipe, *words) == []  # nothing is saved yet
    path = Path("eagle") / stage / sign
    path.parent.mkdir(parents=True)
    path.touch()
    (Path("eagle") / stage / "begun.json").write_text("{}")
    kept = [word for word in words if word != "--fresh"]
    assert notes(command, recipe, *kept) == [said]


def test_init_says_what_to_type_and_writes_over_nothing(
    recipe: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init.main(["--out", "other recipe.toml"], standalone_mode=False)
    assert "breakeven eagle data 'other recipe.toml'" in capsys.readouterr().out
    with pytest.raises(UsageError, match="exists: type  --out FILE"):
        init.main(["--out", str(recipe)], standalone_mode=False)
    assert recipe.read_text() == RECIPE


@pytest.mark.parametrize("command", [data, states, train, export])
def test_fresh_removes_nothing_before_all_else_is_right(command: click.Command, recipe: Path) -> None:
    """Here the target's folder is missing, and no stage is whole."""
    made = [Path("eagle") / name / file for name in ("data", "states", "train", "export") for file in FILES]
    for path in made:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('{"settings": {}, "inputs": {}, "began": 1.0}')
    with pytest.raises(UsageError):
        command.main([str(recipe), "--fresh"], standalone_mode=False)
    assert all(path.exists() for path in made)


def test_init_on_a_full_disk_leaves_nothing_in_the_way(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill_disk(monkeypatch, 0)
    with pytest.raises(StorageError, match="the disk is full"):
        init.main(["--out", "other.toml"], standalone_mode=False)
    monkeypatch.undo()
    monkeypatch.chdir(recipe.parent)
    assert not Path("other.toml").exists()


def test_run_does_every_stage_in_turn_and_nothing_anew(recipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str | None, dict[str, Any]]] = []
    for stage in ALL:
        noted = partial(lambda name, **given: done.append((name, given)), stage.name)
        monkeypatch.setattr(stage, "callback", noted)
    run.main([str(recipe)], standalone_mode=False)
    assert [name for name, _ in done] == ["data", "states", "train", "evaluate", "export", "card"]
    for _, given in done:
        assert given.pop("recipe") == recipe
        assert not any(given.values())
