"""Options that several verbs share, so that each is spelled, checked and explained once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from breakeven.client.endpoint import ApiKey, Endpoint
from breakeven.client.timeouts import Timeouts
from breakeven.engines.argv import readable_version
from breakeven.errors import BreakevenError, UsageError
from breakeven.latency import RunSummary, summarize
from breakeven.trace.run import Run
from breakeven.workload.prompts import Sampling

Command = TypeVar("Command", bound=Callable[..., Any])


def stack(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several click options as one decorator, shown by --help in the order given."""

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


class FiniteRange(click.FloatRange):
    """A FloatRange without `nan`, which no range keeps out, and `inf`, which JSON cannot carry."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number that can be used.", param, ctx)
        return number


class ShareBelowOne(click.ParamType):  # type: ignore[type-arg]
    """A share from 0 to below 1, as `share_below_one` reads it. Raises UsageError for another."""

    name = "SHARE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return share_below_one(str(value))
        except ValueError as error:
            option = f"{param.opts[0]} " if param else ""
            percent = percent_meant(str(value)) or 2
            raise UsageError(f"{error}: type  {option}{percent:g}%  or  {option}{percent / 100:g}") from None


def percent_meant(text: str) -> float | None:
    """What a number from 1 to below 100 without a % is likely to mean; None for another word."""
    try:
        percent = float(text)
    except ValueError:
        return None
    return percent if 1 <= percent < 100 else None


def share_below_one(text: str) -> float:
    """0.02 and 2% are the same. Raises ValueError for what is no share from 0 to below 1."""
    word = text.strip()
    try:
        share = float(f"{word[:-1].rstrip()}e-2" if word.endswith("%") else word)
    except ValueError:
        share = math.nan
    if not 0 <= share < 1:
        raise ValueError(f"{word[:40]!r} is no share from 0 to below 1")
    return share


class EngineVersion(click.ParamType):  # type: ignore[type-arg]
    """A version with its numbers, such as 0.32.0: `latest` says nothing. Raises UsageError for another."""

    name = "version"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return readable_version(str(value))


json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")

fail_if_option = click.option(
    "--fail-if",
    type=click.Choice(["slower", "not-faster"]),
    help="Exit with 1 if the verdict is slower, or is anything but faster.",
)

decision_options = stack(
    click.option(
        "--floor",
        type=FiniteRange(0, 1, max_open=True),
        default=0.02,
        show_default=True,
        help="Changes smaller than this share count as none.",
    ),
    click.option(
        "--confidence",
        type=FiniteRange(0.5, 1, min_open=True, max_open=True),
        default=0.95,
        show_default=True,
    ),
)

sampling_options = stack(
    click.option("--max-tokens", type=click.IntRange(min=1), help="Most tokens of each reply."),
    click.option("--temperature", type=FiniteRange(min=0), default=0.0, show_default=True),
    click.option("--top-p", type=FiniteRange(0, 1, min_open=True)),
    click.option("--seed", type=int, help="Sampling seed, sent to the server."),
    click.option(
        "--extra",
        multiple=True,
        metavar="KEY=JSON",
        help="Further body field, such as --extra 'chat_template_kwargs={\"enable_thinking\": false}'.",
    ),
)

endpoint_options = stack(
    click.option("--api", type=click.Choice(["chat", "completions"]), default="chat", show_default=True),
    click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the API key."),
    click.option("--api-key-file", type=click.Path(path_type=Path), help="File that holds the API key."),
    click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="Further request header."),
    click.option("--ca-file", type=click.Path(path_type=Path), help="Certificate authority to trust."),
    click.option("--insecure", is_flag=True, help="Do not verify the server's TLS certificate."),
    click.option(
        "--connect-timeout", type=FiniteRange(min=0, min_open=True), default=10.0, show_default=True
    ),
    click.option(
        "--first-token-timeout", type=FiniteRange(min=0, min_open=True), default=600.0, show_default=True
    ),
    click.option("--idle-timeout", type=FiniteRange(min=0, min_open=True), default=120.0, show_default=True),
)


def html_option(page: str | None = None, of: str = "a folder") -> Callable[[Command], Command]:
    """The report as a page. A `page` is written without being asked for, into the folder that `of` names."""
    default = f" [default of {of}: {page} in it]" if page else ""
    return click.option(
        "--html",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help=f"Write the report as one HTML file{default}.",
    )


def sampling(values: Mapping[str, Any], default_max_tokens: int, **extra: Any) -> Sampling:
    """Sampling from the options; fields given with --extra override the verb's own `extra`."""
    return Sampling(
        max_tokens=values["max_tokens"] or default_max_tokens,
        temperature=values["temperature"],
        top_p=values["top_p"],
        seed=values["seed"],
        extra=extra | dict(_key_value(text) for text in values["extra"]),
    )


def timeouts(values: Mapping[str, Any]) -> Timeouts:
    return Timeouts(
        connect_s=values["connect_timeout"],
        first_token_s=values["first_token_timeout"],
        idle_s=values["idle_timeout"],
    )


def endpoint(values: Mapping[str, Any], url: str) -> Endpoint:
    """Raises UsageError for a URL, header or key that cannot be used."""
    return Endpoint(
        url,
        api=values["api"],
        model=values["model"],
        api_key=ApiKey.from_env_or_file(values["api_key_env"], values["api_key_file"]),
        headers=headers(values),
        verify_tls=not values["insecure"],
        ca_file=values["ca_file"],
    )


def headers(values: Mapping[str, Any]) -> dict[str, str]:
    pairs = {}
    for text in values["headers"]:
        name, separator, value = text.partition(":")
        if not separator or not name.strip():
            raise UsageError(f"--header {text!r} is not NAME:VALUE")
        pairs[name.strip()] = value.strip()
    return pairs


def summary_of(run: Run) -> RunSummary:
    """Of a whole run; what was left out of its prompts is among the warnings."""
    summary = summarize(run.traces(), run.meta.elapsed_s)
    return replace(summary, warnings=(*run.meta.warnings, *summary.warnings))


def new_run_dir(verb: str, out: Path | None) -> Path:
    """The folder asked for, or `runs/VERB-DATE-TIME` under the current one.

    Raises UsageError for a folder that holds more than logs, before any work is done for it.
    """
    if out is None:
        return _free(Path("runs") / f"{verb}-{datetime.now(UTC):%Y%m%d-%H%M%S}")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: type another --out")
    try:
        used = out.is_dir() and any(entry.suffix != ".log" for entry in out.iterdir())
    except OSError as error:
        raise UsageError(f"{out} cannot be read ({error.strerror}): type another --out") from error
    if used:
        raise UsageError(f"{out} is in use: type  --out {_free(out)}")
    return out


def _free(folder: Path) -> Path:
    """The first of NAME, NAME-2, NAME-3, … that does not exist."""
    named = folder if folder.name else folder.absolute()
    names = (Path(f"{named if named.name else '/run'}-{number}") for number in count(2))
    return next(path for path in chain([folder], names) if not path.exists())


@contextmanager
def keeping(sign: Path, command: str, done: str = "measured") -> Iterator[None]:
    """Has a failure or Ctrl-C say, where `sign` tells that something was saved, how to go on with it; `done`
    is what it was."""
    try:
        yield
    except (BreakevenError, KeyboardInterrupt) as error:
        if not isinstance(error, UsageError) and sign.exists():
            error.add_note(f"what was {done} is saved: type  {command}")
        raise


def print_json(value: Mapping[str, Any]) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY).decode())


def gate(outcome: str, fail_if: str | None) -> int:
    """Exit code of a verdict: 1 only if it is what the user's gate names."""
    broken = {None: False, "slower": outcome == "slower", "not-faster": outcome != "faster"}[fail_if]
    return 1 if broken else 0


def _key_value(text: str) -> tuple[str, Any]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise UsageError(f"--extra {text!r} is not KEY=JSON")
    try:
        return key, orjson.loads(value)
    except orjson.JSONDecodeError:
        return key, value
