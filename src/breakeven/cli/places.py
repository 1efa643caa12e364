"""What is typed of the places in a finding's command (see explain/places.py), as words of a shell."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from breakeven.client.metrics import PATH
from breakeven.trace.provenance import without_credentials

TYPED = ("model", "hardware", "calibration", "engine")
"""Options of the same names."""


def places_of(values: Mapping[str, Any]) -> dict[str, str]:
    """By place. Of the URL without the user's name and password, and without the path of its page."""
    known = {name: values.get(name) for name in TYPED}
    if values.get("url") is not None:
        known["url"] = without_credentials(values["url"]).rstrip("/").removesuffix(PATH)
    return {name: shlex.quote(str(value)) for name, value in known.items() if value is not None}
