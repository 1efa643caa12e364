from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.guard.match_index import Match
from breakeven.guard.policy import ROOM, Decision, Policy, RequestState, agreed_tokens
from breakeven.guard.reasons import Reason
from breakeven.guard.settings import GuardSettings
from tests.unit.guard.costs import line

FREE = line(0.010, 0.0)
CHEAP = line(0.0095, 0.0005)
MIDDLING = line(0.008, 0.002)
DEAR = line(0.0, 0.010)
"""Each draft token takes a plain step."""
DRAFT = np.arange(100, 110, dtype=np.int32)
OTHER = np.full(20, 7, np.int32)


@dataclass
class Unknown:
    """Until it is known; then verification is free. Asked for a probe, it wants one."""

    known: bool = False
    probes: list[tuple[int, int]] = field(default_factory=list)
    wanted: int = 0

    def seconds(self, most: int, sequences: int) -> np.ndarray | None:
        return FREE.seconds(most, sequences) if self.known else None

    def probe(self, sequences: int, most: int) -> int:
        self.probes.append((sequences, most))
        return self.wanted


class Probed(Unknown):
    """Verification is dear, and it wants to know."""

    def seconds(self, most: int, sequences: int) -> np.ndarray | None:
        return MIDDLING.seconds(most, sequences)


def decided(
    policy: Policy,
    states: Sequence[RequestState],
    matches: Sequence[int],
    drafts: Sequence[np.ndarray] | None = None,
    period: int = 500,
) -> Decision:
    of = [DRAFT] * len(states) if drafts is None else drafts
    return policy.decide(states, [Match(n, period, draft) for n, draft in zip(matches, of, strict=True)])


def plain_steps(policy: Policy, state: RequestState, steps: int, match: int = 8, right: bool = True) -> None:
    """Steps whose verdict is that the draft would have been right, or not, whatever is drafted of it."""
    for _ in range(steps):
        k = decided(policy, [state], [match]).ks[0]
        policy.observe([state], [DRAFT[: k + 1] if right else OTHER[:1]])


def test_where_verification_is_free_all_is_drafted():
    policy = Policy(GuardSettings(), FREE)
    one = decided(policy, [policy.begin()], [4])
    assert one.ks == (10,) and one.reasons == (Reason.DRAFTED,)


def test_no_more_than_most_tokens():
    policy = Policy(GuardSettings(most_tokens=3), FREE)
    assert decided(policy, [policy.begin()], [4]).ks == (3,)


def test_where_there_is_no_match_nothing_is():
    policy = Policy(GuardSettings(), FREE)
    states = [policy.begin(), policy.begin()]
    found = decided(policy, states, [0, 4], [DRAFT[:0], DRAFT[:0]])
    assert found.ks == (0, 0) and found.reasons == (Reason.NO_MATCH, Reason.NO_MATCH)


def test_where_verification_is_too_dear_nothing_is():
    policy = Policy(GuardSettings(epsilon=math.inf), DEAR)
    assert decided(policy, [policy.begin()], [30]).reasons == (Reason.UNLIKELY,)


def test_what_pays_for_one_may_not_pay_for_the_batch():
    """A draft token takes an eighth of a plain step, but of each of eight requests."""
    policy = Policy(GuardSettings(epsilon=math.inf), DEAR)
    states = [policy.begin() for _ in range(8)]
    found = decided(policy, states, [30] + [0] * 7, [DRAFT] + [DRAFT[:0]] * 7)
    assert found.reasons[0] == Reason.HIGH_LOAD and not any(found.ks)
    assert found.reasons[1:] == (Reason.NO_MATCH,) * 7


def test_without_a_cost_it_learns_and_drafts_nothing():
    times = Unknown()
    policy = Policy(GuardSettings(), times)
    state = policy.begin()
    plain_steps(policy, state, 40)
    counters = policy.counters
    assert counters.reasons[Reason.COST_UNKNOWN] == counters.decisions == 40
    assert (counters.drafted, counters.shadow_scored, counters.shadow_accepted) == (0, 40, 40)
    assert policy.saved(state) == 0.0
    times.known = True
    assert decided(policy, [state], [4]).reasons == (Reason.DRAFTED,)
    assert not times.probes


def test_a_ledger_that_cannot_bear_the_waste_forbids_what_should_pay():
    policy = Policy(GuardSettings(), line(0.005, 0.005))
    state = policy.begin()
    assert decided(policy, [state], [30]).reasons == (Reason.LEDGER,)
    plain_steps(policy, state, 200)
    found = decided(policy, [state], [30])
    assert found.reasons == (Reason.DRAFTED,)


def test_a_bystander_pays_for_others_drafts_and_is_asked_before():
    """The step is as long for the request that drafts nothing; it has just begun, and can bear little."""
    policy = Policy(GuardSettings(), MIDDLING)
    old = policy.begin()
    plain_steps(policy, old, 300)
    assert decided(policy, [old], [30]).ks[0] > 0
    found = decided(policy, [old, policy.begin()], [30, 0], [DRAFT, DRAFT[:0]])
    assert found.reasons == (Reason.LEDGER, Reason.NO_MATCH)


def test_a_bystander_is_charged():
    policy = Policy(GuardSettings(epsilon=math.inf), CHEAP)
    states = [policy.begin(), policy.begin()]
    k = decided(policy, states, [30, 0], [DRAFT, DRAFT[:0]]).ks[0]
    assert k > 0
    policy.observe(states, [OTHER[:1], OTHER[:1]])
    waste = CHEAP.seconds(2 + k, 2)[2 + k] / CHEAP.seconds(2, 2)[2] - 1
    assert [policy.saved(state) for state in states] == pytest.approx([-waste, -waste])
    assert policy.counters.ledger == pytest.approx(-2 * waste)


def test_acceptance_that_is_seen_moves_the_window():
    windows = []
    for right in (True, False):
        policy = Policy(GuardSettings(epsilon=math.inf), MIDDLING)
        plain_steps(policy, policy.begin(), 60, right=right)
        windows.append(decided(policy, [policy.begin()], [8]).ks[0])
    first = decided(Policy(GuardSettings(epsilon=math.inf), MIDDLING), [policy.begin()], [8]).ks[0]
    assert windows[1] < first < windows[0]


def test_requests_left_out_keep_their_account():
    policy = Policy(GuardSettings(epsilon=math.inf), CHEAP)
    states = [policy.begin(), policy.begin()]
    decided(policy, states, [4, 4])
    policy.observe(states[:1], [OTHER[:1]])
    assert policy.saved(states[0]) < 0 == policy.saved(states[1])
    decided(policy, states, [4, 4])
    policy.observe(states, [DRAFT[:1], DRAFT[:1]])


def test_a_request_begins_anew_where_another_ended():
    policy = Policy(GuardSettings(), CHEAP)
    state = policy.begin()
    plain_steps(policy, state, 30)
    policy.end(state)
    assert policy.saved(policy.begin()) == 0.0


def test_many_requests_after_another_take_no_memory_and_many_at_once_do():
    policy = Policy(GuardSettings(), CHEAP)
    for _ in range(10_000):
        policy.end(policy.begin())
    assert len(policy._rows) == ROOM
    states = [policy.begin() for _ in range(3 * ROOM)]
    assert len({state.slot for state in states}) == 3 * ROOM
    assert len(decided(policy, states, [4] * len(states)).ks) == 3 * ROOM


def test_a_batch_beyond_all_sizes_that_are_learned():
    policy = Policy(GuardSettings(), FREE)
    states = [policy.begin() for _ in range(200)]
    assert sum(decided(policy, states, [4] * 200).ks) == 512 - 200


def test_a_probe_is_paid_from_the_ledger_and_said():
    times = Probed()
    policy = Policy(GuardSettings(), times)
    state, bystander = policy.begin(), policy.begin()
    for _ in range(60):
        found = decided(policy, [state, bystander], [2, 0], [DRAFT, DRAFT[:0]])
        policy.observe([state, bystander], [OTHER[:1], OTHER[:1]])
    times.wanted = 3
    found = decided(policy, [state, bystander], [2, 0], [DRAFT, DRAFT[:0]])
    assert found.ks == (3, 0) and found.reasons == (Reason.PROBE, Reason.NO_MATCH)
    assert times.probes[-1][0] == 2 and 3 <= times.probes[-1][1] < 10
    before = policy.saved(bystander)
    policy.observe([state, bystander], [OTHER[:1], OTHER[:1]])
    assert policy.saved(bystander) == pytest.approx(before + 1 - 18 / 12)
    counters = policy.counters
    assert sum(counters.reasons.values()) == counters.decisions
    assert counters.reasons[Reason.PROBE] > 0


def test_no_probe_is_asked_for_that_the_ledger_cannot_bear():
    times = Probed(wanted=10)
    policy = Policy(GuardSettings(epsilon=0.0), times)
    state = policy.begin()
    plain_steps(policy, state, 60, right=False)
    assert not times.probes and policy.saved(state) == 0


def test_what_is_learned_can_be_handed_on():
    first = Policy(GuardSettings(), Unknown())
    plain_steps(first, first.begin(), 100, right=False)
    free = GuardSettings(epsilon=math.inf)
    again, fresh = Policy(free, CHEAP, first.survival), Policy(free, CHEAP)
    ks = [decided(policy, [policy.begin()], [8]).ks[0] for policy in (again, fresh)]
    assert ks[0] < ks[1]


def test_tokens_that_agree():
    assert agreed_tokens([1, 2, 3], np.array([1, 2, 4, 3], np.int32)) == 2
    assert agreed_tokens([1, 2], np.array([1, 2, 3], np.int32)) == 2
    assert agreed_tokens([1, 2, 3], np.array([1], np.int32)) == 1
    assert agreed_tokens([], np.array([1], np.int32)) == 0


Step = tuple[int, int, int]
"""Length of the match, tokens of the draft, and how many of them are right."""
STEPS = st.tuples(st.integers(1, 40), st.integers(0, 10), st.integers(0, 10))


@given(
    st.lists(st.lists(STEPS, min_size=3), max_size=4),
    st.lists(st.floats(0.0, 1.5), min_size=50, max_size=50),
    st.sampled_from([0.0, 0.01, 0.02, 0.2]),
)  # fmt: skip
def test_whatever_comes_no_request_loses_more_than_epsilon_allows(
    texts: list[list[Step]], rises: list[float], epsilon: float
):
    settings = GuardSettings(epsilon=epsilon)
    ratios = np.concatenate([[1.0], 1.0 + np.cumsum(rises)])

    class Times:
        def seconds(self, most: int, sequences: int) -> np.ndarray:
            return np.concatenate([np.ones(sequences), ratios])[: most + 1]

        def probe(self, sequences: int, most: int) -> int:
            return most

    policy = Policy(settings, Times())
    running = [(policy.begin(), text) for text in texts]
    emitted = [0] * len(texts)
    for step in range(max((len(text) for text in texts), default=0)):
        there = [i for i, text in enumerate(texts) if step < len(text)]
        states = [running[i][0] for i in there]
        rows = [texts[i][step] for i in there]
        found = decided(policy, states, [m for m, _, _ in rows], [DRAFT[:a] for _, a, _ in rows])
        came = []
        for (_, available, right), k in zip(rows, found.ks, strict=True):
            n = min(k, right)
            came.append(np.concatenate([DRAFT[:n], OTHER[:1]]))
            assert k <= available
        policy.observe(states, came)
        for i, tokens in zip(there, came, strict=True):
            emitted[i] += len(tokens)
            floor = -settings.spending * max(emitted[i], settings.allowance_steps)
            assert policy.saved(running[i][0]) >= floor - 1e-9
