"""The card: README.md beside an exported head, for people and for Hugging Face.

Figures are those of evaluation.json, the rest is what the stages wrote down of themselves. What was not
measured is said, by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle import card_figures
from breakeven.eagle.at_work import at_work
from breakeven.eagle.card_text import bullets, code, one_line, table
from breakeven.eagle.evaluate import run as evaluate
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import Made, read_made, required
from breakeven.engines.dialects import dialect
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import RunFormatError, UsageError
from breakeven.trace.files import storing, write_bytes_atomically
from breakeven.units import share, size

FILE = "README.md"
STAGES = {
    "data": "data",
    "states": "states",
    "train": "train",
    "evaluate": evaluate.FOLDER,
    "export": "export",
}
"""Folder of each."""
HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")
TRAINED = "best/head.safetensors"
HERE = "FOLDER"
"""Stands for wherever the reader keeps the head."""
LEFT_OUT = frozenset({"url", "engines", "target"})
"""Settings and findings that are nobody else's business, or are told elsewhere."""


def write_cards(recipe: Recipe) -> list[Path]:
    """A card in each exported folder.

    Raises UsageError before there is one, and while another process is at work there; RunFormatError,
    StorageError.
    """
    with at_work(recipe, "export"):
        return _written(recipe)


def _written(recipe: Recipe) -> list[Path]:
    exported = required(recipe.stage("export"), "export")
    made = {name: found for name, folder in STAGES.items() if (found := read_made(recipe.stage(folder)))}
    _refuse_other_head(recipe, exported, made.get("train"))
    evaluation = _evaluation(recipe) if _is_of(made) else None
    written = []
    for engine in exported.found["engines"]:
        path = recipe.stage("export") / engine / FILE
        text = card(recipe, engine, made, evaluation).encode()
        with storing(path.parent):
            write_bytes_atomically(path, text)
        written.append(path)
    return written


def _refuse_other_head(recipe: Recipe, exported: Made, train: Made | None) -> None:
    """Raises UsageError where the head was trained anew since: the card would tell of another."""
    name = f"train/{TRAINED}"
    if train is not None and exported.inputs.get(name) != train.outputs.get(TRAINED):
        raise UsageError(
            f"{recipe.stage('export')} holds another head than {recipe.stage('train')}, which was trained "
            "since: type  breakeven eagle export RECIPE --fresh"
        )


def card(recipe: Recipe, engine: str, made: Mapping[str, Made], evaluation: Mapping[str, Any] | None) -> str:
    """Markdown; `made` holds what is whole of STAGES, the export among them."""
    found = made["export"].found
    sections = (
        _front_matter(recipe, engine),
        f"# EAGLE-3 draft head for {one_line(_target(recipe))}",
        _what(engine, found["engines"][engine], made),
        f"## Use\n\n{_use(engine, found)}",
        f"## Acceptance\n\n{card_figures.acceptance(evaluation)}",
        f"## How it was made\n\n{_made(made)}",
        f"## What was not measured\n\n{bullets(_unmeasured(engine, made, evaluation))}",
        f"## Provenance\n\n{_provenance(made)}",
    )
    return "\n\n".join(sections) + "\n"


def _front_matter(recipe: Recipe, engine: str) -> str:
    lines = ["---", "tags: [eagle3, speculative-decoding, draft-model]", "pipeline_tag: text-generation"]
    lines += ["library_name: speculators"] if engine == "vllm" else []
    if HUB_NAME.fullmatch(recipe.target.model) and not recipe.beside(recipe.target.model).exists():
        lines.append(f"base_model: {recipe.target.model}")
    return "\n".join([*lines, "---"])


def _target(recipe: Recipe) -> str:
    """A name on a hub as it is, of a folder its own name: the rest of a path is nobody else's business."""
    folder = recipe.beside(recipe.target.model)
    return folder.resolve().name if folder.is_dir() else recipe.target.model


def _what(engine: str, found: Mapping[str, Any], made: Mapping[str, Made]) -> str:
    checked, train = found["checked"], made.get("train")
    style = train.settings.get("style", "eagle3") if train else "eagle3"
    control = (
        " **It is a control, trained on shuffled states: it is not meant to be served.**"
        if train and train.settings.get("shuffled")
        else ""
    )
    return (
        f"A draft head ({style}) for speculative decoding with {dialect(engine).title}: "
        f"{checked['parameters']:,} parameters in {checked['weight_type']}, {size(checked['n_bytes'])}. It "
        f"proposes tokens that the target checks; on its own it writes nothing.{control}"
    )


def _use(engine: str, found: Mapping[str, Any]) -> str:
    flags = dialect(engine).line(SpeculationConfig("eagle3", k=found["k"], draft=HERE))
    trial = f"breakeven trial --server systemd:UNIT --method eagle3 --draft {HERE} --k {found['k']}"
    return (
        f"Flags of the server, for drafts of {found['k']} tokens:\n\n{code(flags)}\n\n"
        f"Whether it is faster there, with the server put back afterwards:\n\n{code(trial)}\n\n"
        f"{bullets(found['engines'][engine]['notes'])}"
    )


def _made(made: Mapping[str, Made]) -> str:
    rows = [(name, _told(made[name].settings), _told(made[name].found)) for name in STAGES if name in made]
    return table(("stage", "settings", "found"), rows)


def _told(values: Mapping[str, Any]) -> str:
    return "; ".join(
        f"{name} {_value(value)}"
        for name, value in values.items()
        if name not in LEFT_OUT and value is not None and value != {}
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_value(one)}" for name, one in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(_value(one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _unmeasured(engine: str, made: Mapping[str, Made], evaluation: Mapping[str, Any] | None) -> Iterator[str]:
    title = dialect(engine).title
    if evaluation is None:
        yield "Acceptance: the head was not evaluated on held-out prompts."
    else:
        yield "Acceptance on other traffic: the held-out prompts are of the same sources as those trained on."
    checked = made["export"].found["engines"][engine]["checked"]
    if evaluation is not None and checked["weight_type"] != "float32":
        yield (
            f"Acceptance in {checked['weight_type']}: the head was evaluated in float32. On a random input "
            f"it chooses the same token in {share(checked['same_choice'])} of the cases."
        )
    yield (
        f"Speed. A step that checks a draft costs more than a plain one; how much depends on {title}, the "
        "model, the machine and the load."
    )
    yield (
        f"{title} itself: the folder was read again as {title} would, and drafts as the trained head does in "
        "the trainer's library; no server was started with it."
    )
    if (data := made.get("data")) is not None and "max_length" in data.settings:
        yield f"Contexts beyond {data.settings['max_length']:,} tokens, the longest that it was trained on."
    yield "No license is named: what the data and the target allow is for whoever publishes the head to say."


def _provenance(made: Mapping[str, Made]) -> str:
    stages = [(name, _day(made[name].began), _day(made[name].ended)) for name in STAGES if name in made]
    versions = {name: version for one in made.values() for name, version in one.packages.items()}
    sums = [
        (f"{STAGES[name]}/{path}", f"`{total}`")
        for name in STAGES
        if name in made
        for path, total in made[name].outputs.items()
    ]
    return (
        f"{table(('stage', 'begun', 'finished'), stages)}\n\n"
        f"Versions: {', '.join(f'{name} {version}' for name, version in versions.items())}.\n\n"
        f"{table(('file', 'SHA-256'), sums)}"
    )


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _is_of(made: Mapping[str, Made]) -> bool:
    """Whether what was evaluated is what was trained: `evaluate` takes other heads, too."""
    found, train = made.get("evaluate"), made.get("train")
    return found is not None and train is not None and found.inputs.get("head") == train.outputs.get(TRAINED)


def _evaluation(recipe: Recipe) -> dict[str, Any]:
    path = recipe.stage(evaluate.FOLDER) / evaluate.FILE
    try:
        return dict(orjson.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise RunFormatError(
            f"{path} cannot be read ({error}): type  breakeven eagle evaluate RECIPE --fresh"
        ) from error
