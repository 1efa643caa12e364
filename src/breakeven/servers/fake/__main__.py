"""`python -m breakeven.servers.fake`: serve one script; print the address as one JSON line once listening."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any

import click
import orjson

from breakeven.servers.fake.script import LLAMACPP, OPENAI, VLLM, Noise, Script, Speculation, Wire
from breakeven.servers.fake.server import FakeServer, new_event_loop

_DIALECTS = {dialect.name: dialect for dialect in (VLLM, LLAMACPP, OPENAI)}
_SATURATED_BURST = 8


@click.command(context_settings={"show_default": True})
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", default=0, help="Port to listen on; 0 takes a free one.")
@click.option("--ttft-ms", default=50.0, help="Request read to first token.")
@click.option("--tpot-ms", default=20.0, help="Time of a plain decode step.")
@click.option("--tokens", default=128, type=click.IntRange(min=1), help="Tokens of a reply.")
@click.option("--per-chunk", default=1, type=click.IntRange(min=1), help="Tokens in a chunk.")
@click.option("--reasoning", default=0, type=click.IntRange(min=0), help="How many tokens are reasoning.")
@click.option("--reasoning-key", default=None, help="Delta key of reasoning, or `inline` for <think> tags.")
@click.option("--engine", default="vllm", type=click.Choice([*_DIALECTS]), help="Whose dialect to speak.")
@click.option("--model", "models", multiple=True, help="A model that exists; repeatable. None: any.")
@click.option("--slots", default=None, type=click.IntRange(min=1), help="Requests decoded at once.")
@click.option("--jitter", default=0.0, help="Log-normal sigma of each decode step.")
@click.option("--request-jitter", default=0.0, help="Log-normal sigma of a factor per request.")
@click.option("--drift", default=0.0, help="Sigma of a slow AR(1) factor that requests share.")
@click.option("--drift-per-s", default=0.0, help="Linear drift: share of the step time added per second.")
@click.option("--stall-prob", default=0.0, help="Probability that a decode step stalls.")
@click.option("--stall-ms", default=100.0, help="Mean of a stall.")
@click.option("--noise-seed", default=0, help="Seed of the noise.")
@click.option("--drift-seed", type=int, help="Seed of the AR(1) path, if two servers drift together.")
@click.option("--spec-k", default=0, type=click.IntRange(min=0), help="Tokens per draft; 0 is none.")
@click.option("--acceptance", default=0.6, help="Of a draft token, if those before it were accepted.")
@click.option("--draft-share", default=1.0, help="Share of the decode steps that draft.")
@click.option("--verify-cost", default=0.0, help="Extra time of a drafted step, in plain steps.")
@click.option("--spec-overhead", default=0.0, help="Extra time of every step, in plain steps.")
@click.option("--seed", default=0, help="Seed of the text.")
@click.option("--events-per-write", default=1, type=click.IntRange(min=1), help="Events merged in one write.")
@click.option("--saturate", is_flag=True, help="No pace: as fast as the client reads.")
@click.option("--exit-with-stdin", is_flag=True, help="Stop when standard input closes.")
def main(**options: Any) -> None:
    """Serve scripted replies over the OpenAI API."""
    server = FakeServer(
        _script(options),
        slots=options["slots"],
        host=options["host"],
        port=options["port"],
        models=options["models"] or None,
        burst=_SATURATED_BURST if options["saturate"] else 64,
        log_size=0,
    )
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(_serve(server, options["exit_with_stdin"]))


def _script(options: dict[str, Any]) -> Script:
    paced = not options["saturate"]
    return Script(
        ttft_s=options["ttft_ms"] / 1e3 if paced else 0.0,
        tpot_s=options["tpot_ms"] / 1e3 if paced else 0.0,
        n_tokens=options["tokens"],
        tokens_per_chunk=options["per_chunk"],
        reasoning_tokens=options["reasoning"],
        reasoning_key=options["reasoning_key"],
        seed=options["seed"],
        dialect=_DIALECTS[options["engine"]],
        wire=Wire(events_per_write=options["events_per_write"]),
        noise=_noise(options),
        speculation=_speculation(options),
    )


def _noise(options: dict[str, Any]) -> Noise | None:
    noise = Noise(
        token_sigma=options["jitter"],
        request_sigma=options["request_jitter"],
        ar1_sigma=options["drift"],
        drift_per_s=options["drift_per_s"],
        stall_probability=options["stall_prob"],
        stall_s=options["stall_ms"] / 1e3,
        seed=options["noise_seed"],
        drift_seed=options["drift_seed"],
    )
    quiet = Noise(stall_s=noise.stall_s, seed=noise.seed)
    return None if noise == quiet else noise


def _speculation(options: dict[str, Any]) -> Speculation | None:
    if not options["spec_k"]:
        return None
    return Speculation(
        k=options["spec_k"],
        acceptance=options["acceptance"],
        draft_share=options["draft_share"],
        verify_cost=options["verify_cost"],
        overhead=options["spec_overhead"],
    )


async def _serve(server: FakeServer, exit_with_stdin: bool) -> None:
    loop = asyncio.get_running_loop()
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    async with server:
        sys.stdout.write(orjson.dumps({"url": server.url, "pid": os.getpid()}).decode() + "\n")
        sys.stdout.flush()
        if exit_with_stdin:
            await _wait_for_stdin(loop, over)
        else:
            await over.wait()


async def _wait_for_stdin(loop: asyncio.AbstractEventLoop, over: asyncio.Event) -> None:
    descriptor = sys.stdin.fileno()

    def read() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            over.set()

    loop.add_reader(descriptor, read)
    await over.wait()


if __name__ == "__main__":
    main()
