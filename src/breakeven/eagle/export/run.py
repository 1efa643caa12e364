"""The stage: a folder for each engine of the recipe, written and read again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from breakeven.eagle.export.check import Checked, check_folder
from breakeven.eagle.export.folder import CONFIG, WEIGHTS, write_folder
from breakeven.eagle.export.format import Format
from breakeven.eagle.export.sglang import Sglang
from breakeven.eagle.export.source import Source, source_of
from breakeven.eagle.export.vllm import Vllm
from breakeven.eagle.extras import require
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import WHOLE, Made, Stage, checksum, read_made, required
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


def run_export(recipe: Recipe, say: Say) -> Made:
    """Nothing is done again that is whole. `say` is told what is being done.

    Raises MissingExtra, UsageError, RunFormatError, StorageError, and BreakevenError where a folder that was
    written is not the trained head.
    """
    folder = recipe.stage(STAGE)
    for name in READ:
        required(recipe.stage(name), name)
    source = None if read_made(folder) else _source(recipe)
    stage = Stage(folder, STAGE, _settings(recipe), _inputs(recipe))
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


def _inputs(recipe: Recipe) -> dict[str, str]:
    """What the stages before say that they made, which is then compared with what is there."""
    return {f"{name}/{WHOLE}": checksum(recipe.stage(name) / WHOLE) for name in READ}


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


def _plain(found: Mapping[str, Exported]) -> dict[str, Any]:
    return {name: asdict(one) for name, one in found.items()}
