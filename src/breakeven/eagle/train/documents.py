"""A sample with its states, shifted as the trainer library shifts it, padded as its GPU kernel needs it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from breakeven.eagle.data.samples import Sample
from breakeven.eagle.states.held import HeldStates
from breakeven.eagle.states.passes import STATES, TOP_IDS

AHEAD = 2
"""Documents that are read before they are due."""
BLOCK = 128
"""Positions of a block of flex attention: the library extends its masks by whole blocks."""


@dataclass(frozen=True, slots=True)
class Document:
    """One sample of N tokens, as T ≥ N − 1 positions. Position t reads token t + 1 beside the states of token
    t, and is to say token t + 2, as the target does after token t + 1. Positions from N − 1 on are padding.
    """

    input_ids: Any
    """int64 [1, T]: tokens 1 … N − 1."""
    hidden: Any
    """float32 [1, T, 3 · hidden]: the three states of tokens 0 … N − 2, side by side."""
    last: Any
    """float32 [1, T, hidden]: the state before the target's last norm, of tokens 1 … N − 1."""
    asked: Any
    """bool [1, T]: whether token t + 1 belongs to a reply."""
    learned: Any
    """bool [1, T]: … and what the target finds most probable after it is in the draft vocabulary."""
    target: Any
    """int64 [1, T]: which token that is."""
    document_ids: Any
    """int64 [1, T]: 0, and −1 for padding."""

    def to(self, device: Any) -> Document:
        return Document(*(getattr(self, one.name).to(device, non_blocking=True) for one in fields(self)))


class Documents:
    """Reads the states of samples, by the samples' place."""

    def __init__(
        self,
        samples: Sequence[Sample],
        states: HeldStates,
        draft_ids: Sequence[int],
        *,
        steps: int,
        shuffled: bool = False,
    ) -> None:
        """`steps` are those of the training-time test: no document has fewer positions. `shuffled` permutes
        the three states over the positions of each sample: a control, with only the tokens to learn from."""
        self._samples, self._states, self._steps, self._shuffled = samples, states, steps, shuffled
        self._drafted = torch.zeros(draft_ids[-1] + 1, dtype=torch.bool)
        self._drafted[torch.tensor(draft_ids)] = True
        self._in_blocks = torch.cuda.is_available()

    def __len__(self) -> int:
        return len(self._samples)

    def load(self, place: int) -> Document:
        """Raises what HeldStates.read does."""
        sample = self._samples[place]
        states, top = self._states.read(sample.id, len(sample.input_ids), STATES, TOP_IDS)
        states = states.float()
        if self._shuffled:
            mixed = np.random.default_rng(place).permutation(len(states))
            states[:, :-1] = states[torch.from_numpy(mixed), :-1]
        asked = torch.from_numpy(sample.loss_mask[1:].copy())
        target = top[1:, 0].long()
        found = {
            "input_ids": torch.from_numpy(sample.input_ids[1:].astype(np.int64)),
            "hidden": states[:-1, :-1].flatten(1),
            "last": states[1:, -1],
            "asked": asked,
            "learned": asked & self._in_vocabulary(target),
            "target": target,
            "document_ids": torch.zeros(len(asked), dtype=torch.long),
        }
        return Document(**{name: self._padded(name, value) for name, value in found.items()})

    def ahead(self, places: Iterable[int]) -> Iterator[Document]:
        """Those documents in turn, read while those before are worked on."""
        coming: deque[Future[Document]] = deque()
        with ThreadPoolExecutor(1) as reader:
            for place in places:
                coming.append(reader.submit(self.load, place))
                if len(coming) > AHEAD:
                    yield coming.popleft().result()
            while coming:
                yield coming.popleft().result()

    def _in_vocabulary(self, target: Any) -> Any:
        return (target < len(self._drafted)) & self._drafted[target.clamp(max=len(self._drafted) - 1)]

    def _padded(self, name: str, value: Any) -> Any:
        """[1, T, …]; in blocks, whose number is a power of two: few lengths, so that what was compiled for
        one is used again."""
        length = max(len(value), self._steps)
        if self._in_blocks:
            length = BLOCK << ((length - 1) // BLOCK).bit_length()
        padding = value.new_full((length - len(value), *value.shape[1:]), -1 if name == "document_ids" else 0)
        return torch.cat([value, padding])[None]
