"""What a step that drafts costs, in plain steps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.cost.drafting import drafting_cost
from breakeven.diagnose.causes.priced import Price, price_of
from breakeven.diagnose.evidence import Drafting
from tests.unit.diagnose.compared import DENSE
from tests.unit.diagnose.healthy import COUNTERS, healthy
from tests.unit.diagnose.test_step_cost import STEEP
from tests.unit.forecast.costs import Line, drafting

PRICE = Price(Line(), drafting(step=0.0011, drafted=0.0022, token=0.00011), 1, 0)
"""A step takes 10 ms and 1 ms for each of its tokens."""


def test_a_step_by_hand() -> None:
    """Of 11 ms: a step that drafts 4 tokens takes 4 ms more, 2.2 to handle, 0.44 to draft them; all 1.1."""
    found = PRICE.mean_step(1.0, 4)
    assert found.estimate == pytest.approx((11 + 4 + 2.2 + 0.44 + 1.1) / 11)
    assert PRICE.mean_step(0.25, 4).estimate == pytest.approx((11 + 0.25 * (4 + 2.2 + 0.44) + 1.1) / 11)
    assert PRICE.mean_step(0.0, 4).estimate == pytest.approx(1.1)
    assert PRICE.between((0.0, 1.0), 4) == pytest.approx((1.1, 18.74 / 11))


def test_of_two_sequences_a_draft_is_handled_where_either_drafts() -> None:
    """Plain 12 ms; half of the steps of each draft 2 tokens, so 3 of 4 steps handle drafts."""
    found = replace(PRICE, sequences=2, drafting=drafting(drafted=0.004)).mean_step(0.5, 2)
    assert found.estimate == pytest.approx((12 + 2 + 0.75 * 4) / 12)


def test_what_must_be_accepted_pays_for_the_flat_cost_too() -> None:
    """7.74 / 4 of 11 ms where every step drafts; where one in four does, the 1.1 of the others as well."""
    assert PRICE.needed_rate(1.0, 4).estimate == pytest.approx(7.74 / 11 / 4)
    assert PRICE.needed_rate(0.25, 4).estimate == pytest.approx((6.64 / 11 + 1.1 / 11 / 0.25) / 4)


@pytest.mark.parametrize("method", ["ngram", "eagle3"])
def test_the_ends_are_of_the_cost_and_of_drafting(method: str) -> None:
    price, own = price_of(healthy(cost=DENSE, drafting=Drafting(method, 4))), drafting_cost("vllm", method)
    assert price and price.drafting == own
    found = price.mean_step(1.0, 3)
    assert found.low < found.estimate < found.high


def test_one_sequence_is_priced_by_its_own_plain_step() -> None:
    many = price_of(healthy(cost=STEEP, sequences=16))
    alone = price_of(healthy(cost=STEEP))
    assert many and alone and many.for_one_sequence() == alone
    assert many.needed_rate(1.0, 4).estimate > 5 * alone.needed_rate(1.0, 4).estimate


def test_what_is_not_known_has_no_price() -> None:
    assert price_of(healthy()) is None
    assert price_of(healthy(cost=DENSE, sequences=None)) is None


def test_nor_has_what_cannot_be() -> None:
    assert price_of(healthy(cost=DENSE, sequences=1e300)) is None
    assert price_of(healthy(cost=DENSE, counters=replace(COUNTERS, drafted_tokens=10**12))) is None
