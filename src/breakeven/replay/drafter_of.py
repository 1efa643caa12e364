"""The drafter that replays what an engine would draft with a SpeculationConfig."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from breakeven.drafters.registry import BUILT_IN, drafter_class, make_drafter
from breakeven.engines.llamacpp_server import METHODS as LLAMACPP_METHODS
from breakeven.engines.speculation import SpeculationConfig
from breakeven.replay.grid import Setting

NAMES: Mapping[str, str] = {
    "vllm ngram": "vllm-ngram",
    "vllm suffix": "vllm-suffix",
    "sglang ngram": "sglang-ngram",
    "tensorrt-llm ngram": "trtllm-ngram",
}
"""By engine and method. llama.cpp's drafters are called as its methods are."""
OWN_NAMES = {"size_n": "n", "size_m": "k", "n_match": "n", "n_max": "k", "n_min": "min_k"}
"""llama.cpp's words for settings of its drafters, by ours."""


def drafter_of(engine: str, config: SpeculationConfig) -> Setting | None:
    """The drafter's name and settings; None where it cannot be replayed: it is learned, or not known here.

    Settings of the engine that change nothing in what is drafted are left out. Raises UsageError for values
    that the drafter does not take.
    """
    name = _name(engine, config)
    if name is None:
        return None
    known = {field.name for field in fields(drafter_class(name).Config)}
    settings = {key: value for key, value in _settings(config).items() if key in known and value is not None}
    make_drafter(name, settings)
    return name, settings


def _name(engine: str, config: SpeculationConfig) -> str | None:
    if engine == "llama.cpp":
        name = f"llamacpp-{LLAMACPP_METHODS.get(config.method, config.method)}"
        return name if name in BUILT_IN else None
    if engine == "sglang" and (config.min_n or config.max_n):
        return None  # of versions before 0.5.10, which match otherwise than is replayed
    return NAMES.get(f"{engine} {config.method}")


def _settings(config: SpeculationConfig) -> dict[str, Any]:
    kind = LLAMACPP_METHODS.get(config.method, config.method).replace("-", "_")
    prefixes = ("suffix_decoding_", "speculative_ngram_", f"spec_{kind}_")
    named = {}
    for option, value in config.options.items():
        name = option.replace("-", "_")
        for prefix in prefixes:
            name = name.removeprefix(prefix)
        named[OWN_NAMES.get(name, name)] = value
    n = config.max_n or config.min_n
    return {"k": config.k, "min_n": config.min_n, "max_n": config.max_n, "n": n, **named}
