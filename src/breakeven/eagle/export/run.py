"""The stage: a folder for each engine of the recipe, written and read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from breakeven.eagle.at_work import at_work
from breakeven.eagle.data.target import places
from breakeven.eagle.earlier import earlier
from breakeven.eagle.export.check import Checked, check_folder
from breakeven.eagle.export.folder import CONFIG, WEIGHTS, write_folder
from breakeven.eagle.export.format import Format
from breakeven.eagle.export.sglang import Sglang
from breakeven.eagle.export.source import Source, source_of
from breakeven.eagle.export.vllm import Vllm
from breakeven.eagle.extras import require
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import Made, Stage, checksum, read_made, required, start_over
from breakeven.errors import RunFormatError

STAGE = "export"
FORMATS: dict[str, Format] = {made.name: made for made in (Vllm(), Sglang())}
NEEDS = ("torch", "safetensors", "speculators")
READ = {
    "states": ("target_config.json", "target.safetensors"),
    "train": ("best/head.json", "best/head.safetensors"),
}
"""Stages before this one, and what of them is read."""
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Exported:
    """One engine's folder."""

    checked: Checked
    notes: tuple[str, ...]
    """Which versions of the engine serve it as it is."""


def run_export(recipe: Recipe, say: Say, *, fresh: bool = False) -> Made:
    """Nothing is done again that is whole, unless `fresh`. `say` is told what is being done.

    Raises MissingExtra, UsageError, RunFormatError, StorageError, and BreakevenError where a folder that was
    written is not the trained head.
    """
    with at_work(recipe, STAGE, *READ):
        return _made(recipe, say, fresh)


def _made(recipe: Recipe, say: Say, fresh: bool) -> Made:
    folder = recipe.stage(STAGE)
    for name in READ:
        earlier(recipe, name)
    whole = not fresh and read_made(folder) is not None
    source = None if whole else _source(recipe)
    if fresh:
        start_over(folder)
    stage = Stage(folder, STAGE, _settings(recipe), inputs(recipe))
    if source is None:
        return required(folder, STAGE)
    tensors = source.tensors()
    found: dict[str, Exported] = {
        name: _export(recipe, FORMATS[name], source, tensors, say) for name in recipe.export.engines
    }
    outputs = [folder / name / file for name in found for file in (CONFIG, WEIGHTS)]
    return stage.finish(outputs, {"target": source.name, "k": recipe.evaluate.k, "engines": _plain(found)})


def _source(recipe: Recipe) -> Source:
    """Found to be what was trained, and something that each of the engines can serve."""
    require(*NEEDS)
    _refuse_changed(recipe)
    _refuse_other_target(recipe)
    source = source_of(recipe)
    for name in recipe.export.engines:
        FORMATS[name].config(source, recipe.evaluate.k)
    return source


def _export(recipe: Recipe, made: Format, source: Source, tensors: dict[str, Any], say: Say) -> Exported:
    folder = recipe.stage(STAGE) / made.name
    say(f"writing {folder}")
    write_folder(folder, made, source, tensors, recipe.evaluate.k)
    say(f"reading {folder} again")
    return Exported(check_folder(folder, made, source, tensors), tuple(made.notes(source)))


def _settings(recipe: Recipe) -> dict[str, Any]:
    return {"engines": recipe.export.engines, "target": recipe.target.model, "k": recipe.evaluate.k}


def inputs(recipe: Recipe) -> dict[str, str]:
    """What the stages before say that they made: _refuse_changed compares it with what is there."""
    return {
        f"{name}/{file}": sum_
        for name, files in READ.items()
        for file, sum_ in required(recipe.stage(name), name).outputs.items()
        if file in files
    }


def _refuse_changed(recipe: Recipe) -> None:
    """Raises RunFormatError for a file that is not the one which its stage made."""
    for name, files in READ.items():
        folder = recipe.stage(name)
        sums = required(folder, name).outputs
        for file in files:
            if not (folder / file).is_file() or checksum(folder / file) != sums.get(file):
                raise RunFormatError(
                    f"{folder / file} is gone, or is not what {name} made: restore it from a copy, or type  "
                    f"breakeven eagle {name} RECIPE --fresh"
                )


def _refuse_other_target(recipe: Recipe) -> None:
    """Raises UsageError where the recipe names another target by now than the states are of; where none is
    on this machine, its name alone is needed."""
    folder, states = recipe.beside(recipe.target.model), recipe.stage("states")
    if folder.is_dir():
        required(states, "states", places(required(states, "states").inputs, folder))


def _plain(found: Mapping[str, Exported]) -> dict[str, Any]:
    return {name: asdict(one) for name, one in found.items()}
