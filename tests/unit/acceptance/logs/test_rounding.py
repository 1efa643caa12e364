import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.logs.rounding import counts_by_position, drafts_between, shares_in


@pytest.mark.parametrize(
    ("accepted", "drafted", "length", "shares", "drafts"),
    [
        (1388, 1415, 5.55, (0.977, 0.931, 0.911, 0.869, 0.862), 305),
        (262, 295, 5.44, (0.983, 0.949, 0.915, 0.881, 0.712), 59),
        (150, 387, 2.16, (0.543, 0.357, 0.264), 129),
        (65, 192, 17.25, (), 4),
        (115, 115, 58.50, (), 2),
    ],
)
def test_drafts_of_real_lines(
    accepted: int, drafted: int, length: float, shares: tuple[float, ...], drafts: int
):
    assert drafts_between(accepted, drafted, length, shares) == (drafts, drafts)


def test_nothing_accepted_leaves_the_drafts_between_full_and_single_ones():
    assert drafts_between(0, 402, 1.0, (0.0, 0.0, 0.0)) == (134, 402)


def test_nothing_drafted_is_no_draft():
    assert drafts_between(0, 0, None) == (0, 0)


def test_tokens_alone_bound_nothing():
    assert drafts_between(158, 289, None) is None


@pytest.mark.parametrize("length", [0.0, 0.5, 0.99499, 7.0])
def test_a_length_that_no_number_gives(length: float):
    assert drafts_between(10, 12, length, (0.5, 0.333)) is None


def test_counts_are_given_only_where_they_add_up():
    assert counts_by_position(4, 5, (0.75, 0.5)) == (3, 2)
    assert counts_by_position(4, 6, (0.75, 0.5)) is None
    assert counts_by_position(4, 0, ()) is None
    assert counts_by_position(20_000, 15_000, (0.5, 0.25)) is None


@given(st.integers(1, 10**7), st.data())
def test_a_busy_period_is_bounded_in_no_time(drafts: int, data: st.DataObject):
    accepted = data.draw(st.integers(0, 5 * drafts))
    bounds = drafts_between(accepted, 5 * drafts, round(1 + accepted / drafts, 2))
    assert bounds is not None
    assert bounds[0] <= drafts <= bounds[1]


@pytest.mark.parametrize(
    ("text", "shares"),
    [
        ("0.805, 0.632, 0.483", (0.805, 0.632, 0.483)),
        ("1.000,1.000", (1.0, 1.0)),
        ("0.5, 0.6", ()),
        ("1.5, 0.6", ()),
        ("0.5, x", ()),
        ("", ()),
        ("0.5, " * 300 + "0.5", ()),
    ],
)
def test_shares_that_cannot_be_are_none(text: str, shares: tuple[float, ...]):
    assert shares_in(text) == shares
