"""Reading: all that is known of a unit after looking at it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from breakeven.errors import ServerError
from breakeven.servers.operations import Host
from breakeven.servers.systemd import env_file, logs, refusal
from breakeven.servers.systemd.command import Command
from breakeven.servers.systemd.effective import EffectiveUnit
from breakeven.servers.systemd.expand import with_specifiers, with_variables
from breakeven.servers.systemd.manager import Manager, paths
from breakeven.servers.systemd.unit_name import UnitName
from breakeven.servers.systemd.unread import unread

PROPERTIES = (
    *refusal.PROPERTIES, "ActiveState", "MainPID", "User", "RequiredBy", "BoundBy", "ConsistsOf",
    "TimeoutStartUSec",
)  # fmt: skip
PRIVATE_MODE = 0o600
SYSTEM_SPECIFIERS = {
    "h": "/root", "u": "root", "U": "0", "t": "/run", "S": "/var/lib", "C": "/var/cache", "L": "/var/log",
    "E": "/etc",
}  # fmt: skip
"""Of a system's manager: whatever User= says, these are the manager's own (systemd.unit(5), "SPECIFIERS")."""


@dataclass(frozen=True)
class Reading:
    """A unit that can be changed, as its files and its manager describe it."""

    name: UnitName
    """Its own, where it was asked for by an alias."""
    properties: Mapping[str, str]
    unit_path: tuple[str, ...]
    effective: EffectiveUnit
    environment: Mapping[str, str]
    """With what its environment files set; secrets in the clear."""
    mode: int
    """Of the files that hold the command line, the most private one's permission bits."""
    running: tuple[str, ...] | None
    """The command line of the process that runs now; None where none does, or it cannot be seen."""

    @classmethod
    async def of(cls, manager: Manager, name: UnitName) -> Reading:
        """Raises UsageError for a unit that cannot be changed safely, ServerError where looking fails."""
        properties = await manager.show(name.full, PROPERTIES)
        refusal.check_loaded(properties, " ".join(manager.systemctl))
        name = UnitName(properties.get("Id") or name.full)
        unit_path = await manager.unit_path()
        dropins = paths(properties.get("DropInPaths", ""))
        files = await unread(manager.host, name, unit_path, properties.get("FragmentPath", ""), dropins)
        refusal.check_all_read(name.full, files, " ".join(manager.systemctl))
        effective = EffectiveUnit(_files(manager.host, properties), await _specifiers(manager, name))
        refusal.the_command(name.full, effective)
        return cls(
            name,
            properties,
            unit_path,
            effective,
            _environment(manager.host, effective),
            _mode(manager.host, effective),
            _running(manager.host, properties),
        )

    @cached_property
    def command(self) -> Command:
        return refusal.the_command(self.name.full, self.effective)

    @cached_property
    def as_run(self) -> tuple[str, ...]:
        """The command line with specifiers and variables filled in."""
        words = tuple(with_specifiers(word, self.effective.specifiers) for word in self.command.argv)
        return with_variables(words, self.environment) if self.command.fills_in_variables else words

    @property
    def log_file(self) -> str | None:
        """Where its output goes, if not to the journal."""
        path = logs.file_of(self.effective.value("StandardOutput"))
        return with_specifiers(path, self.effective.specifiers) if path else None

    @property
    def dropins(self) -> tuple[str, ...]:
        return paths(self.properties.get("DropInPaths", ""))


def _files(host: Host, properties: Mapping[str, str]) -> dict[str, bytes]:
    """Raises ServerError for one that is gone, or may not be read."""
    found: dict[str, bytes] = {}
    for path in (properties.get("FragmentPath", ""), *paths(properties.get("DropInPaths", ""))):
        data = host.read(path) if path else None
        if path and data is None:
            raise ServerError(f"{path} is gone since systemd read it: type  systemctl daemon-reload")
        if data is not None:
            found[path] = data
    return found


async def _specifiers(manager: Manager, name: UnitName) -> dict[str, str]:
    """Those that a command line is likely to hold."""
    if not manager.user:
        return name.specifiers() | SYSTEM_SPECIFIERS
    home = await manager.variable("HOME")
    return name.specifiers() | ({"h": home} if home else {})


def _environment(host: Host, effective: EffectiveUnit) -> dict[str, str]:
    """Files come after settings (systemd.exec(5)); one that cannot be read is left out."""
    found = dict(effective.environment)
    for path in effective.environment_files:
        try:
            found |= env_file.variables(host.read(path.removeprefix("-").strip()) or b"")
        except ServerError:
            continue
    return found


def _mode(host: Host, effective: EffectiveUnit) -> int:
    """A command line that only root may read in its unit is not shown to all in a drop-in."""
    modes = [host.mode(path) for path in effective.sources_of("ExecStart")]
    private = any(mode is not None and not mode & 0o004 for mode in modes)
    return PRIVATE_MODE if private else 0o644


def _running(host: Host, properties: Mapping[str, str]) -> tuple[str, ...] | None:
    pid = properties.get("MainPID", "0")
    if pid in ("", "0"):
        return None
    try:
        data = host.read(f"/proc/{pid}/cmdline")
    except ServerError:
        return None
    words = (data or b"").decode("utf-8", "surrogateescape").split("\0")
    return tuple(words[:-1]) or None
