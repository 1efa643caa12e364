from dataclasses import replace

import pytest

from breakeven.forecast.phrases import named
from breakeven.forecast.recommend import next_commands, recommendation
from breakeven.forecast.records import BreakEven, Cell, Forecast, ForecastRow
from breakeven.interval import Interval
from breakeven.replay.records import Origin
from breakeven.units import ratio
from tests.unit.report.forecasts import MEASURED, ORIGIN, forecast, given, interval, row, rows, without_record

TRIAL = "breakeven trial --baseline-url URL --candidate-url URL"


def one(*speedups: Interval, **changes: object) -> ForecastRow:
    """A row with these speedups at rising concurrencies; its steps are as many, with an error of 1 %."""
    made = row("vllm-ngram", 3, 0.4, 0.5)
    cells = [
        Cell(c, speedup, None, {}, interval(1.2, 0.01), BreakEven(1.7, 0.6, 0.5))
        for c, speedup in zip((1, 8, 32, 128), speedups, strict=False)
    ]
    return replace(made, **{"cells": tuple(cells), **changes})


def of(*made: ForecastRow, **changes: object) -> Forecast:
    levels = tuple(cell.concurrency for cell in made[0].cells)
    whole = {"rows": made, "concurrencies": levels, "concurrency": 1, "needed": (), "published": ()}
    return forecast(**{**whole, **changes})


FAST, SLOW, OPEN = Interval(1.4, 1.31, 1.52), Interval(0.8, 0.7, 0.9), Interval(1.02, 0.95, 1.1)


def test_what_pays_is_named_with_its_interval_and_where_to_leave_it_off():
    assert recommendation(of(one(FAST, FAST, SLOW))) == (
        "vllm-ngram at k=3, n 2–4 would make decoding 1.40× (1.31× to 1.52×) as fast at concurrency 1. "
        "Leave it off from concurrency 32 on."
    )
    assert recommendation(of(one(FAST, FAST))).endswith("It pays at every concurrency up to 8.")
    assert recommendation(of(one(FAST))).endswith("as fast at concurrency 1.")


def test_where_it_becomes_undecided_it_is_not_promised():
    said = recommendation(of(one(FAST, OPEN, SLOW)))
    assert "Leave it off from concurrency 8 on: at 8 it is undecided at 1.02× (0.95× to 1.10×)." in said


def test_where_it_pays_again_beyond_a_bump_it_is_not_said_to_be_off_from_there_on():
    said = recommendation(of(one(FAST, SLOW, FAST, SLOW)))
    assert said.endswith("Leave it off at concurrency 8, 128.")


def test_what_still_pays_above_is_another_setting():
    k_1 = one(
        Interval(1.2, 1.1, 1.3), Interval(1.15, 1.1, 1.2), SLOW, settings={"k": 1, "min_n": 2, "max_n": 4}
    )
    said = recommendation(of(one(FAST, SLOW, SLOW), k_1))
    assert "vllm-ngram at k=1, n 2–4 still pays there: 1.15× (1.10× to 1.20×)." in said
    assert said.endswith("At concurrency 32 no setting is sure to pay.")


def test_categories_are_told_where_they_differ_in_kind():
    kinds = {"coding": FAST, "chat": Interval(1.2, 1.1, 1.3), "math": Interval(0.96, 0.94, 0.98)}
    cell = replace(one(FAST).cells[0], by_category=kinds)
    said = recommendation(of(one(FAST, cells=(cell,))))
    assert "concurrency 1: coding 1.40× (1.31× to 1.52×), math 4.0 % slower (2.0 % to 6.0 %)." in said
    kinds["math"] = Interval(1.1, 1.05, 1.2)
    cell = replace(cell, by_category=kinds)
    assert "math" not in recommendation(of(one(FAST, cells=(cell,))))
    kinds["math"] = OPEN
    cell = replace(cell, by_category=kinds)
    assert "math undecided at 1.02×" in recommendation(of(one(FAST, cells=(cell,))))


def test_what_is_sure_goes_before_what_may_be_more():
    unsure = one(Interval(1.5, 0.9, 2.1), settings={"k": 5})
    sure = one(Interval(1.2, 1.1, 1.3))
    assert of(unsure, sure).best == sure
    assert of(one(SLOW), one(OPEN)).best.cells[0].speedup == OPEN


def test_what_does_not_pay_says_what_would_be_needed():
    made = one(SLOW, tokens_per_step=1.6)
    said = recommendation(of(made, made))
    assert said.startswith("None of 2 settings pays at concurrency 1: vllm-ngram at k=3, n 2–4 would be ")
    assert "would be 20.0 % slower (10.0 % to 30.0 %)." in said
    assert (
        "It reaches 1.600 tokens per step and needs 1.700: an acceptance rate of 60.0 % instead of 50.0 %, "
        "or drafts in 50.0 % of the steps instead of 40.0 %."
    ) in said
    assert recommendation(of(made)).startswith("It does not pay at concurrency 1")


@pytest.mark.parametrize(
    ("needs", "words"),
    [
        (BreakEven(1.7, None, None), "needs 1.700; it never drafts."),
        (BreakEven(1.7, 1.2, 0.5), "no acceptance rate would do at its draft share of 40.0 %, or drafts in"),
        (BreakEven(1.7, 0.6, None), "and no draft share would do at its acceptance rate of 50.0 %."),
        (BreakEven(1.5, 0.4, 0.3), "needs 1.500: enough over all steps, but not in the mean over requests."),
    ],
)
def test_what_can_not_be_reached_is_said(needs: BreakEven, words: str):
    made = one(SLOW, tokens_per_step=1.6)
    made = replace(made, cells=(replace(made.cells[0], break_even=needs),))
    assert words in recommendation(of(made))


def test_where_nothing_pays_another_concurrency_may():
    made = one(FAST, SLOW)
    said = recommendation(of(made, concurrency=8))
    assert said.endswith("At concurrency 1 vllm-ngram at k=3, n 2–4 would pay: 1.40× (1.31× to 1.52×).")


def test_undecided_says_what_would_settle_it():
    by_requests = one(OPEN)
    assert "how the record's 60 requests differ: a record with more prompts would" in recommendation(
        of(by_requests)
    )
    by_cost = one(OPEN, cells=(replace(one(OPEN).cells[0], step_ratio=interval(1.2, 0.07)),))
    assert "the error of the calibration" in recommendation(of(by_cost))
    for source in ("modelled", "anchored"):
        basis = replace(MEASURED, source=source)
        said = recommendation(of(by_cost, basis=basis))
        assert (
            said.startswith("Undecided at concurrency 1")
            and f"a cost that is {source}: a calibration" in said
        )
        assert next_commands(of(by_cost, basis=basis)) == (
            "breakeven calibrate URL",
            "breakeven forecast runs/measure-1 --calibration FILE",
        )
    assert next_commands(of(by_cost))[1] == TRIAL


def test_nothing_undecided_or_slower_is_called_faster():
    for made in (rows(0.6), rows(factor=0.05), rows(0.01, 0.1)):
        said = recommendation(forecast(rows=made, needed=(), concurrencies=(1,)))
        assert " as fast" not in said and " would pay" not in said


def test_commands_start_the_server_with_its_flags_and_try_it():
    assert next_commands(of(one(FAST))) == ("vllm serve … --flags-of vllm-ngram 3", TRIAL)
    assert next_commands(of(one(FAST, FAST), concurrency=8))[1] == f"{TRIAL} --concurrency 8"
    llama = one(FAST, engine="llama.cpp", flags="--spec-type ngram-simple")
    origin = replace(ORIGIN, engine="llama.cpp")
    assert next_commands(of(llama, origin=origin)) == (
        "llama-server … --spec-type ngram-simple",
        "breakeven trial … --candidate '--spec-type ngram-simple'",
    )


@pytest.mark.parametrize(
    "made", [one(SLOW), one(Interval(0.98, 0.9, 1.1)), one(FAST, flags=""), one(FAST, engine="own")]
)
def test_nothing_to_try_has_no_command(made: ForecastRow):
    assert next_commands(of(made)) == ()
    assert next_commands(without_record()) == ()


def test_a_drafter_of_another_engine_is_called_one():
    said = recommendation(of(one(FAST), origin=Origin("x", "run", 0.0, engine="sglang")))
    assert "It is a drafter of vllm; sglang, which served the record, has none of those tried." in said


def test_a_drafter_of_the_records_engine_goes_first():
    other = one(Interval(2.0, 1.9, 2.1), engine="sglang", drafter="sglang-ngram")
    assert of(other, one(FAST)).best.engine == "vllm"


def test_what_a_trained_drafter_must_reach_stands_beside_what_others_reached():
    made = without_record()
    needs = next(n for n in made.needed if n.k == 4 or n.k == 5)
    said = recommendation(replace(made, published=tuple(replace(p, k=needs.k) for p in made.published)))
    lengths = needs.acceptance_length
    assert f"(eagle3) that drafts {needs.k} tokens at every step" in said
    assert f"an acceptance length of {lengths[1.0].estimate:.2f} (" in said
    assert f"{lengths[1.5].estimate:.2f} (" in said and f"for {ratio(1.5)};" in said
    assert said.endswith(f"; published lengths at k={needs.k}: 1.97 to 3.08, on 2 models.")


def test_a_length_beyond_the_window_is_out_of_reach():
    made = without_record(concurrency=128)
    k_1 = tuple(n for n in made.needed if n.k == 1)
    assert "which no draft of 1 gives, for 1.50×" in recommendation(replace(made, needed=k_1))


def test_given_acceptance_takes_the_place_of_what_is_needed():
    said = recommendation(without_record(given=given()))
    best = max(given(), key=lambda one: one.cells[0].speedup.estimate)
    assert said.startswith(
        f"With the acceptance given, eagle3 does best at k={best.settings['k']}: decoding "
    )
    assert (
        said.endswith("leave it off from concurrency 128 on.") or "leave it off from concurrency 32" in said
    )
    assert "published" not in said


def test_settings_that_do_not_vary_are_not_named():
    made = [row("vllm-suffix", k, 0.6, 0.3, settings={"k": k, "depth": 24, "factor": k / 2}) for k in (2, 4)]
    assert named(made[0], made) == "vllm-suffix at k=2, factor=1.0"
    assert named(replace(made[0], settings={}), made[:0]) == "vllm-suffix"


def test_a_record_without_decode_steps_has_nothing_to_speed_up():
    made = of(one(interval(float("nan"))))
    assert (
        recommendation(made) == "No request of the record has a decode step, so there is nothing to speed up."
    )
    assert next_commands(made) == ()
