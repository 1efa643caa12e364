"""What is known of the drafter, typed as no drafter can be."""

from __future__ import annotations

import click
import pytest

from breakeven.cli.drafting_options import Rates
from breakeven.cli.forecast import forecast
from breakeven.errors import UsageError


@pytest.mark.parametrize(
    ("option", "value"),
    [("--step-ms", "1e-320"), ("--step-ms", "1e10"), ("--draft-ms", "1e308"), ("--flat-ms", "1e308")],
)
def test_times_whose_ratios_would_not_be_finite(option: str, value: str):
    words = ["--model", "llama-3.1-8b", "--hardware", "h100-sxm", option, value]
    with pytest.raises(click.BadParameter, match="not in the range"):
        forecast.main(words, standalone_mode=False)


def test_more_rates_than_a_window_has_positions():
    with pytest.raises(UsageError, match="1,025 acceptance rates"):
        Rates().convert(",".join(["0.5"] * 1025), None, None)
