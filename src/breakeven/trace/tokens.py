"""tokens.jsonl: token ids of a run's requests that the reply itself did not carry, beside the requests.

The first line says how they were made, each further line holds one request:

    {"format_version": 1, "made_by": "server tokenizer", "incomplete": null}
    {"id": "p#0", "prompt": [1, …], "output": [7, …], "reasoning_tokens": 0, "counts_match": true}

Format history (`format_version`):
    1  0.1.0  the first
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from breakeven.errors import RunFormatError
from breakeven.trace.files import storing, write_atomically
from breakeven.trace.rows import dump_json
from breakeven.trace.typed import check_types, fits

TOKENS = "tokens.jsonl"
FORMAT_VERSION = 1
MAX_ID = 2**31 - 1


@dataclass(frozen=True, slots=True)
class RequestTokens:
    """The ids of one request."""

    id: str
    prompt: NDArray[np.int32]
    output: NDArray[np.int32]
    reasoning_tokens: int | None
    """How many of the output, at its beginning, are reasoning; None is unknown."""
    counts_match: bool | None
    """Whether both are as many as the server's usage counted; None where it counted none."""


@dataclass(frozen=True, slots=True)
class Header:
    """The first line."""

    made_by: str
    incomplete: str | None = None
    """Why requests are missing; None if nothing went wrong."""
    format_version: int = FORMAT_VERSION


def write_tokens(folder: Path, header: Header, tokens: Iterable[RequestTokens]) -> None:
    """Write the file anew. Raises StorageError."""
    with storing(folder):
        write_atomically(folder / TOKENS, lambda partial: _write(partial, header, tokens))


def _write(path: Path, header: Header, tokens: Iterable[RequestTokens]) -> None:
    with path.open("wb") as file:
        file.write(dump_json(header) + b"\n")
        for request in tokens:
            file.write(dump_json(request, orjson.OPT_SERIALIZE_NUMPY) + b"\n")


class RunTokens:
    """tokens.jsonl, read a request at a time."""

    def __init__(self, path: Path, header: Header, offsets: Mapping[str, int]) -> None:
        self.header = header
        self._path = path
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets)

    def get(self, request_id: str) -> RequestTokens | None:
        """None for a request of which no ids are known. Raises RunFormatError."""
        offset = self._offsets.get(request_id)
        if offset is None:
            return None
        with self._path.open("rb") as file:
            file.seek(offset)
            return _request(self._path, orjson.loads(file.readline()))


def load_tokens(folder: Path) -> RunTokens | None:
    """The ids kept beside a run's requests; None if there are none. Raises RunFormatError if damaged."""
    path = folder / TOKENS
    if not path.exists():
        return None
    try:
        lines = _lines(path)
        header = _header(path, next(lines, (0, {}))[1])
        return RunTokens(path, header, {_request(path, line).id: start for start, line in lines})
    except (OSError, ValueError) as error:
        raise _damaged(path, error) from error


def _lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(offset in bytes, JSON value) of each line."""
    start = 0
    with path.open("rb") as file:
        for line in file:
            yield start, orjson.loads(line)
            start += len(line)


def _header(path: Path, record: Any) -> Header:
    try:
        if record["format_version"] > FORMAT_VERSION:
            raise RunFormatError(
                f"{path} has format {record['format_version']}, and this version reads up to "
                f"{FORMAT_VERSION}: type  pip install -U breakeven"
            )
        return check_types(Header(record["made_by"], record["incomplete"], record["format_version"]))
    except (KeyError, TypeError) as error:
        raise _damaged(path, error) from error


def _request(path: Path, record: Any) -> RequestTokens:
    try:
        for name, hint in (("id", str), ("reasoning_tokens", int | None), ("counts_match", bool | None)):
            if not fits(record[name], hint):
                raise TypeError(f"{name} is {shown(record[name])}")
        prompt, output = ids_of(record["prompt"]), ids_of(record["output"])
        reasoning = record["reasoning_tokens"]
        if reasoning is not None and not 0 <= reasoning <= len(output):
            raise ValueError(f"reasoning_tokens is {reasoning}, of {len(output)} output tokens")
        return RequestTokens(**{**record, "prompt": prompt, "output": output})
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from error


def shown(value: Any) -> str:
    """A value of unknown origin for an error message, clipped; its kind where it is nested too deeply."""
    try:
        return repr(str(value)[:40])
    except RecursionError:
        return f"a {type(value).__name__}"


def integers_of(value: Any) -> NDArray[Any]:
    """A JSON list, or an array, of integers that fit into 64 bits. Raises ValueError that says what it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iu":
        return value
    if not isinstance(value, list):
        raise ValueError(f"is {shown(value)}: it must be a list of integers")
    if not set(map(type, value)) <= {int}:
        wrong = next(item for item in value if type(item) is not int)
        raise ValueError(f"holds {shown(wrong)}, which is no integer")
    try:
        return np.array(value, np.int64)
    except OverflowError:
        raise ValueError(f"holds {max(value, key=abs)}, which is beyond 64 bits") from None


def ids_of(value: Any) -> NDArray[np.int32]:
    """A JSON list, or an array, of token ids. Raises ValueError that says what is none."""
    ids = integers_of(value)
    if ids.size and (ids.min() < 0 or ids.max() > MAX_ID):
        wrong = ids[(ids < 0) | (ids > MAX_ID)][0]
        raise ValueError(f"holds {wrong}, which is no token id: ids are 0 to {MAX_ID}")
    return ids.astype(np.int32)


def _damaged(path: Path, error: Exception) -> RunFormatError:
    return RunFormatError(f"{path} is damaged ({error}): remove it, and name a --tokenizer to replay the run")
