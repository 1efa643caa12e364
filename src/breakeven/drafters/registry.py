"""The drafters by name, loaded when asked for; a class of the user's own is named as module:Class."""

from __future__ import annotations

import importlib
from collections.abc import Collection, Mapping
from difflib import get_close_matches
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

    Raises UsageError for a name that is neither, or a class that cannot be replayed, saying what it lacks.
    """
    if name not in BUILT_IN:
        module, _, attribute = name.partition(":")
        if not (module and attribute) or module.startswith("."):
            raise _no_drafter(name)
        from breakeven.drafters.own import own_class

        return own_class(module, attribute)
    module, _, attribute = BUILT_IN[name].partition(":")
    found: type[Drafter[Any]] = getattr(importlib.import_module(module), attribute)
    return found


def make_drafter(name: str, settings: Mapping[str, Any]) -> Drafter[Any]:
    """A drafter ready to replay.

    Raises UsageError for a setting that it has not, or out of its limits; or if a class of one's own fails.
    """
    cls = drafter_class(name)
    known = getattr(cls.Config, "__dataclass_fields__", {})
    for key in settings:
        if key not in known:
            raise no_setting(name, key, known)
    if name in BUILT_IN:
        return cls(cls.Config(**settings))
    from breakeven.drafters.own import made

    return made(name, cls, settings)


def no_setting(name: str, key: str, known: Collection[str]) -> UsageError:
    """For a drafter without the setting `key`; `known` are those that it has."""
    near = get_close_matches(key.lower(), known, 1)
    advice = f"did you mean {near[0]}?" if near else f"it has {', '.join(known) or 'none'}"
    return UsageError(f"{name} has no setting {key[:40]}: {advice}")


def _no_drafter(name: str) -> UsageError:
    near = get_close_matches(name.lower().replace("_", "-"), BUILT_IN, 1)
    if near:
        advice = f"did you mean {near[0]}? (breakeven drafters lists them)"
    else:
        advice = f"type one of {', '.join(BUILT_IN)}, or module:Class"
    return UsageError(f"there is no drafter {name[:80]!r}: {advice}")
