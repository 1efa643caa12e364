"""Plan file: a trial as TOML, for CI. It holds options by their long names, and the candidates.

server = "systemd:vllm.service"
repeats = 5
yes = true
fail-if = "slower"

[[candidate]]
method = "ngram"
k = 5
min-n = 2
max-n = 4
set = { disable_padded_drafter_batch = true }
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError
from breakeven.trace.toml_file import read_toml

CANDIDATE, COMMAND = "candidate", "command"
KINDS: Mapping[str, type] = {
    "method": str,
    "k": int,
    "min-n": int,
    "max-n": int,
    "draft": str,
    "set": dict,
}
"""What a [[candidate]] holds."""
WORDS = {str: "text", int: "a whole number", dict: "a table"}

Words = str | tuple[str, ...]
"""A value as it would be typed; several of an option that may be given again."""


@dataclass(frozen=True, slots=True)
class PlanFile:
    """What a plan file says."""

    options: Mapping[str, Words]
    """By the option's long name without its hyphens, such as start-limit."""
    candidates: tuple[SpeculationConfig, ...]
    command: tuple[str, ...]
    """Of a process: what to run."""


def read_plan_file(path: Path, known: Mapping[str, bool]) -> PlanFile:
    """`known` are the options that there are, by whether each may be given again.

    Raises UsageError for a file that cannot be read, is no TOML, or says what is not known, with the nearest
    name. Values are checked where the options are.
    """
    values = read_toml(path, "another --plan")
    candidates = values.pop(CANDIDATE, [])
    command = values.pop(COMMAND, [])
    if not isinstance(candidates, list) or not all(isinstance(one, dict) for one in candidates):
        raise UsageError(f"{path}: candidate is a list of tables: write each below a line  [[candidate]]")
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        raise UsageError(f'{path}: command is a list of words: write  command = ["vllm", "serve", "MODEL"]')
    options = {name: _option(path, name, value, known) for name, value in values.items()}
    return PlanFile(options, tuple(_candidate(path, one) for one in candidates), tuple(command))


def _option(path: Path, name: str, value: Any, known: Mapping[str, bool]) -> Words:
    if name in KINDS:
        raise UsageError(f"{path}: {name} is of a candidate: write it below a line  [[candidate]]")
    if name not in known:
        raise _unknown(path, name, (*known, CANDIDATE, COMMAND))
    if isinstance(value, list):
        if not known[name]:
            raise UsageError(f"{path}: {name} takes one value, not a list")
        return tuple(_word(path, name, one) for one in value)
    word = _word(path, name, value)
    return (word,) if known[name] else word


def _word(path: Path, name: str, value: Any) -> str:
    """As it would be typed behind the option."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise UsageError(f"{path}: {name} is neither text, a number, true nor false: write  {name} = …")


def _candidate(path: Path, table: Mapping[str, Any]) -> SpeculationConfig:
    for name, value in table.items():
        if name not in KINDS:
            raise _unknown(path, name, tuple(KINDS))
        if type(value) is not KINDS[name]:
            raise UsageError(f"{path}: {name} of a candidate is {WORDS[KINDS[name]]}, not {value!r}")
    if "method" not in table:
        raise UsageError(f'{path}: a candidate has no method: write  method = "ngram"')
    fields = {name.replace("-", "_"): value for name, value in table.items() if name != "set"}
    return SpeculationConfig(**fields, options=table.get("set", {}))


def _unknown(path: Path, name: str, known: tuple[str, ...]) -> UsageError:
    near = get_close_matches(name.lower().replace("_", "-"), known, 1)
    advice = f"did you mean {near[0]}?" if near else f"there are {', '.join(sorted(known))}"
    return UsageError(f"{path}: {name[:80]} is not known: {advice}")
