"""vLLM's settings of speculation: the options that carry them, read and written, in any version.

Settings from `vllm/config/speculative.py`; the command line from `vllm/utils/argparse_utils.py` (underscores,
dotted forms, the last of several counts) and `vllm/engine/arg_utils.py`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from breakeven.engines.argv import Given, Takes, is_older, scalar, take
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

ONE_FLAG = (0, 8, 3)
"""From this version on --speculative-config only: vllm-project/vllm pull request 15466 removed the others."""

WHOLE = ("--speculative-config", "-sc")
PARTS = {"--spec-method": "method", "--spec-model": "model", "--spec-tokens": "num_speculative_tokens"}
OLD = {
    "--speculative-model": "model",
    "--num-speculative-tokens": "num_speculative_tokens",
    "--ngram-prompt-lookup-min": "prompt_lookup_min",
    "--ngram-prompt-lookup-max": "prompt_lookup_max",
    "--speculative-model-quantization": "quantization",
    "--speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
    "-spec-draft-tp": "draft_tensor_parallel_size",
    "--speculative-max-model-len": "max_model_len",
    "--speculative-disable-by-batch-size": "disable_by_batch_size",
    "--speculative-disable-mqa-scorer": "disable_mqa_scorer",
    "--spec-decoding-acceptance-method": "acceptance_method",
    "--typical-acceptance-sampler-posterior-threshold": "posterior_threshold",
    "--typical-acceptance-sampler-posterior-alpha": "posterior_alpha",
    "--disable-logprobs-during-spec-decoding": "disable_logprobs",
    "--num-lookahead-slots": "num_lookahead_slots",
}
"""Flags up to 0.8.2, by what they are called in --speculative-config (pull request 14434)."""
SWITCHES = ("--speculative-disable-mqa-scorer",)
BEGINNINGS = ("--spec-", "--specu", "--num-spec", "--ngram-")
MAYBE = ("--disable-logprobs-during-spec-decoding",)
SINCE = {
    "eagle3": (0, 8, 5),
    "mtp": (0, 11),
    "suffix": (0, 11, 1),
    "draft-model": (0, 15),
    "dflash": (0, 16),
    "guard": (0, 30),
    "guard-off": (0, 30),
}
"""The first version that may have a method, of those which --speculative-config did not have from the start:
vllm-project/vllm pull requests 16937, 25232 (mtp, for several names), 25784, 24322, and 34014, by whose time
none had DFlash. The guard is written for 0.30 on."""
NO_V0 = (0, 10)
"""Older ones have another engine too, which takes a draft model; pull request 21152 removed its speculation.
"""
OWN_NAMES = {"draft_model": "draft-model", "[ngram]": "ngram"}
"""Where we call a method otherwise."""
GUARDS = {
    "guard": "breakeven.guard.vllm.GuardedNgram",
    "guard-off": "breakeven.guard.vllm_idle.IdleNgram",
}
"""Drafters of our own, which vLLM loads by their class."""
GUARD_TOKENS = 10
"""Their longest draft where k is not given, as `breakeven guard vllm-config` has it."""
MOST_GUARD_TOKENS = 64
"""That may be asked of them."""
_DIGITS = re.compile(r"\d+$")


def written(config: SpeculationConfig, version: str | None) -> tuple[str, ...]:
    """The words that turn it on. Raises UsageError for what vLLM, or this version, would not start with."""
    settings = _settings(config)
    if is_older(version, ONE_FLAG):
        return _old_flags(settings, config, version)
    _check_has(config.method, version)
    return "--speculative-config", json.dumps(settings, separators=(",", ":"))


def read(found: Sequence[Given]) -> SpeculationConfig | None:
    """What the options turn on; None is nothing. Raises UsageError for what cannot be read."""
    settings = _given_settings(found)
    return None if settings is None else _config(settings)


def takes(name: str) -> Takes | None:
    """The options that concern speculation, and what they take."""
    if name in SWITCHES:
        return "none"
    if name in MAYBE:
        return "maybe"
    head = name.partition(".")[0]
    if head in WHOLE or name in PARTS or name in OLD:
        return "one"
    # argparse takes a long option's beginning for the option.
    return "one" if head.startswith(BEGINNINGS) else None


def file_keys() -> list[str]:
    """What turns speculation on in the file that --config names: the options, without their hyphens."""
    names = [name.lstrip("-") for name in (*WHOLE, *PARTS, *OLD)]
    return sorted({spelling for name in names for spelling in (name, name.replace("-", "_"))})


def _full_name(name: str) -> str:
    """The option of which this is the beginning. Raises UsageError for none, or more than one."""
    head, point, rest = name.partition(".")
    known = [*WHOLE, *PARTS, *OLD]
    matches = [head] if head in known else [each for each in known if each.startswith(head)]
    if len(matches) != 1:
        raise UsageError(
            f"{head} is no option of vLLM's speculation that is known: type --speculative-config"
        )
    return matches[0] + point + rest


def _given_settings(found: Sequence[Given]) -> dict[str, Any] | None:
    """Settings by the names of --speculative-config; None where nothing is turned on."""
    whole: dict[str, Any] | None = None
    dotted: dict[str, dict[str, Any]] = {}
    parts: dict[str, Any] = {}
    for one in found:
        name = _full_name(one.name)
        if name in WHOLE:
            whole = _read_json(one)
        elif "." in name:
            head, _, key = name.partition(".")
            _put(dotted.setdefault(head, {}), key, one.text())
        else:
            parts[{**PARTS, **OLD}[name]] = _part(one, name)
    for settings in dotted.values():
        whole = settings
    if whole is None and not parts.keys() - {"num_lookahead_slots"}:
        return None
    return {**parts, **{key.replace("-", "_"): value for key, value in (whole or {}).items()}}


def _part(one: Given, name: str) -> Any:
    if name in SWITCHES:
        return True
    if name in MAYBE:
        return one.value is None or scalar(one.value.lower())
    text = one.text()
    return scalar(text) if _DIGITS.match(text) else text


def _put(settings: dict[str, Any], key: str, word: str) -> None:
    """One dotted form: --speculative-config.KEY WORD; KEY+ gives items of a list."""
    *path, last = key.split(".")
    try:
        for step in path:
            settings = settings.setdefault(step, {})
        if last.endswith("+"):
            settings.setdefault(last[:-1], []).extend(scalar(item) for item in word.split(","))
        else:
            settings[last] = scalar(word)
    except (AttributeError, TypeError):
        raise UsageError(f"{key} is given as one value and as several: leave one out") from None


def _read_json(one: Given) -> dict[str, Any] | None:
    text = one.text()
    if text in ("", "None"):
        return None
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if value is not None and not isinstance(value, dict):
        raise UsageError(f"{one.name} takes a JSON object, not {text[:60]!r}: quote it with '…' in a shell")
    return value


def _config(settings: dict[str, Any]) -> SpeculationConfig:
    rest = dict(settings)
    draft = take(str, "model", rest)
    method = take(str, "method", rest) or _method_of(draft)
    if guard := _guard_of(method, draft):
        method, draft = guard, None
    return SpeculationConfig(
        OWN_NAMES.get(method, method),
        take(int, "num_speculative_tokens", rest),
        take(int, "prompt_lookup_min", rest),
        take(int, "prompt_lookup_max", rest),
        None if draft in ("ngram", "[ngram]") else draft,
        rest,
    )


def _guard_of(method: str, draft: str | None) -> str | None:
    """Which of GUARDS a custom class is."""
    found = (name for name, drafter in GUARDS.items() if drafter == draft)
    return next(found, None) if method == "custom_class" else None


def check_guard(config: SpeculationConfig, known: Sequence[str]) -> None:
    """Raises UsageError for a setting of one of GUARDS that is none of vLLM's `known`: its own have no place
    on the command line."""
    own = [name for name in config.options if name.replace("-", "_") not in known]
    if config.method in GUARDS and own:
        raise UsageError(
            f"--set {own[0]}: vLLM takes no setting of the guard on its command line: leave out --set, type  "
            "breakeven guard vllm-config --help, and put the variable that it prints into the server's "
            "environment"
        )


def _custom(config: SpeculationConfig) -> SpeculationConfig:
    """One of GUARDS as vLLM takes it. Raises UsageError for what it has not."""
    config.refuse("vLLM", "min_n", "max_n", "draft")
    if (config.k or 0) > MOST_GUARD_TOKENS:
        raise UsageError(
            f"{config.method} has drafts of {MOST_GUARD_TOKENS} tokens at most: type --k {MOST_GUARD_TOKENS}"
        )
    return replace(config, method="custom_class", k=config.k or GUARD_TOKENS, draft=GUARDS[config.method])


def _method_of(model: str | None) -> str:
    """vLLM's own guess where no method is named, as far as the model's name tells."""
    name = (model or "").lower()
    if name in ("ngram", "[ngram]"):
        return "ngram"
    return next((kind for kind in ("eagle3", "eagle", "medusa", "dflash") if kind in name), "draft-model")


def _settings(config: SpeculationConfig) -> dict[str, Any]:
    """As --speculative-config has them. Raises UsageError for what vLLM would not start with."""
    if config.method in GUARDS:
        config = _custom(config)
    method = "draft_model" if config.method == "draft-model" else config.method
    if method.startswith("ngram"):
        config.require("vLLM", "k")
        config.refuse("vLLM", "draft")
    else:
        config.refuse("vLLM", "min_n", "max_n")
    if method in ("eagle", "eagle3", "draft_model", "custom_class"):
        config.require("vLLM", "draft", "k")
    if method == "medusa":
        config.require("vLLM", "draft")
    settings = {
        "method": method,
        "model": config.draft,
        "num_speculative_tokens": config.k,
        "prompt_lookup_min": config.min_n or config.max_n,
        "prompt_lookup_max": config.max_n or config.min_n,
    }
    return {**{name: value for name, value in settings.items() if value is not None}, **config.options}


def _check_has(method: str, version: str | None) -> None:
    """Raises UsageError for a method that this version does not start with."""
    since = SINCE.get(method)
    if since is None or not is_older(version, since):
        return
    if method == "draft-model" and is_older(version, NO_V0):
        return
    other = ", or by the model's own name, such as --method deepseek_mtp" if method == "mtp" else ""
    raise UsageError(
        f"vLLM {version} has no {method}: it takes it from {'.'.join(map(str, since))} on{other}; type "
        "another --method, or update the server"
    )


def _old_flags(settings: dict[str, Any], config: SpeculationConfig, version: str | None) -> tuple[str, ...]:
    if config.method not in ("ngram", "draft-model", "eagle", "medusa"):
        raise UsageError(f"vLLM {version} has no {config.method}: it takes ngram, or a draft model")
    method = settings.pop("method")
    if method == "ngram":
        settings = {"model": "[ngram]", **settings}
    names = {key: flag for flag, key in reversed(OLD.items())}
    words: list[str] = []
    for key, value in settings.items():
        if key not in names:
            raise UsageError(f"vLLM {version} has no {key}: leave out --set {key}")
        if names[key] in SWITCHES:
            words += [names[key]] if value else []
        else:
            words += [names[key], str(value)]
    return tuple(words)
