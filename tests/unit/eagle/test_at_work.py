"""One command at a time in a stage's folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from breakeven.eagle.at_work import at_work
from breakeven.eagle.card import write_cards
from breakeven.eagle.data.make import make_data
from breakeven.eagle.evaluate.run import Watch, evaluate
from breakeven.eagle.export.run import run_export
from breakeven.eagle.recipe import DataSettings, Recipe, Target
from breakeven.eagle.train.run import train_head
from breakeven.errors import UsageError


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return Recipe(tmp_path / "recipe.toml", Target("target"), DataSettings(("a",)))


def refused(recipe: Recipe, *stages: str) -> None:
    with (
        pytest.raises(UsageError, match=r"another breakeven is at work in .*wait until it has ended"),
        at_work(recipe, *stages),
    ):
        pass


def test_a_second_is_refused_until_the_first_has_ended(recipe: Recipe) -> None:
    with at_work(recipe, "states"):
        refused(recipe, "states")
        with at_work(recipe, "data"):
            pass
    with at_work(recipe, "states"):
        pass


def test_it_ends_with_a_failure_too(recipe: Recipe) -> None:
    with pytest.raises(RuntimeError), at_work(recipe, "states"):
        raise RuntimeError
    with at_work(recipe, "states"):
        pass


def test_several_read_what_nobody_makes_anew_meanwhile(recipe: Recipe) -> None:
    with at_work(recipe, "train", "states"), at_work(recipe, "evaluation", "states"):
        refused(recipe, "states")
        refused(recipe, "train", "states")
    with at_work(recipe, "states"):
        refused(recipe, "train", "states")


def test_a_folder_that_is_removed_meanwhile_stays_held(recipe: Recipe) -> None:
    """As --fresh removes it."""
    folder = recipe.stage("states")
    folder.mkdir(parents=True)
    with at_work(recipe, "states"):
        shutil.rmtree(folder)
        refused(recipe, "states")
        folder.mkdir()
        refused(recipe, "states")
    assert not list(folder.iterdir())


def test_where_nothing_can_be_written_nobody_is_kept_out(
    recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(*_: object) -> int:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "open", read_only)
    with at_work(recipe, "states"), at_work(recipe, "states"):
        pass


def test_two_recipes_whose_folder_is_one_by_a_link_keep_each_other_out(recipe: Recipe) -> None:
    beside = Recipe(recipe.path.parent / "beside" / "recipe.toml", recipe.target, recipe.data)
    link = beside.stage("states")
    link.parent.mkdir(parents=True)
    recipe.stage("states").mkdir(parents=True)
    link.symlink_to(recipe.stage("states"))
    with at_work(recipe, "states"):
        refused(beside, "states")
    with at_work(beside, "states"):
        refused(recipe, "states")


@pytest.mark.parametrize("of", ["eagle", "eagle/states"])
def test_a_link_to_nowhere_is_told(of: str, recipe: Recipe) -> None:
    link = recipe.path.parent / of
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(recipe.path.parent / "gone")
    with (
        pytest.raises(UsageError, match=r"is a link to .*gone, which is not there: mount its disk"),
        at_work(recipe, "states"),
    ):
        pass
    (recipe.path.parent / "gone").mkdir()
    with at_work(recipe, "states"):
        pass


class Nobody(Watch):
    """Is told, and says nothing."""

    def set_total(self, total: int | None) -> None: ...

    def advance(self, n: int = 1, note: str | None = None) -> None: ...


def states(recipe: Recipe) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("safetensors")
    from breakeven.eagle.states.run import make_states

    make_states(recipe, Nobody())


@dataclass(frozen=True)
class Works:
    """A stage as the library has it, the folder that it makes, and those that it reads."""

    call: Callable[[Recipe], object]
    own: str
    reads: tuple[str, ...] = ()


TRAIN = Works(train_head, "train", ("data", "states"))
STAGES = {
    "data": Works(make_data, "data"),
    "states": Works(states, "states", ("data",)),
    "train": TRAIN,
    "evaluate": Works(lambda recipe: evaluate(recipe, Nobody()), "evaluation", ("data", "states", "train")),
    "evaluate --head": Works(
        lambda recipe: evaluate(recipe, Nobody(), recipe.path.parent), "evaluation", ("data", "states")
    ),
    "export": Works(lambda recipe: run_export(recipe, print), "export", ("states", "train")),
    "card": Works(write_cards, "export"),
}
every_stage = pytest.mark.parametrize(
    "works",
    [
        pytest.param(works, id=name, marks=pytest.mark.eagle if name == "states" else ())
        for name, works in STAGES.items()
    ],
)


def is_kept_out(works: Works, recipe: Recipe) -> bool:
    """The stage ends for another reason else: nothing is there that it needs."""
    with pytest.raises(UsageError) as failure:
        works.call(recipe)
    return "another breakeven is at work" in str(failure.value)


@every_stage
def test_a_stage_is_kept_out_where_others_make_what_it_makes_or_reads(works: Works, recipe: Recipe) -> None:
    for held in (works.own, *works.reads):
        with at_work(recipe, held):
            assert is_kept_out(works, recipe)
    with at_work(recipe, "other", works.own):
        assert is_kept_out(works, recipe)


@every_stage
def test_a_stage_reads_what_others_read(works: Works, recipe: Recipe) -> None:
    with at_work(recipe, "other", *works.reads):
        assert not is_kept_out(works, recipe)
    with at_work(recipe, works.own, *works.reads):  # it is over
        pass


@pytest.mark.parametrize("rank", ["0", "1"])
def test_processes_of_one_training_do_not_keep_each_other_out(
    rank: str, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", rank)
    with at_work(recipe, TRAIN.own, *TRAIN.reads):  # as the first of them has it
        assert is_kept_out(TRAIN, recipe) == (rank == "0")


def test_a_head_of_others_is_evaluated_while_one_is_trained(recipe: Recipe) -> None:
    with at_work(recipe, "train"):
        assert not is_kept_out(STAGES["evaluate --head"], recipe)
