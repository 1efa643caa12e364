"""sglang-ngram: SGLang's NGRAM, a trie of the last tokens of all steps, whose drafts have branches.

Semantics from SGLang 0.5.23: `srt/speculative/ngram_worker.py` (what is inserted, and when),
`kernels/jit/csrc/ngram_corpus/` (the trie), `srt/arg_groups/` (defaults and limits).

- Every step inserts the last max_trie_depth tokens of the context that it drafted from, after the draft. So a
  prompt is never indexed but for its tail, tokens just accepted can be drafted from two steps later, and a
  token counts once for each step whose window holds it.
- Every step verifies k + 1 nodes (SGLang's num_draft_tokens): the token sampled last, the draft, and where
  the trie knew less, token 0 in the rest, after the context's end. SGLang counts them all as drafted
  (`spec_num_proposed_drafts`), and accepts a padding 0 where the model says token 0: so does this.
- A match only goes on from those of the step before: a suffix that was not in the trie then is not found by
  a longer context, though it was inserted since. It matters for text that repeats itself within a window.

Requests here run one after another. On a server that runs several at once, their steps insert in turns.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np

from breakeven.drafters import _sglang_trie as trie
from breakeven.drafters._sglang_draft import draft_frequent, draft_recent
from breakeven.drafters.base import Drafter, Ids, Limits, Tree
from breakeven.drafters.settings import MOST_COUNTED, Settings, setting, shown
from breakeven.drafters.tokens import UNLIMITED
from breakeven.engines.sglang import Sglang
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

MATCH_TYPES = ("BFS", "PROB")
FIRST_ROWS = 1 << 12
"""Nodes there is room for at first; the arrays grow with the trie."""


@dataclass(frozen=True, slots=True)
class SglangNgramSettings(Settings):
    """Raises UsageError for a value out of its limits, or two that contradict each other.

    The upper limits are ours: a step takes time and memory as the square of depth, and as k times breadth.
    """

    k: int = setting(11, "draft tokens in each step; SGLang's num_draft_tokens is one more", 0, 1024)
    match_type: str = setting("BFS", "BFS: most recently used first; PROB: most frequent first")
    min_bfs_breadth: int = setting(1, "branches of a node after the longest match (BFS)", 1, 1024)
    max_bfs_breadth: int = setting(
        10, "branches of a node after the shortest match, or at most (PROB)", 1, 1024
    )
    max_trie_depth: int = setting(18, "tokens of a path in the trie: match and draft", 2, 1024)
    capacity: int = setting(
        10_000_000, "nodes of the trie; the least recently used are forgotten", 3, MOST_COUNTED
    )
    overlap: bool = setting(
        True,
        "SGLang's overlap schedule (not on a CPU): a request that stopped runs, and inserts, one step more",
    )

    def __post_init__(self) -> None:
        # super() without arguments finds no class in a dataclass with slots.
        Settings.__post_init__(self)
        if self.match_type not in MATCH_TYPES:
            words = " or ".join(MATCH_TYPES)
            raise UsageError(
                f"match_type is {words}, not {shown(self.match_type)}: type --set match_type={MATCH_TYPES[0]}"
            )
        if self.min_bfs_breadth > self.max_bfs_breadth:
            raise UsageError(
                f"min_bfs_breadth {self.min_bfs_breadth} is above max_bfs_breadth {self.max_bfs_breadth}:"
                f" type --set max_bfs_breadth={self.min_bfs_breadth}"
            )
        if self.capacity <= self.max_trie_depth:
            raise UsageError(
                f"capacity {self.capacity} is not above max_trie_depth {self.max_trie_depth}:"
                f" type --set capacity={self.max_trie_depth + 1}"
            )


class Trie:
    """The arrays of a trie, which grow up to its capacity."""

    def __init__(self, depth: int, capacity: int) -> None:
        self.depth, self.capacity = depth, capacity
        self.nodes = np.zeros((min(FIRST_ROWS, capacity), trie.COLUMNS), np.int32)
        self.buckets = np.zeros(FIRST_ROWS, np.int32)
        self.counts = np.array([1, 0, 1], np.int64)

    def insert(self, window: Ids) -> None:
        """Count all suffixes of the window, to at most `depth` tokens each."""
        most = len(window) * self.depth
        while len(self.nodes) < min(self.counts[trie.USED] + most, self.capacity):
            self._grow()
        trie.insert(self.nodes, self.buckets, self.counts, window, self.depth, self.capacity)

    def _grow(self) -> None:
        rows = min(2 * len(self.nodes), self.capacity)
        larger = np.zeros((rows, trie.COLUMNS), np.int32)
        larger[: len(self.nodes)] = self.nodes
        self.nodes, self.buckets = larger, np.zeros(2 * len(self.buckets), np.int32)
        trie.index(self.nodes, self.buckets, self.counts)


class SglangNgram(Drafter[SglangNgramSettings]):
    """Both match types. A draft is a Tree of k nodes; the order of siblings means nothing,
    but padding stands last, as in SGLang."""

    name: ClassVar[str] = "sglang-ngram"
    engine: ClassVar[str] = "sglang"
    summary: ClassVar[str] = "trie of the last tokens of all steps, shared by all requests; drafts a tree"
    Config: ClassVar[type[Settings]] = SglangNgramSettings
    learns = True
    steps_matter: ClassVar[bool] = True
    compiled: ClassVar[bool] = True

    def __init__(self, settings: SglangNgramSettings) -> None:
        super().__init__(settings)
        depth = settings.max_trie_depth
        longest = max(1, depth - 1)
        shrink = (settings.max_bfs_breadth - settings.min_bfs_breadth) / longest
        self._trie = Trie(depth, settings.capacity)
        self._breadths = np.array([longest, settings.min_bfs_breadth, shrink])
        self._anchors = np.zeros((depth, 2), np.int32)
        self._progress = np.zeros(2, np.int64)
        self._prompt_tokens = self._output_tokens = 0
        self._max_tokens = UNLIMITED

    def begin(self, prompt: Ids, limits: Limits) -> None:
        self._progress[:] = 0
        self._prompt_tokens, self._output_tokens = len(prompt), 0
        self._max_tokens = UNLIMITED if limits.max_tokens is None else limits.max_tokens

    def propose(self, context: Ids, room: int) -> Tree:
        """SGLang cuts no draft at the end of a request or of its memory: `room` is not looked at."""
        window = self._window(context)
        held, anchors, progress = self._trie, self._anchors, self._progress
        trie.follow(held.nodes, held.buckets, anchors, progress, window, len(context))
        draft = self._draft(int(progress[0]))
        held.insert(window)
        self._output_tokens = len(context) - self._prompt_tokens
        return draft

    def end(self, context: Ids) -> None:
        """The overlap schedule's step more, which SGLang leaves out where the last step was sure to reach
        max_tokens. What that step accepted beyond the end of the record is not known, and left out."""
        if self.settings.overlap and self._output_tokens + 1 < self._max_tokens:
            self._trie.insert(self._window(context))

    def flags(self) -> str:
        own = [spec for spec in fields(self.settings) if spec.name not in ("k", "overlap")]
        values = {spec.name: getattr(self.settings, spec.name) for spec in own}
        changed = [spec.name for spec in own if values[spec.name] != spec.default]
        options = {f"speculative-ngram-{name}": values[name] for name in changed}
        line = Sglang().line(SpeculationConfig("ngram", self.settings.k, options=options))
        return line if self.settings.overlap else f"{line} --disable-overlap-schedule"

    def _window(self, context: Ids) -> Ids:
        return np.ascontiguousarray(context[-self.settings.max_trie_depth :], np.int32)

    def _draft(self, anchors: int) -> Tree:
        k = self.settings.k
        tokens, parents = np.zeros(k, np.int32), np.full(k, -1, np.int32)
        if self.settings.match_type == "BFS":
            draft_recent(self._trie.nodes, self._anchors, anchors, self._breadths, tokens, parents)
        else:
            breadth = self.settings.max_bfs_breadth
            draft_frequent(self._trie.nodes, self._anchors, anchors, breadth, tokens, parents)
        return Tree(tuple(tokens.tolist()), tuple(parents.tolist()))
