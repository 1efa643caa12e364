"""The `breakeven` command, also as `python -m breakeven`: a Ctrl-C is one line from the first import on."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from types import FrameType
from typing import NoReturn

INTERRUPTED = 130
"""What a shell reports for a program ended by Ctrl-C."""


def main() -> None:
    """Hands over to the command line, whose imports take most of a second and can be interrupted."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from breakeven.cli import main as command

    try:
        if signal.getsignal(signal.SIGINT) is _end:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        command()
    except KeyboardInterrupt:
        _end()


def _end(signum: int = signal.SIGINT, frame: FrameType | None = None) -> NoReturn:
    """At once, and not as an exception: a module half imported might make another of it."""
    with contextlib.suppress(OSError):
        if "--json" in sys.argv[1:]:
            os.write(1, b'{"error":"interrupted","exit_code":130}\n')
        os.write(2, b"breakeven: interrupted\n")
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
