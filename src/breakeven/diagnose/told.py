"""Told: how a server drafts, as far as anything says it: options, the start of a log, a trial's own words."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from breakeven.diagnose.evidence import Drafting
from breakeven.engines.speculation import MOST_K

NGRAM = "ngram"
LOOKUP = ("prompt_lookup_min", "prompt_lookup_max")
VLLM_UNSET_N = 5
"""Both ends of the lookup where vLLM is told neither."""
_CONFIG = re.compile(r"'speculative_config': (\{[^{}]{1,2000}\})")
"""In vLLM's line of non-default arguments."""
_SUMMARY = re.compile(r"SpeculativeConfig\(method='([\w-]{1,40})'[^)]*?num_spec_tokens=(\d{1,4})")
"""In vLLM's line that a start begins with."""
_OFF = re.compile(r"\bspeculative_(?:config|algorithm)=None\b")
"""In the same lines of vLLM and SGLang, where speculation is off."""
_SGLANG = {
    "method": re.compile(r"speculative_algorithm='([\w-]{1,40})'"),
    "steps": re.compile(r"speculative_num_steps=(\d{1,4})"),
    "tokens": re.compile(r"speculative_num_draft_tokens=(\d{1,4})"),
}
_DESCRIBED = re.compile(
    r"(?:^|, )([\w-]{1,40}), k (\d{1,4})(?:, n-grams of (\d{1,4})(?: to (\d{1,4}))? tokens)?"
)
"""SpeculationConfig.describe."""
_EMBEDDED = re.compile(r"^(ngram-[\w-]{1,40}) n=(\d{1,4}) m=(\d{1,4})")
"""LlamaSettings.describe."""
PLAIN = "no speculation"
"""Both, of a server that does not speculate."""


@dataclass(frozen=True, slots=True)
class Told:
    """What is not said is None."""

    method: str | None = None
    k: int | None = None
    min_n: int | None = None
    max_n: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further ones, as its engine names them, such as {"prompt_lookup_max": 4}."""
    min_left_out: bool = False
    """Whether it is known that the longest n-gram was said alone; then `min_n` follows from it."""
    is_off: bool = False
    """Whether the server said that it started without speculation; then nothing else is said here."""

    def or_else(self, other: Told) -> Told:
        """What is not said here, as the other says it. The n-grams go together."""
        mine = self.min_n is not None or self.max_n is not None
        lengths = self if mine else other
        method = self.method or other.method
        return Told(
            method,
            self.k if self.k is not None else other.k,
            lengths.min_n,
            lengths.max_n,
            self.settings or other.settings,
            lengths.min_left_out,
            method is None and (self.is_off or other.is_off),
        )

    def drafting(self, engine: str | None) -> Drafting:
        """As it comes to work: of the two ends of vLLM's lookup, one that is unset is as the other."""
        low, high = self.min_n, self.max_n
        method = self.method or Drafting().method
        if engine == "vllm" and method.startswith(NGRAM):
            low, high = low or high, high or low
        return Drafting(method, self.k, low, high, self.min_left_out, self.method is None, self.is_off)


def told_by_config(config: Mapping[str, Any]) -> Told:
    """vLLM's --speculative-config, whole. What has another type than it should is left out.

    Of the two ends of its lookup, one that is unset is as the other; 5 where neither is set.
    """
    low, high = (_whole(config.get(name)) for name in LOOKUP)
    left_out = {
        "num_speculative_tokens",
        "method",
        *(name for name in LOOKUP if not _whole(config.get(name))),
    }
    settings = {name: value for name, value in config.items() if name not in left_out}
    k, method = config.get("num_speculative_tokens"), config.get("method")
    name = method if isinstance(method, str) else None
    if name is not None and name.startswith(NGRAM) and low is None and high is None:
        low = high = VLLM_UNSET_N
    left_out_min = low is None and high is not None
    return Told(name, _whole(k), low or high, high or low, settings, left_out_min)


def told_by_log(lines: Iterable[str]) -> Told:
    """The last start counts."""
    found = Told()
    for line in lines:
        if config := _CONFIG.search(line):
            found = _config(config[1]).or_else(found)
        elif summary := _SUMMARY.search(line):
            found = Told(summary[1], _whole(int(summary[2]))).or_else(found)
        elif algorithm := _SGLANG["method"].search(line):
            found = _sglang(line, algorithm[1].lower())
        elif _OFF.search(line):
            found = Told(is_off=True)
    return found


def told_by_trial(description: str) -> Told:
    """What a trial keeps of its candidate, such as `vLLM, ngram, k 5, n-grams of 2 to 4 tokens`."""
    if found := _EMBEDDED.search(description):
        n = _whole(int(found[2]))
        return Told(found[1], _whole(int(found[3])), n, n)
    if PLAIN in description:
        return Told(is_off=True)
    if found := _DESCRIBED.search(description):
        low = int(found[3]) if found[3] else None
        return Told(found[1], _whole(int(found[2])), low, int(found[4]) if found[4] else low)
    return Told()


def _config(text: str) -> Told:
    """As Python writes a dict of plain values."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return Told()
    return told_by_config(value) if isinstance(value, dict) else Told()


def _sglang(line: str, method: str) -> Told:
    """A chain of a head is as long as its steps; n-grams are cut to the draft's tokens, less its root."""
    steps, tokens = (_SGLANG[name].search(line) for name in ("steps", "tokens"))
    if method == "ngram":
        return Told(method, _whole(int(tokens[1]) - 1) if tokens else None)
    return Told(method, _whole(int(steps[1])) if steps else None)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_K else None
