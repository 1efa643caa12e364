"""The drafters by name, loaded when asked for; a class of the user's own is named as module:Class."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from breakeven.drafters.base import Drafter
from breakeven.errors import UsageError

BUILT_IN: Mapping[str, str] = {
    "vllm-ngram": "breakeven.drafters.vllm_ngram:VllmNgram",
    "vllm-suffix": "breakeven.drafters.vllm_suffix:VllmSuffix",
    "hf-prompt-lookup": "breakeven.drafters.hf_prompt_lookup:HfPromptLookup",
    "llamacpp-ngram-simple": "breakeven.drafters.llamacpp_ngram_simple:LlamaNgramSimple",
    "llamacpp-ngram-map-k": "breakeven.drafters.llamacpp_ngram_map:LlamaNgramMapK",
    "llamacpp-ngram-map-k4v": "breakeven.drafters.llamacpp_ngram_map:LlamaNgramMapK4V",
    "llamacpp-ngram-mod": "breakeven.drafters.llamacpp_ngram_mod:LlamaNgramMod",
    "llamacpp-ngram-cache": "breakeven.drafters.llamacpp_ngram_cache:LlamaNgramCache",
    "sglang-ngram": "breakeven.drafters.sglang_ngram:SglangNgram",
    "trtllm-ngram": "breakeven.drafters.trtllm_ngram:TrtllmNgram",
    "oracle": "breakeven.drafters.oracle:Oracle",
    "recorded": "breakeven.drafters.recorded:Recorded",
}


def drafter_class(name: str) -> type[Drafter[Any]]:
    """The class of a built-in name, or of module:Class (looked for in the working folder too).

    Raises UsageError for a name that is neither, or a class that is no Drafter.
    """
    if name not in BUILT_IN:
        return _own_class(name)
    module, _, attribute = BUILT_IN[name].partition(":")
    found: type[Drafter[Any]] = getattr(importlib.import_module(module), attribute)
    return found


def _own_class(name: str) -> type[Drafter[Any]]:
    module, _, attribute = name.partition(":")
    if not (module and attribute) or module.startswith("."):
        raise UsageError(f"there is no drafter {name!r}: type one of {', '.join(BUILT_IN)}, or module:Class")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        raise UsageError(f"cannot load the drafter {name} ({why}): mend the module") from error
    if not (isinstance(found, type) and issubclass(found, Drafter)):
        raise UsageError(f"{name} is no Drafter: derive it from breakeven.Drafter")
    lacking = [part for part in ("Config", "name") if not hasattr(found, part)]
    lacking += sorted(found.__abstractmethods__)
    if lacking:
        raise UsageError(f"{name} has no {' nor '.join(lacking)}: define it in the class")
    return found


def make_drafter(name: str, settings: Mapping[str, Any]) -> Drafter[Any]:
    """A drafter ready to replay. Raises UsageError for a setting that it has not, or out of its limits."""
    cls = drafter_class(name)
    known = getattr(cls.Config, "__dataclass_fields__", {})
    for key in settings:
        if key not in known:
            raise UsageError(f"{name} has no setting {key}: it has {', '.join(known) or 'none'}")
    return cls(cls.Config(**settings))
