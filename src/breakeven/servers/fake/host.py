"""FakeHost: a machine in memory, on which any step can fail or be the last one."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import PurePosixPath

from breakeven.errors import ServerError
from breakeven.servers.operations import Completed

Answer = Callable[[tuple[str, ...], bytes | None], Completed | Awaitable[Completed]]
"""What a command comes to, and what it does to the fake machine."""


class Killed(BaseException):
    """The tool was killed here: no handler of it runs."""


def _nothing(argv: tuple[str, ...], stdin: bytes | None) -> Completed:
    return Completed(0, "", "")


class FakeHost:
    """Files by path, and an answer to each command.

    `touches` counts the calls that change something, commands among them. Touch number `fail_at` raises
    `failure`: before it took effect, or right after it if `takes_effect`.

    A command takes effect once it has lasted `lasts_s`, as with a daemon: also where whoever asked for it was
    cancelled meanwhile, or had no more time.
    """

    look_s: float = 0.02

    def __init__(self, answer: Answer = _nothing, files: dict[str, bytes] | None = None) -> None:
        self.answer = answer
        self.files: dict[str, bytes] = dict(files or {})
        self.modes: dict[str, int] = dict.fromkeys(self.files, 420)
        self.folders: set[str] = {"/", *(str(above) for path in self.files for above in parents(path))}
        self.commands: list[tuple[str, ...]] = []
        self.touches = 0
        self.fail_at: int | None = None
        self.failure: BaseException = ServerError("the fake machine was told to fail")
        self.takes_effect = False
        self.lasts_s: Callable[[tuple[str, ...]], float] = lambda argv: 0.0
        self.under_way = 0
        """Commands that have not taken effect yet."""

    def snapshot(self) -> tuple[dict[str, bytes], dict[str, int], frozenset[str]]:
        """All files, their modes, and all folders."""
        return dict(self.files), dict(self.modes), frozenset(self.folders)

    async def run(
        self,
        argv: tuple[str, ...],
        stdin: bytes | None = None,
        timeout_s: float = 60.0,
        hold_stdin: bool = False,
    ) -> Completed:
        self._touch(before=True)
        self.commands.append(argv)
        done = await self._after(self.lasts_s(argv), argv, stdin, timeout_s)
        self._touch(before=False)
        return done

    async def _after(
        self, lasts_s: float, argv: tuple[str, ...], stdin: bytes | None, timeout_s: float
    ) -> Completed:
        if not lasts_s:
            return await self._answered(argv, stdin)
        going = asyncio.ensure_future(self._later(lasts_s, argv, stdin))
        try:
            return await asyncio.wait_for(asyncio.shield(going), timeout_s)
        except TimeoutError:
            raise ServerError(f"{argv[0]} did not come to an end within {timeout_s:g} s") from None

    async def _later(self, lasts_s: float, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        self.under_way += 1
        await asyncio.sleep(lasts_s)
        self.under_way -= 1
        return await self._answered(argv, stdin)

    async def _answered(self, argv: tuple[str, ...], stdin: bytes | None) -> Completed:
        answer = self.answer(argv, stdin)
        return await answer if inspect.isawaitable(answer) else answer

    async def lines(self, argv: tuple[str, ...]) -> AsyncGenerator[str, None]:
        """What the command's answer says, at once."""
        done = await self._answered(argv, None)
        for line in (done.stdout + done.stderr).splitlines():
            yield line

    def read(self, path: str) -> bytes | None:
        return self.files.get(path)

    def mode(self, path: str) -> int | None:
        return self.modes.get(path)

    def missing_folders(self, path: str) -> tuple[str, ...]:
        return tuple(folder for folder in parents(path) if folder not in self.folders)

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        self._touch(before=True)
        self.folders.update(parents(path))
        self.files[path], self.modes[path] = data, mode
        self._touch(before=False)

    def remove(self, path: str, folders: tuple[str, ...] = ()) -> None:
        self._touch(before=True)
        self.files.pop(path, None)
        self.modes.pop(path, None)
        for folder in reversed(folders):
            self._remove_folder(folder)
        self._touch(before=False)

    def _remove_folder(self, folder: str) -> None:
        if not any(path.startswith(f"{folder}/") for path in (*self.files, *self.folders)):
            self.folders.discard(folder)

    def _touch(self, before: bool) -> None:
        if before:
            self.touches += 1
        if self.touches - 1 == self.fail_at and self.takes_effect is not before:
            raise self.failure


def parents(path: str) -> tuple[str, ...]:
    """The folders above a path, the outermost first."""
    return tuple(str(folder) for folder in reversed(PurePosixPath(path).parents))
