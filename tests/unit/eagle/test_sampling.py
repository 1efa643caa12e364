"""Rejection sampling: what comes out has the target's distribution, whatever the drafter's."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_np

from breakeven.compare.student import z_quantile
from breakeven.eagle.sampling import (
    drawn,
    expected_tokens,
    given_token,
    overlap,
    passing,
    residual,
    softmax,
    verify,
    verify_greedy,
    widened,
)

FALSE_ALARM = 1e-4
"""Of each chi-square test, if the distributions are equal; seeds are fixed, so that none comes and goes."""


def critical(freedom: int, tail: float = FALSE_ALARM) -> float:
    """Chi-square quantile (Wilson & Hilferty 1931), somewhat high for one or two degrees of freedom."""
    part = 2 / (9 * freedom)
    return freedom * (1 - part + z_quantile(tail) * math.sqrt(part)) ** 3


def chi_square(counts: np.ndarray, probabilities: np.ndarray) -> float:
    """Of outcomes that can come; none else may have come."""
    possible = probabilities > 0
    assert counts[~possible].sum() == 0
    expected = counts.sum() * probabilities[possible]
    return float(((counts[possible] - expected) ** 2 / expected).sum())


def distribution(rng: np.random.Generator, size: int) -> np.ndarray:
    return rng.dirichlet(np.full(size, 0.6))


PAIRS = {
    "alike": ([0.5, 0.3, 0.2], [0.45, 0.35, 0.2]),
    "equal": ([0.5, 0.3, 0.2], [0.5, 0.3, 0.2]),
    "disjoint": ([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]),
    "half of the support": ([0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0]),
    "one token drafted": ([0.1, 0.6, 0.3], [0, 1, 0]),
    "one token expected": ([0, 1, 0], [0.2, 0.3, 0.5]),
    "far apart": ([0.90, 0.05, 0.03, 0.02], [0.02, 0.03, 0.05, 0.90]),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_one_draft_leaves_the_targets_distribution(pair: tuple[list[float], list[float]]):
    p, q = map(np.array, pair)
    rng = np.random.default_rng(7)
    n = 10_000
    counts, accepted = np.zeros(len(p)), 0
    for _ in range(n):
        draft = drawn(q, rng)
        done = verify(np.stack([p, p]), q[None], [draft], rng)
        counts[draft if done.accepted else done.token] += 1
        accepted += done.accepted
    assert chi_square(counts, p) <= critical(max(int((p > 0).sum()) - 1, 1))
    rate = float(overlap(p, q))
    assert accepted / n == pytest.approx(rate, abs=4 * math.sqrt(0.25 / n))


def test_the_chi_square_test_can_fail():
    """Drafts accepted without a look have the drafter's distribution, which is told from the target's."""
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.45, 0.35, 0.2])
    rng = np.random.default_rng(7)
    counts = np.bincount([drawn(q, rng) for _ in range(10_000)], minlength=3)
    assert chi_square(counts, p) > critical(2)


class Chain:
    """Target and drafter whose next token depends on the one before."""

    def __init__(self, seed: int, size: int = 3) -> None:
        rng = np.random.default_rng(seed)
        self.p = np.stack([distribution(rng, size) for _ in range(size)])
        self.q = np.stack([distribution(rng, size) for _ in range(size)])

    def step(self, last: int, k: int, rng: np.random.Generator) -> tuple[list[int], int]:
        """Tokens that a step emits, and how many drafts it accepted."""
        drafts: list[int] = []
        for _ in range(k):
            drafts.append(drawn(self.q[([last, *drafts])[-1]], rng))
        before = [last, *drafts]
        done = verify(self.p[before], self.q[before[:-1]], drafts, rng)
        return [*drafts[: done.accepted], done.token], done.accepted

    def written(self, tokens: int, k: int, rng: np.random.Generator) -> list[int]:
        out = [0]
        while len(out) <= tokens:
            out += self.step(out[-1], k, rng)[0]
        return out[1 : tokens + 1]


def joint_chi_square(seed: int) -> tuple[float, int]:
    """Of four tokens in a row, so that rejections, residuals and bonus tokens fall at every place; with its
    degrees of freedom."""
    chain, rng, length = Chain(seed), np.random.default_rng(seed), 4
    texts = list(itertools.product(range(3), repeat=length))
    place = {text: number for number, text in enumerate(texts)}
    counts = np.zeros(len(texts))
    for _ in range(10_000):
        counts[place[tuple(chain.written(length, 3, rng))]] += 1
    steps = [np.prod([chain.p[a, b] for a, b in itertools.pairwise((0, *text))]) for text in texts]
    likely = np.array(steps) * counts.sum() >= 5  # rarer texts are counted together, as the test needs
    joined = np.append(counts[likely], counts[~likely].sum())
    expected = np.append(np.array(steps)[likely], np.array(steps)[~likely].sum())
    return chi_square(joined, expected), len(joined) - 1


@pytest.mark.parametrize("seed", [1, 2])
def test_a_chain_of_three_leaves_the_joint_distribution(seed: int):
    found, freedom = joint_chi_square(seed)
    assert found <= critical(freedom)


@pytest.mark.parametrize("seed", [1, 2])
def test_a_rejected_draft_replaced_by_a_plain_draw_is_noticed(seed: int, monkeypatch: pytest.MonkeyPatch):
    """Without the residual the tokens that are rejected come too often."""
    monkeypatch.setattr("breakeven.eagle.sampling.residual", lambda target, draft: target)
    found, freedom = joint_chi_square(seed)
    assert found > critical(freedom)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_expected_tokens_are_those_of_a_simulation(alpha: float, k: int):
    """p and q are the same at every place, so that each draft is accepted with Σ min(p, q) = alpha."""
    p, q = np.array([alpha, 1 - alpha, 0]), np.array([alpha, 0, 1 - alpha])
    rng, n = np.random.default_rng(3), 4000
    lengths = []
    for _ in range(n):
        drafts = [drawn(q, rng) for _ in range(k)]
        lengths.append(1 + verify(np.tile(p, (k + 1, 1)), np.tile(q, (k, 1)), drafts, rng).accepted)
    mean = float(expected_tokens(np.full(k, overlap(p, q))))
    assert np.mean(lengths) == pytest.approx(mean, abs=4 * np.std(lengths) / math.sqrt(n) + 1e-12)
    closed = k + 1 if alpha == 1 else (1 - alpha ** (k + 1)) / (1 - alpha)
    assert mean == pytest.approx(closed)


def test_a_reply_that_was_sampled_tells_what_would_have_passed():
    """The mean of min(1, q(x) / p(x)) over tokens of the target is Σ min(p, q); so it is along a chain."""
    chain, rng, n = Chain(5), np.random.default_rng(5), 10_000
    told, passed = np.zeros((n, 2)), np.zeros((n, 2))
    for i in range(n):
        first = drawn(chain.p[0], rng)
        second = drawn(chain.p[first], rng)
        before, after = [0, first], [first, second]
        told[i] = np.cumprod(given_token(chain.p[before, after], chain.q[before, after]))
        passed[i] = np.arange(2) < chain.step(0, 2, rng)[1]
    error = np.sqrt((told.var(0) + passed.var(0)) / n)
    assert (np.abs(told.mean(0) - passed.mean(0)) < 4 * error).all()
    assert told[:, 0].mean() == pytest.approx(float(overlap(chain.p[0], chain.q[0])), abs=4 * error[0])


weights = st_np.arrays(np.float64, st.integers(2, 6), elements=st.floats(0, 1)).filter(
    lambda w: w.sum() > 0.01
)
pairs = st.integers(2, 6).flatmap(
    lambda n: st.tuples(
        *(
            st_np.arrays(np.float64, n, elements=st.floats(0, 1)).filter(lambda w: w.sum() > 0.01)
            for _ in "pq"
        )
    )
)


@given(pairs)
def test_accepted_and_residual_add_up_to_the_target(pair: tuple[np.ndarray, np.ndarray]):
    p, q = (one / one.sum() for one in pair)
    shared = float(overlap(p, q))
    left = residual(p, q)
    assert 0 <= shared <= 1 + 1e-12
    assert shared == pytest.approx(1 - 0.5 * np.abs(p - q).sum())
    assert shared == pytest.approx(float(overlap(q, p)))
    assert left.sum() == pytest.approx(1)
    assert np.minimum(p, q) + (1 - shared) * left == pytest.approx(p, abs=1e-9)


@given(weights)
def test_equal_distributions_always_pass(one: np.ndarray):
    p = one / one.sum()
    assert float(overlap(p, p)) == pytest.approx(1)
    assert residual(p, p) == pytest.approx(p)
    done = verify(np.stack([p, p]), p[None], [int(p.argmax())], np.random.default_rng(0))
    assert done.accepted == 1


@given(st_np.arrays(np.float64, st.integers(1, 6), elements=st.floats(0, 1)), st.floats(0, 1))
def test_more_acceptance_is_more_tokens(acceptance: np.ndarray, more: float):
    k = len(acceptance)
    least, most = float(expected_tokens(acceptance)), float(expected_tokens(np.maximum(acceptance, more)))
    assert 1 <= least <= most + 1e-12 <= k + 1 + 1e-9


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.tuples(
            st_np.arrays(np.int64, k, elements=st.integers(0, 3)),
            st_np.arrays(np.int64, k + 1, elements=st.integers(0, 3)),
        )
    )
)
def test_greedy_is_the_limit_of_sampling(case: tuple[np.ndarray, np.ndarray]):
    """With all mass on one token nothing is left to chance, and both ways to verify say the same."""
    drafts, best = case
    certain = verify(np.eye(4)[best], np.eye(4)[drafts], drafts, np.random.default_rng(0))
    assert certain == verify_greedy(best, drafts)
    assert certain.accepted == int(passing(drafts == best[:-1]).sum())


def test_softmax_at_temperature_zero_is_the_first_of_the_largest():
    assert softmax([[1.0, 3.0, 3.0], [2.0, 0.0, 1.0]], 0).tolist() == [[0, 1, 0], [1, 0, 0]]
    assert softmax([0.0, math.log(3)], 1).tolist() == pytest.approx([0.25, 0.75])
    assert softmax([1000.0, 1000.0], 0.5).tolist() == pytest.approx([0.5, 0.5])
    assert softmax([1.0, 2.0], 0.01)[1] == pytest.approx(1)


def test_a_smaller_vocabulary_costs_what_lies_outside_of_it():
    p, q = np.array([0.4, 0.1, 0.3, 0.2]), np.array([0.75, 0.25])
    wide = widened(q, [2, 0], 4)
    assert wide.tolist() == [0.25, 0, 0.75, 0]
    assert float(overlap(p, wide)) == pytest.approx(float(overlap(p[[2, 0]], q))) == pytest.approx(0.55)
    assert residual(p, wide) == pytest.approx(np.array([0.15, 0.1, 0, 0.2]) / 0.45)


def test_what_the_drafter_never_drafts_still_comes_out():
    """Tokens outside of the draft vocabulary come by way of the residual, as often as the target has them."""
    p, q = np.array([0.4, 0.1, 0.3, 0.2]), widened([0.75, 0.25], [2, 0], 4)
    rng, counts = np.random.default_rng(11), np.zeros(4)
    for _ in range(10_000):
        draft = drawn(q, rng)
        done = verify(np.stack([p, p]), q[None], [draft], rng)
        counts[draft if done.accepted else done.token] += 1
    assert chi_square(counts, p) <= critical(3)


def test_passing_ends_at_the_first_that_fails():
    assert passing([[True, False, True], [True, True, True]]).tolist() == [[True, False, False], [True] * 3]
