from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.logs.rounding import counts_by_position, drafts_between
from tests.oracle.log_rounding_twin import allowed

DRAFTS = st.integers(1, 5).flatmap(
    lambda window: st.tuples(
        st.just(window),
        st.lists(
            st.integers(1, window).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n))),
            min_size=1,
            max_size=40,
        ),
    )
)


@given(DRAFTS)
def test_the_bounds_are_those_of_every_number_that_fits(case: tuple[int, list[tuple[int, int]]]):
    window, drafts = case
    drafted, accepted = sum(one for one, _ in drafts), sum(two for _, two in drafts)
    counts = [sum(two > position for _, two in drafts) for position in range(window)]
    length = f"{1 + accepted / len(drafts):.2f}"
    shares = [f"{count / len(drafts):.3f}" for count in counts]

    fitting = allowed(accepted, drafted, length, shares)
    bounds = drafts_between(accepted, drafted, float(length), [float(share) for share in shares])

    assert len(drafts) in fitting
    assert bounds == (fitting[0], fitting[-1])
    if len(fitting) == 1:
        positions = counts_by_position(len(drafts), accepted, [float(share) for share in shares])
        assert positions in (tuple(counts), None)
