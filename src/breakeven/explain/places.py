"""Places: words of a command, such as `<url>` or `<baseline-log>`, with what is known of them put in.

What is not known keeps its brackets: no shell takes it for a file or a name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from breakeven.explain.records import Explanation, Finding

if TYPE_CHECKING:
    from breakeven.trace.run import Run

PLACES = frozenset(
    {
        *("url", "unit", "engine", "model", "hardware", "calibration", "prompts", "arguments"),
        *("baseline-run", "candidate-run", "baseline-log", "candidate-log"),
        *("target", "draft", "head"),
    }
)
"""All that commands have."""
PLACE = re.compile(r"<([a-z-]+)>")
_SAFE = re.compile(r"[\w.:/@+~ \[\]-]{1,300}", re.ASCII)
"""What is put in of a run, which may hold anything."""


def filled(finding: Finding, known: Mapping[str, str]) -> Finding:
    """Its command with what is known, which is given by place as words of a shell."""
    command = PLACE.sub(lambda found: known.get(found[1], found[0]), finding.next_command)
    return replace(finding, next_command=command)


def all_filled(made: Explanation, known: Mapping[str, str]) -> Explanation:
    """The same of every finding that it holds."""
    return replace(
        made,
        findings=tuple(filled(one, known) for one in made.findings),
        ruled_out=tuple(filled(one, known) for one in made.ruled_out),
    )


def of_runs(baseline: Run | None, candidate: Run | None) -> dict[str, str]:
    """By place what runs tell. Two servers at different addresses leave open which is meant; of one run alone
    it is not said which side it is."""
    from breakeven.trace.disk import PROMPTS

    runs = [run for run in (candidate, baseline) if run is not None]
    urls = {run.meta.url for run in runs}
    prompts = [run.path / PROMPTS for run in runs]
    told = {
        "url": urls.pop() if len(urls) == 1 else "",
        "baseline-run": "" if baseline is None else str(baseline.path),
        "candidate-run": "" if baseline is None or candidate is None else str(candidate.path),
        "prompts": next((str(path) for path in prompts if path.is_file()), ""),
    }
    return {place: shlex.quote(value) for place, value in told.items() if _is_safe(value)}


def _is_safe(value: str) -> bool:
    return _SAFE.fullmatch(value) is not None and not value.startswith("-")
