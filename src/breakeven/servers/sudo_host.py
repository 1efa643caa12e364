"""SudoHost: this machine, through the user's own sudo."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

from breakeven.errors import ServerError, StorageError
from breakeven.servers.host import (
    KILL_S,
    LocalHost,
    environment,
    missing_folders,
    partial_of,
    refuse_link,
    too_slow,
)
from breakeven.servers.operations import Completed

SUDO = ("sudo", "-n", "--")
"""`-n` never asks for a password: nobody would see the question."""
SUDO_TIMEOUT_S = 30.0
NO_SUDO = ("a password is required", "a terminal is required", "not in the sudoers", "is not allowed to")
SYNC_FOLDER = ("sync", "--")


class SudoHost:
    """This machine through the user's own sudo, which must not have to ask: `sudo -v` first, or NOPASSWD."""

    look_s: float = 10.0
    """Each command is a session and a line in the log of privileged commands. Often enough that sudo does not
    forget its user meanwhile: by default it does after 5 minutes, or 15."""

    def __init__(self, local: LocalHost | None = None) -> None:
        self._local = local or LocalHost()

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        return _allowed(await self._local.run((*SUDO, *argv), stdin, timeout_s, hold_stdin))

    def lines(self, argv: tuple[str, ...]) -> AsyncGenerator[str, None]:
        return self._local.lines((*SUDO, *argv))

    def read(self, path: str) -> bytes | None:
        """With one's own rights where they are enough."""
        with suppress(ServerError):
            if (data := self._local.read(path)) is not None:
                return data
        if not self._is_there(path):
            return None
        done = _sudo("cat", "--", path)
        if done.returncode:
            raise ServerError(f"{path} cannot be read: {_said(done)}")
        return done.stdout

    def mode(self, path: str) -> int | None:
        if not self._is_there(path):
            return None
        done = _sudo("stat", "--dereference", "--format=%a", "--", path)
        if done.returncode:
            raise ServerError(f"{path} cannot be looked at: {_said(done)}")
        return int(done.stdout, 8)

    def missing_folders(self, path: str) -> tuple[str, ...]:
        return missing_folders(path)

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """`install` gives the partial file its mode before it holds anything; `mv` puts it in its place."""
        partial, folder = partial_of(path), str(Path(path).parent)
        refuse_link(Path(path))
        steps: list[tuple[tuple[str, ...], bytes | None]] = [
            (("mkdir", "--parents", "--", folder), None),
            (("install", f"--mode={mode:o}", "/dev/null", partial), None),
            (("tee", "--", partial), data),
            (("sync", "--", partial), None),
            (("mv", "--force", "--no-target-directory", "--", partial, path), None),
            ((*SYNC_FOLDER, folder), None),
        ]
        if self._is_there(path):
            steps.insert(2, (("chown", f"--reference={path}", "--", partial), None))
        for argv, stdin in steps:
            _write_step(path, "written", argv, stdin)

    def remove(self, path: str, folders: tuple[str, ...] = ()) -> None:
        _write_step(path, "removed", ("rm", "--force", "--", path, partial_of(path)))
        for folder in reversed(folders):
            if self._is_there(folder):
                _write_step(path, "removed", ("rmdir", "--ignore-fail-on-non-empty", "--", folder))
        nearest = next(folder for folder in Path(path).parents if self._is_there(str(folder)))
        _write_step(path, "removed", (*SYNC_FOLDER, str(nearest)))

    def _is_there(self, path: str) -> bool:
        return _sudo("test", "-e", path).returncode == 0


def _sudo(*argv: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    """Not by subprocess.run, which waits for ever for what it cannot kill."""
    command = (*SUDO, *argv)
    process = _start(command, stdin is not None)
    try:
        out, err = process.communicate(stdin, SUDO_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise too_slow(command, SUDO_TIMEOUT_S, None if _kill(process) else process.pid) from None
    except OSError as error:
        raise ServerError(f"sudo {argv[0]} failed: {error}") from error
    _allowed(Completed(process.returncode, "", err.decode(errors="replace")))
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _start(command: tuple[str, ...], has_input: bool) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    except FileNotFoundError:
        raise ServerError("sudo is not installed: run breakeven as root") from None
    except OSError as error:
        raise ServerError(f"sudo cannot be started: {error}") from error


def _kill(process: subprocess.Popen[bytes]) -> bool:
    """Whether it ended: what is root's cannot be killed, and is left alone."""
    with suppress(PermissionError):
        process.kill()
    with suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=KILL_S)
        return True
    return False


def _allowed(done: Completed) -> Completed:
    """Raises ServerError where sudo itself said no."""
    if done.returncode and "sudo" in done.stderr and any(words in done.stderr for words in NO_SUDO):
        raise ServerError("sudo asks for a password, or does not allow it: type  sudo -v  and try again")
    return done


def _write_step(path: str, what: str, argv: tuple[str, ...], stdin: bytes | None = None) -> None:
    done = _sudo(*argv, stdin=stdin)
    if done.returncode:
        raise StorageError(f"{path} cannot be {what}: {_said(done)}")


def _said(done: subprocess.CompletedProcess[bytes]) -> str:
    return " ".join(done.stderr.decode(errors="replace").split()) or f"status {done.returncode}"
