"""Speculation counters out of a Prometheus page, and what happened between two readings of it."""

from __future__ import annotations

from collections import defaultdict

from prometheus_client.parser import text_string_to_metric_families

from breakeven.acceptance.counters import MAX_COUNT, SpecCounters, possible

ENGINE_NAMES = {"vllm": "vLLM /metrics", "llamacpp": "llama.cpp /metrics"}
MAX_WINDOW = 4096
"""A draft position beyond any engine's window is not counted: a page that names one is not to be trusted."""
_PREFIX = "spec_decode_num_"


def read_counters(page: str) -> SpecCounters | None:
    """Lifetime counters of a vLLM or llama.cpp server, summed over its engines and ranks.

    None where the page holds no speculation counters (a baseline of vLLM has none) or is no such page. Only
    the lines that name them are parsed: a whole page, which may be megabytes, would hold up the event loop.
    Steps are unknown here: neither engine counts the decode steps of its requests.
    """
    lines = "".join(line + "\n" for line in page.split("\n") if _PREFIX in line)
    try:
        families = list(text_string_to_metric_families(lines))
    except ValueError:
        return None
    engine = None
    totals: dict[str, int] = defaultdict(int)
    positions: dict[int, int] = defaultdict(int)
    for family in families:
        prefix, _, name = family.name.partition(":")
        if prefix not in ENGINE_NAMES or not name.startswith(_PREFIX):
            continue
        engine = prefix
        for sample in family.samples:
            if sample.name.endswith("_created"):
                continue
            if not 0 <= sample.value < MAX_COUNT:
                return None
            value = int(sample.value)
            position = sample.labels.get("position")
            if position is None:
                totals[name.removeprefix(_PREFIX).removesuffix("_total")] += value
            elif position.isdecimal() and int(position) < MAX_WINDOW:
                positions[int(position)] += value
    if engine is None:
        return None
    return SpecCounters(
        drafts=totals.get("drafts"),
        drafted_tokens=totals.get("draft_tokens"),
        accepted_tokens=totals.get("accepted_tokens"),
        accepted_per_position=tuple(positions[i] for i in range(max(positions, default=-1) + 1)),
        source=ENGINE_NAMES[engine],
    )


def between(before: SpecCounters | None, after: SpecCounters | None) -> SpecCounters | None:
    """What was counted from `before` to `after`; None when either is missing or the server restarted between.

    Counters only rise, so one that fell is a reset (sglang#29329): no negative count is ever returned.
    """
    if before is None or after is None:
        return None
    drafts = _rise(before.drafts, after.drafts)
    drafted = _rise(before.drafted_tokens, after.drafted_tokens)
    accepted = _rise(before.accepted_tokens, after.accepted_tokens)
    if drafts is None or drafted is None or accepted is None:
        return None
    old = before.accepted_per_position or ()
    new = after.accepted_per_position or ()
    padded = old + (0,) * (len(new) - len(old))
    positions = tuple(b - a for a, b in zip(padded, new, strict=False))
    if len(new) < len(old) or any(n < 0 for n in positions):
        return None
    return possible(SpecCounters(None, drafts, drafted, accepted, positions, after.source))


def _rise(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None or after < before else after - before
