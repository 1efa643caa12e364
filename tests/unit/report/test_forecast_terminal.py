import io
import re
import unicodedata
from dataclasses import replace

import pytest
from rich.console import Console

from breakeven.forecast.phrases import span
from breakeven.forecast.records import BreakEven, Forecast
from breakeven.interval import Interval
from breakeven.replay.records import Origin
from breakeven.report.forecast_terminal import print_forecast
from breakeven.report.forecast_words import FORECAST_DEFINITIONS, headline
from tests.unit.report.builders import HOSTILE
from tests.unit.report.forecasts import forecast, given, interval, row, rows, without_record


def shown(made: Forecast, width: int = 130, report: str | None = None) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_forecast(made, console, report)
    return console.file.getvalue()


def squeezed(made: Forecast, width: int = 130) -> list[str]:
    return [" ".join(line.split()) for line in shown(made, width).splitlines()]


def test_the_recommendation_comes_first():
    lines = shown(forecast()).splitlines()
    assert lines[0] == "runs/measure-1 (run): 60 requests, 30,000 output tokens"
    assert lines[2] == forecast().recommendation


def test_the_tables_on_a_wide_terminal():
    lines = squeezed(forecast())
    assert (
        "* vllm-ngram k=8 n=2–4 1.768 24.0 % 40.0 % 1.54× 1.48× – 1.60× 1.43× 1.37× – 1.49× faster" in lines
    )
    assert "128: k=1 n=2–4 1.02× 0.98× – 1.06× 1.01× 0.97× – 1.05× undecided" in lines
    assert "concurrency: vllm-ngram decoding interval throughput its interval outcome" in lines
    assert "math 0.88× 0.81× – 0.96× slower" in lines


def test_at_80_columns_the_tables_lose_columns_and_stay_tables():
    lines = squeezed(forecast(), 80)
    assert "* vllm-ngram k=8 n=2–4 1.54× 1.48× – 1.60× 1.43× faster" in lines
    assert "128: k=1 n=2–4 1.02× 0.98× – 1.06× 1.01× undecided" in lines
    assert len(lines) < 75, "an answer that can be read"


def test_one_setting_at_all_concurrencies_is_named_once():
    lines = squeezed(forecast(rows=rows()[:1]), 80)
    assert "vllm-ngram k=8 n=2–4, by concurrency:" in lines
    assert "1 1.54× 1.48× – 1.60× 1.43× 1.37× – 1.49× faster" in lines


def test_the_recommended_setting_is_first_and_marked():
    unsure = replace(rows()[0], cells=tuple(replace(c, speedup=Interval(2, 0.9, 3)) for c in rows()[0].cells))
    lines = squeezed(forecast(rows=(unsure, rows()[1])))
    place = next(i for i, line in enumerate(lines) if line.startswith("* k=5 n=2–4"))
    assert lines[place + 1].startswith("k=8 n=2–4") and "* is recommended." in " ".join(lines)


def test_what_was_tried_is_said():
    text = " ".join(squeezed(forecast(), 80))
    assert "8 settings tried: k 1, 3, 5, 8; n 2–4; --ks and --n-ranges for others." in text
    bare = row("own", 3, 0.4, 0.5, settings={"depth": 2})
    assert "1 setting tried." in " ".join(squeezed(forecast(rows=(bare,))))


def test_windows_that_came_to_the_same_are_one_row():
    same = tuple(replace(rows()[0], settings={"k": k, "min_n": 2, "max_n": 4}) for k in (16, 8, 12))
    lines = squeezed(forecast(rows=same))
    assert sum("k=8…16 n=2–4" in line for line in lines) == 1
    assert "k=a…b came to the same." in " ".join(lines)


def test_the_plain_step_is_told_in_milliseconds():
    assert "A plain step takes 6.00 (5.82 to 6.18) ms at concurrency 1." in " ".join(squeezed(forecast()))
    assert "A plain step" not in shown(forecast(steps=()))


def test_beside_a_record_a_trained_drafter_has_a_line_of_its_own():
    lines = squeezed(forecast(), 200)
    (line,) = [line for line in lines if "trained drafter" in line]
    assert line.startswith("A trained drafter (eagle3) with k=")
    assert "Acceptance length that eagle3 needs" not in " ".join(lines)


def test_a_warning_that_stands_in_the_answer_is_not_said_twice():
    best = replace(rows()[0], warnings=("n is low",))
    assert "n is low" not in shown(forecast(rows=(best,), warnings=("vllm-ngram: n is low",)))
    assert "n is low" in shown(forecast(warnings=("vllm-ngram: n is low",)))


def test_published_lengths_stand_at_their_window():
    made = without_record(published=tuple(replace(one, k=3) for one in forecast().published))
    assert "3 1.23 1.48 1.84 2.46 1.97 – 3.08" in squeezed(made)
    assert "1 1.09 1.31 1.64 – –" in squeezed(made)  # two tokens can not be verified by drafting one


def test_break_even_and_bound():
    text = " ".join(squeezed(forecast()))
    assert (
        "Break-even of vllm-ngram k=8 n=2–4 at concurrency 1: 1.148 tokens per step (it has 1.768), an "
        "acceptance rate of 4.6 % (it has 24.0 %), or a draft share of 1.2 % (it has 40.0 %)."
    ) in text
    assert "decoding at concurrency 1: k=1 1.89×, k=3 3.51×, k=5 4.92×, k=8 6.72×." in text


def test_an_acceptance_rate_above_1_is_not_offered():
    made = forecast()
    never = replace(made.rows[0].cells[0], break_even=BreakEven(2.5, 1.3, None))
    row = replace(made.rows[0], cells=(never, *made.rows[0].cells[1:]))
    text = " ".join(squeezed(replace(made, rows=(row, *made.rows[1:]))))
    assert "at its draft share no acceptance rate would do (it has 24.0 %); no draft share would do" in text


def test_any_draft_share_pays_where_speculation_costs_an_undrafted_step_nothing():
    made = forecast()
    free = replace(made.rows[0].cells[0], break_even=BreakEven(1.148, 0.046, 0.0))
    row = replace(made.rows[0], cells=(free, *made.rows[0].cells[1:]))
    text = " ".join(squeezed(replace(made, rows=(row, *made.rows[1:]))))
    assert "(it has 24.0 %); at its acceptance any draft share pays." in text


def test_all_that_qualifies_the_figures_is_there():
    text = " ".join(shown(forecast(), report="out.html").split())
    for words in (
        "Cost (measured): The concurrency curve",
        "Drafting: N-gram: 0.6 %",
        "Prefill: 21.0 µs per prompt token",
        "! 2 records left out: no tokens were generated",
        "! the ids of 3 requests were made again",
        "decoding: time per output token (TPOT) without / with speculation",
        "throughput: output tokens per second of the whole record with / without",
        "Report: out.html",
        "Next: breakeven trial --baseline-url URL --candidate-url URL",
    ):
        assert words in text
    assert text.endswith("(… are your own options; name what stands in capitals)")


def test_what_stands_for_ones_own_options_is_said():
    text = shown(forecast(next_commands=("vllm serve … --x", "breakeven trial")))
    assert "Next: vllm serve … --x\nNext: breakeven trial\n(… are your own options" in text
    assert "Next:" not in shown(forecast(next_commands=()))


def test_a_forecast_without_a_record_says_what_is_needed():
    text = shown(without_record())
    assert text.startswith("No record: what a trained drafter must reach\n")
    assert "Acceptance length that eagle3 needs at concurrency 1" in text
    assert "drafter  " not in text and "Break-even" not in text and "throughput" not in text


def test_given_acceptance_and_the_best_of_every_drafter_are_shown():
    many = tuple(row("vllm-ngram", k, 0.4, 0.5) for k in range(1, 21))
    lines = squeezed(forecast(rows=(*many, row("vllm-suffix", 3, 0.1, 0.1)), given=given()))
    assert sum(bool(re.match(r"(\* )?vllm-ngram k=\d+ n=2–4 \d", line)) for line in lines) == 6
    assert any(line.startswith("vllm-suffix k=3") for line in lines)
    assert any(line.startswith("eagle3 k=5 2.900") for line in lines)
    assert "14 further settings: --html, --json." in " ".join(lines)


def test_what_was_not_simulated_or_is_no_number_is_absent():
    bare = tuple(
        replace(cell, throughput_speedup=None, speedup=interval(float("nan"))) for cell in rows()[0].cells
    )
    made = forecast(rows=(replace(rows()[0], cells=bare),))
    assert "* k=8 n=2–4 1.768 24.0 % 40.0 % – – – – undecided" in squeezed(made)
    assert "* k=8 n=2–4 – – – undecided" in squeezed(made, 60)
    assert "nan" not in shown(made)


@pytest.mark.parametrize("width", [60, 80, 100, 200])
@pytest.mark.parametrize("made", [forecast(given=given()), without_record()], ids=range(2))
def test_no_line_but_those_to_copy_is_wider_than_the_terminal(made: Forecast, width: int):
    copied = ("runs/", "Next:", "Report:")
    lines = [line for line in shown(made, width).splitlines() if not line.startswith(copied)]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize("width", [60, 200])
def test_hostile_strings_are_harmless(width: int):
    made = forecast(
        origin=Origin(HOSTILE, "jsonl", 0.0, engine=HOSTILE),
        rows=(row(HOSTILE, 3, 0.4, 0.5, settings={HOSTILE: HOSTILE}),),
        needed_for=HOSTILE,
        recommendation=HOSTILE,
        next_commands=(HOSTILE,),
        warnings=(HOSTILE,),
        basis=replace(forecast().basis, words=HOSTILE, drafting=HOSTILE, prefill=HOSTILE),
        skipped={HOSTILE: 1},
    )
    text = shown(made, width)
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c != "\n"]
    assert "\u202e" not in text and "[bold red]x[/bold red][/]" in text


def test_every_figure_has_one_definition():
    keys = [definition.key for definition in FORECAST_DEFINITIONS]
    assert len(keys) == len(set(keys))
    assert {"speedup", "throughput_speedup", "break_even", "oracle", "needed", "interval"} <= set(keys)


def test_the_headline_is_of_the_record_else_of_the_head_else_what_it_must_reach():
    head = given()[0]
    assert headline(forecast(given=given())) == headline(forecast())
    assert " decode speedup at concurrency 1" in headline(forecast())
    known = without_record(given=(head,))
    assert headline(known) == f"{span(head.cells[0].speedup)} decode speedup with eagle3 k=1 at concurrency 1"
    assert shown(known).startswith("No record: what a trained drafter gives\n")
    assert headline(without_record()) == "What eagle3 must reach"


def test_a_headline_of_no_decode_step_has_no_figure():
    bare = tuple(replace(cell, speedup=interval(float("nan"))) for cell in rows()[0].cells)
    assert headline(forecast(rows=(replace(rows()[0], cells=bare),))) == "No decode step to speed up"
