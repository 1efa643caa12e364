"""evaluation.json, which `breakeven eagle evaluate --json` prints too. Stable keys; more may be added."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from breakeven.acceptance.counters import SpecCounters
from breakeven.eagle.evaluate.records import DEFINITIONS, Evaluation, Part, Rival, Share
from breakeven.interval import Interval

FORMAT_VERSION = 1
ABSENT = {
    "by_position": "null where no draft got so far: replies end before it, or none before it was accepted",
    "reply_temperature": "null where the replies were recorded elsewhere",
    "sampled_by_position": "null unless the replies were sampled at this temperature",
}


def evaluation_json(made: Evaluation) -> dict[str, Any]:
    """Plain types, with every figure's definition and why one may be null."""
    return {
        "format_version": FORMAT_VERSION,
        "head": made.head,
        "k": made.k,
        "temperature": made.temperature,
        "reply_temperature": made.reply_temperature,
        "greedy_share": made.greedy_share,
        **_part(made.total),
        "by_category": {name: _part(part) for name, part in made.by_category.items()},
        "drafters": [_rival(rival) for rival in made.rivals],
        "combined": {**asdict(made.combined), "hindsight": True},
        "warnings": list(made.warnings),
        "definitions": dict(DEFINITIONS),
        "absent": ABSENT,
    }


def _part(part: Part) -> dict[str, Any]:
    chained, forced = part.chained, part.teacher_forced
    sampled = forced.sampled_by_position
    return {
        "replies": part.replies,
        "output_tokens": part.output_tokens,
        "chained": {
            **_counts(chained.acceptance.counters),
            "emitted_tokens": chained.acceptance.emitted_tokens,
            "histogram": chained.acceptance.histogram.tolist(),
            "accepted_by_position": _shares(chained.accepted_by_position),
            "conditional_by_position": _shares(chained.conditional_by_position),
            "acceptance_length": _share(chained.acceptance_length),
            "tokens_per_step": _share(chained.tokens_per_step),
        },
        "teacher_forced": {
            "contexts": list(forced.contexts),
            "agreement_by_position": _shares(forced.agreement_by_position),
            "conditional_by_position": _shares(forced.conditional_by_position),
            "overlap_by_position": _shares(forced.overlap_by_position),
            "sampled_by_position": None if sampled is None else _shares(sampled),
            "tokens_per_step": _share(forced.tokens_per_step),
        },
    }


def _rival(rival: Rival) -> dict[str, Any]:
    counters = rival.counters
    return {
        "drafter": rival.drafter,
        "settings": dict(rival.settings),
        "tokens_per_step": rival.tokens_per_step,
        "acceptance_rate": counters.acceptance_rate,
        "draft_share": counters.draft_share,
        **_counts(counters),
    }


def _counts(counters: SpecCounters) -> dict[str, Any]:
    names = ("steps", "drafts", "drafted_tokens", "accepted_tokens", "accepted_per_position")
    return {name: getattr(counters, name) for name in names}


def _shares(shares: Sequence[Share]) -> list[Mapping[str, float] | None]:
    return [_share(share) for share in shares]


def _share(share: Interval | None) -> Mapping[str, float] | None:
    return None if share is None else asdict(share)
