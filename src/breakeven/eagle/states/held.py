"""A finished states folder: the states of its samples, read one sample at a time."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from safetensors import SafetensorError, safe_open
from torch import Tensor

from breakeven.eagle.stage import checksum
from breakeven.eagle.states.shards import FILE, Line, parse
from breakeven.errors import RunFormatError, UsageError

ANEW = "type  breakeven eagle states RECIPE --fresh"
MEND = "type  breakeven eagle states RECIPE --recheck"
READERS = 4
"""Shards whose checksums are computed at one time."""


class HeldStates:
    """What shards.jsonl names. Raises RunFormatError where that cannot be read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        try:
            lines = parse((folder / FILE).read_bytes())
        except OSError as error:
            raise RunFormatError(f"{folder / FILE} cannot be read ({error.strerror}): {MEND}") from error
        self._lines = {sample: line for line in lines for sample in line.samples}

    def shards_of(self, samples: Iterable[str]) -> list[Line]:
        """Those that hold them, in order. Raises UsageError for a sample that none holds."""
        found = {line.shard: line for line in map(self._line, samples)}
        return [found[shard] for shard in sorted(found)]

    def verify(self, shards: Iterable[Line]) -> None:
        """Reads them whole. Raises RunFormatError for one whose checksum is another than its line's."""
        with ThreadPoolExecutor(READERS) as pool:
            for line, sha256 in pool.map(lambda line: (line, self._checksum(line)), shards):
                if sha256 != line.sha256:
                    raise RunFormatError(
                        f"{self._folder / line.shard} is damaged (it has not the SHA-256 that {FILE} says): "
                        f"{MEND}"
                    )

    def read(self, sample: str, tokens: int, *names: str) -> list[Tensor]:
        """Of tensors of a sample (passes.py names them), the rows of its first `tokens`; on the CPU.

        Raises UsageError for a sample without states, or with states of fewer tokens; RunFormatError for a
        shard that cannot be read.
        """
        path = self._folder / self._line(sample).shard
        try:
            with safe_open(path, "pt") as file:
                found = [file.get_tensor(f"{sample}.{name}") for name in names]
        except (OSError, SafetensorError) as error:
            raise RunFormatError(f"{path} cannot be read ({error}): {MEND}") from error
        for name, tensor in zip(names, found, strict=True):
            if len(tensor) < tokens:
                raise UsageError(
                    f"{path} has {name} of {len(tensor):,} tokens of sample {sample}, which has {tokens:,} "
                    f"or more: {ANEW}"
                )
        return [tensor[:tokens] for tensor in found]

    def _line(self, sample: str) -> Line:
        if sample not in self._lines:
            raise UsageError(f"{self._folder} has no states of sample {sample}: {ANEW}")
        return self._lines[sample]

    def _checksum(self, line: Line) -> str:
        path = self._folder / line.shard
        try:
            return checksum(path)
        except OSError as error:
            raise RunFormatError(f"{path} cannot be read ({error.strerror}): {MEND}") from error
