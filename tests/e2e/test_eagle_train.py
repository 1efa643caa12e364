"""`breakeven eagle train` as a user runs it, on a target that has learned something; killed, it goes on."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")

from breakeven.eagle.recipe_file import read_recipe  # noqa: E402
from breakeven.eagle.train.log import read_progress  # noqa: E402
from breakeven.eagle.train.run import train_head  # noqa: E402
from tests.e2e.command import Command, Done, breakeven, soon  # noqa: E402
from tests.e2e.small_recipe import write_data, write_recipe  # noqa: E402
from tests.e2e.small_target import small_target  # noqa: E402

pytestmark = [pytest.mark.eagle, pytest.mark.slow]

CHATS = 250
TRAIN = {
    "steps": 4,
    "loss": "kl",
    "epochs": 4,
    "batch": 8,
    "learning_rate": 2e-3,
    "warmup": 0.05,
    "checkpoint_every": 20,
    "validate_every": 40,
}
PATIENCE_S = 900.0
THREADS = {"OMP_NUM_THREADS": "1"}
"""Two that share cores with others wait for each other, and now and then add up in another order."""


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recipe with data/, in the target's own words, and states/."""
    target = small_target()
    recipe = write_recipe(tmp_path_factory.mktemp("states"), target, train=TRAIN)
    write_data(recipe, CHATS, own=True)
    breakeven("eagle", "states", recipe, "--json").succeeded()
    return recipe


@pytest.fixture(scope="module")
def whole(states: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Done]:
    """A head that was trained without interruption, and what the command said."""
    recipe = beside(states, tmp_path_factory.mktemp("whole"))
    command = Command("eagle", "train", recipe, "--json", env=THREADS)
    return recipe, command.end(PATIENCE_S).succeeded()


@pytest.fixture
def recipe(states: Path, tmp_path: Path) -> Path:
    """The same, before."""
    return beside(states, tmp_path)


def beside(states: Path, folder: Path) -> Path:
    """Another recipe on the same data and states."""
    path = folder / "recipe.toml"
    shutil.copy(states, path)
    stages = read_recipe(path).stage("data").parent
    stages.mkdir()
    for name in ("data", "states"):
        (stages / name).symlink_to(read_recipe(states).stage(name).absolute())
    return path


def folder_of(recipe: Path) -> Path:
    return read_recipe(recipe).stage("train")


def curve(recipe: Path) -> list[dict[str, Any]]:
    lines = read_progress(folder_of(recipe))
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def looks(recipe: Path) -> list[dict[str, Any]]:
    return [line["validation"] for line in read_progress(folder_of(recipe)) if "validation" in line]


def test_acceptance_rises_at_every_position(whole: tuple[Path, Done]) -> None:
    recipe, done = whole
    first, *_, last = looks(recipe)
    print(json.dumps({"before": first, "after": last}, indent=1))
    assert len(looks(recipe)) > 3
    for before, after in zip(first["acceptance"], last["acceptance"], strict=True):
        assert after > (before or 0.0) + 0.1
    said = done.json()
    assert said["acceptance_length"] >= last["acceptance_length"] > first["acceptance_length"] + 0.3
    assert (folder_of(recipe) / "best" / "head.json").is_file()
    assert len(list(folder_of(recipe).glob("checkpoint-*"))) == 2


def test_states_are_what_is_learned_from(whole: tuple[Path, Done], recipe: Path) -> None:
    """A control, whose states are shuffled over the tokens of each sample, accepts less."""
    train_head(read_recipe(recipe), shuffled=True)
    ours, control = looks(whole[0])[-1], looks(recipe)[-1]
    print(json.dumps({"ours": ours, "control": control}, indent=1))
    assert ours["acceptance_length"] > control["acceptance_length"] + 0.1
    assert ours["acceptance"][0] > control["acceptance"][0] + 0.03


@pytest.mark.parametrize("steps", [23, 61])
def test_after_kill_9_the_curve_is_that_of_an_uninterrupted_run(
    steps: int, whole: tuple[Path, Done], recipe: Path
) -> None:
    command = Command("eagle", "train", recipe, env=THREADS)
    assert soon(lambda: done_steps(recipe) >= steps, PATIENCE_S)
    command.signal(signal.SIGKILL)
    command.end()
    assert not (folder_of(recipe) / "stage.json").exists()
    Command("eagle", "train", recipe, env=THREADS).end(PATIENCE_S).succeeded()
    assert curve(recipe) == curve(whole[0])
    for name in ("head.safetensors", "head.json"):
        mine, theirs = (folder_of(one) / "best" / name for one in (recipe, whole[0]))
        assert mine.read_bytes() == theirs.read_bytes()


def test_ctrl_c_saves_and_says_how_to_go_on(recipe: Path) -> None:
    command = Command("eagle", "train", recipe, env=THREADS)
    assert soon(lambda: done_steps(recipe) >= 5, PATIENCE_S)
    command.signal(signal.SIGINT)
    done = command.end()
    assert done.code == 130 and "Traceback" not in done.err
    assert f"breakeven eagle train {recipe}" in done.err.splitlines()[-1]
    (saved,) = folder_of(recipe).glob("checkpoint-*")
    assert int(saved.name.removeprefix("checkpoint-")) >= 5
    assert curve(recipe)[-1]["step"] == int(saved.name.removeprefix("checkpoint-"))


def test_full_disk_loses_nothing(states: Path, recipe: Path) -> None:
    """A file may not grow beyond what progress.jsonl needs, and so no checkpoint is written."""
    command = Command("eagle", "train", recipe, env=THREADS, most_file_bytes=100_000)
    message = command.end(PATIENCE_S).refused(3, "ulimit -f")
    assert str(folder_of(recipe)) in message
    assert not list(folder_of(recipe).glob("*checkpoint*"))


def test_a_second_one_meanwhile_is_refused_and_disturbs_nothing(
    whole: tuple[Path, Done], recipe: Path
) -> None:
    command = Command("eagle", "train", recipe, env=THREADS)
    assert soon(lambda: done_steps(recipe) >= 3, PATIENCE_S)
    command.signal(signal.SIGSTOP)
    for words in (("train",), ("train", "--fresh"), ("states", "--fresh"), ("data", "--fresh")):
        breakeven("eagle", words[0], recipe, *words[1:]).refused(2, "another breakeven is at work in")
    command.signal(signal.SIGCONT)
    command.end(PATIENCE_S).succeeded()
    assert curve(recipe) == curve(whole[0])


def done_steps(recipe: Path) -> int:
    path = folder_of(recipe) / "progress.jsonl"
    return sum(b'"gradient_norm"' in line for line in path.read_bytes().splitlines()) if path.exists() else 0


def test_two_processes_of_torchrun(recipe: Path, whole: tuple[Path, Done]) -> None:
    """Their losses are those of one process; sums are rounded in another order."""
    import subprocess
    import sys

    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "breakeven", "eagle", "train", str(recipe), "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr[-4000:]
    assert json.loads(done.stdout)["steps"] == curve(recipe)[-2]["step"]
    for mine, theirs in list(zip(curve(recipe), curve(whole[0]), strict=True))[:20]:
        mine, theirs = mine.get("validation", mine), theirs.get("validation", theirs)
        assert mine["loss"] == pytest.approx(theirs["loss"], rel=1e-3)
