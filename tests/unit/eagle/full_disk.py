"""A disk that fills up."""

from __future__ import annotations

import errno
import os

import pytest


def fill_disk(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """So many files still reach the disk whole, and none after them."""
    left, real = writes, os.fsync

    def full(descriptor: int) -> None:
        nonlocal left
        if left == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= 1
        real(descriptor)

    monkeypatch.setattr(os, "fsync", full)
