"""Reads recipe.toml (starter.toml shows one), and says where it is wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from breakeven.eagle.recipe import (
    DataSettings,
    EvaluateSettings,
    ExportSettings,
    Recipe,
    StatesSettings,
    Target,
    TrainSettings,
)
from breakeven.errors import UsageError
from breakeven.trace.toml_file import read_toml
from breakeven.trace.typed import fits

MOST_INT = (1 << 63) - 1
FOLDER = "folder"
SECTIONS: Mapping[str, type] = {
    "target": Target,
    "data": DataSettings,
    "states": StatesSettings,
    "train": TrainSettings,
    "evaluate": EvaluateSettings,
    "export": ExportSettings,
}
NEEDED = ("target", "data")
LIMITS: Mapping[str, tuple[float, float]] = {
    "max_length": (16, 1 << 20),
    "max_tokens": (1, 1 << 20),
    "concurrency": (1, 4096),
    "temperature": (0, 10),
    "held_out": (0, 0.5),
    "draft_vocabulary": (0, 1 << 24),
    "batch": (1, 1 << 16),
    "top": (1, 1024),
    "tokens_per_shard": (1, 1 << 30),
    "steps": (1, 16),
    "decay": (1e-6, 1),
    "epochs": (1, 10_000),
    "learning_rate": (1e-12, 1),
    "warmup": (0, 1),
    "checkpoint_every": (1, 1 << 30),
    "validate_every": (1, 1 << 30),
    "validation": (0, 0.5),
    "stop_at": (0, 17),
    "k": (1, 16),
    "prompts": (1, 1 << 30),
    "seed": (0, MOST_INT),
}

Section = TypeVar("Section")


def read_recipe(path: Path) -> Recipe:
    """Raises UsageError, which names the place in the file and what to write there."""
    said = read_toml(path, "a recipe.toml")
    _refuse_unknown(said, [*SECTIONS, FOLDER], str(path))
    for name in NEEDED:
        if name not in said:
            raise UsageError(f"{path} has no [{name}]: `breakeven eagle init` writes a recipe to start from")
    values: dict[str, Any] = {
        name: _section(kind, said[name], f"{path}, [{name}]")
        for name, kind in SECTIONS.items()
        if name in said
    }
    if FOLDER in said:
        _check(FOLDER, said[FOLDER], str, str(path))
        values[FOLDER] = said[FOLDER]
    return Recipe(path, **values)


def _section(kind: type[Section], said: Any, where: str) -> Section:
    if not isinstance(said, dict):
        raise UsageError(f"{where} is no table: write its lines below the heading")
    hints = get_type_hints(kind)
    _refuse_unknown(said, hints, where)
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in said.items()}
    for name, value in values.items():
        _check(name, value, hints[name], where)
    for one in fields(kind):  # type: ignore[arg-type]
        if one.name not in values and one.default is MISSING:
            raise UsageError(f"{where} lacks {one.name}: write  {one.name} = {_example(hints[one.name])}")
    return kind(**values)


def _check(name: str, value: Any, hint: Any, where: str) -> None:
    items = value if isinstance(value, tuple) else (value,)
    if any(map(_is_unusable, items)) or not items or not fits(value, hint):
        raise UsageError(f"{where}: {name} is {_shown(value)}: write  {name} = {_example(hint)}")
    low, high = LIMITS.get(name, (None, None))
    if low is not None and high is not None and not low <= value <= high:
        raise UsageError(f"{where}: {name} is {value}: write {low:g} to {high:g}")


def _is_unusable(value: Any) -> bool:
    """Numbers beyond 64 bits, and texts that name nothing."""
    if isinstance(value, int):
        return not -MOST_INT <= value <= MOST_INT
    return isinstance(value, str) and (not value.strip() or "\0" in value)


def _refuse_unknown(said: Iterable[str], known: Iterable[str], where: str) -> None:
    known = list(known)
    for name in said:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            guess = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(f"{where}: {name[:80]!r} is not known{guess}: write one of {', '.join(known)}")


def _example(hint: Any) -> str:
    """Of what is meant, as TOML."""
    examples: Mapping[Any, str] = {int: "8", float: "0.5", bool: "true", str: '"…"'}
    if hint in examples:
        return examples[hint]
    if get_origin(hint) is tuple:
        return f"[{_example(get_args(hint)[0])}, …]"
    words = [word for word in get_args(hint) if isinstance(word, str)]
    if words:
        return " or ".join(f'"{word}"' for word in words)
    return _example(get_args(hint)[0])


def _shown(value: Any) -> str:
    try:
        return repr(list(value) if isinstance(value, tuple) else value)[:60]
    except (ValueError, RecursionError):  # a number of thousands of digits; lists in lists without end
        return f"a {type(value).__name__} beyond all measure"
