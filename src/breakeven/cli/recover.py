"""`breakeven recover`: a server that a trial was cut off on is put back as it was found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from breakeven.cli.options import json_option, print_json
from breakeven.errors import BreakevenError, UsageError
from breakeven.servers.lifecycle import START_LIMIT_S

if TYPE_CHECKING:
    from breakeven.client.endpoint import Endpoint
    from breakeven.engines.dialect import Dialect
    from breakeven.servers.lifecycle import Lifecycle
    from breakeven.servers.progress import Progress
    from breakeven.servers.recovery import Pending
    from breakeven.servers.undo_record import UndoRecord, Verification


@click.command()
@click.argument("names", metavar="[ID|TARGET]...", nargs=-1)
@click.option("--list", "only_list", is_flag=True, help="Only say what is to be put back.")
@click.option(
    "--start-limit",
    "start_limit_s",
    type=click.FloatRange(min=0, min_open=True),
    default=START_LIMIT_S,
    show_default=True,
    help="Seconds that a restarted server has to answer in, and in which what fails is tried again.",
)
@click.option(
    "--forget", is_flag=True, help="Put nothing back: it was put right by hand. Takes an ID or target."
)
@json_option
def recover(
    names: tuple[str, ...], only_list: bool, start_limit_s: float, forget: bool, as_json: bool
) -> None:
    """Put back what a trial changed that was cut off: killed, or by a reboot or a power cut.

    Undoes in reverse order what the trial's journal says was begun, restarts the server where it may run
    with the change, and waits for a real completion. Neither Ctrl-C nor a closed terminal ends it half-way;
    killed, it can be run again.

    \b
    breakeven recover
    breakeven recover --list
    breakeven recover systemd:vllm.service
    """
    from breakeven.servers.recovery import pending, tidy

    found = _chosen(pending(), names)
    if forget and not names:
        raise UsageError("say what to forget: type  breakeven recover --forget ID")
    if only_list:
        _show(found, as_json)
        return
    told = [_one(look, start_limit_s, forget) for look in found]
    tidy()
    if as_json:
        print_json({"recovered": told})
    elif not told:
        _show((), as_json=False)
    problems = [entry["problem"] for entry in told if entry["problem"]]
    if problems:
        raise BreakevenError("; ".join(problems))


def _chosen(found: tuple[Pending, ...], names: tuple[str, ...]) -> tuple[Pending, ...]:
    """Those named, by id or target; of this machine, where none is named. Raises UsageError."""
    import platform

    if not names:
        return tuple(f for f in found if f.record is None or f.record.node == platform.node())
    from breakeven.servers.occupied import refuse_occupied
    from breakeven.servers.recovery import at_work

    known = {name: look for look in found for name in _names(look)}
    chosen = {}
    for name in names:
        if name not in known:
            refuse_occupied(name)
            _refuse_at_work(name, at_work())
            listed = ", ".join(sorted({_names(look)[-1] for look in found})) or "nothing is to be put back"
            raise UsageError(f"there is no cut-off trial on {name!r}: {listed}")
        chosen[known[name].path] = known[name]
    return tuple(chosen.values())


def _refuse_at_work(name: str, records: Iterable[UndoRecord]) -> None:
    """Raises UsageError where another process is putting it back."""
    for record in records:
        if name in (record.id, record.target):
            raise UsageError(f"{record.held_by()}: wait until it ends")


def _names(look: Pending) -> tuple[str, ...]:
    return (look.path.stem,) if look.record is None else (look.path.stem, look.record.id, look.record.target)


def _show(found: tuple[Pending, ...], as_json: bool) -> None:
    from breakeven.servers.occupied import all_running
    from breakeven.servers.recovery import at_work

    running, recovering = all_running(), at_work()
    if as_json:
        others = [{"target": record.target, **record.holder} for record in recovering]
        pending = [_as_dict(look) for look in found]
        trials = [asdict(trial) for trial in running]
        print_json({"pending": pending, "running": trials, "recovering": others})
        return
    for look in found:
        click.echo(_line(look))
        for begun in look.record.begun if look.record else ():
            click.echo(f"  {_describe(begun.operation)}")
    for trial in running:
        click.echo(trial.describe())
    for record in recovering:
        click.echo(f"{record.held_by()}: wait until it ends")
    if not found:
        click.echo(f"nothing {'else ' if recovering else ''}is to be put back")


def _line(look: Pending) -> str:
    if look.record is None:
        return f"{look.path.stem}: {look.problem}"
    return f"{look.record.target} on {look.record.node}, a trial of {look.record.opened}: {look.path}"


def _as_dict(look: Pending) -> dict[str, Any]:
    record = look.record
    return {
        "id": look.path.stem,
        "journal": str(look.path),
        "problem": look.problem,
        "target": record.target if record else None,
        "node": record.node if record else None,
        "opened": record.opened if record else None,
        "begun": [_describe(begun.operation) for begun in record.begun] if record else [],
        "may_run_changed": record.may_run_changed if record else None,
    }


def _describe(operation: Any) -> str:
    from breakeven.servers.operation_kinds import operation_from_json

    try:
        return operation_from_json(operation).describe()
    except UsageError as error:
        return str(error)


def _one(look: Pending, start_limit_s: float, forget: bool) -> dict[str, Any]:
    """Put one back; its problem, if any, is told at the end, after the others."""
    problem = None
    try:
        if look.record is None and not forget:
            raise UsageError(str(look.problem))
        _forget(look.path) if forget else asyncio.run(_recover(look.path, start_limit_s))
    except BreakevenError as error:
        problem = f"{_names(look)[-1]} is not put back yet: {error}"
    else:
        _say(f"{_names(look)[-1]} is {'forgotten' if forget else 'as it was found'}")
    return {"id": look.path.stem, "target": _names(look)[-1], "problem": problem}


def _forget(path: Path) -> None:
    from breakeven.servers.undo_journal import UndoJournal, shelve

    try:
        with UndoJournal.adopt(path) as journal:
            journal.close("forgotten")
    except UsageError:
        shelve(path)


async def _recover(path: Path, start_limit_s: float) -> None:
    """Raises what putting back raises; the journal stays then. Ctrl-C, SIGTERM and SIGHUP do not end it, and
    are raised afterwards."""
    from breakeven.servers.host import LocalHost
    from breakeven.servers.recovery import put_back
    from breakeven.servers.sudo_host import SudoHost
    from breakeven.servers.targets import TargetOptions, lifecycle_of
    from breakeven.servers.undo_journal import UndoJournal
    from breakeven.trial.live_interrupts import heeded, undisturbed

    began = monotonic()

    async def verify(verification: Verification, lifecycle: Lifecycle, is_restarted: bool) -> None:
        since = began if is_restarted and lifecycle.kind != "attached" else None
        await _verify(journal.record, _with_key(verification), lifecycle, start_limit_s, since)

    with UndoJournal.adopt(path) as journal, heeded(_say, start_limit_s):
        record = journal.record
        host = SudoHost() if record.options.get("sudo") else LocalHost()
        lifecycle = None
        if record.verify is not None:
            options = TargetOptions(
                endpoint=_endpoint(record.verify) if record.kind == "attached" else None,
                container=record.options.get("container"),
                context=record.options.get("context"),
            )
            lifecycle = lifecycle_of(record.target, host, options)
        going = put_back(journal, host, lifecycle, verify, _say, start_limit_s)
        await undisturbed(going, _say, start_limit_s)


async def _verify(
    record: UndoRecord, endpoint: Endpoint, lifecycle: Lifecycle, limit_s: float, began: float | None
) -> None:
    from breakeven.servers.readiness import Wanted, wait_until_ready
    from breakeven.servers.start_times import last_start_s

    wanted = Wanted(endpoint, limit_s, usual_s=last_start_s(record.target, False), is_returning=True)
    told: list[str] = []

    def watch(progress: Progress) -> None:
        phase = progress.phase.name if progress.phase else progress.waiting_for
        if told[-1:] != [phase]:
            told.append(phase)
            _say(progress.describe())

    dialect = _dialect(tuple(record.found["argv"]))
    await wait_until_ready(lifecycle, dialect, wanted, began=began, watch=watch)


def _dialect(argv: tuple[str, ...]) -> Dialect:
    """By which the log is read. What starts an engine in a way that is not known may be any of them."""
    from breakeven.engines.dialects import dialect_of
    from breakeven.engines.vllm import Vllm

    try:
        return dialect_of(argv)
    except UsageError:
        return Vllm()


def _with_key(verification: Verification) -> Endpoint:
    """Raises UsageError where its key is gone: that is no reason not to put back what can be."""
    from breakeven.client.endpoint import ApiKey

    key = ApiKey.from_env_or_file(verification.api_key_env, verification.api_key_file)
    return replace(_endpoint(verification), api_key=key)


def _endpoint(verification: Verification) -> Endpoint:
    """Without its key."""
    from breakeven.client.endpoint import Endpoint

    return Endpoint(
        verification.url,
        api="completions" if verification.api == "completions" else "chat",
        model=verification.model,
        verify_tls=verification.verify_tls,
        ca_file=None if verification.ca_file is None else Path(verification.ca_file),
    )


def _say(line: str) -> None:
    """To a terminal that may be gone by now: nothing of the server depends on that."""
    with suppress(Exception):
        click.echo(line, err=True)
