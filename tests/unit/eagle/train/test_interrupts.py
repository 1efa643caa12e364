"""Ctrl-C asks once, and means it when it comes again."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from breakeven.eagle.train import interrupts
from breakeven.eagle.train.interrupts import ONE_WISH_S, heeded


def press() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_the_first_is_noted_and_the_second_ends(monkeypatch: pytest.MonkeyPatch):
    now = [100.0]
    monkeypatch.setattr(interrupts.time, "monotonic", lambda: now[0])
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), heeded() as asked:
        assert not asked.asked
        press()
        assert asked.asked
        now[0] += ONE_WISH_S / 2
        press()  # torchrun's, on behalf of the first
        now[0] += ONE_WISH_S
        press()
    assert signal.getsignal(signal.SIGINT) is before


def test_a_thread_hears_nothing():
    found = []

    def run() -> None:
        with heeded() as asked:
            found.append(asked.asked)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]
