"""TensorRT-LLM's records of iterations, lines of JSON, each with the counts of one iteration."""

from __future__ import annotations

import re

from breakeven.acceptance.logs.report import LogReport

ENGINE = "tensorrt-llm"
SOURCE = "TensorRT-LLM log"
MARKER = '"numDraftTokens"'
_FIELD = re.compile(
    r'"(numDraftTokens|numAcceptedTokens|numRequestsWithDraftTokens|attentionDpRank|timestamp)"'
    r': ?"?([\w:. +-]{1,40})',
    re.ASCII,
)


def report(text: str) -> LogReport | None:
    """The counts of an iteration; None where it drafted nothing, or repeats those of rank 0."""
    named = dict(_FIELD.findall(text))
    drafted, accepted, drafts = (
        int(value) if (value := named.get(name, "")).isdecimal() and len(value) <= 15 else None
        for name in ("numDraftTokens", "numAcceptedTokens", "numRequestsWithDraftTokens")
    )
    if not drafted or accepted is None or accepted > drafted or named.get("attentionDpRank", "0") != "0":
        return None
    bounds = None if drafts is None or not 0 < drafts <= drafted else (drafts, drafts)
    return LogReport(ENGINE, "TensorRT-LLM iterations", named.get("timestamp"), drafted, accepted, bounds)
