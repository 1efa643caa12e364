"""One function over many batches, in order: in this thread, or on all cores."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from multiprocessing import connection
from typing import Protocol, TypeVar

from breakeven.errors import UsageError

A = TypeVar("A")
B = TypeVar("B")

AHEAD = 2
"""Batches read ahead per worker: enough to keep it busy, few enough to keep memory flat."""
LAST_S = 5.0
"""For processes that were told to end."""
ENDED = (
    "a worker process ended before its work was done (killed, or out of memory): type --jobs 1 to work in "
    "this process; a script needs its calls below  if __name__ == '__main__'"
)


class Workers(Protocol):
    """Where the work is done."""

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """`work` of each item, in the items' order; items are taken as workers become free."""
        ...


class Here:
    """In the calling thread."""

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        return map(work, items)


class Threads:
    """For compiled loops, which give up the interpreter lock."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        with ThreadPoolExecutor(self.jobs) as executor:
            try:
                yield from in_order(lambda item: executor.submit(work, item), items, self.jobs * AHEAD)
            finally:
                executor.shutdown(cancel_futures=True)


class Processes:
    """For drafters in Python. The processes end with their parent, and at once when it is interrupted."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs

    def map(self, work: Callable[[A], B], items: Iterable[A]) -> Iterator[B]:
        """Raises UsageError where a process ended before its work was done."""
        executor = ProcessPoolExecutor(self.jobs, multiprocessing.get_context("spawn"), _begin)
        try:
            yield from in_order(partial(_submitted, executor, work), items, self.jobs * AHEAD)
            executor.shutdown()
        except BrokenProcessPool as error:
            raise UsageError(ENDED) from error
        except BaseException:
            _end_now(executor)
            raise


def _begin() -> None:
    """What a user's drafter prints is no result; and nobody waits for the work of a parent that is gone."""
    sys.stdout = sys.stderr
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _submitted(executor: Executor, work: Callable[[A], B], item: A) -> Future[B]:
    """Processes begin here, and inherit that Ctrl-C is for their parent, which ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        return executor.submit(work, item)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return executor.submit(work, item)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_now(executor: ProcessPoolExecutor) -> None:
    """Nobody waits for the results any more. The pool's own thread is seen out, as an exit beside it may find
    its pipe half closed, and say so."""
    thread: threading.Thread | None = getattr(executor, "_executor_manager_thread", None)
    for process in list((executor._processes or {}).values()):
        with suppress(OSError):
            process.terminate()
    with suppress(OSError):
        executor.shutdown(wait=False, cancel_futures=True)
    if thread is not None:
        thread.join(LAST_S)


def in_order(submit: Callable[[A], Future[B]], items: Iterable[A], at_once: int) -> Iterator[B]:
    """Results in the items' order, with at most so many items under way."""
    waiting: deque[Future[B]] = deque()
    for item in items:
        waiting.append(submit(item))
        if len(waiting) >= at_once:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def workers(jobs: int | None, threads: bool) -> Workers:
    """As many workers as asked for; None is one for each core that this process may use."""
    jobs = jobs or cores()
    if jobs == 1:
        return Here()
    return Threads(jobs) if threads else Processes(jobs)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
