"""Where recorded requests come from: a run, a trial, JSON lines, parquet, with ids or with text alone."""

from __future__ import annotations

from pathlib import Path

from breakeven.errors import UsageError
from breakeven.replay.sources.jsonl import JsonRows
from breakeven.replay.sources.parquet import MAGIC, ParquetRows
from breakeven.replay.sources.run import RunSource
from breakeven.replay.sources.source import Source
from breakeven.replay.sources.table import TableSource
from breakeven.replay.sources.tokenizer import Tokeniser

__all__ = ["Source", "open_source"]


def open_source(path: str | Path, tokenizer: str | Path | None = None) -> Source:
    """The recorded requests at a path, known by its content; read up to the first record with token ids.

    A run's folder, or a trial's, of which the baseline is taken; or a file of JSON lines (also .gz and .zst)
    or parquet. `tokenizer` is a tokenizer.json, or a folder that holds one: where no record has ids, text is
    tokenised with it; ids beyond its vocabulary are refused.
    Raises UsageError, RunFormatError or MissingExtra, which say what to type.
    """
    where = Path(path)
    tokeniser = None if tokenizer is None else Tokeniser(tokenizer)
    if where.is_dir():
        return RunSource(where, tokeniser)
    if where.exists() and not where.is_file():
        raise UsageError(
            f"{where} is no regular file, and a record is read more than once: save it to a file"
        )
    if not where.is_file():
        raise UsageError(f"there is no file or folder {where}: name a run's folder, JSON lines or parquet")
    return TableSource(ParquetRows(where) if _is_parquet(where) else JsonRows(where), tokeniser)


def _is_parquet(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
