"""What a user typed as a model."""

from __future__ import annotations

import pytest

from breakeven.cli.geometry import find_geometry
from breakeven.errors import UsageError


def test_a_home_of_nobody_is_no_file():
    with pytest.raises(UsageError, match="neither a model by name nor a file"):
        find_geometry("~nobody-of-that-name/config.json")
