"""The `breakeven` command, also as `python -m breakeven`: a Ctrl-C is one line from the first moment on.

Nothing but built-in modules is imported before that is so: `_signal` is what `signal` wraps in enumerations.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # it has no stub
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType
    from typing import NoReturn

INTERRUPTED = 130
"""What a shell reports for a program ended by Ctrl-C."""


def _end(signum: int = 2, frame: FrameType | None = None) -> NoReturn:
    """At once, and not as an exception: a module half imported might make another of it."""
    try:
        if "--json" in sys.argv[1:]:
            os.write(1, b'{"error":"interrupted","exit_code":130}\n')
        os.write(2, b"breakeven: interrupted\n")
    finally:
        os._exit(INTERRUPTED)


def _replace(handler: object, by: object) -> None:
    """What Ctrl-C does, unless it does something else."""
    if _signal.getsignal(_signal.SIGINT) is handler:
        _signal.signal(_signal.SIGINT, by)


def main() -> None:
    """Hands over to the command line, whose imports take most of a second and can be interrupted."""
    _replace(_signal.default_int_handler, _end)
    from breakeven.cli import main as command

    try:
        _replace(_end, _signal.default_int_handler)
        command()
    except KeyboardInterrupt:
        _end()
    finally:
        _replace(_signal.default_int_handler, _end)


if "__mp_main__" not in sys.modules:  # a worker's Ctrl-C is its parent's to tell of
    _replace(_signal.default_int_handler, _end)
if __name__ == "__main__":
    main()
