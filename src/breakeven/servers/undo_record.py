"""UndoRecord: what a journal says happened, read line by line.

A journal is JSON lines, each on disk before what it announces begins:

    opened      version, id, target, kind, node, holder, found, verify, options    nothing is touched yet
    adopted     holder: a recovery goes on where another process ended
    doing n     operation: what is about to be done, and how it is undone
    done n
    undone n
    restarting  with_change: whether it comes up with the change
    restarted
    verified    a completion came back from the baseline
    closed      how: `put back`, `kept` or `forgotten`

A last line without its end is no line: what it would announce was not begun.

Format history (`version`):
    1  0.1.0  the first
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from breakeven.errors import UsageError

VERSION = 1


@dataclass(frozen=True, slots=True)
class Verification:
    """How it is known that the baseline answers again. It has no place for a key."""

    url: str
    model: str | None = None
    api: str = "chat"
    api_key_env: str | None = None
    api_key_file: str | None = None
    verify_tls: bool = True
    ca_file: str | None = None


@dataclass(frozen=True, slots=True)
class Begun:
    """An operation that was done, or may have been."""

    number: int
    operation: Mapping[str, Any]
    done: bool = False


@dataclass(frozen=True, slots=True)
class UndoRecord:
    """The state that the lines of a journal add up to."""

    id: str
    target: str
    kind: str
    node: str
    """The machine."""
    opened: str
    """ISO 8601, UTC."""
    holder: Mapping[str, Any]
    """`pid` and `began`, of the process that wrote last."""
    found: Mapping[str, Any]
    verify: Verification | None
    """None where nothing runs without the tool."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """What its lifecycle was made with: `sudo`, and `container` and `context` of Kubernetes."""
    begun: tuple[Begun, ...] = ()
    """Not undone so far, in the order in which they were begun."""
    operations: int = 0
    """Begun in all."""
    first_change: str | None = None
    """When the first operation was begun since the baseline last started by us, ISO 8601, UTC."""
    touched: bool = False
    """Anything at all was begun."""
    may_run_changed: bool = False
    """The running process may have been started with the change."""
    restarting_with_change: bool = False
    verified: bool = False
    closed: str | None = None
    adopted: bool = False
    """Its holder puts it back, where the one that began it ended."""

    def held_by(self) -> str:
        """Who has it: `process 7 has been putting docker:a back since 2026-…`."""
        pid, began = self.holder.get("pid"), self.holder.get("began")
        if self.adopted:
            return f"process {pid} has been putting {self.target} back since {began}"
        return f"process {pid} has had a trial on {self.target} under way since {began}"

    def after(self, entry: Mapping[str, Any]) -> UndoRecord:
        """The state once this line was written. Raises KeyError or TypeError for what is no entry."""
        match entry["entry"]:
            case "adopted":
                return replace(self, holder=entry["holder"], adopted=True)
            case "doing":
                begun = Begun(entry["n"], entry["operation"])
                return replace(
                    self,
                    begun=(*self.begun, begun),
                    operations=entry["n"] + 1,
                    first_change=self.first_change or entry["at"],
                    touched=True,
                    verified=False,
                )
            case "done":
                done = (replace(b, done=True) if b.number == entry["n"] else b for b in self.begun)
                return replace(self, begun=tuple(done))
            case "undone":
                return replace(self, begun=tuple(b for b in self.begun if b.number != entry["n"]))
            case "restarting":
                changed = bool(entry["with_change"])
                return replace(
                    self,
                    may_run_changed=changed or self.may_run_changed,
                    restarting_with_change=changed,
                    touched=True,
                    verified=False,
                )
            case "restarted":
                changed = self.restarting_with_change
                first_change = self.first_change if changed else None
                return replace(self, may_run_changed=changed, first_change=first_change)
            case "verified":
                return replace(self, verified=True)
            case "closed":
                return replace(self, closed=entry["how"])
        raise KeyError(entry["entry"])


def read_record(path: Path) -> UndoRecord | None:
    """What a journal says; None where it does not say anything yet, so that nothing was touched.

    Raises UsageError for one that is damaged, or of a newer version.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    try:
        return _replay(json.loads(line) for line in whole_lines(data))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is damaged ({error!r}): look into it, and undo by hand what it says"
        ) from None


def whole_lines(data: bytes) -> list[bytes]:
    """The lines that came to their end."""
    return data.split(b"\n")[:-1]


def _replay(entries: Iterable[Mapping[str, Any]]) -> UndoRecord | None:
    record: UndoRecord | None = None
    for entry in entries:
        record = opened_record(entry) if record is None else record.after(entry)
    return record


def opened_record(entry: Mapping[str, Any]) -> UndoRecord:
    """The state after the first line."""
    if entry["version"] > VERSION:
        raise ValueError(f"it has version {entry['version']}, and this breakeven reads up to {VERSION}")
    verify = entry["verify"]
    return UndoRecord(
        id=entry["id"],
        target=entry["target"],
        kind=entry["kind"],
        node=entry["node"],
        opened=entry["at"],
        holder=entry["holder"],
        found=entry["found"],
        verify=None if verify is None else Verification(**verify),
        options=entry["options"],
    )
