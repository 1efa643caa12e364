"""Places: words of a command that stand for what is known, put in."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import replace

from breakeven.diagnose.evidence import Evidence, Replies
from breakeven.explain.records import Finding

_KNOWN = re.compile(r"[\w.:/@+~ \[\]-]{1,300}", re.ASCII)
"""What is put in: a run may hold anything."""
_PLACE = re.compile(r"\b(?:URL|BASELINE_RUN|CANDIDATE_RUN)\b")


def filled(finding: Finding, evidence: Evidence) -> Finding:
    """Its command with what is known of the runs; what is not known stays as it is, for the user to type."""
    known = dict(_known(evidence))
    command = _PLACE.sub(lambda found: known.get(found[0], found[0]), finding.next_command)
    return replace(finding, next_command=command)


def _known(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """By place, as a word of a shell. Two servers at different addresses leave open which is meant."""
    mine, baseline = evidence.replies, evidence.baseline_replies
    urls = {one.url for one in (mine, baseline) if one is not None and one.url is not None}
    values = {
        "URL": urls.pop() if len(urls) == 1 else None,
        "BASELINE_RUN": _run(baseline),
        "CANDIDATE_RUN": _run(mine) if baseline is not None else None,
    }
    for place, value in values.items():
        if value is not None and _KNOWN.fullmatch(value) and not value.startswith("-"):
            yield place, shlex.quote(value)


def _run(seen: Replies | None) -> str | None:
    return None if seen is None else seen.run
