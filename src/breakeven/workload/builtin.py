"""The built-in prompt sets. Their texts are package data under sets/, one JSON line per prompt.

brief    coding, math, structured output, explanation, long reasoning: little to copy
copy     edit code, rewrite a passage, extract to JSON: most of the reply stands in the prompt,
         so a drafter that looks n-grams up should win
default  both
"""

from __future__ import annotations

import difflib
from importlib.resources import files

from breakeven.errors import WorkloadError
from breakeven.workload.formats import Api, parse
from breakeven.workload.prompts import Workload

_SETS = {"brief": ("brief",), "copy": ("copy",), "default": ("brief", "copy")}


def set_names() -> tuple[str, ...]:
    """The names that `load_set` knows."""
    return tuple(_SETS)


def load_set(name: str, api: Api = "chat") -> Workload:
    """A built-in set. Raises WorkloadError for a name that does not exist."""
    if name not in _SETS:
        near = difflib.get_close_matches(name, _SETS, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise WorkloadError(f"no built-in set {name!r}: {hint}There are {', '.join(_SETS)}")
    folder = files(__package__) / "sets"
    texts = [(folder / f"{part}.jsonl").read_text("utf-8") for part in _SETS[name]]
    return Workload(name, parse("".join(texts), f"built-in set {name}", api).prompts)
