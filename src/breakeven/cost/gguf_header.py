"""What a GGUF file says before its weights: metadata, and the shape and type of every tensor.

The layout is that of docs/gguf.md in the ggml repository, versions 2 and 3, little-endian. Only the header is
read, whatever the size of the file.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.errors import UsageError

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_ALIGNMENT = 32
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_KEPT_ITEMS = 10_000
"""Longer arrays are vocabularies, of which only the length is kept."""
_MOST_DIMENSIONS = 8

_BYTES_BY_BLOCK = {
    1: {0: 4, 1: 2, 24: 1, 25: 2, 26: 4, 27: 8, 28: 8, 30: 2},
    32: {2: 18, 3: 20, 6: 22, 7: 24, 8: 34, 9: 40, 20: 18, 39: 17},
    256: dict(zip((10, 11, 12, 13, 14, 15, 16, 17), (84, 110, 144, 176, 210, 292, 66, 74), strict=True))
    | dict(zip((18, 19, 21, 22, 23, 29, 34, 35), (98, 50, 110, 82, 136, 56, 54, 66), strict=True)),
}
BLOCKS = {
    kind: (weights, n_bytes) for weights, sizes in _BYTES_BY_BLOCK.items() for kind, n_bytes in sizes.items()
}
"""Weights and bytes of one block by ggml type (ggml/src/ggml-common.h)."""


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor: its dimensions, the fastest first, and the bytes that it takes."""

    name: str
    shape: tuple[int, ...]
    n_bytes: int

    @property
    def n_weights(self) -> int:
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Length:
    """Stands for an array too long to keep."""

    items: int


@dataclass(frozen=True, slots=True)
class Header:
    """Metadata by key, and the tensors in the order of the file."""

    metadata: dict[str, Any]
    tensors: tuple[TensorInfo, ...]


def read_header(path: Path) -> Header:
    """Raises UsageError for a file that is no GGUF, damaged, or shorter than its tensors."""
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise UsageError(f"{path} is no GGUF file")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _Reader(data, path).header()
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): name another GGUF file") from error
    except (struct.error, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is a damaged GGUF file: {error}") from error


class _Reader:
    """Walks the header from the front; `at` is the next byte."""

    def __init__(self, data: mmap.mmap, path: Path) -> None:
        self._data = data
        self._path = path
        self._at = len(MAGIC)

    def header(self) -> Header:
        version = self._scalar("I")
        if version not in _VERSIONS:
            raise self._damaged(f"version {version} where {' or '.join(map(str, _VERSIONS))} are known")
        n_tensors, n_pairs = self._scalar("Q"), self._scalar("Q")
        self._check_room(n_tensors + n_pairs)
        metadata = dict(self._pair() for _ in range(n_pairs))
        found = [self._tensor() for _ in range(n_tensors)]
        self._check_whole(found, metadata.get("general.alignment", _ALIGNMENT))
        return Header(metadata, tuple(tensor for tensor, _ in found))

    def _pair(self) -> tuple[str, Any]:
        return self._string(), self._value(self._scalar("I"))

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            return self._array()
        if kind not in _SCALARS:
            raise self._damaged(f"a value of type {kind}")
        return self._scalar(_SCALARS[kind])

    def _array(self) -> Any:
        kind, n = self._scalar("I"), self._scalar("Q")
        self._check_room(n)
        if n <= _KEPT_ITEMS:
            return [self._item(kind) for _ in range(n)]
        self._skip(kind, n)
        return Length(n)

    def _item(self, kind: int) -> Any:
        if kind == _ARRAY:
            raise self._damaged("an array of arrays")
        return self._value(kind)

    def _skip(self, kind: int, n: int) -> None:
        if kind in _SCALARS:
            self._advance(n * struct.calcsize("<" + _SCALARS[kind]))
        elif kind == _STRING:
            for _ in range(n):
                self._advance(self._scalar("Q"))
        else:
            raise self._damaged(f"{n} values of type {kind}")

    def _tensor(self) -> tuple[TensorInfo, int]:
        """With its offset into the data."""
        name, n_dimensions = self._string(), self._scalar("I")
        if n_dimensions > _MOST_DIMENSIONS:
            raise self._damaged(f"{name[:60]} has {n_dimensions} dimensions")
        shape = tuple(self._scalar("Q") for _ in range(n_dimensions))
        kind, offset = self._scalar("I"), self._scalar("Q")
        if kind not in BLOCKS:
            raise UsageError(f"{self._path} has {name[:60]} in the ggml type {kind}, which is not known here")
        weights, n_bytes = BLOCKS[kind]
        return TensorInfo(name, shape, math.prod(shape) // weights * n_bytes), offset

    def _check_whole(self, found: list[tuple[TensorInfo, int]], alignment: Any) -> None:
        if not isinstance(alignment, int) or alignment < 1:
            raise self._damaged(f"an alignment of {alignment}")
        start = -(-self._at // alignment) * alignment
        end = start + max((offset + tensor.n_bytes for tensor, offset in found), default=0)
        if end > len(self._data):
            raise UsageError(
                f"{self._path} is not whole: {len(self._data):,} bytes of {end:,}. Fetch it again"
            )

    def _string(self) -> str:
        n = self._scalar("Q")
        self._check_room(n)
        text = self._data[self._at : self._at + n].decode()
        self._at += n
        return text

    def _scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from("<" + code, self._data, self._at)
        self._at += struct.calcsize("<" + code)
        return value

    def _advance(self, n_bytes: int) -> None:
        self._check_room(n_bytes)
        self._at += n_bytes

    def _check_room(self, n_bytes: int) -> None:
        """Nothing is read or built that the rest of the file is too short for."""
        if n_bytes > len(self._data) - self._at:
            raise self._damaged(f"it ends within its header, at byte {len(self._data):,}")

    def _damaged(self, what: str) -> UsageError:
        return UsageError(f"{self._path} is a damaged GGUF file: {what}")
