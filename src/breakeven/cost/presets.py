"""Geometries by name, and a geometry out of any file that describes a model."""

from __future__ import annotations

import difflib
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from breakeven.cost.configs.architectures import geometry_from_config
from breakeven.cost.fields import Fields
from breakeven.cost.geometry import Geometry
from breakeven.cost.geometry_json import geometry_from_json
from breakeven.cost.gguf_geometry import geometry_from_gguf
from breakeven.cost.gguf_header import MAGIC
from breakeven.errors import UsageError

CONFIG = "config.json"
_MODELOPT = "hf_quant_config.json"
"""Where NVIDIA's ModelOpt writes the quantisation instead of the config."""
_MOST_BYTES = 50_000_000
"""Of a JSON file; configs take some kilobytes."""


def preset_names() -> tuple[str, ...]:
    """The names that `preset` knows, in the order of the file."""
    return tuple(_presets())


def preset(name: str) -> Geometry:
    """A geometry by name. Raises UsageError, which lists the names, for one that there is not."""
    found = _presets()
    if name not in found:
        near = difflib.get_close_matches(name, found, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise UsageError(f"no model preset {name!r}: {hint}There are {', '.join(found)}")
    return geometry_from_json(found[name], f"preset {name}")


def geometry_from_path(path: Path) -> Geometry:
    """Of a GGUF file, a config.json, a folder with one, or a geometry in the format of presets.

    Raises UsageError for anything else, and for what is damaged, unknown or impossible.
    """
    if path.is_dir():
        return _from_folder(path)
    _check_file(path)
    if _is_gguf(path):
        return geometry_from_gguf(path)
    value = _object(path)
    if isinstance(value.get("geometry"), dict):
        value = value["geometry"]
    if "num_hidden_layers" in value or "architectures" in value or "model_type" in value:
        return geometry_from_config(value, str(path))
    if "layers" in value or "attention" in value:
        return geometry_from_json(value, str(path))
    raise UsageError(
        f"{path} is neither a model's config.json nor a geometry: "
        "`breakeven models describe llama-3.1-8b --json` prints the format of one"
    )


def _from_folder(folder: Path) -> Geometry:
    if not (folder / CONFIG).is_file():
        raise UsageError(f"{folder} has no {CONFIG}: name the folder of a model, or a GGUF file")
    config = _object(folder / CONFIG)
    extra = folder / _MODELOPT
    if config.get("quantization_config") is None and extra.is_file():
        block = Fields(_object(extra), str(extra)).child("quantization")
        config["quantization_config"] = {"quant_method": "modelopt", **(block.values if block else {})}
    return geometry_from_config(config, str(folder / CONFIG))


def _check_file(path: Path) -> None:
    """Raises UsageError for a pipe, which would be waited for, and a device, which may have no end."""
    if path.exists() and not path.is_file():
        raise UsageError(f"{path} is no regular file: name a config.json or a GGUF file")


def _is_gguf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another file") from error


def _object(path: Path) -> dict[str, Any]:
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise UsageError(f"{path} is too large to be a config.json: name a config.json or a GGUF file")
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another file") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is neither GGUF nor JSON: name a config.json or a GGUF file") from error
    if not isinstance(value, dict):
        raise UsageError(f"{path} holds no JSON object: name a config.json or a GGUF file")
    return value


@cache
def _presets() -> dict[str, dict[str, Any]]:
    text = (files(__package__) / "data" / "models.json").read_text("utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)
    return found
