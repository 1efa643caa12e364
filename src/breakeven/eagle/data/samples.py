"""samples.parquet: a conversation per row, in the order of ids, which is no order of the sources.

Format history: 1  0.1.0  the first
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from breakeven.errors import RunFormatError
from breakeven.trace.files import storing, write_atomically
from breakeven.trace.requests_file import UNREADABLE

SAMPLES = "samples.parquet"
GROUP_TOKENS = 1 << 20
"""A row group ends once it holds so many tokens: 5 MB in memory."""
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("category", pa.string(), nullable=False),
        pa.field("split", pa.string(), nullable=False),
        pa.field("prompt_tokens", pa.int64(), nullable=False),
        pa.field("input_ids", pa.list_(pa.int32()), nullable=False),
        pa.field("loss_mask", pa.list_(pa.bool_()), nullable=False),
    ]
)
Split = Literal["train", "held_out"]
Item = TypeVar("Item", np.int32, np.bool_)


@dataclass(frozen=True, slots=True)
class Sample:
    """A prompt and what the target answered."""

    id: str
    """Hexadecimal, made from the prompt: equal prompts have equal ids, in every source."""
    category: str
    split: Split
    prompt_tokens: int
    """Tokens before the first that is learned from."""
    input_ids: NDArray[np.int32]
    loss_mask: NDArray[np.bool_]
    """True for what the target wrote; same length as input_ids."""


def write_samples(path: Path, samples: Iterable[Sample]) -> None:
    """In the order given, whole or not at all. The same samples are the same bytes. Raises StorageError."""
    with storing(path.parent):
        write_atomically(path, lambda partial: _write(partial, samples))


def read_samples(path: Path) -> Iterator[Sample]:
    """A row group at a time. Raises RunFormatError for a file that is missing, damaged or foreign."""
    try:
        with pa.OSFile(os.fsencode(path), "rb") as file, pq.ParquetFile(file) as parquet:
            _check_columns(path, parquet.schema_arrow)
            for group in range(parquet.num_row_groups):
                yield from _samples(parquet.read_row_group(group, columns=SCHEMA.names))
    except UNREADABLE as error:
        raise RunFormatError(
            f"{path} cannot be read ({error}): type  breakeven eagle data RECIPE --fresh"
        ) from error


def _check_columns(path: Path, schema: pa.Schema) -> None:
    for field in SCHEMA:
        at = schema.get_field_index(field.name)
        if at < 0 or not schema.field(at).type.equals(field.type):
            raise RunFormatError(
                f"{path} has no column {field.name} of {field.type}: type  breakeven eagle data RECIPE "
                "--fresh"
            )


def _write(path: Path, samples: Iterable[Sample]) -> None:
    with (
        pa.OSFile(os.fsencode(path), "wb") as file,
        pq.ParquetWriter(file, SCHEMA, compression="zstd") as writer,
    ):
        for group in _groups(samples):
            writer.write_table(_table(group))


def _groups(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    group: list[Sample] = []
    tokens = 0
    for sample in samples:
        group.append(sample)
        tokens += len(sample.input_ids)
        if tokens >= GROUP_TOKENS:
            yield group
            group, tokens = [], 0
    if group:
        yield group


def _table(group: Sequence[Sample]) -> pa.Table:
    columns = [
        pa.array([one.id for one in group], pa.string()),
        pa.array([one.category for one in group], pa.string()),
        pa.array([one.split for one in group], pa.string()),
        pa.array([one.prompt_tokens for one in group], pa.int64()),
        _lists([one.input_ids for one in group], pa.int32()),
        _lists([one.loss_mask for one in group], pa.bool_()),
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def _lists(arrays: Sequence[NDArray[Item]], kind: pa.DataType) -> pa.ListArray:
    offsets = np.cumsum([0, *(len(array) for array in arrays)], dtype=np.int32)
    return pa.ListArray.from_arrays(offsets, pa.array(np.concatenate(arrays), kind))


def _samples(table: pa.Table) -> Iterator[Sample]:
    ids, masks = table.column("input_ids"), table.column("loss_mask")
    plain = [table.column(name).to_pylist() for name in SCHEMA.names[:4]]
    for row, (name, category, split, prompt_tokens) in enumerate(zip(*plain, strict=True)):
        yield Sample(
            name,
            category,
            split,
            prompt_tokens,
            ids[row].values.to_numpy(zero_copy_only=False),
            masks[row].values.to_numpy(zero_copy_only=False),
        )
