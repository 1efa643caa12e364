"""Simulate a record: every policy on the same tokens, at the same cost of a step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

from breakeven.cost.step import Step
from breakeven.drafters.registry import make_drafter
from breakeven.forecast.collect import collect
from breakeven.forecast.collected import Requests, SettingSteps
from breakeven.forecast.doubts import drained, loops
from breakeven.forecast.run import Phase, Progress, unseen
from breakeven.guard.simulate import guarded, oracle, test_and_set
from breakeven.guard.simulate.batched import serve
from breakeven.guard.simulate.fixed import fixed_played
from breakeven.guard.simulate.looked import Looked, look
from breakeven.guard.simulate.played import Served, play, served_of
from breakeven.guard.simulate.records import AtConcurrency, AtEpsilon, Played, Simulation
from breakeven.guard.simulate.terms import SEAMS, Terms
from breakeven.guard.simulate.times import Times, times_of
from breakeven.replay.records import FirstToken
from breakeven.replay.run import warnings_of
from breakeven.replay.sources import Source


def simulate_source(
    source: Source,
    terms: Terms,
    *,
    first_token: FirstToken = "prefill",  # noqa: S107
    jobs: int | None = None,
    phase: Phase = unseen,
) -> Simulation:
    """What each policy makes of the recorded requests.

    The guard begins without knowledge of the record, and learns in its order. Memory grows with the record.
    Raises what `collect` and the cost raise.
    """
    began = time.monotonic()
    with phase("requests replayed", source.expected) as replayed:
        requests, steps = collect(source, terms.grid, first_token, jobs, replayed)
    looked = look(source, terms.settings, first_token)
    table = _Table(terms, requests, steps, looked, served_of(looked))
    levels = _batched(terms)
    with phase("policies simulated", len(terms.epsilons) + len(levels)) as done:
        return Simulation(
            origin=source.origin,
            engine=terms.engine,
            has_seam=terms.engine in SEAMS,
            first_token=first_token,
            requests=len(looked.tokens),
            output_tokens=int(requests.output_tokens.sum()),
            categories=requests.categories,
            cost_source=terms.cost.source,
            cost_words=terms.words,
            drafting_words=terms.drafting.source,
            idle=table.times(1).idle,
            settings=terms.settings,
            fixed=table.fixed(1),
            guard=table.guard(terms.settings.epsilon),
            by_epsilon=tuple(table.by_epsilon(done)),
            test_and_set=table.test_and_set(),
            oracle=table.oracle(),
            by_concurrency=tuple(table.by_concurrency(levels, done)),
            skipped=source.skipped,
            warnings=_warnings(source, terms, requests),
            elapsed_s=time.monotonic() - began,
        )


def _warnings(source: Source, terms: Terms, requests: Requests) -> tuple[str, ...]:
    drafters = [make_drafter(name, dict(settings)) for name, settings in terms.grid]
    learning = ", ".join(dict.fromkeys(drafter.name for drafter in drafters if drafter.learns))
    said = f"what {learning} learned is as on a server that takes one request at a time and starts empty"
    return (
        *warnings_of(source, drafters),
        *([said] if learning else []),
        *loops(requests),
        *drained(requests, _batched(terms)),
        *terms.cost.warnings(_largest(terms, requests.context_tokens)),
    )


def _batched(terms: Terms) -> list[int]:
    return [c for c in sorted(set(terms.concurrencies)) if c > 1]


def _largest(terms: Terms, context_tokens: float) -> Step:
    """At the highest concurrency, one sequence with a whole draft, and the others with none."""
    sequences = max(terms.concurrencies)
    return Step(1 + terms.settings.most_tokens / sequences, sequences, context_tokens)


@dataclass(frozen=True, slots=True)
class _Table:
    """Where all policies sit down to the same record."""

    terms: Terms
    requests: Requests
    steps: list[SettingSteps]
    looked: Looked
    served: Served

    def times(self, sequences: int) -> Times:
        """Of steps with drafts as long as the guard's."""
        terms, context = self.terms, self.requests.context_tokens
        return times_of(terms.cost, terms.drafting, sequences, terms.settings.most_tokens, context)

    def fixed(self, sequences: int) -> tuple[Played, ...]:
        terms, context = self.terms, self.requests.context_tokens
        return fixed_played(self.served, self.steps, terms.cost, terms.drafting, sequences, context)

    def guard(self, epsilon: float) -> Played:
        settings, times = replace(self.terms.settings, epsilon=epsilon), self.times(1)
        steps = guarded.guarded_steps(self.looked, times, settings)
        return play(self.served, "guard", guarded.NAME, steps, times, {"epsilon": epsilon})

    def by_epsilon(self, done: Progress) -> Iterator[AtEpsilon]:
        for epsilon in sorted(set(self.terms.epsilons), reverse=True):
            yield AtEpsilon(epsilon, self.guard(epsilon))
            done(1)

    def test_and_set(self) -> Played:
        times = self.times(1)
        steps = test_and_set.tried_steps(self.looked, times)
        return play(self.served, "test-and-set", test_and_set.NAME, steps, times, {})

    def oracle(self) -> Played:
        times = self.times(1)
        return play(self.served, "oracle", oracle.NAME, oracle.oracle_steps(self.looked, times), times, {})

    def by_concurrency(self, levels: list[int], done: Progress) -> Iterator[AtConcurrency]:
        for c in levels:
            every = [self.times(sequences) for sequences in range(1, c + 1)]
            found = serve(self.looked, every, self.terms.settings)
            settings = {"epsilon": self.terms.settings.epsilon}
            guard = self.served.played("guard", guarded.NAME, found.spent, found.counters, settings)
            yield AtConcurrency(c, guard, found.reasons, next(iter(self.fixed(c)), None))
            done(1)
