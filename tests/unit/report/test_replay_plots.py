from dataclasses import replace

import numpy as np
import pytest

from breakeven.report.replay_plots import Cell, heat_maps, histogram, scatter
from tests.unit.report.replays import acceptance, row, swept


def test_a_heat_map_runs_across_k_and_down_the_n_ranges():
    first = heat_maps(swept())[0]
    assert (first.title, first.across, first.down) == ("vllm-ngram", "k", "n")
    assert first.columns == ("1", "2", "4", "8", "12")
    assert [name for name, _ in first.rows] == ["n=2–4", "n=3–5"]
    assert first.rows[0][1][0].text == "1.35"


def test_drafters_with_one_setting_have_no_map():
    assert [each.title for each in heat_maps(swept())] == ["vllm-ngram", "trtllm-ngram"]


def test_shades_share_one_scale_and_the_best_of_each_drafter_is_marked():
    cells = [cell for each in heat_maps(swept()) for _, line in each.rows for cell in line]
    by_value = sorted(cells, key=lambda cell: float(cell.text))
    assert [cell.shade for cell in by_value] == sorted(cell.shade for cell in cells)
    assert by_value[-1].shade == 9 and by_value[0].shade == 0
    assert [cell.text for cell in cells if cell.best] == ["1.88", "1.77"]


def test_a_setting_that_was_not_tried_is_an_empty_cell():
    rows = (row("a", 1.4, 0.5, k=2, n=3), row("a", 1.3, 0.5, k=1, n=3), row("a", 1.2, 0.5, k=1, n=2))
    (only,) = heat_maps(swept(rows))
    assert [(name, [cell is None for cell in line]) for name, line in only.rows] == [
        ("n=2", [False, True]),
        ("n=3", [False, False]),
    ]


@pytest.mark.parametrize(
    ("values", "columns"),
    [((1, None, 3), ("none", "1", "3")), (("b", "a"), ("a", "b")), ((10, 9), ("9", "10"))],
)
def test_without_k_the_setting_that_differs_runs_across(values: tuple[object, ...], columns: tuple[str, ...]):
    rows = tuple(row("a", 1.5 - 0.1 * i, 0.5, depth=value) for i, value in enumerate(values))
    (only,) = heat_maps(swept(rows))
    assert (only.across, only.columns) == ("depth", columns)
    assert [name for name, _ in only.rows] == ["a"]


def test_the_histogram_is_shaded_by_the_share_of_its_row():
    drawn = histogram(acceptance())
    assert drawn is not None and not drawn.cut
    assert [name for name, _ in drawn.rows] == ["1", "2", "3", "5"]
    total = replace(acceptance(), histogram=np.array([(0, 0, 5), (1, 0, 3), (1, 1, 1)]))
    two = histogram(total)
    assert two is not None
    assert [(cell.text, cell.shade) for cell in two.rows[0][1]] == [("3", 7), ("1", 2)]


def test_a_histogram_without_drafts_is_none_and_a_large_one_is_cut():
    assert histogram(replace(acceptance(), histogram=np.array([(0, 0, 5)]))) is None
    every = np.array([(drafted, accepted, 1) for drafted in range(100) for accepted in range(60)])
    large = histogram(replace(acceptance(), histogram=every))
    assert large is not None and large.cut
    assert len(large.rows) == 40 and len(large.columns) == 40


def test_shades_are_of_the_whole_row_though_only_a_part_of_it_is_drawn():
    wide = [(1, 0, 20), (1, 40, 80), *((2, accepted, 1) for accepted in range(41))]
    drawn = histogram(replace(acceptance(), histogram=np.array(wide)))
    assert drawn is not None and drawn.cut
    assert drawn.rows[0][1] == (Cell("20", 2), *[None] * 39)


def test_long_drafts_take_no_more_room_than_short_ones():
    drawn = histogram(replace(acceptance(), histogram=np.array([(0, 0, 5), (200_000, 7, 3)])))
    assert drawn is not None and not drawn.cut
    assert drawn.columns == ("7",) and drawn.rows == (("200000", (Cell("3", 9),)),)


def test_points_lie_where_their_figures_say():
    drawn = scatter(swept())
    assert drawn is not None
    assert len(drawn.points) == 21
    best, worst = drawn.points[0], drawn.points[-1]
    assert best.y < worst.y  # counted downwards
    assert min(point.x for point in drawn.points) == next(p.x for p in drawn.points if "sglang" in p.text)
    assert all(0 <= point.x <= 100 and 0 <= point.y <= 100 for point in drawn.points)
    assert best.text.startswith("vllm-ngram k=12 n=2–4: 1.878 tokens per step, acceptance")


def test_the_front_falls_from_tokens_per_step_to_acceptance():
    drawn = scatter(swept())
    assert drawn is not None
    assert [point.y for point in drawn.front] == sorted(point.y for point in drawn.front)
    assert [point.x for point in drawn.front] == sorted(point.x for point in drawn.front)
    assert f"{len(drawn.front)} of them on the Pareto front" in drawn.text


def test_a_setting_that_never_drafted_has_no_acceptance_to_draw():
    never = row("a", 1.0, 0.0, k=1)
    never = replace(never, counters=replace(never.counters, drafts=0))
    assert scatter(swept((never,))) is None


def test_the_ninth_drafter_is_told_from_the_first():
    drawn = scatter(swept(tuple(row(f"d{i}", 1.9 - 0.1 * i, 0.5, k=1) for i in range(9))))
    assert drawn is not None
    assert len({(colour, hollow) for _, colour, hollow in drawn.drafters}) == 9
    assert [point.hollow for point in drawn.points] == [False] * 8 + [True]
