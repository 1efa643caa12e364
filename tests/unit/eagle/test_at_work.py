"""One command at a time in a stage's folder."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from breakeven.eagle.at_work import at_work
from breakeven.eagle.recipe import DataSettings, Recipe, Target
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
