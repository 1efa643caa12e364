"""The command line: one thin file per verb, and what all of them promise about exits and `--json`."""

from __future__ import annotations

import signal
import sys
from types import FrameType

import click
import orjson

from breakeven.cli.compare import compare
from breakeven.cli.measure import measure
from breakeven.cli.models import models
from breakeven.cli.show import show
from breakeven.cli.trial import trial
from breakeven.errors import BreakevenError

INTERRUPTED = 130
"""What a shell reports for a program ended by Ctrl-C."""


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="breakeven")
def breakeven() -> None:
    """Know whether speculative decoding pays, prove it when it does, and find the cause when it does not.

    Exit codes: 0 done; 1 a gate of yours failed (--fail-if); 2 the request was wrong; 3 the server or the
    network failed; 130 interrupted, with what was measured saved.
    """


for verb in (measure, trial, compare, show, models):
    breakeven.add_command(verb)


def main() -> None:
    """Entry point of the `breakeven` command; turns every expected error into one line and an exit code."""
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    try:
        sys.exit(breakeven.main(standalone_mode=False) or 0)
    except BreakevenError as error:
        _fail(str(error), error.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _fail("interrupted", INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)


def _as_ctrl_c(signum: int, frame: FrameType | None) -> None:
    """SIGTERM saves and puts back what Ctrl-C does."""
    signal.raise_signal(signal.SIGINT)


def _fail(message: str, exit_code: int) -> None:
    if "--json" in sys.argv[1:]:
        sys.stdout.write(orjson.dumps({"error": message, "exit_code": exit_code}).decode() + "\n")
    click.echo(f"breakeven: {message}", err=True)
    sys.exit(exit_code)
