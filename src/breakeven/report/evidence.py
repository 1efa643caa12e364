"""What the page shows beside the result: the replies of one side, and how they were obtained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breakeven.errors import RunFormatError
from breakeven.trace.meta import meta_as_dict
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import load_run


@dataclass(frozen=True, slots=True)
class Evidence:
    """One side's run folder, read."""

    traces: tuple[RequestTrace, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Host, versions, settings, sampling, workload: nested mappings of plain values."""
    missing: str | None = None
    """Why there are no traces, if the folder could not be read."""


def read_evidence(run_dir: Path) -> Evidence:
    """The run folder's traces and provenance; a folder that cannot be read is named as missing."""
    try:
        run = load_run(run_dir)
        return Evidence(tuple(run.traces()), meta_as_dict(run.meta))
    except RunFormatError as error:
        return Evidence(missing=str(error))
