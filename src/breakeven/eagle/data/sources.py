"""Where chats come from: a run or a trial, JSON lines, parquet, a folder of these, a built-in prompt set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from breakeven.eagle.data.chats import Chat
from breakeven.eagle.data.of_rows import chat_of
from breakeven.eagle.data.of_runs import asked_of, chats_of, files_of
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.stage import checksum
from breakeven.errors import UsageError
from breakeven.replay.sources.jsonl import JsonRows
from breakeven.replay.sources.parquet import MAGIC, ParquetRows
from breakeven.replay.sources.rows import Rows
from breakeven.replay.sources.run import BASELINE, TRIAL
from breakeven.trace.disk import META
from breakeven.trace.run import load_run
from breakeven.workload.builtin import set_names
from breakeven.workload.files import load_prompts

ENDINGS = (".jsonl", ".json", ".ndjson", ".parquet", ".gz", ".zst", ".bz2")
"""Of files that are read in a folder; one that is named is known by its content."""
TEXT = (".txt", ".text")
NOT_OF_PARQUET = ("system", "tools")


class ChatSource(Protocol):
    """Can be read as often as needed."""

    @property
    def name(self) -> str:
        """As the recipe has it."""

    @property
    def inputs(self) -> dict[str, str]:
        """SHA-256 of each file that is read, by name."""

    def chats(self, replies: bool, left_out: Counter[str]) -> Iterator[Chat]:
        """In their order: with `replies` each that has one, else all that is asked, which may repeat itself.

        What cannot be used is counted in `left_out`, by the reason. Raises UsageError, which names the place.
        """


def open_sources(recipe: Recipe) -> list[ChatSource]:
    """Those of [data] sources. Raises UsageError for one that does not exist."""
    return [one for name in recipe.data.sources for one in _open(name, recipe.beside(name))]


def _open(name: str, path: Path) -> Sequence[ChatSource]:
    if name in set_names():
        return [PromptSource(name, name)]
    if (path / TRIAL).is_file():
        return [RunSource(name, path / BASELINE)]
    if (path / META).is_file():
        return [RunSource(name, path)]
    if path.is_dir():
        files = sorted(one for one in path.iterdir() if one.suffix in ENDINGS and one.is_file())
        if not files:
            raise UsageError(
                f"{path} is no run and holds no data ({', '.join(ENDINGS)}): name another under sources"
            )
        return [RowSource(f"{name}/{one.name}", one) for one in files]
    if not path.is_file():
        raise UsageError(
            f"there is no file or folder {path}: write under sources a run's folder, JSON lines, parquet, or "
            f"one of the built-in sets {', '.join(set_names())}"
        )
    return [PromptSource(name, path) if path.suffix in TEXT else RowSource(name, path)]


class PromptSource:
    """Prompts alone: a built-in set, or a text file with one in each line."""

    def __init__(self, name: str, spec: str | Path) -> None:
        self.name = name
        self._spec = spec

    @property
    def inputs(self) -> dict[str, str]:
        """A built-in set is part of this version."""
        return {self.name: checksum(self._spec)} if isinstance(self._spec, Path) else {}

    def chats(self, replies: bool, left_out: Counter[str]) -> Iterator[Chat]:
        """As ChatSource.chats. Raises UsageError where replies are asked for: there are none."""
        if replies:
            raise UsageError(
                f"{self.name} holds prompts without replies: write  regenerate = true  under [data] of the "
                "recipe"
            )
        workload = load_prompts(self._spec)
        return (asked_of(prompt, f"{self.name}, {prompt.id}") for prompt in workload.prompts)


class RunSource:
    """A run's prompts, or its requests with what was answered."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    @property
    def inputs(self) -> dict[str, str]:
        return {f"{self.name}/{one.name}": checksum(one) for one in files_of(self._path)}

    def chats(self, replies: bool, left_out: Counter[str]) -> Iterator[Chat]:
        run = load_run(self._path)
        if replies:
            return chats_of(run, self.name, left_out)
        raw = run.meta.api == "completions"
        return (asked_of(prompt, f"{self.name}, {prompt.id}", raw) for prompt in run.prompts())


class RowSource:
    """A file of JSON lines, a JSON list, or parquet."""

    def __init__(self, name: str, path: Path) -> None:
        self.name = name
        self._path = path

    @property
    def inputs(self) -> dict[str, str]:
        return {self.name: checksum(self._path)}

    def chats(self, replies: bool, left_out: Counter[str]) -> Iterator[Chat]:
        warnings: list[str] = []
        for row in self._rows().read(warnings.append):
            found = chat_of(row, replies)
            if isinstance(found, Chat):
                yield found
            else:
                left_out[found] += 1
        left_out["a last line that is cut off"] += len(warnings)

    def _rows(self) -> Rows:
        if not _is_parquet(self._path):
            return JsonRows(self._path)
        rows = ParquetRows(self._path)
        for column in NOT_OF_PARQUET:
            if column in rows.columns:
                raise UsageError(
                    f"{self._path} has a column `{column}`, which is not read from parquet: save it as JSON "
                    "lines, or put a system prompt into `messages`"
                )
        return rows


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
