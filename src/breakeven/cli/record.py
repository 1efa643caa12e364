"""What the verbs that replay a record share: its options, how it is opened, and where its page goes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from breakeven.cli.output import stderr
from breakeven.errors import StorageError, UsageError
from breakeven.report.progress import progress

if TYPE_CHECKING:
    from breakeven.replay.sources import Source

Record = TypeVar("Record")
COMPILING = "compiling the loops once, some seconds"

tokenizer_option = click.option(
    "--tokenizer",
    type=click.Path(path_type=Path),
    help="tokenizer.json, or its folder, for text without ids.",
)
first_token_option = click.option(
    "--first-token",
    type=click.Choice(["prefill", "replayed"]),
    default="prefill",
    show_default=True,
    help="Who gives each first output token: the server's prefill, or the first step.",
)
jobs_option = click.option("--jobs", type=click.IntRange(min=1), help="Cores to use [default: all].")


def refuse(values: Mapping[str, Any], options: Sequence[str], message: str) -> None:
    """Raises UsageError for the first of the options that was given; `{}` in the message is its name."""
    for name in options:
        if values[name] is not None and values[name] is not False and values[name] != ():
            option = {"setting": "set", "drafter_names": "drafter"}.get(name, name.replace("_", "-"))
            raise UsageError(message.format(f"--{option}"))


def listed(text: str) -> list[str]:
    """The names of a list parted by commas."""
    return [name for word in text.split(",") if (name := word.strip())]


def open_record(path: Path, tokenizer: Path | None) -> Source:
    """Raises what open_source raises."""
    from breakeven.replay.sources import open_source

    return open_source(path, tokenizer)


def refuse_calibration(path: Path, verb: str) -> None:
    """Raises UsageError where it is a calibration that should be a record; `verb` takes both."""
    from breakeven.cost.calibration import FILE

    if path.name == FILE or ((path / FILE).is_file() and not (path / "run.json").exists()):
        raise UsageError(
            f"{path} is a calibration, and not a record of replies: type  breakeven {verb} RUN "
            f"--calibration {path}  with the folder of a `breakeven measure` or `trial`"
        )


def say_how_fast(drafters: Sequence[str], simulates: bool = False) -> None:
    """Before the work, what makes it slow: loops that are not compiled, or not yet. That of the simulation of
    a server is one, beside those of drafters."""
    from breakeven.drafters.compiler import COMPILED, compiles_first
    from breakeven.drafters.registry import drafter_class
    from breakeven.replay.run import SLOW

    if not simulates and not any(drafter_class(name).compiled for name in dict.fromkeys(drafters)):
        return
    if not COMPILED:
        click.echo(f"! {SLOW}", err=True)
    elif compiles_first():
        click.echo(COMPILING, err=True)


@contextmanager
def shown(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar on standard error, and what tells it how many more are done."""
    with progress(what, total, stderr()) as ticker:
        yield lambda done: ticker.advance(done)


def check_page(page: Path | None, inputs: Sequence[Path | None], example: str | None = None) -> None:
    """Raises UsageError for an --html that cannot be written, before any work is done for it."""
    if page is not None:
        from breakeven.report.replay_target import PAGE, check_target

        example = example or f"{click.get_current_context().command.name}{PAGE}"
        check_target(page, [path for path in inputs if path is not None], example)


def written(
    write: Callable[[Record, Path], None], record: Record, asked: Path | None, otherwise: Path | None = None
) -> str | None:
    """Where the page was written. A folder that takes none costs no result unless the page was asked for."""
    path = asked or otherwise
    if path is None:
        return None
    try:
        write(record, path)
    except StorageError as error:
        from breakeven.report.replay_target import unwritten

        if asked:
            raise unwritten(path, error) from error
        click.echo(f"breakeven: no report: {unwritten(path, error)}", err=True)
        return None
    return str(path)
