"""experiment.toml: an experiment that was made without this tool, as far as it was written down.

model = "kimi-k2.5"                 # as --model, --hardware, --tp, --ep
hardware = "rtx-pro-6000-ws"
tp = 8
engine = "vllm"
version = "0.16"
acceptance = [0.17, 0.31]           # of all prompts; or of each, there
logs = "candidate.log"              # in the same folder; baseline_logs too

[speculative_config]                # as the engine was given it
method = "ngram"
num_speculative_tokens = 5

[profiled]                          # parts of the plain step, in ms
all_reduce = 6.2

[[prompts]]
name = "coding"
baseline_tok_s = 62.6
candidate_tok_s = 46.4
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breakeven.cli.explain_options import LEAST_SPEED, MOST_SPEED
from breakeven.errors import UsageError
from breakeven.trace.toml_file import read_toml

if TYPE_CHECKING:
    from breakeven.diagnose.evidence import Replies
    from breakeven.explain.records import Observation

FILE = "experiment.toml"
TYPES: Mapping[str, tuple[type, ...]] = {
    "model": (str,),
    "hardware": (str,),
    "tp": (int,),
    "ep": (int,),
    "engine": (str,),
    "version": (str,),
    "concurrency": (int,),
    "context": (int, float),
    "acceptance": (list, float, int),
    "draft_share": (list, float, int),
    "logs": (str,),
    "baseline_logs": (str,),
    "speculative_config": (dict,),
    "profiled": (dict,),
    "prompts": (list,),
}
PROMPT_TYPES: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "baseline_tok_s": (int, float),
    "candidate_tok_s": (int, float),
    "acceptance": (list, float, int),
    "draft_share": (list, float, int),
    "truncated_in_reasoning": (bool,),
}
AS_OPTIONS = ("model", "hardware", "tp", "ep", "engine", "concurrency", "context")
LEAST = {"tp": 1, "ep": 1, "concurrency": 1, "context": 0}
MOST_NUMBER = 1e9


@dataclass(frozen=True, slots=True)
class Experiment:
    """What the file says."""

    options: Mapping[str, Any]
    """By the names of parameters on the command line."""
    observations: tuple[Observation, ...]
    replies: Replies | None
    """None where no prompt was cut off."""
    logs: Path | None = None
    baseline_logs: Path | None = None


def is_experiment(folder: Path) -> bool:
    return (folder / FILE).is_file()


def read_experiment(folder: Path) -> Experiment:
    """Raises UsageError, which names the place in the file."""
    path = folder / FILE
    said = _checked(read_toml(path, f"a folder with an {FILE}"), TYPES, str(path))
    prompts = [
        _checked(_table(each, f"{path}, prompts {number}"), PROMPT_TYPES, f"{path}, prompts {number}")
        for number, each in enumerate(said.get("prompts", ()), 1)
    ]
    return Experiment(
        _options(said, path),
        tuple(_observation(each, said, path) for each in prompts if not _is_cut(each)),
        _replies(prompts),
        folder / said["logs"] if "logs" in said else None,
        folder / said["baseline_logs"] if "baseline_logs" in said else None,
    )


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where}: it is no table: write  [[prompts]]  above each")
    return value


def _checked(table: Mapping[str, Any], types: Mapping[str, tuple[type, ...]], where: str) -> dict[str, Any]:
    """Raises UsageError for a key that is not known, or whose value has another type."""
    for key, value in table.items():
        if key not in types:
            near = difflib.get_close_matches(key, types, 1)
            guess = f" (did you mean {near[0]}?)" if near else ""
            raise UsageError(f"{where}: {key!r} is not known{guess}: write one of {', '.join(types)}")
        if not isinstance(value, types[key]) or (isinstance(value, bool) and bool not in types[key]):
            raise UsageError(f"{where}: {key} is {_shown(value)!r}: write {_example(types[key])}")
    for key, least in LEAST.items():
        if key in table and not least <= table[key] < MOST_NUMBER:
            raise UsageError(f"{where}: {key} is {_shown(table[key])}: write {least} or more")
    return dict(table)


def _example(types: Iterable[type]) -> str:
    examples = {
        str: 'a text, such as "x"',
        list: "a range, such as [0.17, 0.31]",
        dict: "a table",
        bool: "true",
    }
    return examples.get(next(iter(types)), "a number")


def _options(said: Mapping[str, Any], path: Path) -> dict[str, Any]:
    found = {name: said[name] for name in AS_OPTIONS if name in said}
    if "version" in said:
        found["engine_version"] = said["version"]
    if "speculative_config" in said:
        found["speculative_config"] = _as_json(said["speculative_config"], f"{path}, speculative_config")
    if "profiled" in said:
        found["profiled"] = tuple(
            (name, _number(ms, f"{path}, profiled {name}") / 1e3) for name, ms in said["profiled"].items()
        )
    return found


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{where}: {_shown(value)!r} is no number")
    if not -MOST_NUMBER <= value <= MOST_NUMBER:
        raise UsageError(
            f"{where}: {_shown(value)} is no number that can be: write one up to {MOST_NUMBER:g}"
        )
    return float(value)


def _shown(value: Any) -> str:
    """The beginning of a value. Python writes no number of more than 4,300 digits."""
    try:
        return str(value)[:40]
    except ValueError:
        return "a number of thousands of digits"


def _as_json(value: Any, where: str) -> str:
    try:
        return json.dumps(value, default=str)
    except (ValueError, RecursionError):
        raise UsageError(f"{where} holds what no engine takes: write it as the engine was given it") from None


def _is_cut(prompt: Mapping[str, Any]) -> bool:
    """Whether its reply ended inside its reasoning, so that it has no speed."""
    return bool(prompt.get("truncated_in_reasoning"))


def _observation(prompt: Mapping[str, Any], said: Mapping[str, Any], path: Path) -> Observation:
    from breakeven.explain.records import Observation

    where = f"{path}, prompt {prompt.get('name', 'without a name')}"
    speeds = []
    for key in ("baseline_tok_s", "candidate_tok_s"):
        speed = prompt.get(key)
        if speed is None or not LEAST_SPEED <= speed <= MOST_SPEED:
            raise UsageError(f"{where}: {key} is {_shown(speed)}: write tokens per second, such as 62.6")
        speeds.append(speed)
    if "name" not in prompt:
        raise UsageError(f"{where}: write  name = …")
    rate, share = (
        _bounds(prompt.get(key, said.get(key)), f"{where}: {key}") for key in ("acceptance", "draft_share")
    )
    return Observation(prompt["name"], 1 / speeds[0], 1 / speeds[1], rate, share)


def _bounds(value: Any, where: str) -> tuple[float, float] | None:
    """One share, or the least and the greatest."""
    if value is None:
        return None
    ends = value if isinstance(value, list) else [value, value]
    numbers = [_number(end, where) for end in ends]
    if len(numbers) != 2 or not 0 <= numbers[0] <= numbers[1] <= 1:
        raise UsageError(f"{where} is {_shown(value)}: write a share of 0 to 1, or two, such as [0.17, 0.31]")
    return numbers[0], numbers[1]


def _replies(prompts: Iterable[Mapping[str, Any]]) -> Replies | None:
    from breakeven.diagnose.evidence import Replies

    all_, cut = list(prompts), sum(map(_is_cut, prompts))
    return Replies(requests=len(all_), truncated_in_reasoning=cut) if cut else None
