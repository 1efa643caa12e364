"""What an earlier stage made, if the recipe still asks for just that: recipes are edited between stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import FREE, NOTHING, Made, required
from breakeven.errors import UsageError


def earlier(recipe: Recipe, stage: str, made_from: Mapping[str, Path] = NOTHING) -> Made:
    """What it says of itself.

    Raises UsageError if it is not whole, if the recipe has other settings for it by now, or if one of the
    files that it was `made_from` has changed since (stage.required); RunFormatError.
    """
    folder = recipe.stage(stage)
    made = required(folder, stage, made_from)
    for name, asked in _settings(recipe, stage).items():
        if name in made.settings and made.settings[name] != asked:
            raise UsageError(
                f"{folder} was made with {name} = {made.settings[name]!r}, and {recipe.path} says {asked!r} "
                f"by now: put that back, or type  breakeven eagle {stage} RECIPE --fresh"
            )
    return made


def _settings(recipe: Recipe, stage: str) -> Mapping[str, Any]:
    """Those of its section, as stage.json has them; what the recipe leaves to the stage is not among them."""
    said: dict[str, Any] = orjson.loads(orjson.dumps(asdict(getattr(recipe, stage))))
    return {name: value for name, value in said.items() if value is not None and name not in FREE}
