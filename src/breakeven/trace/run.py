"""Run: a folder of run.json, prompts.jsonl and the requests, read back. See disk.py for the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from breakeven.errors import RunFormatError
from breakeven.trace.disk import JOURNAL, META, REQUESTS
from breakeven.trace.journal_file import open_journal
from breakeven.trace.meta import RunMeta, Schedule, ServerInfo, WorkloadInfo, load_meta, new_meta
from breakeven.trace.prompts import load_prompts_of
from breakeven.trace.records import RequestTrace
from breakeven.trace.requests_file import Requests, open_requests
from breakeven.trace.rows import from_row
from breakeven.workload.prompts import Prompt

__all__ = ["Run", "RunMeta", "Schedule", "ServerInfo", "WorkloadInfo", "load_run", "new_meta"]


class Run:
    """A run on disk, finished or not. Requests are read as they are asked for, a group at a time."""

    def __init__(self, path: Path, meta: RunMeta) -> None:
        self.path = path
        self.meta = meta
        try:
            self._requests: Requests = open_journal(path / JOURNAL)
        except FileNotFoundError:
            self._requests = open_requests(path / REQUESTS)

    def __len__(self) -> int:
        """Requests, each counted once."""
        return len(self._requests)

    def traces(self) -> Iterator[RequestTrace]:
        """The requests in the order in which they ended. Raises RunFormatError where the file is damaged."""
        for row in self._rows():
            try:
                yield from_row(row)
            except (KeyError, TypeError, ValueError, IndexError) as error:
                raise RunFormatError(
                    f"{self.path} holds a request that is damaged ({error}): measure again"
                ) from error

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        try:
            yield from self._requests.rows()
        except FileNotFoundError:  # the run has finished since it was loaded: no row was given yet
            self._requests = open_requests(self.path / REQUESTS)
            yield from self._requests.rows()

    def prompts(self) -> tuple[Prompt, ...]:
        """What was asked. Raises RunFormatError if prompts.jsonl is missing or damaged."""
        return load_prompts_of(self.path)


def load_run(folder: str | Path) -> Run:
    """A run folder, finished or not. Raises RunFormatError for anything else."""
    path = Path(folder)
    if not path.is_dir():
        raise RunFormatError(_no_folder(path))
    if not (path / META).is_file():
        raise RunFormatError(_no_meta(path))
    try:
        data = (path / META).read_bytes()
    except OSError as error:
        raise RunFormatError(f"cannot read {path / META}: {error.strerror}") from error
    meta = load_meta(data, path / META)
    if not (path / JOURNAL).exists() and not (path / REQUESTS).exists():
        raise RunFormatError(
            f"{path} holds no requests: {REQUESTS} and {JOURNAL} are both missing; measure again"
        )
    return Run(path, meta)


def _no_folder(path: Path) -> str:
    if path.is_file():
        return f"{path} is a file: name the run's folder, such as {path.parent}"
    return f"there is no folder {path}: name one made by  breakeven measure --out"


def _no_meta(path: Path) -> str:
    inside = sorted(child.parent for child in path.glob(f"*/{META}"))
    if inside:
        return f"{path} is no run, but these in it are: {', '.join(map(str, inside[:5]))}"
    return f"{path} is no run folder, it has no {META}: name one made by  breakeven measure --out"
