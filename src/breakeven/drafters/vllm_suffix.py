"""vLLM's suffix decoding: Arctic Inference's suffix trees, of the request itself and of earlier outputs."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters import vllm_common
from breakeven.drafters._suffix_drafts import DONE, OWN_FULL, propose, replay_request
from breakeven.drafters._suffix_tree import SuffixTree
from breakeven.drafters.base import Ids, Limits, Table, TableDrafter
from breakeven.drafters.settings import MOST_COUNTED, Settings, setting
from breakeven.drafters.tokens import UNLIMITED, Tokens
from breakeven.engines.speculation import SpeculationConfig
from breakeven.engines.vllm import Vllm


@dataclass(frozen=True, slots=True)
class VllmSuffixSettings(Settings):
    """Defaults and limits as in SpeculativeConfig of vLLM 0.32, whose names begin with suffix_decoding_."""

    k: int = setting(
        None, "most tokens of a draft (num_speculative_tokens); unset: max_tree_depth", 1, kind=int
    )
    max_tree_depth: int = setting(24, "longest token sequence counted: match and draft together", low=1)
    max_cached_requests: int = setting(
        10000, "outputs in the global tree, the oldest leaves; 0 is none", 0, MOST_COUNTED
    )
    max_spec_factor: float = setting(1.0, "tokens drafted at most for each token matched", low=0)
    min_token_prob: float = setting(0.1, "least estimated probability of a drafted token", low=0, high=1)

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        if self.k is None:
            object.__setattr__(self, "k", self.max_tree_depth)


class VllmSuffix(TableDrafter[VllmSuffixSettings]):
    """Drafts the path whose estimated probabilities add up to most, over all lengths of match in two trees.

    Requests follow one another. A server that works on several at once has the beginnings of their outputs
    in its global tree, and drafts a little differently. Two effects of steps are left out: vLLM does not
    count the tokens of a last step that reaches max_model_len, and does count draft tokens accepted after a
    stop token.
    """

    name: ClassVar[str] = "vllm-suffix"
    engine: ClassVar[str] = vllm_common.ENGINE
    summary: ClassVar[str] = "suffix trees of the request and of earlier outputs (Arctic Inference)"
    Config = VllmSuffixSettings
    compiled: ClassVar[bool] = True
    learns = True

    def __init__(self, settings: VllmSuffixSettings) -> None:
        super().__init__(settings)
        self.learns = settings.max_cached_requests > 0
        self._limits = _limits(settings)
        self._min_prob = np.float32(settings.min_token_prob)
        self._draft = np.zeros(settings.max_tree_depth, np.int32)
        self._own = SuffixTree(settings.max_tree_depth)
        self._cached = SuffixTree(settings.max_tree_depth)
        self._outputs: deque[Ids] = deque()
        self._prompt = 0

    def begin(self, prompt: Ids, limits: Limits) -> None:
        """Start an own tree, and make room for one more output in the global tree."""
        prompt = np.ascontiguousarray(prompt, np.int32)
        self._prompt = len(prompt)
        self._own.clear()
        self._own.feed(prompt)
        while len(self._outputs) >= max(self.settings.max_cached_requests, 1):
            self._cached.remove(self._outputs.popleft())
        self._cached.begin()
        self._cached.look_up(prompt[-self.settings.max_tree_depth :])

    def propose(self, context: Ids, room: int) -> list[int]:
        """The draft after the context, of which the tokens that are new since the last call are counted
        first."""
        context = np.ascontiguousarray(context, np.int32)
        self._feed(context)
        room = max(0, min(room, self.settings.k))
        trees = self._own.arrays, self._cached.arrays
        n = propose(*trees, len(context), self._limits, room, self._min_prob, self._draft)
        return [int(token) for token in self._draft[:n]]

    def end(self, context: Ids) -> None:
        """Keep the output for the requests that follow."""
        context = np.ascontiguousarray(context, np.int32)
        self._feed(context)
        self._keep(context[self._prompt :])

    def room(self, context_tokens: int, output_tokens: int, limits: Limits) -> int:
        return vllm_common.room(context_tokens, self.settings.k, limits)

    def flags(self) -> str:
        names = ("max_tree_depth", "max_cached_requests", "max_spec_factor", "min_token_prob")
        options = {f"suffix_decoding_{name}": getattr(self.settings, name) for name in names}
        return Vllm().line(SpeculationConfig("suffix", self.settings.k, options=options))

    def table(self, tokens: Tokens) -> Table:
        """The draft at every output position. The outputs stay in the global tree for the next call."""
        return self._replay(tokens, every=True, first=0)

    def stepped(self, tokens: Tokens, first: int) -> Table:
        """As `table`, but drafts are made only where steps fall; at other positions there are none."""
        return self._replay(tokens, every=False, first=first)

    def _replay(self, tokens: Tokens, every: bool, first: int) -> Table:
        positions = tokens.positions
        if self.learns:
            outputs = np.sort(np.diff(positions))
            self._cached.reserve(int(outputs[-self.settings.max_cached_requests :].sum()))
        drafted, accepted = np.zeros(int(positions[-1]), np.int32), np.zeros(int(positions[-1]), np.int32)
        rooms = vllm_common.rooms(tokens, self.settings.k)
        if rooms is None:
            rooms = np.full(len(drafted), UNLIMITED, np.int32)
        for r, (ids, prompt) in enumerate(tokens.contexts()):
            rows = slice(int(positions[r]), int(positions[r + 1]))
            self.begin(ids[:prompt], Limits())
            self._own.reserve(len(ids) - prompt)
            cursor = np.array([prompt, prompt + first], np.int64)
            self._step(ids, rooms[rows], cursor, every, drafted[rows], accepted[rows])
            self._keep(ids[prompt:])
        return Table(drafted, accepted)

    def _step(
        self,
        ids: Ids,
        rooms: Ids,
        cursor: NDArray[np.int64],
        every: bool,
        drafted: Ids,
        accepted: Ids,
    ) -> None:
        while True:
            full = replay_request(
                self._own.arrays,
                self._cached.arrays,
                self.learns,
                ids,
                self._prompt,
                rooms,
                cursor,
                every,
                self._limits,
                self._min_prob,
                self._draft,
                drafted,
                accepted,
            )
            if full == DONE:
                return
            (self._own if full == OWN_FULL else self._cached).grow()

    def _feed(self, context: Ids) -> None:
        self._own.feed(context)
        if self.learns:
            self._cached.feed(context[self._prompt :])

    def _keep(self, output: Ids) -> None:
        if self.learns:
            self._outputs.append(output.copy())


def _limits(settings: VllmSuffixSettings) -> Ids:
    """Most tokens to draft after each match length 1 … max_tree_depth − 1; [0] is the length that allows
    most.

    A match of m tokens allows int(m × factor + 1e-6), the product in single precision (Arctic Inference
    0.3.0, SuffixTree::speculate), and no path leads deeper than max_tree_depth.
    """
    k, depth, factor = settings.k, settings.max_tree_depth, np.float32(settings.max_spec_factor)
    limits = [int(min(k, depth - m, float(np.float32(m) * factor) + 1e-6)) for m in range(depth)]
    limits[0] = max(range(1, depth), key=limits.__getitem__, default=0)
    return np.array(limits, np.int32)
