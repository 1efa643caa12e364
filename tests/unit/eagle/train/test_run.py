"""The stage as a whole on a made-up target: it learns, stops, goes on, and comes out the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from breakeven.eagle.data.samples import SAMPLES, read_samples, write_samples
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import read_made
from breakeven.eagle.train.log import read_progress
from breakeven.eagle.train.records import Step
from breakeven.eagle.train.run import train_head
from breakeven.eagle.train.watch import Watch
from breakeven.errors import RunFormatError, StorageError, UsageError
from tests.unit.eagle.train.tiny import TRAIN, tiny_recipe

torch = pytest.importorskip("torch")
pytest.importorskip("speculators")
pytestmark = pytest.mark.eagle


LONG = (
    TRAIN.replace("epochs = 2", "epochs = 12")
    .replace("3e-3", "1e-2")
    .replace("validate_every = 3", "validate_every = 9")
)


class Ends(Watch):
    """Ctrl-C, or an error, once a step is done."""

    def __init__(self, after: int, error: Exception | None = None) -> None:
        self._after, self._error = after, error

    def stepped(self, step: Step) -> None:
        if step.step == self._after:
            if self._error is not None:
                raise self._error
            os.kill(os.getpid(), signal.SIGINT)


def curve(recipe: Recipe) -> list[dict[str, Any]]:
    """progress.jsonl without what no two runs share."""
    lines = read_progress(recipe.stage("train"))
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]


def found(recipe: Recipe) -> dict[str, Any]:
    made = read_made(recipe.stage("train"))
    assert made is not None
    return {**made.found, "seconds": None}


def best(recipe: Recipe) -> bytes:
    return (recipe.stage("train") / "best" / "head.safetensors").read_bytes()


def test_learns(tmp_path: Path):
    recipe = tiny_recipe(tmp_path, samples=48, train=LONG)
    made = train_head(recipe)
    looks = [line["validation"] for line in curve(recipe) if "validation" in line]
    assert looks[-1]["loss"] < 0.5 * looks[0]["loss"]
    assert looks[-1]["acceptance"][0] > looks[0]["acceptance"][0] + 0.2
    assert made.found["acceptance_length"] == max(one["acceptance_length"] for one in looks)
    assert made.found["k"] == 3 and made.found["steps"] == 12 * 9


def test_same_seed_same_bytes(tmp_path: Path):
    recipes = [tiny_recipe(tmp_path / name) for name in ("one", "other")]
    for recipe in recipes:
        train_head(recipe)
    assert curve(recipes[0]) == curve(recipes[1])
    assert best(recipes[0]) == best(recipes[1])
    other = tiny_recipe(tmp_path / "third", train=TRAIN + "seed = 1\n")
    train_head(other)
    assert curve(other) != curve(recipes[0])


@pytest.mark.parametrize("after", [1, 3, 4])
def test_ctrl_c_saves_and_goes_on_bit_for_bit(tmp_path: Path, after: int):
    whole, cut = tiny_recipe(tmp_path / "whole"), tiny_recipe(tmp_path / "cut")
    train_head(whole)
    with pytest.raises(KeyboardInterrupt):
        train_head(cut, watch=Ends(after))
    assert (cut.stage("train") / f"checkpoint-{after + 1:06d}").is_dir()
    assert read_made(cut.stage("train")) is None
    train_head(cut)
    assert curve(cut) == curve(whole)
    assert best(cut) == best(whole)
    assert found(cut) == found(whole)


def test_failure_goes_on_from_the_last_checkpoint(tmp_path: Path):
    """As after a kill: the steps since are made again."""
    whole, cut = tiny_recipe(tmp_path / "whole"), tiny_recipe(tmp_path / "cut")
    train_head(whole)
    with pytest.raises(StorageError):
        train_head(cut, watch=Ends(5, StorageError("full")))
    assert [line["step"] for line in curve(cut) if "loss" in line] == [1, 2, 3, 4, 5]
    train_head(cut)
    assert curve(cut) == curve(whole)
    assert best(cut) == best(whole)


def test_whole_is_left_alone_unless_fresh(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    made = train_head(recipe)
    assert train_head(recipe, watch=Ends(1, AssertionError("trained again"))) == made
    again = train_head(recipe, fresh=True)
    assert again.began > made.began and again.found | {"seconds": 0} == made.found | {"seconds": 0}


def test_other_settings_are_refused(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        train_head(recipe, watch=Ends(1))
    changed = replace(recipe, train=replace(recipe.train, decay=0.5))
    with pytest.raises(UsageError, match="decay"):
        train_head(changed)


def test_stops_when_enough_is_accepted(tmp_path: Path):
    recipe = tiny_recipe(tmp_path, samples=48, train=LONG + "stop_at = 1.2\n")
    made = train_head(recipe)
    assert made.found["stopped_early"] and made.found["acceptance_length"] >= 1.2
    assert made.found["steps"] == made.found["best_step"] < 12 * 9


def test_without_validation(tmp_path: Path):
    recipe = tiny_recipe(tmp_path, train=TRAIN.replace("validation = 0.25", "validation = 0"))
    made = train_head(recipe)
    assert made.found["acceptance_length"] is None and made.found["best_step"] == made.found["steps"] == 8
    assert made.found["loss"] == curve(recipe)[-1]["loss"]
    assert best(recipe)


def test_early_stop_needs_validation(tmp_path: Path):
    settings = TRAIN.replace("validation = 0.25", "validation = 0") + "stop_at = 2.0\n"
    with pytest.raises(UsageError, match="stop_at"):
        train_head(tiny_recipe(tmp_path, train=settings))


def test_more_processes_than_samples_of_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WORLD_SIZE", "5")
    with pytest.raises(UsageError, match="5 processes and a batch of 4"):
        train_head(tiny_recipe(tmp_path))


@pytest.mark.parametrize("missing", ["data", "states"])
def test_earlier_stage_is_missing(tmp_path: Path, missing: str):
    recipe = tiny_recipe(tmp_path)
    (recipe.stage(missing) / "stage.json").unlink()
    with pytest.raises(UsageError, match=f"breakeven eagle {missing} RECIPE"):
        train_head(recipe)


def test_target_with_fewer_tokens_than_the_map(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    path = recipe.stage("states") / "target_config.json"
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "vocab_size": 20}))
    with pytest.raises(UsageError, match="20"):
        train_head(recipe)


def test_damaged_shard_is_refused_before_anything_is_learned(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    shard = recipe.stage("states") / "shard-00001.safetensors"
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    with pytest.raises(RunFormatError, match=r"shard-00001.*eagle states RECIPE --recheck"):
        train_head(recipe)
    assert not read_progress(recipe.stage("train"))
    shard.write_bytes(whole)
    assert train_head(recipe).found["steps"] == 6


@pytest.mark.parametrize("name", ["target.safetensors", "target_config.json"])
def test_damaged_target_is_named(tmp_path: Path, name: str):
    recipe = tiny_recipe(tmp_path)
    (recipe.stage("states") / name).write_bytes(b"no")
    with pytest.raises(RunFormatError, match=rf"{name} cannot be read.*eagle states RECIPE --recheck"):
        train_head(recipe)


def test_states_of_other_samples_are_refused(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    path = recipe.stage("data") / SAMPLES
    write_samples(path, list(read_samples(path))[::-1])
    with pytest.raises(UsageError, match=r"samples\.parquet is not the one.*eagle states RECIPE --fresh"):
        train_head(recipe)


def test_goes_on_with_states_that_were_made_again_alike(tmp_path: Path):
    """As --recheck leaves them: the same, and another time in stage.json."""
    whole, cut = tiny_recipe(tmp_path / "whole"), tiny_recipe(tmp_path / "cut")
    train_head(whole)
    with pytest.raises(KeyboardInterrupt):
        train_head(cut, watch=Ends(3))
    path = cut.stage("states") / "stage.json"
    path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "ended": 1.0}))
    train_head(cut)
    assert curve(cut) == curve(whole)


def test_two_processes_find_what_one_finds(tmp_path: Path):
    alone, together = tiny_recipe(tmp_path / "alone"), tiny_recipe(tmp_path / "together")
    _train_by(1, alone)
    _train_by(2, together)
    ours, theirs = curve(alone), curve(together)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        assert one["step"] == other["step"]
        one, other = one.get("validation", one), other.get("validation", other)
        assert other["loss"] == pytest.approx(one["loss"], rel=1e-4)
        assert other["loss_by_step"] == pytest.approx(one["loss_by_step"], rel=1e-4)
        assert other["tokens"] == one["tokens"]


def _train_by(processes: int, recipe: Recipe) -> None:
    root = Path(__file__).parents[4]
    command = [
        *(sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(processes)),
        *(str(Path(__file__).with_name("train_child.py")), str(recipe.path)),
    ]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)])}
    environment |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-4000:]


@pytest.mark.parametrize(
    ("section", "change", "said"),
    [
        ("train", {"epochs": 9}, "epochs = 2, not 9"),
        ("data", {"draft_vocabulary": 12}, "draft_vocabulary = 30, and .* says 12 by now.*eagle data RECIPE"),
        ("states", {"top": 3}, "top = 8, and .* says 3 by now.*eagle states RECIPE"),
    ],
)
def test_a_recipe_that_was_edited_since_is_not_passed_over(
    section: str, change: dict[str, Any], said: str, tmp_path: Path
):
    recipe = tiny_recipe(tmp_path)
    for name in ("data", "states"):
        path = recipe.stage(name) / "stage.json"
        settings = asdict(getattr(recipe, name))
        path.write_bytes(orjson.dumps({**orjson.loads(path.read_bytes()), "settings": settings}))
    train_head(recipe)
    before = best(recipe)
    edited = replace(recipe, **{section: replace(getattr(recipe, section), **change)})
    for fresh in (False, True) if section != "train" else (False,):
        with pytest.raises(UsageError, match=said):
            train_head(edited, fresh=fresh)
    assert best(recipe) == before


def test_a_whole_training_of_other_states_is_not_passed_over(tmp_path: Path):
    recipe = tiny_recipe(tmp_path / "one")
    train_head(recipe)
    other = tiny_recipe(tmp_path / "other", samples=20)
    for name in ("data", "states"):
        shutil.rmtree(recipe.stage(name))
        shutil.copytree(other.stage(name), recipe.stage(name))
    with pytest.raises(UsageError, match=r"was begun with another data/samples.parquet.*--fresh"):
        train_head(recipe)
    assert train_head(recipe, fresh=True).found["train_samples"] == 15


def test_a_whole_training_may_be_evaluated_with_longer_drafts(tmp_path: Path):
    recipe = tiny_recipe(tmp_path)
    made = train_head(recipe)
    assert train_head(replace(recipe, evaluate=replace(recipe.evaluate, k=7))) == made


@pytest.mark.parametrize("what", ["loss", "gradient_norm"])
def test_a_training_that_diverges_ends_before_it_is_kept(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    from breakeven.eagle.train.stepping import Stepper

    real, steps = Stepper.step, iter(range(1, 9))

    def diverging(self: Stepper, *given: Any) -> Any:
        taken = real(self, *given)
        if next(steps) < 5:
            return taken
        if what == "loss":
            return replace(taken, scores=replace(taken.scores, loss=float("nan")))
        return replace(taken, gradient_norm=float("inf"))

    monkeypatch.setattr(Stepper, "step", diverging)
    recipe = tiny_recipe(tmp_path)
    with pytest.raises(UsageError, match=r"has diverged: in step 5 .*learning_rate.*--fresh"):
        train_head(recipe)
    assert [line["step"] for line in curve(recipe) if "loss" in line] == [1, 2, 3, 4]
    assert (recipe.stage("train") / "checkpoint-000004").is_dir()
