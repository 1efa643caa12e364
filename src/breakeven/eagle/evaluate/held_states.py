"""What a states folder keeps of the target: embedding, last norm and matrix, and the states of samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from breakeven.eagle.states.passes import STATES
from breakeven.eagle.states.shards import FILE, parse
from breakeven.eagle.states.target import EMBEDDING, EPS, TEXT_CONFIG, WEIGHTS
from breakeven.eagle.states.target_head import TargetHead
from breakeven.errors import RunFormatError, UsageError

AGAIN = "type  breakeven eagle states RECIPE --fresh"
UNREADABLE = (OSError, SafetensorError, ValueError, KeyError, TypeError)


class HeldStates:
    """A finished states folder. Raises RunFormatError for one that is damaged."""

    def __init__(self, folder: Path, device: Any) -> None:
        self._folder = folder
        try:
            self._shards = {
                sample: line.shard for line in parse((folder / FILE).read_bytes()) for sample in line.samples
            }
            weights = load_file(folder / WEIGHTS)
            eps = orjson.loads((folder / TEXT_CONFIG).read_bytes()).get("rms_norm_eps", EPS)
            self.embedding: Tensor = weights[EMBEDDING]
            """Shape (vocabulary, hidden)."""
            self.target = TargetHead.of({name: one.to(device) for name, one in weights.items()}, eps)
        except UNREADABLE as error:
            raise self._damaged(folder, error) from error

    def of(self, sample: str, tokens: int) -> Tensor:
        """The four states of each token, (tokens, 4, hidden); `tokens` are as many as are needed.

        Raises UsageError for a sample without states, RunFormatError for a shard that is damaged.
        """
        if sample not in self._shards:
            raise UsageError(f"{self._folder} has no states of sample {sample}: {AGAIN}")
        path = self._folder / self._shards[sample]
        try:
            with safe_open(path, "pt") as file:
                states = file.get_tensor(f"{sample}.{STATES}")
        except UNREADABLE as error:
            raise self._damaged(path, error) from error
        if len(states) < tokens or states.shape[-1] != self.embedding.shape[1]:
            raise UsageError(
                f"{path} has states {list(states.shape)} of sample {sample}: it has {tokens:,} tokens or "
                f"more, and the target a hidden size of {self.embedding.shape[1]:,}: {AGAIN}"
            )
        return states

    def _damaged(self, path: Path, error: Exception) -> RunFormatError:
        return RunFormatError(f"{path} cannot be read ({error}): {AGAIN}")
