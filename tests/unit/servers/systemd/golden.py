"""The golden set of units: each a tree of files, and what systemd makes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from breakeven.servers.fake.systemctl import FakeSystemd, Program, Ran
from breakeven.servers.operations import Operation
from breakeven.servers.systemd.lifecycle import SystemdLifecycle

FOLDER = Path(__file__).parents[3] / "golden" / "units"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/case.json"))


@dataclass(frozen=True)
class Case:
    """One unit."""

    name: str
    unit: str
    user: bool
    argv: tuple[str, ...]
    environment: dict[str, str]
    as_run: tuple[str, ...]

    @property
    def files(self) -> dict[str, bytes]:
        tree = FOLDER / self.name / "tree"
        return {f"/{path.relative_to(tree)}": path.read_bytes() for path in tree.rglob("*") if path.is_file()}

    def systemd(self, program: Program = lambda argv, environment: Ran()) -> FakeSystemd:
        return FakeSystemd(self.files, program, user=self.user)

    def lifecycle(self, systemd: FakeSystemd) -> SystemdLifecycle:
        return SystemdLifecycle(systemd, self.unit, self.user)


def case(name: str) -> Case:
    value: dict[str, Any] = json.loads((FOLDER / name / "case.json").read_text())
    argv = tuple(value["argv"])
    return Case(
        name,
        value["unit"],
        value["user"],
        argv,
        value["environment"],
        tuple(value.get("as_run", argv)),
    )


async def do_all(operations: tuple[Operation, ...], systemd: FakeSystemd) -> None:
    for operation in operations:
        await operation.do(systemd)


async def undo_all(operations: tuple[Operation, ...], systemd: FakeSystemd) -> None:
    for operation in reversed(operations):
        await operation.undo(systemd)
