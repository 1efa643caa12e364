"""Reading: all that is known of a unit after looking at it once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath

from breakeven.errors import ServerError
from breakeven.servers.operations import Host
from breakeven.servers.systemd import age, dependents, env_file, logs, refusal
from breakeven.servers.systemd.command import Command
from breakeven.servers.systemd.effective import EffectiveUnit
from breakeven.servers.systemd.expand import with_specifiers, with_variables
from breakeven.servers.systemd.manager import Manager, paths
from breakeven.servers.systemd.unit_name import UnitName
from breakeven.servers.systemd.unread import unread

PROPERTIES = (
    *refusal.PROPERTIES, *dependents.NAMES, "ActiveState", "MainPID", "User", "TimeoutStartUSec", "OnFailure",
    "TriggeredBy", age.STARTED,
)  # fmt: skip
PRIVATE_MODE = 0o600
UPTIME = "/proc/uptime"
_GLOB = frozenset("*?[")
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
    unread: tuple[str, ...] = ()
    """Environment files whose variables are not known."""
    is_user: bool = False
    """Whether its manager is a user's."""
    changed: tuple[str, ...] = ()
    """Files of the unit, and its environment files, that were written since the process was started."""

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
        environment, unread_files = _environment(manager.host, effective)
        made_of = (*effective.files, *map(_path, effective.environment_files))
        return cls(
            name,
            properties,
            unit_path,
            effective,
            environment,
            _mode(manager.host, effective),
            _running(manager.host, properties),
            unread_files,
            manager.user,
            await age.changed_since_start(manager.host, properties, made_of, manager.host.read(UPTIME)),
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
    def runs_as_configured(self) -> bool:
        """Whether the process that runs now was started with the command line that the unit has now."""
        return self.running is not None and _is_of(self.running, self.as_run)

    @property
    def runs_otherwise(self) -> bool:
        """Whether it was beyond doubt started with another command line: a process may have given itself a
        title, and a variable may be from a file that cannot be read."""
        if self.running is None or self.runs_as_configured or self.unread:
            return False
        names = {PurePosixPath(word).name for word in self.as_run if not word.startswith("-")}
        return any(PurePosixPath(word).name in names for word in self.running[:2])

    @property
    def log_file(self) -> str | None:
        """Where its output goes, if not to the journal."""
        path = logs.file_of(self.effective.value("StandardOutput"))
        return with_specifiers(path, self.effective.specifiers) if path else None

    @property
    def folder(self) -> str | None:
        """In which it runs; None where that depends on a user, or on what is not known here. The default is
        systemd.exec(5)'s."""
        given = with_specifiers(self.effective.value("WorkingDirectory"), self.effective.specifiers)
        path = given.removeprefix("-")
        if not path and self.is_user:
            path = self.effective.specifiers.get("h", "")
        elif not path:
            path = "/"
        return path if path.startswith("/") and "%" not in path else None

    @property
    def environment_files(self) -> tuple[str, ...]:
        """Paths, or patterns of paths."""
        return tuple(map(_path, self.effective.environment_files))

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


def _environment(host: Host, effective: EffectiveUnit) -> tuple[dict[str, str], tuple[str, ...]]:
    """With the files that are not read, as they cannot be, or are given by a pattern. Files come after
    settings (systemd.exec(5))."""
    found, unread_files = dict(effective.environment), []
    for path in map(_path, effective.environment_files):
        try:
            if is_pattern(path):
                raise ServerError(f"{path} is a pattern")
            found |= env_file.variables(host.read(path) or b"")
        except ServerError:
            unread_files.append(path)
    return found, tuple(unread_files)


def is_pattern(path: str) -> bool:
    """Whether it may name several files."""
    return bool(_GLOB & set(path))


def _path(environment_file: str) -> str:
    """Without the mark of one that may be missing."""
    return environment_file.removeprefix("-").strip()


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


def _is_of(running: tuple[str, ...], configured: tuple[str, ...]) -> bool:
    """A script's interpreter stands before it, and a wrapper such as numactl is gone: the last words tell, or
    the program itself where it has no arguments. A word with a specifier that is not known here is taken for
    any."""
    arguments = configured[1:]
    if not arguments:
        return _is_alone(running, configured[0])
    tail = running[-len(arguments) :]
    if len(tail) == len(arguments) and all(map(_same, tail, arguments)):
        return True
    if len(running) == 1:
        return _same(running[0], configured[-1])
    return any(
        all(map(_same, running[1:], configured[start:]))
        for start in range(1, len(configured))
        if len(configured) - start == len(running) - 1
    )


def _is_alone(running: tuple[str, ...], program: str) -> bool:
    """Whether it runs without an argument, by itself or as a script of its interpreter."""
    *before, last = running
    is_script = before[1:] == [one for one in before[1:] if one.startswith("-")]
    return is_script and _same(last, program)


def _same(runs: str, configured: str) -> bool:
    return "%" in configured or runs == configured
