"""What is said of a simulated guard in words, once, so that terminal, page and JSON say the same."""

from __future__ import annotations

import math

from breakeven.acceptance import counters
from breakeven.guard.simulate.records import Played, Simulation, Speed
from breakeven.report.definitions import Definition
from breakeven.report.replay_words import engine_name, record_words, skipped_sentences
from breakeven.report.text import line
from breakeven.units import count, share

_TERMS = {
    "speedup": (
        "Speedup",
        "plain steps / time of the policy's steps, in plain steps of as many sequences, tokens the same: the "
        "geometric mean over requests, as a forecast's decode speedup; prefill is not in it",
    ),
    "total": (
        "Total",
        "plain steps of all requests / time of all: long requests count for more",
    ),
    "worst": ("Worst request", "the least speedup of a single request; below 1 it lost time"),
    "epsilon": (
        "ε",
        "share of its plain decode speed that a request may lose: by the times of steps that are known, its "
        "speedup is 1 − ε at least; `none` takes every draft that should pay",
    ),
    "fixed": (
        "Best fixed",
        "the window and n-gram range that would have been fastest on this very record, chosen in hindsight",
    ),
    "of_best_fixed": (
        "Of best fixed",
        "speedup / speedup of the best fixed setting: what hindsight is worth",
    ),
    "test_and_set": (
        "Test-and-set",
        "for each request windows are tried for some steps and the best is set for more, or none, after the "
        "description of Cascade (arXiv 2506.20675); it is told the true cost of every step",
    ),
    "oracle": (
        "Oracle",
        "of each of the guard's drafts only tokens that are right are verified, and only where that pays: no "
        "choice of windows for these drafts is faster",
    ),
    "no_speculation": ("No speculation", "every step is a plain one: 1 by definition"),
}
_ACCEPTANCE = {"acceptance_rate": "Acceptance rate", "draft_share": "Draft share"}
GUARD_DEFINITIONS: tuple[Definition, ...] = (
    *(Definition(key, title, text) for key, (title, text) in _TERMS.items()),
    *(Definition(key, title, counters.DEFINITIONS[key]) for key, title in _ACCEPTANCE.items()),
)
IN_SHORT = (
    "speedup: plain steps / time of the policy's steps, in plain steps, the geometric mean over requests, "
    "without prefill. total: the same of all requests together. worst: of a single request. best fixed: "
    "chosen in hindsight on this record. oracle: perfect windows for the guard's drafts."
)
LEAST_IDLE = 5e-4
"""A share of a plain step that reads as 0.0 %."""


def times(value: float) -> str:
    """A speedup to three digits, as the losses told of are of some per cent: `0.982×`."""
    return f"{value:.3f}×"


def epsilon_words(epsilon: float) -> str:
    """`2 %`, or `none` for a guard without a ledger."""
    return "none" if math.isinf(epsilon) else f"{epsilon * 100:g} %"


def record_sentence(made: Simulation) -> str:
    """What it was simulated on: `runs/x (run): 80 requests, 49,848 output tokens`."""
    return record_words(made.origin, made.requests, made.output_tokens)


def headline(made: Simulation) -> str:
    """The guard at a glance, and the best fixed setting beside it."""
    guard, fixed = made.guard.speed, made.best_fixed
    said = f"Guard (ε = {epsilon_words(made.settings.epsilon)}): {times(guard.speedup)}"
    said += f", worst request {times(guard.worst.speedup)}"
    if fixed is None:
        return f"{said}."
    return (
        f"{said}. Best fixed in hindsight: {times(fixed.speed.speedup)}, worst request "
        f"{times(fixed.speed.worst.speedup)} ({line(fixed.name, 200)})."
    )


def of_best_fixed(made: Simulation, speed: Speed) -> float | None:
    """Share of the best fixed setting's speedup."""
    return None if made.best_fixed is None else speed.speedup / made.best_fixed.speed.speedup


def sentences(made: Simulation) -> list[str]:
    """What the figures come to: beside a wrong fixed setting, the oracle, in an engine without a seam."""
    return [one for one in (_slowest_fixed(made), _to_oracle(made), _without_seam(made)) if one]


def _slowest_fixed(made: Simulation) -> str:
    if not made.fixed:
        return ""
    slowest = made.fixed[-1].speed
    least = min(made.fixed, key=lambda one: one.speed.worst.speedup)
    return (
        f"Of {count(len(made.fixed), 'fixed setting')} the slowest comes to {times(slowest.speedup)} "
        f"({line(made.fixed[-1].name, 200)}), and the worst request of any to "
        f"{times(least.speed.worst.speedup)} ({line(least.name, 200)})."
    )


def _to_oracle(made: Simulation) -> str:
    gap = made.oracle.speed.speedup / made.guard.speed.speedup - 1
    return f"Perfect windows would be {gap * 100:.1f} % faster than the guard."


def _without_seam(made: Simulation) -> str:
    """What a static setting loses, where no guard can be had."""
    best = made.best_fixed
    if made.has_seam or best is None:
        return ""
    loss = 1 - best.speed.speedup / made.guard.speed.speedup
    to_oracle = 1 - best.speed.speedup / made.oracle.speed.speedup
    flags = f": {line(best.flags, 500)}" if best.flags else ""
    against = f"{abs(loss) * 100:.1f} % {'slower' if loss >= 0 else 'faster'} than a guard would be"
    return (
        f"{engine_name(made.engine)} has no seam for a guard. Its best static setting is "
        f"{line(best.name, 200)}{flags}: {against}, {to_oracle * 100:.1f} % slower than perfect windows "
        f"(for the guard's drafts), and its worst request {times(best.speed.worst.speedup)} instead of "
        f"{times(made.guard.speed.worst.speedup)}."
    )


def idle_sentence(made: Simulation) -> str:
    """What a guard cannot undo."""
    if made.idle < LEAST_IDLE:
        return ""
    return (
        f"Having a drafter at all adds {share(made.idle)} to every step, drafted or not: it is in the "
        "figures of every policy but no speculation, and no guard can undo it."
    )


def basis_sentences(made: Simulation) -> list[str]:
    """Where the cost of a step and of drafting come from."""
    said = (
        f"Cost ({made.cost_source}): {line(made.cost_words, 1000)}",
        f"Drafting: {line(made.drafting_words, 1000)}",
        idle_sentence(made),
    )
    return [one for one in said if one]


def notes(made: Simulation) -> list[str]:
    """All that must be said beside the figures, each once."""
    said = dict.fromkeys((*skipped_sentences(made.skipped), *made.warnings))
    return [line(note, 1000) for note in said]


def worst_words(played: Played) -> str:
    """`0.982× (math-3, 412 tokens)`."""
    worst = played.speed.worst
    return f"{times(worst.speedup)} ({line(worst.id, 40)}, {count(worst.emitted_tokens, 'token')})"
