"""The command line: one thin file per verb, and what all of them promise about exits and `--json`."""

from __future__ import annotations

import codecs
import errno
import io
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click
import orjson

from breakeven.cli.calibrate import calibrate_verb
from breakeven.cli.compare import compare
from breakeven.cli.diagnose import diagnose
from breakeven.cli.drafters import drafters
from breakeven.cli.eagle import eagle
from breakeven.cli.engine import engine
from breakeven.cli.explain import explain
from breakeven.cli.forecast import forecast
from breakeven.cli.guard import guard
from breakeven.cli.interrupt import INTERRUPTED
from breakeven.cli.measure import measure
from breakeven.cli.models import models
from breakeven.cli.recover import recover
from breakeven.cli.reminder import remind
from breakeven.cli.replay import replay
from breakeven.cli.show import show
from breakeven.cli.trial import trial
from breakeven.cli.watch import watch
from breakeven.errors import BreakevenError, StorageError, UsageError
from breakeven.report.text import clean, encodable

UNREAD = 141
"""What a shell reports for a program whose output nobody reads any more. Click and rich would say 1: that is
a gate here."""
NEAREST = {"×": "x", "→": "->", "−": "-", "–": "-", "…": "...", "µ": "u", "━": "-"}
"""What the reports are written with, for terminals that know only ASCII."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="breakeven")
def breakeven() -> None:
    """Know whether speculative decoding pays on your model, hardware and prompts.

    Exit codes: 0 done; 1 a gate of yours failed (--fail-if); 2 the request was wrong; 3 the server or the
    network failed; 130 interrupted, with what was measured saved.
    """


for verb in (
    measure,
    calibrate_verb,
    replay,
    forecast,
    trial,
    compare,
    explain,
    diagnose,
    watch,
    eagle,
    guard,
    show,
    drafters,
    engine,
    recover,
    models,
):
    breakeven.add_command(verb)


def main() -> None:
    """Entry point of the `breakeven` command; turns every expected error into one line and an exit code."""
    _heed_signals()
    _write_whole()
    if "recover" not in sys.argv[1:2]:
        remind()
    try:
        code = breakeven.main(prog_name="breakeven", standalone_mode=False) or 0
        sys.stdout.flush()
    except BreakevenError as error:
        _fail(_with_notes(str(error), error), error.exit_code)
    except click.UsageError as error:
        if isinstance(error, getattr(click.exceptions, "NoArgsIsHelpError", ())):
            error.show()
            sys.exit(error.exit_code)
        _fail(f"{error.format_message().rstrip('.')}: {_see_help(error)}", error.exit_code)
    except click.ClickException as error:
        _fail(error.format_message(), error.exit_code)
    except OSError as error:
        if error.filename is None:
            _fail_unwritten(error)
        _fail(f"cannot use {error.filename} ({error.strerror}): name another path", UsageError.exit_code)
    except MemoryError:
        _fail(
            "there is not enough memory: raise the limit (ulimit -v), or give less at once",
            StorageError.exit_code,
        )
    except SystemExit:
        code = UNREAD
    except (KeyboardInterrupt, click.Abort) as stop:
        _fail(_with_notes("interrupted", stop.__cause__ or stop), INTERRUPTED)
    sys.exit(code)


def _fail_unwritten(error: OSError) -> NoReturn:
    """Standard output cannot be written to; what it still holds would be tried again at exit."""
    if error.errno != errno.EPIPE:
        click.echo(f"breakeven: cannot write the output: {error.strerror or error}", err=True)
    os._exit(UNREAD if error.errno == errno.EPIPE else StorageError.exit_code)


def _heed_signals() -> None:
    """SIGTERM, and SIGHUP unless nohup has it ignored, save and put back what Ctrl-C does, also where a shell
    has Ctrl-C ignored: in the background.

    There SIGINT stays without effect, but gets the handler that asyncio replaces by one that ends its tasks.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _as_ctrl_c)


def _write_whole() -> None:
    """Under PYTHONUNBUFFERED Python drops what a full pipe does not take at once; a buffer goes on.

    A character that the terminal's encoding lacks is written as the nearest that it has, or as `?`. A stream
    that is closed (`>&-`) goes nowhere, and its number to no file that is opened later.
    """
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115  open to the end
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115  open to the end
    codecs.register_error("nearest", _nearest)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="nearest")
    raw = getattr(sys.stdout, "buffer", None)
    if isinstance(raw, io.RawIOBase):
        buffer = io.BufferedWriter(raw)
        sys.stdout = io.TextIOWrapper(buffer, sys.stdout.encoding, sys.stdout.errors, line_buffering=True)


def _nearest(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    lacking = error.object[error.start : error.end]
    return "".join(NEAREST.get(character, "?") for character in lacking), error.end


def _as_ctrl_c(signum: int, frame: FrameType | None) -> None:
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def _with_notes(message: str, error: BaseException) -> str:
    """The message and what is known beside it; below the lines of a log, on a line of its own."""
    return ("\n" if "\n" in message else "; ").join([message, *getattr(error, "__notes__", ())])


def _see_help(error: click.UsageError) -> str:
    return f"type  {error.ctx.command_path if error.ctx else 'breakeven'} --help"


def _fail(message: str, exit_code: int) -> NoReturn:
    if "--json" in sys.argv[1:]:
        sys.stdout.write(orjson.dumps({"error": encodable(message), "exit_code": exit_code}).decode() + "\n")
    with suppress(OSError):  # of a terminal that was closed
        click.echo(f"breakeven: {clean(message)}", err=True)
    sys.exit(exit_code)
