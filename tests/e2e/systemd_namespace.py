"""A real systemd for a test, in namespaces of its own, which can change nothing of the machine it runs on.

Every mount is read-only to it but for fresh file systems on the folders of WRITABLE, in which only VISIBLE is
left, and it knows no units but those of BASE and the test's: a distribution's own would set up, and clean up,
the machine.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from pathlib import Path

from breakeven.servers.host import LocalHost
from breakeven.servers.operations import Completed
from tests.e2e.command import soon

BOOT_S, ANSWER_S, LIFE_S = 20.0, 5.0, 600
"""LIFE_S ends it where a test was killed."""
SYSTEMD = Path("/lib/systemd/systemd")
NEEDED = ("unshare", "nsenter", "mount", "systemctl", "journalctl")
WRITABLE = ("/run", "/tmp", "/var/tmp", "/dev/shm", "/etc/systemd/system", "/usr/lib/systemd/system")  # noqa: S108
VISIBLE = (Path(__file__).parents[2], Path(sys.prefix), Path(sys.base_prefix))
"""What tests run is there also where it lies below /tmp."""
_JOURNALD = """[Unit]
DefaultDependencies=no
Requires=systemd-journald.socket
After=systemd-journald.socket
[Service]
Type=notify
StandardOutput=null
RuntimeDirectory=systemd/journal
RuntimeDirectoryPreserve=yes
ExecStart=/lib/systemd/systemd-journald
"""
_JOURNALD_SOCKET = """[Unit]
DefaultDependencies=no
[Socket]
ListenStream=/run/systemd/journal/stdout
ListenDatagram=/run/systemd/journal/socket
SocketMode=0666
PassCredentials=yes
Service=systemd-journald.service
"""
_BARE = "[Unit]\nDefaultDependencies=no\n"
BASE = {
    "/usr/lib/systemd/system/test.target": f"{_BARE}Wants=systemd-journald.service\n",
    "/usr/lib/systemd/system/sysinit.target": _BARE,
    "/usr/lib/systemd/system/basic.target": _BARE,
    "/usr/lib/systemd/system/shutdown.target": f"{_BARE}RefuseManualStart=yes\n",
    "/usr/lib/systemd/system/systemd-journald.service": _JOURNALD,
    "/usr/lib/systemd/system/systemd-journald.socket": _JOURNALD_SOCKET,
    "/run/systemd/journald.conf.d/test.conf": "[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\n",
}
_BOOT = """set -e
mount --make-rprivate /
mount --bind /proc/sys /proc/sys
awk '$5 !~ "^/(proc|sys)(/|$)" || $5 == "/proc/sys" {print $5}' /proc/self/mountinfo |
    while read -r point; do mount -o remount,bind,ro "$point"; done
files=$1; visible=$2; shift 2
for folder in "$@"; do
    mount -n -t tmpfs -o mode=755 tmpfs /mnt
    echo "$visible" | grep "^$folder/" | while read -r path; do
        there=/mnt${path#"$folder"}
        mkdir -p "$there"
        mount -n --bind "$path" "$there"
    done
    mount -n --move /mnt "$folder"
done
mkdir -p /run/log/journal /run/lock
cp -r "$files"/. /
container=breakeven-test exec /lib/systemd/systemd --system --unit=test.target
"""
_CGROUPS = Path("/sys/fs/cgroup")


def why_not() -> str | None:
    """What is missing for one here; None where it can be started."""
    if os.geteuid() != 0:
        return "only root may start one"
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if missing or not SYSTEMD.exists():
        return f"not installed: {' '.join(missing) or 'systemd'}"
    words = ("unshare", "--pid", "--mount", "--fork", "--mount-proc", "true")
    tried = subprocess.run(words, capture_output=True, timeout=ANSWER_S)
    return None if tried.returncode == 0 else tried.stderr.decode(errors="replace").strip()


class NamespaceHost(LocalHost):
    """A Host whose commands run, and whose files lie, where that systemd is."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.root = f"/proc/{pid}/root"
        self.enter = ("nsenter", "--target", str(pid), "--pid", "--mount", "--uts", "--ipc", "--")

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        return await super().run((*self.enter, *argv), stdin, timeout_s, hold_stdin)

    def lines(self, argv: tuple[str, ...]) -> AsyncGenerator[str, None]:
        return super().lines((*self.enter, *argv))

    def read(self, path: str) -> bytes | None:
        return super().read(self.root + path)

    def mode(self, path: str) -> int | None:
        return super().mode(self.root + path)

    def missing_folders(self, path: str) -> tuple[str, ...]:
        return tuple(folder.removeprefix(self.root) for folder in super().missing_folders(self.root + path))

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        super().write(self.root + path, data, mode)

    def remove(self, path: str, folders: tuple[str, ...] = ()) -> None:
        super().remove(self.root + path, tuple(self.root + folder for folder in folders))

    def tree(self, *folders: str) -> dict[str, bytes | None]:
        """All files and folders there: None is a folder's content."""
        paths = [path for folder in folders for path in Path(self.root + folder).rglob("*")]
        return {
            str(path).removeprefix(self.root): path.read_bytes() if path.is_file() else None for path in paths
        }


@contextlib.contextmanager
def running_systemd(files: Mapping[str, str | bytes]) -> Iterator[NamespaceHost]:
    """One that runs, with these files under WRITABLE; one at a time on a machine, as they share its cgroups.

    Raises AssertionError, with what it said, where it does not come up in BOOT_S.
    """
    with _lock(), tempfile.TemporaryDirectory() as folder:
        for path, content in {**BASE, **files}.items():
            target = Path(folder, "files", path.lstrip("/"))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
        log = Path(folder, "log")
        outer = _started(Path(folder, "files"), log)
        try:
            yield NamespaceHost(_booted(outer, log))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(outer.pid, signal.SIGKILL)
            outer.wait(ANSWER_S)


@contextlib.contextmanager
def _lock() -> Iterator[None]:
    """Held by one at a time; what it leaves of control groups is removed."""
    with Path(tempfile.gettempdir(), "breakeven-test-systemd.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        before = set(_slices())
        try:
            yield
        finally:
            for group in set(_slices()) - before:
                _remove_group(group)


def _slices() -> list[Path]:
    """Control groups that a systemd makes at the top, of all hierarchies."""
    return [path for end in ("scope", "slice", "mount") for path in _CGROUPS.glob(f"*/*.{end}")] + [
        path for end in ("scope", "slice", "mount") for path in _CGROUPS.glob(f"*.{end}")
    ]


def _remove_group(group: Path) -> None:
    """Its processes were killed, and may take a moment to be gone."""
    soon(lambda: _is_removed(group), patience_s=ANSWER_S)


def _is_removed(group: Path) -> bool:
    folders = sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
    for folder in (*folders, group):
        with contextlib.suppress(OSError):
            folder.rmdir()
    return not group.exists()


def _started(files: Path, log: Path) -> subprocess.Popen[bytes]:
    """The files are reached by descriptor: /tmp is another one in there."""
    descriptor = os.open(files, os.O_RDONLY)
    words = ("timeout", "-k", "5", str(LIFE_S), "unshare", "--pid", "--mount", "--uts", "--ipc", "--fork",
             "--mount-proc", "--kill-child", "sh", "-c", _BOOT, "boot", f"/proc/self/fd/{descriptor}",
             "\n".join(map(str, VISIBLE)), *WRITABLE)  # fmt: skip
    try:
        with log.open("wb") as output:
            return subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                pass_fds=(descriptor,),
            )
    finally:
        os.close(descriptor)


def _booted(outer: subprocess.Popen[bytes], log: Path) -> int:
    """The process that is number 1 in there, once it answers."""
    deadline = time.monotonic() + BOOT_S
    while time.monotonic() < deadline and outer.poll() is None:
        for pid in _descendants(outer.pid):
            if _said_by_kernel(f"/proc/{pid}/comm").strip() == "systemd" and _answers(pid):
                return pid
        time.sleep(0.05)
    raise AssertionError(f"systemd did not come up: {log.read_text(errors='replace')[-2000:]}")


def _descendants(pid: int) -> Iterator[int]:
    for child in _said_by_kernel(f"/proc/{pid}/task/{pid}/children").split():
        yield int(child)
        yield from _descendants(int(child))


def _said_by_kernel(path: str) -> str:
    """Empty for a process that is gone."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def _answers(pid: int) -> bool:
    words = ("nsenter", "-t", str(pid), "-p", "-m", "-i", "-u", "systemctl", "is-system-running")
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=ANSWER_S, check=False).stdout
    except subprocess.TimeoutExpired:
        return False
    return said.strip() in ("running", "degraded")
