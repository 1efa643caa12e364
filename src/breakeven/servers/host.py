"""LocalHost: this machine, with one's own rights."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import stat
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from breakeven.client.loop import running_loop_name
from breakeven.errors import ServerError, StorageError
from breakeven.secrets import shown_argv
from breakeven.servers.operations import Completed

MAX_OUTPUT_BYTES = 16 * 1024 * 1024
KILL_S = 5.0
LONGEST_LINE_BYTES = 1024 * 1024
INHERITED: set[int] = set()
"""Descriptors that commands keep open: the lock of a journal lasts until the last command of its holder has
ended, though the holder was killed meanwhile. Not below sudo, which closes them."""


def partial_of(path: str) -> str:
    """Where a file is written before it takes its place; known, so that what a kill leaves can be removed."""
    file = Path(path)
    return str(file.with_name(f".{file.name}.breakeven"))


class LocalHost:
    """This machine, with one's own rights."""

    look_s: float = 2.0

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        """In a process group of its own, which is killed when the time is up, or the caller cancelled."""
        process = await _start(argv, stdin, pass_fds=tuple(INHERITED))
        said = None
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout_s):
                    said = await _communicate(process, argv, stdin, hold_stdin)
        finally:
            await _end(process)
        if said is None:
            raise too_slow(argv, timeout_s, None if process.returncode is not None else process.pid)
        out, err = (each.decode(errors="replace") for each in said)
        return Completed(process.returncode or 0, out, err)

    async def lines(self, argv: tuple[str, ...]) -> AsyncGenerator[str, None]:
        process = await _start(argv, None, asyncio.subprocess.STDOUT)
        assert process.stdout is not None  # noqa: S101  a pipe was asked for
        try:
            while line := await _line(process.stdout):
                yield line.decode(errors="replace").rstrip("\r\n")
        finally:
            await _end(process)

    def read(self, path: str) -> bytes | None:
        try:
            return Path(path).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ServerError(f"{path} cannot be read: {error.strerror}") from error

    def mode(self, path: str) -> int | None:
        try:
            return stat.S_IMODE(Path(path).stat().st_mode)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise ServerError(f"{path} cannot be looked at: {error.strerror}") from error

    def missing_folders(self, path: str) -> tuple[str, ...]:
        return missing_folders(path)

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        try:
            _write(Path(path), data, mode)
        except OSError as error:
            raise StorageError(f"{path} cannot be written: {error.strerror}") from error

    def remove(self, path: str, folders: tuple[str, ...] = ()) -> None:
        try:
            for file in (Path(path), Path(partial_of(path))):
                file.unlink(missing_ok=True)
            for folder in reversed(folders):
                _remove_if_empty(Path(folder))
            _sync_nearest(Path(path).parent)
        except NotADirectoryError:
            return
        except OSError as error:
            raise StorageError(f"{path} cannot be removed: {error.strerror}") from error


def too_slow(argv: Sequence[str], timeout_s: float, pid: int | None) -> ServerError:
    """`pid`: of one that could not be killed, as those of root below sudo cannot; what it was to do may be
    done at any time."""
    said = f"{shown_argv(argv)} did not come to an end within {timeout_s:g} s"
    if pid is None:
        return ServerError(said)
    return ServerError(
        f"{said}, and could not be killed from here, as what sudo runs is root's: it may still be at "
        f"work. See  ps -f --pid {pid} --ppid {pid} , and end it with  sudo kill {pid}"
    )


def missing_folders(path: str) -> tuple[str, ...]:
    """Of a file's folders, those that are not there, the outermost first."""
    return tuple(str(folder) for folder in reversed(Path(path).parents) if not folder.exists())


async def _start(
    argv: tuple[str, ...],
    stdin: bytes | None,
    stderr: int = asyncio.subprocess.PIPE,
    pass_fds: tuple[int, ...] = (),
) -> asyncio.subprocess.Process:
    """In the terminal's session, by which sudo knows its user; the terminal's Ctrl-C does not reach it."""
    try:
        return await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL if stdin is None else asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=LONGEST_LINE_BYTES,
            env=environment(),
            pass_fds=pass_fds,
            **_own_group(),
        )
    except OSError as error:
        raise ServerError(f"{argv[0]} cannot be started: {error.strerror}") from error


def _own_group() -> dict[str, Any]:
    """uvloop knows no `process_group`."""
    return {"preexec_fn": os.setpgrp} if running_loop_name() == "uvloop" else {"process_group": 0}


def environment() -> dict[str, str]:
    """For commands: ours, with programs speaking English, as their output is read by a program."""
    return {**os.environ, "LC_ALL": "C.UTF-8", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"}


async def _communicate(
    process: asyncio.subprocess.Process, argv: tuple[str, ...], stdin: bytes | None, hold_stdin: bool
) -> tuple[bytes, bytes]:
    assert process.stdout is not None  # noqa: S101  pipes were asked for
    assert process.stderr is not None  # noqa: S101
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_feed(process.stdin, stdin, hold_stdin))
            out = group.create_task(_limited(process.stdout, argv))
            err = group.create_task(_limited(process.stderr, argv))
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None
    await process.wait()
    return out.result(), err.result()


async def _line(pipe: asyncio.StreamReader) -> bytes:
    """With its end; a longer one in pieces; empty at the end of all."""
    try:
        return await pipe.readuntil(b"\n")
    except asyncio.IncompleteReadError as error:
        return error.partial
    except asyncio.LimitOverrunError as error:
        return await pipe.readexactly(error.consumed)


async def _feed(pipe: asyncio.StreamWriter | None, data: bytes | None, hold: bool) -> None:
    if pipe is None or data is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        pipe.write(data)
        await pipe.drain()
    if not hold:
        pipe.close()


async def _limited(pipe: asyncio.StreamReader, argv: tuple[str, ...]) -> bytes:
    said = bytearray()
    while piece := await pipe.read(65_536):
        said += piece
        if len(said) > MAX_OUTPUT_BYTES:
            raise ServerError(f"{argv[0]} said more than {MAX_OUTPUT_BYTES // 2**20} MiB")
    return bytes(said)


async def _end(process: asyncio.subprocess.Process) -> None:
    """It and all of its group. Those of root, as below sudo, cannot be killed, and are left alone."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), KILL_S)


def _write(path: Path, data: bytes, mode: int) -> None:
    refuse_link(path)
    _make_folders(path.parent)
    partial = Path(partial_of(str(path)))
    partial.unlink(missing_ok=True)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "wb") as file:  # noqa: PTH123  a descriptor
            file.write(data)
            file.flush()
            _keep_owner(path, descriptor)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def refuse_link(path: Path) -> None:
    if path.is_symlink():
        raise StorageError(f"{path} is a link to another file, and is left alone")


def _keep_owner(path: Path, descriptor: int) -> None:
    if path.exists():
        before = path.stat()
        os.fchown(descriptor, before.st_uid, before.st_gid)


def _make_folders(folder: Path) -> None:
    for missing in (Path(name) for name in missing_folders(str(folder / "file"))):
        missing.mkdir(exist_ok=True)
        sync_folder(missing.parent)


def _remove_if_empty(folder: Path) -> None:
    try:
        folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST):
            raise


def _sync_nearest(folder: Path) -> None:
    while not folder.exists():
        folder = folder.parent
    sync_folder(folder)


def sync_folder(folder: Path) -> None:
    """Its entries on disk before this returns. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
