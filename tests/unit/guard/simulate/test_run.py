"""All policies on one record: what each is to the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from breakeven.cost.step import Step
from breakeven.errors import UsageError
from breakeven.forecast.prefill import prefill_given
from breakeven.forecast.run import forecast_source
from breakeven.forecast.terms import Terms as ForecastTerms
from breakeven.guard.settings import GuardSettings
from breakeven.guard.simulate.records import NO_EPSILON, Played, Simulation
from breakeven.guard.simulate.run import simulate_source
from breakeven.replay.grid import default_grid
from tests.unit.forecast.costs import Line, drafting
from tests.unit.guard.simulate.texts import KINDS, record, terms

FLAT = Line(0.010, 0.0)
"""Verification costs nothing."""
DEAR = Line(0.001, 0.009)
"""A drafted token costs nearly a plain step."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Simulation:
    return simulate_source(record(tmp_path_factory.mktemp("record")), terms(), jobs=1)


def speedups(played: Played) -> np.ndarray:
    return np.array([request.speedup for request in played.requests])


def test_the_mean_is_geometric_and_the_total_is_of_times(made: Simulation):
    one = made.guard
    found = speedups(one)
    emitted = np.array([request.emitted_tokens for request in one.requests])
    assert one.speed.speedup == pytest.approx(float(np.exp(np.log(found).mean())))
    assert one.speed.total == pytest.approx(emitted.sum() / (emitted / found).sum())
    assert one.speed.worst.speedup == found.min()
    assert one.speed.worst.id == one.requests[int(found.argmin())].id


def test_categories_are_means_of_their_own_requests(made: Simulation):
    assert list(made.guard.by_category) == list(KINDS)
    for name, speed in made.oracle.by_category.items():
        mine = [r.speedup for r in made.oracle.requests if r.category == name]
        assert speed.speedup == pytest.approx(float(np.exp(np.log(mine).mean())))
        assert speed.worst.speedup == min(mine)


def test_no_choice_of_windows_beats_the_oracle_on_any_request(made: Simulation):
    best = speedups(made.oracle)
    for other in (made.guard, made.test_and_set, *(one.guard for one in made.by_epsilon)):
        assert (speedups(other) <= best + 1e-9).all(), other.name
    assert (best >= 1).all()


def test_fixed_settings_are_as_a_forecast_has_them(made: Simulation, tmp_path: Path):
    asked = terms()
    forecast = forecast_source(
        record(tmp_path),
        ForecastTerms(asked.cost, "a line", (1,), flat_s=0.0),
        asked.grid,
        prefill_given(0.0),
        jobs=1,
    )
    said = {str(row.settings): row.cells[0].speedup.estimate for row in forecast.rows}
    assert len(made.fixed) == len(said) == 6
    for one in made.fixed:
        assert one.speed.speedup == pytest.approx(said[str(one.settings)])
    order = [one.speed.speedup for one in made.fixed]
    assert order == sorted(order, reverse=True) and made.best_fixed is made.fixed[0]


def test_the_best_fixed_of_a_category_is_best_there(made: Simulation):
    for name in KINDS:
        best = made.best_fixed_of(name)
        assert best is not None
        assert best.by_category[name].speedup == max(one.by_category[name].speedup for one in made.fixed)


def test_no_request_loses_more_than_epsilon_allows(made: Simulation):
    """A speedup of 1 − ε at least, but for replies shorter than the allowance, which may lose as much as one
    of so many tokens."""
    steps = GuardSettings().allowance_steps
    for one in made.by_epsilon:
        if one.epsilon == NO_EPSILON:
            continue
        for request in one.guard.requests:
            lost = request.emitted_tokens / request.speedup - request.emitted_tokens
            may = one.epsilon / (1 - one.epsilon) * max(request.emitted_tokens, steps)
            assert lost <= may + 1e-6, (one.epsilon, request)


def test_epsilons_fall_and_the_guards_own_is_one_of_them(tmp_path: Path):
    own = GuardSettings().epsilon
    made = simulate_source(record(tmp_path), terms(epsilons=(0.01, own, NO_EPSILON)), jobs=1)
    assert [one.epsilon for one in made.by_epsilon] == [NO_EPSILON, own, 0.01]
    assert made.by_epsilon[1].guard == made.guard


def test_a_guard_drafts_all_it_has_where_verification_is_free(tmp_path: Path):
    made = simulate_source(record(tmp_path), terms(FLAT), jobs=1)
    assert made.guard.speed.worst.speedup >= 1
    assert made.guard.speed.speedup == pytest.approx(made.oracle.speed.speedup, rel=0.05)


def test_a_guard_hardly_drafts_where_verification_is_dear(tmp_path: Path):
    made = simulate_source(record(tmp_path), terms(DEAR), jobs=1)
    least = min(one.speed.worst.speedup for one in made.fixed)
    assert least < 0.9 < 0.97 < made.guard.speed.worst.speedup


def test_a_flat_cost_of_drafted_steps_counts_for_every_policy(made: Simulation, tmp_path: Path):
    dear = simulate_source(record(tmp_path), terms(drafting=drafting(drafted=0.004)), jobs=1)
    for cheap, flat in zip(
        (made.guard, made.oracle, made.test_and_set),
        (dear.guard, dear.oracle, dear.test_and_set),
        strict=True,
    ):
        assert flat.speed.speedup < cheap.speed.speedup
    assert dear.best_fixed and made.best_fixed
    assert dear.best_fixed.speed.speedup < made.best_fixed.speed.speedup
    assert dear.idle == 0


def test_what_a_drafter_adds_to_every_step_is_told_and_is_in_all_policies(tmp_path: Path):
    made = simulate_source(record(tmp_path), terms(DEAR, drafting=drafting(step=0.0005)), jobs=1)
    assert made.idle == pytest.approx(0.05)
    free = next(r for r in made.oracle.requests if r.category == "free")
    assert free.speedup < 1


def test_an_engine_without_a_seam(tmp_path: Path):
    assert simulate_source(record(tmp_path), terms(), jobs=1).has_seam
    assert not simulate_source(record(tmp_path), terms(engine="llama.cpp"), jobs=1).has_seam


def test_of_drafters_that_learn_it_is_said_on_what(tmp_path: Path):
    grid = default_grid(("llamacpp-ngram-mod",), (4,), ((2, 3),))
    made = simulate_source(record(tmp_path), terms(grid=grid), jobs=1)
    assert any(said.startswith("what llamacpp-ngram-mod learned is as on") for said in made.warnings)
    assert not any("learned" in said for said in simulate_source(record(tmp_path), terms(), jobs=1).warnings)


def test_several_at_a_time(tmp_path: Path):
    made = simulate_source(record(tmp_path), terms(concurrencies=(1, 2, 4)), jobs=1)
    assert [one.concurrency for one in made.by_concurrency] == [2, 4]
    for one in made.by_concurrency:
        assert one.best_fixed is not None
        assert sum(one.reasons.values()) == one.guard.counters.steps
        assert one.guard.speed.worst.speedup > 0.97
        emitted = sum(r.emitted_tokens for r in one.guard.requests)
        assert emitted == sum(r.emitted_tokens for r in made.guard.requests)


def test_terms_that_cannot_be():
    with pytest.raises(UsageError, match="no fixed setting to compare with"):
        replace(terms(), grid=())
    with pytest.raises(UsageError, match="give one or more, from 1"):
        replace(terms(), concurrencies=(0,))


def test_what_the_cost_says_of_its_largest_step_is_told(tmp_path: Path):
    asked: list[Step] = []

    class Doubtful(Line):
        def warnings(self, step: Step) -> tuple[str, ...]:
            asked.append(step)
            return ("beyond what was measured",)

    made = simulate_source(record(tmp_path), terms(Doubtful(0.010, 0.001), concurrencies=(1, 4)), jobs=1)
    assert "beyond what was measured" in made.warnings
    assert asked[0].sequences == 4 and asked[0].batch_tokens == 4 + GuardSettings().most_tokens


def test_no_doubt_is_told_of_figures_that_are_not_there(tmp_path: Path):
    """Nothing here has an interval, and one request at a time drains no batch."""
    made = simulate_source(record(tmp_path, requests=1), terms(), jobs=1)
    assert not any("interval" in said or "drains" in said for said in made.warnings)
    short = simulate_source(record(tmp_path), terms(concurrencies=(1, 64)), jobs=1)
    assert any(said.startswith("from concurrency 64 on") for said in short.warnings)
