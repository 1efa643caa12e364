import pytest

from breakeven.interval import Interval
from breakeven.report.bars import Bar, Piece, drawn_bars, interval_ms, part_words, signed_ms, stacked


def test_parts_stand_end_to_end_and_what_is_added_after_them():
    pieces = list(stacked({"a": 2e-3, "b": 0.0, "c": 1e-3}, {"a": 0.0, "b": 4e-3}))
    assert [(piece.name, piece.kind) for piece in pieces] == [("a", "part"), ("c", "part"), ("b", "added")]
    ends = [(piece.start_s * 1e3, piece.end_s * 1e3) for piece in pieces]
    assert ends == [pytest.approx(pair) for pair in ((0, 2), (2, 3), (3, 7))]


def test_a_part_that_shrinks_leads_back():
    pieces = list(stacked({"a": 3e-3}, {"a": -1e-3}))
    assert [piece.end_s for piece in pieces] == pytest.approx([3e-3, 2e-3])
    made = drawn_bars([Bar("x", tuple(pieces), "")], 3e-3, "")
    one = made.bars[0].pieces[1]
    assert one.x + one.width == pytest.approx(made.line, abs=0.01)
    assert one.text == "a: −1.00 ms"


def test_positions_are_shares_of_the_longest_with_a_margin():
    bar = Bar(
        "x",
        (Piece("weights", 0, 5e-3), Piece("kv", 5e-3, 10e-3, "added")),
        "",
        "",
        Interval(5e-3, 2e-3, 7e-3),
    )
    made = drawn_bars([bar], 5e-3, "")
    scale = 100 / 1.03
    assert [piece.width for piece in made.bars[0].pieces] == pytest.approx([scale / 2] * 2, abs=0.01)
    assert made.line == pytest.approx(scale / 2, abs=0.01)
    assert made.bars[0].whisker == pytest.approx([scale * share for share in (0.2, 0.5, 0.7)], abs=0.01)
    assert [tick.label for tick in made.across] == ["0", "2", "4", "6", "8", "10"]
    assert made.legend == (("a", "weights", 0), ("b", "KV cache", 1))


def test_narrow_pieces_have_no_letter_and_wholes_no_legend():
    pieces = (Piece("a", 0, 1e-4), Piece("b", 1e-4, 1e-2), Piece("all", 0, 1e-2, "whole"))
    made = drawn_bars([Bar("x", pieces, "")], 1e-2, "")
    assert [piece.letter for piece in made.bars[0].pieces] == ["", "b", ""]
    assert [name for _, name, _ in made.legend] == ["a", "b"]


def test_the_axis_reaches_below_0_where_something_does():
    made = drawn_bars([Bar("x", (), "", hatched=(-2e-3, 2e-3))], 1e-3, "")
    low, high = made.bars[0].hatched or (0, 0)
    assert 0 < low < 5 and 95 < high < 100
    assert made.across[0].label == "−2"


def test_words():
    assert part_words("all_reduce") == "AllReduce" and part_words("own_part") == "own part"
    assert interval_ms(Interval(6.1e-3, 5.9e-3, 6.4e-3)) == "6.10 (5.90 to 6.40)"
    assert (signed_ms(3.3e-4), signed_ms(-3.3e-4)) == ("+0.33", "−0.33")
