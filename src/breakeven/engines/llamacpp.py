"""LlamaSettings: what one llama.cpp server runs with, read from and written as llama-server flags."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any

from breakeven.engines import llamacpp_flags
from breakeven.engines.cores import usable_cores
from breakeven.engines.llamacpp_flags import STATEFUL_TYPES, TARGETS
from breakeven.errors import UsageError

LONG_DRAFT_TOKENS = 16
"""Above this a CPU drafter is warned about: each draft token costs a CPU nearly as much as a plain one."""


def default_threads() -> int:
    """One core less than there are, so that the client which takes the times is not starved by the engine."""
    return max(1, usable_cores() - 1)


@dataclass(frozen=True, slots=True)
class NgramLookup:
    """Sizes of a lookup drafter: match the last `size_n` tokens, propose the `size_m` that followed.

    The defaults are llama.cpp's own (common/common.h). They are far too long for a CPU: a match of 12 tokens
    is rare, and a draft of 48 costs dozens of plain steps to verify.
    """

    size_n: int = 12
    size_m: int = 48
    min_hits: int = 1


@dataclass(frozen=True, slots=True)
class NgramMod:
    """Sizes of the hashed drafter `ngram-mod`, in tokens; the defaults are llama.cpp's own."""

    n_match: int = 24
    n_min: int = 48
    n_max: int = 64


@dataclass(frozen=True, slots=True)
class LlamaSettings:
    """Settings of one llama.cpp server: threads, context and caches for measuring on a CPU, the rest as
    llama-server has it.

    Raises UsageError for a value out of range, so that every instance is one that llama-server takes.
    """

    threads: int = field(default_factory=default_threads)
    threads_batch: int | None = None
    """Threads of steps with two tokens or more, as verification steps are; None: the same as `threads`."""
    ctx_size: int = 2048
    parallel: int = 1
    batch_size: int = 2048
    ubatch_size: int = 512
    gpu_layers: int | None = None
    """Layers on a GPU; None lets llama.cpp choose."""
    flash_attn: str = "auto"
    cache_type_k: str = "f16"
    cache_type_v: str = "f16"
    cache_prompt: bool = False
    """Off, unlike in llama-server: a prompt that is partly cached is computed in other batches, which round
    differently, so that greedy text of a repeat can differ from that of the first time."""
    kv_unified: bool = False
    """One KV cache for all slots, as llama-server has it unless --parallel is given. Without it a step takes
    only sequences of neighbouring slots together, the rest one after the other (ggml-org/llama.cpp#14511)."""
    cache_ram_mib: int = 0
    """Host memory for prompts that left their slot, in MiB; 0 keeps none, −1 sets no limit."""
    spec_types: tuple[str, ...] = ()
    """Drafters, asked in this order; empty is no speculation."""
    ngram_simple: NgramLookup = NgramLookup()
    ngram_map_k: NgramLookup = NgramLookup()
    ngram_map_k4v: NgramLookup = NgramLookup()
    ngram_mod: NgramMod = NgramMod()

    def __post_init__(self) -> None:
        llamacpp_flags.check(self._value)
        if self.ngram_mod.n_min > self.ngram_mod.n_max:
            raise UsageError("--spec-ngram-mod-n-min must not exceed --spec-ngram-mod-n-max")
        if len(set(self.spec_types)) < len(self.spec_types) or "none" in self.spec_types:
            raise UsageError("--spec-type takes each drafter once, or none alone")

    @classmethod
    def parse(cls, flags: str) -> LlamaSettings:
        """Read llama-server flags, such as `-t 2 --spec-type ngram-simple --spec-ngram-simple-size-n 3`.

        What the flags do not name stays as the defaults above. Raises UsageError for an unknown or mistyped
        flag (with the nearest name), a missing or wrong value, and a flag that breakeven sets itself.
        """
        return _build(llamacpp_flags.parse(flags))

    def flags(self) -> str:
        """Flags that `parse` turns into these settings again on any machine: threads are always named."""
        default = LlamaSettings()
        values = {target: self._value(target) for target in TARGETS}
        named = {t: v for t, v in values.items() if t == "threads" or v != default._value(t)}
        return shlex.join(llamacpp_flags.unparse(named))

    def _value(self, target: str) -> Any:
        return attrgetter(target)(self)

    def describe(self) -> str:
        """One line: `ngram-simple n=3 m=3, 1 thread`."""
        threads = f"{self.threads} thread{'' if self.threads == 1 else 's'}"
        if self.threads_batch not in (None, self.threads):
            threads += f" ({self.threads_batch} for batches)"
        drafters = " + ".join(self._describe_drafter(name) for name in self.spec_types)
        return f"{drafters or 'no speculation'}, {threads}"

    def _describe_drafter(self, name: str) -> str:
        if name == "ngram-mod":
            mod = self.ngram_mod
            return f"ngram-mod match={mod.n_match} min={mod.n_min} max={mod.n_max}"
        lookup = self.lookups().get(name)
        if lookup is None:
            return name
        hits = f" hits={lookup.min_hits}" if lookup.min_hits != 1 else ""
        return f"{name} n={lookup.size_n} m={lookup.size_m}{hits}"

    def lookups(self) -> dict[str, NgramLookup]:
        """The lookup drafters' sizes by their --spec-type name."""
        return {
            "ngram-simple": self.ngram_simple,
            "ngram-map-k": self.ngram_map_k,
            "ngram-map-k4v": self.ngram_map_k4v,
        }

    def warnings(self) -> tuple[str, ...]:
        """What would make a trial of these settings mean something else, each a sentence."""
        found = [
            f"{name} learns across requests: a repeated prompt is not a repeat" for name in self.stateful()
        ]
        for name, lookup in self.lookups().items():
            if name in self.spec_types and lookup.size_m > LONG_DRAFT_TOKENS:
                found.append(
                    f"{name} drafts {lookup.size_m} tokens at a time, which rarely pays on a CPU: "
                    f"try --spec-{name}-size-n 3 --spec-{name}-size-m 3"
                )
        if self.spec_types and self.threads_batch not in (None, self.threads):
            found.append(
                f"steps that verify drafts run on {self.threads_batch} threads and plain steps on "
                f"{self.threads}: set --threads and --threads-batch alike to compare speculation alone"
            )
        if self.cache_prompt:
            found.append(
                "prompts are cached: the first run of a prompt has the higher TTFT, and greedy text of a "
                "repeat may differ from it; leave out --cache-prompt to have every repeat computed alike"
            )
        return tuple(found)

    def stateful(self) -> tuple[str, ...]:
        """The chosen drafters that keep what they learned from one request to the next."""
        return tuple(name for name in self.spec_types if name in STATEFUL_TYPES)


def baseline_settings() -> LlamaSettings:
    """No speculation, with the defaults for a CPU."""
    return LlamaSettings()


def candidate_settings(baseline: LlamaSettings | None = None) -> LlamaSettings:
    """The baseline with ngram-simple at n = 3, m = 3: short enough that a wrong draft costs a CPU little."""
    return replace(
        baseline or baseline_settings(), spec_types=("ngram-simple",), ngram_simple=NgramLookup(3, 3)
    )


def _build(values: Mapping[str, Any]) -> LlamaSettings:
    """Settings from values by dotted target; a nested record is a changed copy of its default."""
    default = LlamaSettings()
    top: dict[str, Any] = {}
    nested: dict[str, dict[str, Any]] = defaultdict(dict)
    for target, value in values.items():
        record, _, name = target.rpartition(".")
        (nested[record] if record else top)[name] = value
    for record, changes in nested.items():
        top[record] = replace(getattr(default, record), **changes)
    return LlamaSettings(**top)
