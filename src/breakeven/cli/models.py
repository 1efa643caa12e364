"""`breakeven models`: where weights come from, and the mixture of experts made out of a dense model."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from breakeven.cli.embedded import has_experts
from breakeven.cli.geometry import find_geometry
from breakeven.cli.options import json_option, print_json
from breakeven.cli.output import stderr, stdout
from breakeven.errors import UsageError
from breakeven.models import cache
from breakeven.models.cache import Cached
from breakeven.models.resolve import Watch, quiet, resolve, verify
from breakeven.models.upcycle import RANDOM_ROUTING, upcycle
from breakeven.report.model_terminal import model_json, print_model
from breakeven.report.progress import progress
from breakeven.units import size
from breakeven.workload.files import load_prompts
from breakeven.workload.prompts import Workload

if TYPE_CHECKING:
    from breakeven.cost.routing import RoutingTrace


@click.group()
def models() -> None:
    """Fetch, list and make the models that the embedded engine runs; describe any model.

    \b
    breakeven models list
    breakeven models describe kimi-k2.5
    breakeven models pull smollm2
    breakeven models upcycle smollm2 --experts 8 --top-k 1 --out moe.gguf
    """


@models.command("list")
@json_option
def list_models(as_json: bool) -> None:
    """List the models by name, and what is in the cache.

    \b
    breakeven models list
    breakeven models list --json
    BREAKEVEN_CACHE=/big/disk breakeven models list
    """
    found = cache.entries()
    if as_json:
        _say_json({"folder": str(cache.folder()), "models": [_as_dict(entry) for entry in found]})
        return
    width = max(len(entry.spec) for entry in found)
    for entry in found:
        held = size(entry.size_bytes) if entry.present else "not here"
        click.echo(f"{entry.spec:<{width}}  {held:>9}  {entry.note}")
    click.echo(f"in {cache.folder()}")


@models.command()
@click.argument("spec")
@json_option
def pull(spec: str, as_json: bool) -> None:
    """Fetch SPEC into the cache, or check what is there.

    \b
    breakeven models pull smollm2
    breakeven models pull smollm2-moe      (routing is random, not learned)
    breakeven models pull hf:org/repo/file.gguf@revision
    """
    if not verify(spec):
        click.echo(f"{spec} in the cache was broken and was deleted; fetching it again", err=True)
    with watching() as watch:
        path = resolve(spec, watch)
    _say_path(spec, path, as_json)


@models.command()
@click.argument("spec")
@json_option
def path(spec: str, as_json: bool) -> None:
    """Print the file of SPEC, without fetching it.

    \b
    breakeven models path smollm2
    ls -l "$(breakeven models path smollm2)"
    breakeven models path hf:org/repo/file.gguf --json
    """
    known = {entry.spec: entry for entry in cache.entries()}
    if spec in known and not known[spec].present:
        raise UsageError(f"{spec} is not in the cache: type  breakeven models pull {spec}")
    if spec.startswith("hf:") and spec not in known:
        raise UsageError(f"{spec} is not in the cache: type  breakeven models pull {spec}")
    _say_path(spec, resolve(spec, quiet), as_json)


@models.command()
@click.argument("model")
@json_option
def describe(model: str, as_json: bool) -> None:
    """Say what MODEL holds: parameters, bytes that a decode step reads, KV cache, AllReduces.

    MODEL is a preset, a config.json or a folder with one, a GGUF file, a name of `models list`, or a geometry
    file such as --json prints.

    \b
    breakeven models describe kimi-k2.5
    breakeven models describe ./Qwen3-30B-A3B/config.json
    breakeven models describe smollm2 --json
    """
    with watching() as watch:
        geometry = find_geometry(model, watch)
    if as_json:
        print_json(model_json(model, geometry))
    else:
        print_model(model, geometry, stdout())


@models.command("upcycle")
@click.argument("spec")
@click.option("--experts", type=int, default=8, show_default=True, help="Identical experts per layer.")
@click.option("--top-k", type=int, default=2, show_default=True, help="Experts that each token uses.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the random router.")
@click.option(
    "--quantise", metavar="TYPE", help="Write all matrices as q8_0, q4_0, q4_1, f16, … [as they are]"
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="GGUF file to write.")
@click.option("--force", is_flag=True, help="Replace the file if it exists.")
@json_option
def upcycle_model(
    spec: str,
    experts: int,
    top_k: int,
    seed: int,
    quantise: str | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Make a mixture of experts out of the dense llama model SPEC.

    Every feed-forward block becomes EXPERTS identical ones, of which a random router picks TOP-K for each
    token: the text stays the dense model's, and each step reads other memory. Routing is random, not learned.

    \b
    breakeven models upcycle smollm2 --experts 8 --top-k 1 --out moe.gguf
    breakeven models upcycle smollm2 --experts 64 --top-k 8 --quantise q8_0 --out moe64.gguf
    breakeven trial --model moe.gguf
    """
    if out.exists() and not force:
        raise UsageError(f"{out} exists: type another --out, or --force to replace it")
    with watching() as watch:
        source = resolve(spec, watch)
        if out.exists() and out.samefile(source):
            raise UsageError(f"{out} is the model itself: type another --out")
        upcycle(source, out, experts, top_k, seed, quantise, watch(f"making {out.name}"))
    click.echo(f"{RANDOM_ROUTING} This model shows cost, not quality.", err=True)
    _say_path(spec, out, as_json)


@models.command()
@click.argument("spec")
@click.option("--prompts", default="default", show_default=True, help="A built-in set, a file, or -.")
@click.option(
    "--tokens", type=click.IntRange(min=2), default=64, show_default=True, help="Most tokens of each reply."
)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Keep the trace: FILE.npz.")
@json_option
def routing(spec: str, prompts: str, tokens: int, out: Path | None, as_json: bool) -> None:
    """Measure how many distinct experts of SPEC the tokens of a step wake, on replies to real prompts.

    llama.cpp decodes the replies here, token by token. Neighbouring tokens share experts, and a step that
    verifies drafts reads fewer than the formula for independent tokens says: the reuse that fits is shown.

    \b
    breakeven models routing smollm2-moe
    breakeven models routing moe.gguf --prompts mine.jsonl --tokens 256 --out routing.npz
    breakeven models routing moe.gguf --prompts brief --json
    """
    from breakeven.cost.routing import save_routing
    from breakeven.report.routing_terminal import print_routing, routing_json

    _check_trace(out, Path(prompts))
    workload = load_prompts(prompts)
    if len(workload.prompts) < 2:
        raise UsageError(
            f"--prompts {prompts} holds one prompt: give two or more, replies have to be compared"
        )
    with watching() as watch:
        model = resolve(spec, watch)
    _check_trace(out, model)
    if has_experts(spec, model) is False:
        raise UsageError(
            f"{spec} has no experts, so there is nothing to route: type one that has, such as smollm2-moe"
        )
    trace = _routing_of(spec, model, workload, tokens)
    if out is not None:
        save_routing(trace, out)
    path = None if out is None else str(out)
    if as_json:
        print_json(routing_json(trace, path))
    else:
        print_routing(trace, path, stdout())


def _check_trace(out: Path | None, source: Path) -> None:
    """Raises UsageError for an --out that cannot be written, or is what the trace is made from."""
    from breakeven.report.replay_target import check_target

    if out is not None:
        check_target(out, [source], "routing.npz", "--out")


def _routing_of(spec: str, model: Path, workload: Workload, tokens: int) -> RoutingTrace:
    from breakeven.cost.routing import RoutingTrace
    from breakeven.servers.routing import record_routing

    prompts = [prompt.messages or () for prompt in workload.prompts]
    with progress("routing, tokens", tokens * len(prompts), stderr()) as ticker:
        routed = record_routing(model, prompts, tokens, ticker.advance)
    is_random = RANDOM_ROUTING in routed.description
    return RoutingTrace(routed.experts, routed.lengths, routed.count, spec, is_random)


@contextlib.contextmanager
def watching() -> Iterator[Watch]:
    """A Watch that draws one bar per piece of work on stderr, with the time remaining."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bars = Progress(*columns, console=Console(stderr=True))

    def watch(what: str) -> Any:
        bars.start()
        task = bars.add_task(what, total=None)
        return lambda done, total: bars.update(task, completed=done, total=total)

    try:
        yield watch
    finally:
        if bars.live.is_started:
            bars.stop()


def _say_path(spec: str, found: Path, as_json: bool) -> None:
    n_bytes = found.stat().st_size
    if as_json:
        _say_json({"model": spec, "path": str(found), "size_bytes": n_bytes})
    else:
        click.echo(found)


def _as_dict(entry: Cached) -> dict[str, Any]:
    return {
        "model": entry.spec,
        "path": str(entry.path),
        "present": entry.present,
        "size_bytes": entry.size_bytes,
        "note": entry.note,
    }


def _say_json(value: dict[str, Any]) -> None:
    click.echo(json.dumps(value))
