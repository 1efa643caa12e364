"""Several requests decoded at a time: the guard through its own policy, each step as it comes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from breakeven.acceptance.counters import SpecCounters
from breakeven.guard.known_times import KnownTimes
from breakeven.guard.match_index import Match
from breakeven.guard.policy import Policy, RequestState
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.looked import Looked
from breakeven.guard.simulate.times import Times
from breakeven.replay.tally import counted

Floats = NDArray[np.float64]
Int32s = NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Together:
    """What came of it."""

    spent: Floats
    """Time of each request's steps, in plain steps of as many sequences as it ran with; shape (requests,)."""
    counters: SpecCounters
    reasons: Mapping[str, int]
    """Decisions, one for each request and step, by their reason."""


@dataclass(slots=True)
class _Running:
    """A request in the batch."""

    request: int
    ids: Int32s
    """Of prompt and output."""
    context: int
    """Tokens of them so far."""
    at: int
    """The position of the next output token, as in Looked."""
    state: RequestState

    @property
    def ended(self) -> bool:
        return self.context >= len(self.ids)


@dataclass(slots=True)
class _Account:
    """Of all steps so far."""

    spent: Floats
    drafted: list[int] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)


def serve(looked: Looked, times: Sequence[Times], settings: GuardSettings) -> Together:
    """Decode the record's requests in their order, as many at a time as there are `times` (of 1, 2, …).

    A place that gets free is taken at once; prefill takes no time here. The guard begins without knowledge.
    """
    policy = Policy(settings, KnownTimes([one.seconds for one in times]))
    account = _Account(np.zeros(len(looked.tokens)))
    waiting = deque(range(len(looked.tokens)))
    running: list[_Running] = []
    while waiting or running:
        while waiting and len(running) < len(times):
            running.append(_begun(looked, waiting.popleft(), policy))
        _step(looked, running, policy, times, account)
        for one in running:
            if one.ended:
                policy.end(one.state)
        running = [one for one in running if not one.ended]
    counters = counted(np.array(account.drafted, np.int32), np.array(account.accepted, np.int32))
    return Together(account.spent, counters, dict(account.reasons))


def _begun(looked: Looked, request: int, policy: Policy) -> _Running:
    tokens = looked.tokens
    ids = tokens.ids[tokens.starts[request] : tokens.starts[request + 1]]
    context = int(tokens.outputs[request] - tokens.starts[request]) + looked.first
    at = int(tokens.positions[request]) + looked.first
    return _Running(request, ids, context, at, policy.begin())


def _step(
    looked: Looked, running: list[_Running], policy: Policy, times: Sequence[Times], account: _Account
) -> None:
    """One step of all that run; requests without a token left are not there."""
    batch = [one for one in running if not one.ended]
    if not batch:
        return
    at = np.array([one.at for one in batch])
    states = [one.state for one in batch]
    ks, reasons = policy.decide(states, [_match(looked, one) for one in batch])
    accepted = np.minimum(looked.agreed[at], ks)
    account.drafted += ks
    account.accepted += accepted.tolist()
    account.reasons.update(reason.name for reason in reasons)
    time = times[len(batch) - 1].whole[sum(ks)]
    emitted = []
    for one, right in zip(batch, accepted.tolist(), strict=True):
        account.spent[one.request] += time
        emitted.append(one.ids[one.context : one.context + right + 1])
        one.context += right + 1
        one.at += right + 1
    policy.observe(states, emitted)


def _match(looked: Looked, one: _Running) -> Match:
    """The longest one of its context."""
    period = int(looked.period[one.at])
    begin = one.context - period
    draft = one.ids[begin : begin + int(looked.available[one.at])]
    return Match(int(looked.length[one.at]), period, draft)
