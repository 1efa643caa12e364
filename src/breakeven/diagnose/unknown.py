"""What is not known of a server, and what to type to know it."""

from __future__ import annotations

from collections.abc import Iterator

from breakeven.cost.drafting import is_lookup
from breakeven.diagnose.evidence import Evidence
from breakeven.explain.case import NO_COST

PER_REQUEST = {
    "vllm": "--enable-per-request-metrics --per-request-spec-decode-metrics detailed",
    "llama.cpp": "--metrics",
    "sglang": "--enable-metrics",
}
"""The engine's own flags that have it count more."""


def unknown(evidence: Evidence) -> dict[str, str]:
    """By input. What explain does not know is in it where there are two speeds and a cost."""
    found = dict(_unknown(evidence))
    return {**found, **(evidence.explanation.unknown if evidence.explanation is not None else {})}


def _unknown(evidence: Evidence) -> Iterator[tuple[str, str]]:
    known = {one.name for one in evidence.stated if one.value is not None}
    is_off = evidence.drafting.is_off
    if evidence.drafting.k is None and not is_off:
        yield "window", "type  --k N, the tokens of a draft at most, or --speculative-config JSON"
    if is_off:
        pass
    elif "acceptance_rate" not in known:
        yield "acceptance_rate", f"type  --url URL  of the server, or --logs FILE{_flags(evidence)}"
    elif "draft_share" not in known:
        yield (
            "draft_share",
            "type  breakeven measure --url URL  on it, which counts the steps of its requests"
            f"{_flags(evidence)}",
        )
    if not evidence.observations:
        yield (
            "speeds",
            "whether it pays: type  breakeven measure --url URL  with speculation and without, and then"
            "  breakeven diagnose BASELINE_RUN CANDIDATE_RUN",
        )
    elif evidence.case is None:
        yield "verify_ms", NO_COST
    if evidence.cost is not None and evidence.sequences is None:
        yield "sequences", "how many sequences a step has, which its cost hangs on: type  --concurrency N"
    yield from _logs(evidence)
    if evidence.replayed is None and not is_off and is_lookup(evidence.drafting.method):
        yield (
            "replay",
            "what the drafter should have given: type  breakeven measure --url URL --token-ids --out RUN  on "
            "the baseline, and name RUN",
        )


def _flags(evidence: Evidence) -> str:
    flags = PER_REQUEST.get(evidence.engine or "")
    return f"; a server started with  {flags}  says more" if flags else ""


def _logs(evidence: Evidence) -> Iterator[tuple[str, str]]:
    if not evidence.facts and evidence.log is None:
        yield (
            "start",
            "graphs, scheduling and attention path of the server: type  --logs FILE  with its log from the "
            "start on, or --unit, --container, --pod",
        )
    if evidence.observations and not evidence.baseline_facts and evidence.baseline_log is None:
        yield "baseline_start", "the same of the baseline: type  --baseline-logs FILE"
