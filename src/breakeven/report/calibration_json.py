"""What `breakeven calibrate --json` and `breakeven show --json` print of a calibration."""

from __future__ import annotations

from typing import Any

from breakeven.cost.calibration import Calibration, calibration_to_json
from breakeven.report.calibration_terminal import DEFINITION
from breakeven.report.plain import printable


def calibration_json(calibration: Calibration, path: str) -> dict[str, Any]:
    """The object in calibration.json, with its `path` and what a step is."""
    body = {"path": path, **calibration_to_json(calibration), "definitions": {"step_ms": DEFINITION}}
    return {key: printable(value) for key, value in body.items()}
