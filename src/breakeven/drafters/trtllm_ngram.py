"""trtllm-ngram: TensorRT-LLM's NGram, a pool of what followed each n-gram at earlier steps.

Semantics from TensorRT-LLM, `tensorrt_llm/_torch/speculative/ngram.py` and `drafter.py` (the pool, padding),
`tensorrt_llm/llmapi/llm_args.py` (settings and defaults).

- Each step first files every n-gram of max_n to 1 tokens with the up to k tokens after it, for the part of
  the context whose continuations were cut short in the step before. Then it drafts what is kept for the
  longest n-gram that the context ends with: the oldest, or the newest.
- A continuation that is longer than others of its n-gram replaces them, but the one listed just after a
  removed one escapes: TensorRT-LLM removes from a list while it walks it. So it depends on where steps end.
- A draft is padded with token 0 to k tokens. The padding is verified like the rest, and accepted where
  the model says token 0. TensorRT-LLM's own statistics leave the zeros out of the drafted tokens; with
  padding=false so does this, but then it accepts none of them.

Requests here run one after another. On a server that runs several at once, their steps share the pool.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import ClassVar

import numpy as np

from breakeven.drafters.base import Drafter, Ids, Limits
from breakeven.drafters.settings import Settings, setting
from breakeven.drafters.tokens import UNLIMITED
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.trtllm import Trtllm

ID_BYTES = 4
"""Of a token id in the pool: n-grams and continuations are kept as the bytes of their int32 ids."""


@dataclass(frozen=True, slots=True)
class TrtllmNgramSettings(Settings):
    """k has no default in TensorRT-LLM; 3 is its documentation's example. The upper limits are ours."""

    k: int = setting(3, "most tokens of a draft (max_draft_len)", 1, 1024)
    max_n: int = setting(2, "tokens of the longest n-gram looked up (max_matching_ngram_size)", 1, 1024)
    is_keep_all: bool = setting(True, "keep equally long continuations of an n-gram, not only the first")
    is_use_oldest: bool = setting(True, "draft the oldest continuation that is kept, not the newest")
    is_public_pool: bool = setting(True, "one pool for all requests, not one for each")
    padding: bool = setting(True, "pad drafts with token 0 to k, as the engine does")


class Continuations:
    """What followed one n-gram, in the order in which it was filed, without repetitions."""

    __slots__ = ("cut", "full")

    def __init__(self) -> None:
        self.full: dict[bytes, None] = {}
        """Those of k tokens: once here, they stay."""
        self.cut: list[tuple[bytes, int]] = []
        """The shorter ones, which the end of a context cut, and how many full ones were filed before."""

    def oldest(self) -> bytes:
        if self.cut and self.cut[0][1] == 0:
            return self.cut[0][0]
        return next(iter(self.full))

    def newest(self) -> bytes:
        if self.cut and self.cut[-1][1] == len(self.full):
            return self.cut[-1][0]
        return next(reversed(self.full))

    def file(self, new: bytes, full_bytes: int) -> None:
        """Add one if it is new, and remove shorter ones, except each that stands just after a removed one."""
        if new in self.full or any(new == old for old, _ in self.cut):
            return
        kept = []
        removed_at = -1
        for old, before in self.cut:
            if len(old) < len(new) and before != removed_at:
                removed_at = before
            else:
                kept.append((old, before))
                removed_at = -1
        self.cut = kept
        if len(new) == full_bytes:
            self.full[new] = None
        else:
            self.cut.append((new, len(self.full)))


class TrtllmNgram(Drafter[TrtllmNgramSettings]):
    """The pool grows with all tokens seen, without limit, as in the engine; a private one begins anew with
    each request."""

    name: ClassVar[str] = "trtllm-ngram"
    engine: ClassVar[str] = "tensorrt-llm"
    summary: ClassVar[str] = "pool of what followed each n-gram, shared by all requests; drafts the oldest"
    Config: ClassVar[type[Settings]] = TrtllmNgramSettings
    learns = True
    steps_matter: ClassVar[bool] = True

    def __init__(self, settings: TrtllmNgramSettings) -> None:
        super().__init__(settings)
        self.learns = settings.is_public_pool
        self._pool: dict[bytes, Continuations] = {}
        self._start = 0

    def begin(self, prompt: Ids, limits: Limits) -> None:
        self._start = 0
        if not self.settings.is_public_pool:
            self._pool = {}

    def propose(self, context: Ids, room: int) -> list[int]:
        """Without room the engine neither drafts nor files anything."""
        if room <= 0:
            return []
        size = min(self.settings.max_n, len(context) - 1)
        recent = np.ascontiguousarray(context[self._start :], np.int32).tobytes()
        self._file(recent, size)
        window = self.settings.k + self.settings.max_n - 1
        self._start = max(0, len(context) - window)
        draft = self._lookup(recent, size)
        if self.settings.padding:
            draft += [0] * (self.settings.k - len(draft))
        return draft[:room]

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        """The token after the draft must fit the request. Its max_tokens is at most, and by default, what the
        server has room for."""
        asked = UNLIMITED if limits.max_tokens is None else limits.max_tokens - output_tokens - 1
        held = UNLIMITED if limits.max_model_len is None else limits.max_model_len - context_tokens - 1
        return min(asked, held)

    def flags(self) -> str:
        """Of `trtllm-serve`, which reads a YAML file once: here bash makes it. JSON is YAML too."""
        options = asdict(self.settings)
        k, max_n, _ = (options.pop(name) for name in ("k", "max_n", "padding"))
        return Trtllm().line(SpeculationConfig("ngram", k, max_n=max_n, options=options))

    def _file(self, recent: bytes, largest: int) -> None:
        full, tokens = self.settings.k * ID_BYTES, len(recent)
        for size in range(largest * ID_BYTES, 0, -ID_BYTES):
            for at in range(size, tokens, ID_BYTES):
                ngram, new = recent[at - size : at], recent[at : at + full]
                kept = self._pool.get(ngram)
                if kept is None or (not self.settings.is_keep_all and len(new) > len(kept.oldest())):
                    kept = self._pool[ngram] = Continuations()
                kept.file(new, full)

    def _lookup(self, recent: bytes, largest: int) -> list[int]:
        for size in range(largest * ID_BYTES, 0, -ID_BYTES):
            kept = self._pool.get(recent[-size:])
            if kept is not None:
                draft = kept.oldest() if self.settings.is_use_oldest else kept.newest()
                return [int(token) for token in np.frombuffer(draft, np.int32)]
        return []
