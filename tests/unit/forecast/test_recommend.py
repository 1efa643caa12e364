from dataclasses import replace

import pytest

from breakeven.forecast.learned import learned_sentences
from breakeven.forecast.next_steps import Known, next_commands
from breakeven.forecast.phrases import merged, named
from breakeven.forecast.recommend import recommendation
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
        "vllm-ngram k=3 n=2–4 would make decoding 1.40× (1.31× to 1.52×) as fast at concurrency 1. "
        "It is sure to pay up to concurrency 8; leave it off from concurrency 32 on (0.80×, 0.70× to 0.90×)."
    )
    assert recommendation(of(one(FAST, FAST))).endswith("It is sure to pay up to concurrency 8.")
    assert recommendation(of(one(FAST))).endswith("as fast at concurrency 1.")


def test_faster_by_request_and_slower_as_a_whole_is_said():
    for whole, is_said in ((SLOW, True), (OPEN, False), (FAST, False), (None, False)):
        cell = replace(one(FAST).cells[0], throughput_speedup=whole)
        said = recommendation(of(one(FAST, cells=(cell,))))
        longer = "take longer, though: its throughput would be 0.80× (0.70× to 0.90×)."
        assert (longer in said) == is_said


def test_where_it_becomes_undecided_it_is_not_promised():
    said = recommendation(of(one(FAST, OPEN, SLOW)))
    assert said.endswith(
        "At concurrency 8 it is undecided (1.02×, 0.95× to 1.10×): a trial would tell; leave it off from "
        "concurrency 32 on (0.80×, 0.70× to 0.90×)."
    )
    said = recommendation(of(one(FAST, FAST, OPEN, OPEN)))
    assert said.endswith(
        "It is sure to pay up to concurrency 8; from concurrency 32 on it is undecided (1.02×, 0.95× to "
        "1.10×): a trial would tell."
    )
    assert "eave it off" not in said


def test_where_it_pays_again_beyond_a_bump_it_is_not_said_to_be_off_from_there_on():
    said = recommendation(of(one(FAST, SLOW, FAST, SLOW)))
    assert said.endswith("Leave it off at concurrency 8, 128 (0.80×, 0.70× to 0.90×).")


def test_what_still_pays_above_is_another_setting():
    k_1 = one(
        Interval(1.2, 1.1, 1.3), Interval(1.15, 1.1, 1.2), SLOW, settings={"k": 1, "min_n": 2, "max_n": 4}
    )
    said = recommendation(of(one(FAST, SLOW, SLOW), k_1))
    assert "At concurrency 8 vllm-ngram k=1 n=2–4 is sure to pay: 1.15× (1.10× to 1.20×)." in said
    assert said.endswith("At concurrency 32 no setting is sure to pay.")


def test_categories_are_told_where_they_differ_in_kind():
    kinds = {"coding": FAST, "chat": Interval(1.2, 1.1, 1.3), "math": Interval(0.96, 0.94, 0.98)}
    cell = replace(one(FAST).cells[0], by_category=kinds)
    said = recommendation(of(one(FAST, cells=(cell,))))
    assert "concurrency 1: coding 1.40× (1.31× to 1.52×), math slower at 0.96× (0.94× to 0.98×)." in said
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
    assert said.startswith("None of 2 settings pays at concurrency 1: vllm-ngram k=3 n=2–4 would be ")
    assert "would be slower: 0.80× (0.70× to 0.90×)." in said
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
        (
            BreakEven(1.7, 0.6, 1e-9),
            "instead of 50.0 %, or any draft share at its acceptance rate of 50.0 %.",
        ),
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
    assert said.endswith("At concurrency 1 vllm-ngram k=3 n=2–4 would pay: 1.40× (1.31× to 1.52×).")


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


LLAMA = "--spec-type ngram-simple"


def test_commands_start_the_server_with_its_flags_and_try_it():
    assert next_commands(of(one(FAST))) == ("vllm serve MODEL … --flags-of vllm-ngram 3", TRIAL)
    assert next_commands(of(one(FAST, FAST), concurrency=8))[1] == f"{TRIAL} --concurrency 8"
    llama = of(one(FAST, engine="llama.cpp", flags=LLAMA), origin=replace(ORIGIN, engine="llama.cpp"))
    assert next_commands(llama) == (
        f"llama-server … {LLAMA}",
        f"breakeven trial … --candidate '{LLAMA}'",
    )


def test_what_the_record_knows_is_typed_out():
    known = Known("org/model", "my runs/a/prompts.jsonl", "http://a:8000")
    assert next_commands(of(one(FAST)), known) == (
        "vllm serve org/model … --flags-of vllm-ngram 3",
        "breakeven trial --baseline-url http://a:8000 --candidate-url URL "
        "--prompts 'my runs/a/prompts.jsonl'",
    )
    origin = replace(ORIGIN, engine="llama.cpp")
    llama = of(one(FAST, FAST, engine="llama.cpp", flags=LLAMA), concurrency=8, origin=origin)
    embedded = Known("smollm2", "runs/t/baseline/prompts.jsonl", embedded=True)
    assert next_commands(llama, embedded) == (
        "breakeven trial --model smollm2 --prompts runs/t/baseline/prompts.jsonl "
        f"--candidate '{LLAMA}' --concurrency 8",
    )
    of_another_engine = next_commands(of(one(FAST), origin=origin), embedded)
    assert of_another_engine == (
        "vllm serve MODEL … --flags-of vllm-ngram 3",
        f"{TRIAL} --prompts runs/t/baseline/prompts.jsonl",
    )
    by_cost = one(OPEN, cells=(replace(one(OPEN).cells[0], step_ratio=interval(1.2, 0.07)),))
    made = of(by_cost, basis=replace(MEASURED, source="modelled"))
    assert next_commands(made, known)[0] == "breakeven calibrate http://a:8000"


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
    assert said.startswith(
        f"A trained drafter (eagle3) with k={needs.k} breaks even at concurrency 1 with an acceptance length "
        f"of {lengths[1.0].estimate:.2f} ("
    )
    assert f"For {ratio(1.5)} it needs {lengths[1.5].estimate:.2f} (" in said
    assert said.endswith(
        f"Published lengths at k={needs.k}: 1.97 to 3.08, on 2 models, nearer to 1.50× than at another k."
    )


def test_a_length_beyond_the_window_is_out_of_reach():
    made = without_record(concurrency=128, published=())
    k_1 = tuple(n for n in made.needed if n.k == 1)
    said = recommendation(replace(made, needed=k_1))
    assert said.startswith(
        "A trained drafter (eagle3) with k=1 breaks even at concurrency 128 with an accept"
    )
    assert said.endswith("): out of reach, as its steps give 2 at most.")


def test_given_acceptance_takes_the_place_of_what_is_needed():
    said = recommendation(without_record(given=given()))
    best = max(given(), key=lambda one: one.cells[0].speedup.estimate)
    assert said.startswith(
        f"With the acceptance given, eagle3 does best at k={best.settings['k']}: decoding "
    )
    assert "leave it off from concurrency" in said and "published" not in said


def test_beside_a_record_a_trained_drafter_is_no_part_of_the_answer():
    made = forecast(given=given())
    assert "eagle3" not in recommendation(made) and "eagle3" in " ".join(learned_sentences(made))


def test_what_stands_before_a_higher_estimate_says_why():
    unsure = one(Interval(1.5, 0.9, 2.1), settings={"k": 5, "min_n": 2, "max_n": 4})
    more = one(Interval(1.45, 0.9, 2.1), settings={"k": 8, "min_n": 2, "max_n": 4})
    said = recommendation(of(unsure, more, one(FAST)))
    assert (
        "It is sure to pay, and so stands before vllm-ngram k=5 n=2–4 (1.50×, 0.90× to 2.10×) and 1 more, "
        "whose estimate is higher and which may not."
    ) in said
    assert "stands before" not in recommendation(of(one(FAST), one(OPEN)))


def test_what_the_engine_warns_of_stands_beside_its_setting():
    said = recommendation(of(one(FAST, warnings=("drafts may be of poor quality",))))
    assert "Beware: drafts may be of poor quality." in said
    assert "Beware" not in recommendation(of(one(SLOW, warnings=("drafts may be of poor quality",))))


def test_of_windows_that_came_to_the_same_the_smallest_is_taken():
    made = [one(FAST, settings={"k": k, "depth": 24}, drafter="vllm-suffix") for k in (16, 5, 8)]
    other = one(FAST, settings={"k": 3, "depth": 24}, drafter="vllm-suffix", tokens_per_step=1.5)
    other = replace(other, counters=replace(other.counters, drafts=1))
    whole = of(*made, other)
    assert whole.best is made[1] and len(whole.candidates) == 2
    assert [said for _, said in merged(whole.rows)] == ["k=5…16", "k=3"]
    assert recommendation(whole).startswith("vllm-suffix k=5 would make")


def test_settings_that_do_not_vary_are_not_named():
    made = [row("vllm-suffix", k, 0.6, 0.3, settings={"k": k, "depth": 24, "factor": k / 2}) for k in (2, 4)]
    assert named(made[0], made) == "vllm-suffix k=2 factor=1"
    assert named(replace(made[0], settings={}), made[:0]) == "vllm-suffix"


def test_a_record_without_decode_steps_has_nothing_to_speed_up():
    made = of(one(interval(float("nan"))))
    assert (
        recommendation(made) == "No request of the record has a decode step, so there is nothing to speed up."
    )
    assert next_commands(made) == ()
