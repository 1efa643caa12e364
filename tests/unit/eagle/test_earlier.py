"""Recipes that are edited between stages."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from breakeven.eagle.earlier import earlier
from breakeven.eagle.recipe import DataSettings, Recipe, StatesSettings, Target
from breakeven.eagle.stage import Stage
from breakeven.errors import UsageError

RECIPE = Recipe(Path("recipe.toml"), Target("target"), DataSettings(("a", "b")))


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return replace(RECIPE, path=tmp_path / "recipe.toml")


def finish(recipe: Recipe, stage: str, **more: Any) -> None:
    settings = {**asdict(getattr(recipe, stage)), **more}
    Stage(recipe.stage(stage), stage, settings, {}).finish([], {"samples": 3})


def test_what_the_recipe_still_asks_for(recipe: Recipe) -> None:
    finish(recipe, "data")
    assert earlier(recipe, "data").found == {"samples": 3}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("max_length", 512, "max_length = 2048, and .*recipe.toml says 512 by now"),
        ("sources", ("a",), r"sources = \['a', 'b'\], and .* says \['a'\] by now"),
        ("regenerate", False, "regenerate = True, and .* says False by now"),
    ],
)
def test_an_edited_recipe_is_told_with_the_command(name: str, value: Any, said: str, recipe: Recipe) -> None:
    finish(recipe, "data")
    edited = replace(recipe, data=replace(recipe.data, **{name: value}))
    with pytest.raises(UsageError, match=rf"{said}: put that back, or type  breakeven eagle data RECIPE"):
        earlier(edited, "data")


def test_how_many_requests_are_in_flight_changes_nothing(recipe: Recipe) -> None:
    finish(recipe, "data")
    assert earlier(replace(recipe, data=replace(recipe.data, concurrency=3)), "data").stage == "data"


def test_what_was_left_to_the_stage_is_as_it_chose(recipe: Recipe) -> None:
    finish(recipe, "states", layers=[2, 4, 5])
    assert earlier(recipe, "states").settings["layers"] == [2, 4, 5]
    same = replace(recipe, states=StatesSettings(layers=(2, 4, 5)))
    assert earlier(same, "states").stage == "states"
    with pytest.raises(UsageError, match=r"layers = \[2, 4, 5\], and .* says \[1, 4, 5\]"):
        earlier(replace(recipe, states=StatesSettings(layers=(1, 4, 5))), "states")


def test_one_that_is_not_whole(recipe: Recipe) -> None:
    with pytest.raises(UsageError, match="breakeven eagle data RECIPE  first"):
        earlier(recipe, "data")
