"""Reads an exported folder again: does it hold the head that was trained, as its engine will take it?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.eagle.export.folder import CONFIG, WEIGHTS
from breakeven.eagle.export.format import Format
from breakeven.eagle.export.library import draft_logits
from breakeven.eagle.export.source import Source, found_in, read_json
from breakeven.eagle.export.tensors import EMBEDDING, differences, slots
from breakeven.eagle.shape import HeadShape
from breakeven.errors import BreakevenError, UsageError


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in a folder, all of it as it should be."""

    tensors: int
    parameters: int
    """Numbers in its weights, without the embedding, which is the target's."""
    n_bytes: int
    """Of the weights' file."""
    weight_type: str
    logits: int
    """That it and the trained head, in the folder's type, made of one input: all of them equal."""
    same_choice: float
    """Share of these drafts that the trained head in float32 makes, too: what its type costs."""


def check_folder(folder: Path, made: Format, source: Source, tensors: Mapping[str, Any]) -> Checked:
    """`tensors` are the source's, by the library's names, in the folder's type.

    The configuration is taken with the engine's own defaults, and the tensors by the names that it knows. The
    trainer's library then drafts with both. Raises BreakevenError, with what differs; UsageError for a head
    that is not finite in that type.
    """
    shape = _shape(folder, made, source)
    wanted = made.named(slots(shape, with_embedding=made.with_embedding))
    found = found_in(folder / WEIGHTS)
    for wrong in differences(found, wanted, source.weight_type):
        raise _broken(folder, wrong)
    trained = draft_logits(source.shape, tensors)
    if not trained.isfinite().all():
        raise UsageError(f"the trained head overflows in {source.weight_type}: it cannot be served so")
    drafted = draft_logits(shape, _read(folder, made, tensors))
    if not drafted.equal(trained):
        raise _broken(folder, "the head in it drafts otherwise than the trained one")
    exact = draft_logits(source.shape, source.trained())
    weights = [one for name, one in wanted.items() if one.kind == "weight" and name != EMBEDDING]
    return Checked(
        tensors=len(found),
        parameters=sum(one.size for one in weights),
        n_bytes=(folder / WEIGHTS).stat().st_size,
        weight_type=source.weight_type,
        logits=drafted.numel(),
        same_choice=float((drafted.argmax(-1) == exact.argmax(-1)).float().mean()),
    )


def _shape(folder: Path, made: Format, source: Source) -> HeadShape:
    """As the engine builds it. Raises BreakevenError where that is not what was trained."""
    shape = made.shape(read_json(folder / CONFIG), source)
    if shape != source.shape:
        raise _broken(folder, f"{made.name} builds {shape} by it, and trained was {source.shape}")
    return shape


def _read(folder: Path, made: Format, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """The folder's tensors by the library's names, with the target's embedding where it leaves that out."""
    from safetensors.torch import load_file

    return {EMBEDDING: tensors[EMBEDDING], **made.library_names(load_file(folder / WEIGHTS))}


def _broken(folder: Path, wrong: str) -> BreakevenError:
    return BreakevenError(f"{folder} was written, and is not the trained head: {wrong}; do not serve it")
