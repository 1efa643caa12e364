from dataclasses import replace
from itertools import pairwise

import pytest

from breakeven.forecast.records import Forecast, ForecastRow
from breakeven.interval import Interval
from breakeven.report.forecast_plots import (
    by_window,
    decoding_by_concurrency,
    experts,
    needed_maps,
    only_drafter,
    settings_worth_it,
    throughput_by_concurrency,
    waterfall,
)
from tests.unit.report.forecasts import (
    KS,
    VERIFY,
    coverage,
    forecast,
    given,
    needs,
    row,
    rows,
    step_parts,
    without_record,
)


def other_range(k: int, rate: float = 0.3) -> ForecastRow:
    return row("vllm-ngram", k, 0.4, rate, settings={"k": k, "min_n": 3, "max_n": 5})


def ranked(*more: ForecastRow) -> tuple[ForecastRow, ...]:
    return tuple(sorted((*rows(), *more), key=lambda one: -one.cells[0].speedup.estimate))


def only(concurrency: int) -> Forecast:
    place = tuple(VERIFY).index(concurrency)
    cut = [
        tuple(replace(one, cells=one.cells[place : place + 1]) for one in each)
        for each in (forecast().rows, forecast().oracle)
    ]
    return forecast(concurrency=concurrency, concurrencies=(concurrency,), rows=cut[0], oracle=cut[1])


def test_each_drafter_has_a_line_over_its_windows_and_the_oracle_is_a_bound():
    made = by_window(forecast())
    assert made is not None and made.windows == KS
    assert [line.name for line in made.chart.lines][:2] == ["vllm-ngram n=2–4", "vllm-suffix"]
    assert [line.dashed for line in made.chart.lines] == [False, False, True]
    assert "upper bound" in made.chart.lines[2].name
    assert [tick.label for tick in made.chart.across] == [str(k) for k in KS]
    assert made.left_out == ()


def test_faster_is_above_the_break_even_line_and_slower_below():
    for concurrency in VERIFY:
        made = by_window(forecast(concurrency=concurrency))
        assert made is not None
        (level,) = made.chart.levels
        place = tuple(VERIFY).index(concurrency)
        for dot, one in zip(made.chart.lines[0].dots, sorted_ngrams(), strict=True):
            assert (dot.y < level.y) == (one.cells[place].speedup.estimate > 1)


def sorted_ngrams() -> list[ForecastRow]:
    found = [one for one in rows() if one.drafter == "vllm-ngram"]
    return sorted(found, key=lambda one: one.settings["k"])


def test_the_best_range_of_a_drafter_is_drawn_and_the_others_are_listed():
    made = by_window(forecast(rows=ranked(other_range(1), other_range(3))))
    assert made is not None
    assert [line.name for line in made.chart.lines][:2] == ["vllm-ngram n=2–4", "vllm-suffix"]
    assert made.left_out == ("vllm-ngram n=3–5 (1.27× at k=3)",)


def test_drafters_beyond_the_eighth_and_those_without_a_window_are_listed():
    many = ranked(*(row(f"d{i}", 2, 0.1, 0.1) for i in range(8)), row("free", 2, 0.1, 0.1, settings={"n": 3}))
    made = by_window(forecast(rows=many))
    assert made is not None
    assert len([line for line in made.chart.lines if not line.dashed]) == 8
    assert [name.split()[0] for name in made.left_out] == ["d6", "d7", "free"]
    assert made.left_out[-1] == "free n=3 (it has no fixed window)"


def test_given_acceptance_has_its_own_line():
    made = by_window(without_record(given=given()))
    assert made is not None and [line.name for line in made.chart.lines] == ["eagle3"]


def test_one_window_is_a_point_with_its_interval():
    made = by_window(forecast(rows=(row("vllm-ngram", 5, 0.4, 0.34),), oracle=()))
    assert made is not None and made.windows == (5,)
    (line,) = made.chart.lines
    assert len(line.dots) == 1 and len(line.whiskers) == 1


def test_without_rows_there_are_no_plots_of_speedups():
    for made in (by_window, decoding_by_concurrency, throughput_by_concurrency):
        assert made(without_record()) is None


def test_what_is_no_number_is_not_drawn():
    nothing = Interval(float("nan"), float("nan"), float("nan"))
    bare = [replace(c, speedup=nothing, throughput_speedup=None) for c in rows()[0].cells]
    made = forecast(rows=(replace(rows()[0], cells=tuple(bare)),))
    assert by_window(made) is None and decoding_by_concurrency(made) is None


def test_an_interval_without_end_does_not_flatten_the_plot():
    best, *others = rows()
    wide = replace(best.cells[0], speedup=Interval(1.5, 0.0, float("inf")))
    made = by_window(forecast(rows=(replace(best, cells=(wide, *best.cells[1:])), *others), oracle=()))
    assert made is not None
    ys = [dot.y for line in made.chart.lines for dot in line.dots]
    assert max(ys) - min(ys) > 5


def test_concurrency_has_the_recommended_row_first_and_all_that_win_somewhere():
    made = settings_worth_it(forecast())
    assert made[0] == ("k=8 n=2–4", forecast().rows[0])
    assert only_drafter(forecast()) == "vllm-ngram"
    assert {one.settings["k"] for _, one in made} == {8, 5, 3, 1}
    decoding, throughput = decoding_by_concurrency(forecast()), throughput_by_concurrency(forecast())
    assert decoding is not None and throughput is not None
    assert [line.name for line in decoding.lines] == [line.name for line in throughput.lines]
    positions = [tick.position for tick in decoding.across]
    ratios = [b - a for a, b in pairwise(positions)]
    assert ratios == pytest.approx([3 * ratios[1] / 2, ratios[1], ratios[1]], abs=0.01)  # 1, 8, 32, 128


def test_throughput_that_was_not_simulated_is_not_drawn():
    bare = tuple(
        replace(one, cells=tuple(replace(c, throughput_speedup=None) for c in one.cells)) for one in rows()
    )
    assert throughput_by_concurrency(forecast(rows=bare)) is None
    assert decoding_by_concurrency(forecast(rows=bare)) is not None


def test_one_concurrency_is_a_point():
    made = decoding_by_concurrency(only(8))
    assert made is not None
    assert [(len(line.dots), line.dots[0].x) for line in made.lines] == [(1, 50.0)] * len(made.lines)


def test_the_waterfall_adds_to_the_plain_step():
    made = waterfall(forecast().steps)
    assert made is not None
    assert [bar.label for bar in made.bars] == ["plain step", "k = 1", "k = 3", "k = 5", "k = 8"]
    plain, last = made.bars[0], made.bars[-1]
    assert plain.pieces[-1].x + plain.pieces[-1].width == pytest.approx(made.line, abs=0.01)
    (added,) = [piece for piece in last.pieces if piece.kind == "added"]
    assert added.x == pytest.approx(made.line, abs=0.01)
    assert added.width == pytest.approx(made.line * 8 / 6, abs=0.02)  # 8 ms beside 6 ms
    assert last.whisker is not None and last.whisker[1] == pytest.approx(added.x + added.width, abs=0.01)
    assert last.text == "8 drafted tokens: 14.00 (13.58 to 14.42) ms, +8.00 ms on the plain step"


def test_a_step_that_is_not_taken_apart_is_one_piece():
    steps = tuple(replace(one, parts={"step": one.total.estimate}) for one in (step_parts(0), step_parts(3)))
    made = waterfall(steps)
    assert made is not None and made.legend == (("a", "whole step, not taken apart", 0),)
    assert [piece.kind for piece in made.bars[1].pieces] == ["part", "added"]


def test_without_a_plain_step_there_is_no_waterfall():
    assert waterfall(()) is None and waterfall((step_parts(3),)) is None


def test_experts_lie_below_all_of_them_and_below_the_naive_count():
    made = experts(coverage())
    found, naive = made.lines
    assert [line.dashed for line in made.lines] == [False, True]
    assert made.levels[0].label == "all 128"
    assert found.dots[0].y == naive.dots[0].y
    assert all(a.y > b.y for a, b in zip(found.dots[1:], naive.dots[1:], strict=True))
    assert found.dots[0].y == pytest.approx(100 * (1 - 8 / (128 * 1.04)), abs=0.01)


def test_the_naive_line_ends_where_it_passes_all_experts():
    few = replace(coverage(), experts=40)
    assert [dot.text for dot in experts(few).lines[1].dots][-1] == "5 tokens: 40"
    assert experts(few).lines[1].path.endswith(" 0.0")


def test_needed_maps_mark_what_no_drafter_reaches():
    maps = needed_maps(needs())
    assert [one.title for one in maps] == ["to break even", "for 1.2×", "for 1.5×", "for 2×"]
    for each, target in zip(maps, (1.0, 1.2, 1.5, 2.0), strict=True):
        assert each.columns == tuple(map(str, VERIFY))
        cells = [cell for _, line in each.rows for cell in line]
        for cell, one in zip(cells, needs(), strict=True):
            assert cell is not None
            assert cell.text.endswith("✕") == (one.acceptance_length[target].estimate > one.k + 1)
            assert cell.text.startswith(f"{one.acceptance_length[target].estimate:.2f}")
    assert any(cell and cell.text.endswith("✕") for _, line in maps[3].rows for cell in line)


def test_shades_are_of_the_acceptance_that_is_needed():
    (one,) = [each for each in needs() if (each.k, each.concurrency) == (5, 1)]
    half = replace(one, acceptance_length={1.0: Interval(3.5, 3.4, 3.6)})
    cell = needed_maps((half,))[0].rows[0][1][0]
    assert cell is not None and cell.shade == 5
    assert cell.note == "3.50 (3.40 to 3.60) tokens per step: 50.0 % of the drafted tokens"
    assert needed_maps((half,))[1].rows[0][1][0] is None  # a target that was not asked


def test_nothing_needed_has_no_maps():
    assert needed_maps(()) == []
