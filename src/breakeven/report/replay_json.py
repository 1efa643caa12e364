"""What `breakeven replay --json` prints. The keys are stable; `absent` beside a null says why it is one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.record import Acceptance
from breakeven.replay.records import Origin, Replay, RequestReplay, Sweep, SweepRow
from breakeven.report.definitions import REPLAY_DEFINITIONS, texts
from breakeven.report.plain import acceptance_json, printable
from breakeven.report.replay_warmup import Stretch, WarmUp, warm_up
from breakeven.report.replay_words import meaning, too_little_sentence

_NO_FLAGS = "it names none that turn it on in an engine"
_SUMMARY = ("steps", "drafts", "drafted_tokens", "accepted_tokens", "acceptance_rate", "draft_share")


def replay_json(replay: Replay) -> dict[str, Any]:
    """The replay in plain types: counts raw, and the ratios made from them as `definitions` says."""
    totals = acceptance_of(replay.total)
    parts = {name: _quadruple(counts) for name, counts in replay.total.parts.items()} or None
    warmed = warm_up(replay)
    body = {
        "drafter": replay.drafter,
        "settings": dict(replay.settings),
        "flags": replay.flags or None,
        **totals,
        "by_category": {name: acceptance_of(one) for name, one in replay.by_category.items()},
        "deciles": [_quadruple(counts) for counts in replay.total.deciles],
        "parts": parts,
        "warm_up": None if isinstance(warmed, str) else _warm_up(warmed),
        "per_request": [_request(one) for one in replay.requests],
        **_context(replay),
        "tokens_per_second": replay.total.output_tokens / replay.elapsed_s if replay.elapsed_s else None,
    }
    absent = dict(totals["absent"])
    if not replay.flags:
        absent["flags"] = _NO_FLAGS
    if parts is None:
        absent["parts"] = "the record does not tell reasoning from answer"
    if isinstance(warmed, str):
        absent["warm_up"] = warmed
    if body["tokens_per_second"] is None:
        absent["tokens_per_second"] = "it took no time that could be measured"
    return {key: printable(value) for key, value in {**body, "absent": absent}.items()}


def sweep_json(sweep: Sweep) -> dict[str, Any]:
    """The sweep in plain types, all of its rows, best first by tokens per step."""
    ranks = ranks_by_acceptance(sweep.rows)
    best, too_little = sweep.suggested, too_little_sentence(sweep)
    body = {
        "rows": [_row(row, rank) for row, rank in zip(sweep.rows, ranks, strict=True)],
        "suggested": None if too_little else _row(best, ranks[sweep.rows.index(best)]),
        "requests": sweep.requests,
        "output_tokens": sweep.output_tokens,
        **_context(sweep),
        "absent": {"suggested": too_little} if too_little else {},
    }
    return {key: printable(value) for key, value in body.items()}


def _context(record: Replay | Sweep) -> dict[str, Any]:
    """What both say about the record, and about how their figures are to be read."""
    return {
        "first_token": record.first_token,
        "origin": origin_json(record.origin),
        "meaning": " ".join(meaning(record)),
        "skipped": dict(record.skipped),
        "warnings": list(record.warnings),
        "definitions": texts(REPLAY_DEFINITIONS),
        "elapsed_s": record.elapsed_s,
    }


def acceptance_of(acceptance: Acceptance) -> dict[str, Any]:
    """Counts, ratios and the joint histogram of one Acceptance, with `absent` for what has no value."""
    return {
        "requests": acceptance.requests,
        "output_tokens": acceptance.output_tokens,
        **_counts(acceptance.counters, acceptance.emitted_tokens, acceptance.histogram),
    }


def _counts(counters: SpecCounters, emitted_tokens: int, cells: NDArray[np.int64]) -> dict[str, Any]:
    """`cells` are rows (drafted, accepted, steps) of the joint histogram, none of them empty."""
    shown = acceptance_json(counters)
    del shown["source"]
    absent = shown.pop("absent")
    shown["tokens_per_step"] = emitted_tokens / counters.steps if counters.steps else None
    names = ("drafted", "accepted", "steps")
    return {
        "emitted_tokens": emitted_tokens,
        **shown,
        "histogram": [dict(zip(names, cell, strict=True)) for cell in cells.tolist()],
        "absent": absent,
    }


def _quadruple(counts: NDArray[np.int64]) -> dict[str, Any]:
    return _summary(quadruple(counts))


def quadruple(counts: NDArray[np.int64]) -> SpecCounters:
    """The four counts of a decile or a part (see Acceptance) as counters."""
    steps, drafts, drafted, accepted = counts.tolist()
    return SpecCounters(steps, drafts, drafted, accepted, source="replay")


def _warm_up(found: WarmUp) -> dict[str, Any]:
    return {"first_tenth": _stretch(found.first_tenth), "rest": _stretch(found.rest)}


def _stretch(one: Stretch) -> dict[str, Any]:
    return {"requests": one.requests, "tokens_per_step": one.tokens_per_step}


def _summary(counters: SpecCounters) -> dict[str, Any]:
    known = acceptance_json(counters)
    absent = {name: why for name, why in known["absent"].items() if name in _SUMMARY}
    return {**{name: known[name] for name in _SUMMARY}, "absent": absent}


def _request(one: RequestReplay) -> dict[str, Any]:
    lengths = one.accepted_lengths
    return {
        "id": one.id,
        "category": one.category,
        "output_tokens": one.output_tokens,
        **_counts(one.counters, one.emitted_tokens, one.histogram),
        **({} if lengths is None else {"accepted_lengths": lengths.tolist()}),
    }


def origin_json(origin: Origin) -> dict[str, Any]:
    """What was replayed, with `absent` for what the record does not say."""
    unknown = [name for name in ("temperature", "engine") if getattr(origin, name) is None]
    absent = dict.fromkeys(unknown, "the record does not say")
    return {
        "path": origin.path,
        "kind": origin.kind,
        "temperature": origin.temperature,
        "ids": origin.ids,
        "engine": origin.engine,
        "absent": absent,
    }


def _row(row: SweepRow, rank: int) -> dict[str, Any]:
    summary = _summary(row.counters)
    absent = summary.pop("absent")
    if not row.flags:
        absent["flags"] = _NO_FLAGS
    return {
        "drafter": row.drafter,
        "settings": dict(row.settings),
        "flags": row.flags or None,
        **summary,
        "tokens_per_step": row.tokens_per_step,
        "rank_by_acceptance_rate": rank,
        "pareto": row.pareto,
        "absent": absent,
    }


def ranks_by_acceptance(rows: tuple[SweepRow, ...]) -> list[int]:
    """Each row's place, from 1, in the order of acceptance rates; rows without drafts come last."""
    rates = [row.counters.acceptance_rate for row in rows]
    order = sorted(range(len(rows)), key=lambda i: (rates[i] is not None, rates[i] or 0.0), reverse=True)
    ranks = [0] * len(rows)
    for place, index in enumerate(order, 1):
        ranks[index] = place
    return ranks
