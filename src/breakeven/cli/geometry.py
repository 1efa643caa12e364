"""From what a user typed as a model to its geometry: a preset, a file, or a model that the engine can run."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from breakeven.cost.geometry import Geometry
from breakeven.cost.gguf_geometry import geometry_from_gguf
from breakeven.cost.presets import geometry_from_path, preset, preset_names
from breakeven.errors import UsageError
from breakeven.models import hub
from breakeven.models.catalog import BY_NAME
from breakeven.models.resolve import Watch, quiet, resolve


def find_geometry(spec: str, watch: Watch = quiet) -> Geometry:
    """Of a preset, a path (see geometry_from_path), or a name of `models list`, fetched if it is absent.

    Raises UsageError for what is none of these, and what the readers raise.
    """
    if spec in preset_names():
        return preset(spec)
    if spec in BY_NAME or spec.startswith(hub.PREFIX):
        return geometry_from_gguf(resolve(spec, watch))
    path = Path(os.path.expanduser(spec))  # noqa: PTH111  Path.expanduser raises where there is no such user
    if path.exists():
        return geometry_from_path(path)
    known = (*preset_names(), *BY_NAME)
    near = difflib.get_close_matches(spec, known, 1)
    guess = f"did you mean {near[0]}? " if near else ""
    raise UsageError(
        f"{spec} is neither a model by name nor a file: {guess}Type one of {', '.join(known)}, "
        "or the path of a config.json, a folder with one, a GGUF file, or a geometry file"
    )
