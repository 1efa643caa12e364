from dataclasses import replace

import pytest

from breakeven.acceptance.counters import SpecCounters
from breakeven.errors import UsageError
from breakeven.explain.observed import from_comparison
from tests.unit.report.builders import result

TRIAL = result()
COUNTS = SpecCounters(steps=100, drafts=40, drafted_tokens=120, accepted_tokens=30)


def test_one_observation_per_category_with_geometric_means():
    comparison = TRIAL.comparison
    seen = {one.name: one for one in from_comparison(comparison, {}, None)}
    assert set(seen) == {prompt.category for prompt in comparison.prompts}
    copies = [prompt.baseline_tpot_s for prompt in comparison.prompts if prompt.category == "copy"]
    product = 1.0
    for tpot_s in copies:
        product *= tpot_s
    assert seen["copy"].baseline_tpot_s == pytest.approx(product ** (1 / len(copies)))


def test_counts_of_a_category_come_first_then_all_then_what_was_given():
    prompts = TRIAL.comparison.prompts
    ids = {prompt.id for prompt in prompts if prompt.category == "copy"}
    by_prompt = dict.fromkeys(ids, COUNTS)
    overall = SpecCounters(drafted_tokens=10, accepted_tokens=5)
    seen = {
        one.name: one for one in from_comparison(TRIAL.comparison, by_prompt, overall, (0.1, 0.2), (0.3, 0.4))
    }
    assert seen["copy"].acceptance_rate == (0.25, 0.25)
    assert seen["copy"].draft_share == (0.4, 0.4)
    assert seen["copy"].draft_tokens == 3
    assert seen["math"].acceptance_rate == (0.5, 0.5)
    assert seen["math"].draft_share == (0.3, 0.4)
    assert seen["math"].draft_tokens is None


def test_a_category_counted_in_part_is_not_taken_for_whole():
    first = next(prompt.id for prompt in TRIAL.comparison.prompts if prompt.category == "copy")
    seen = {one.name: one for one in from_comparison(TRIAL.comparison, {first: COUNTS}, None)}
    assert seen["copy"].acceptance_rate is None


def test_nothing_paired_is_refused():
    with pytest.raises(UsageError, match="no prompt has a TPOT on both sides"):
        from_comparison(replace(TRIAL.comparison, prompts=()), {}, None)
