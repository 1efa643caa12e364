import pytest

from breakeven.engines.phase import Phase
from breakeven.servers.progress import Progress


@pytest.mark.parametrize(
    ("elapsed_s", "usual_s", "said"),
    [
        (0.0034, None, "starting, 0 s"),
        (0.99, 90.0, "starting, 0 s of about 1 min 30 s"),
        (4.2, None, "starting, 4.2 s"),
    ],
)
def test_a_start_is_told_in_seconds(elapsed_s: float, usual_s: float | None, said: str):
    """Milliseconds read like a time per token."""
    assert Progress(None, elapsed_s, usual_s, "nothing").describe() == said


def test_a_phase_is_told_with_how_far_it_is():
    assert Progress(Phase("loading weights", 3, 8), 42, 90, "x").describe() == (
        "loading weights 3/8, 42.0 s of about 1 min 30 s"
    )
