"""Ctrl-C that ends a reading, and not the command."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from breakeven.cli.interrupt import interruptible


def ctrl_c() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def endless(*, at: int) -> Iterator[bytes]:
    """Ctrl-C comes while the piece of that number is waited for."""
    number = 0
    while True:
        if number == at:
            ctrl_c()
        yield b"%d" % number
        number += 1


def test_it_ends_the_pieces_while_one_is_waited_for() -> None:
    with interruptible() as interrupt:
        assert list(interrupt.until(endless(at=3))) == [b"0", b"1", b"2"]
        assert interrupt.came


def test_it_waits_for_the_piece_that_is_being_worked_on() -> None:
    done = []
    with interruptible() as interrupt:
        for piece in interrupt.until(endless(at=-1)):
            if piece == b"2":
                ctrl_c()
            done.append(piece)
    assert done == [b"0", b"1", b"2"] and interrupt.came


def test_without_it_all_pieces_come() -> None:
    with interruptible() as interrupt:
        assert list(interrupt.until(iter([b"a", b"b"]))) == [b"a", b"b"]
        assert not interrupt.came


def test_a_second_one_ends_the_command() -> None:
    with pytest.raises(KeyboardInterrupt), interruptible():
        ctrl_c()
        ctrl_c()


def test_afterwards_ctrl_c_is_as_it_was() -> None:
    before = signal.getsignal(signal.SIGINT)
    with interruptible():
        assert signal.getsignal(signal.SIGINT) != before
    assert signal.getsignal(signal.SIGINT) == before
