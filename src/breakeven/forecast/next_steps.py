"""What to type after a forecast: the server with the winner's flags and a trial of it, or a calibration."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from breakeven.forecast.phrases import at
from breakeven.forecast.recommend import is_of_cost
from breakeven.forecast.records import Forecast

_SERVERS = {
    "vllm": "vllm serve {} …",
    "sglang": "python -m sglang.launch_server --model-path {} …",
    "tensorrt-llm": "trtllm-serve {} …",
    "llama.cpp": "llama-server …",
}
"""By engine: what its flags are typed after. A llama.cpp server does not say where its weights are."""


@dataclass(frozen=True, slots=True)
class Known:
    """What a record says of how it was made, as far as a command needs it."""

    model: str | None = None
    prompts: str | None = None
    """A file of its prompts."""
    url: str | None = None
    """Of its server; None where that is gone."""
    embedded: bool = False
    """Whether a trial started its server, and can again."""


NOTHING = Known()


def next_commands(forecast: Forecast, known: Known = NOTHING) -> tuple[str, ...]:
    """In order; nothing where nothing pays. `…` stands for options of one's own, a word in capitals for what
    is not known."""
    chosen = forecast.best
    if chosen is None:
        return ()
    cell = at(forecast, chosen)
    if cell.outcome == "undecided" and is_of_cost(cell) and forecast.basis.source != "measured":
        path = shlex.quote(forecast.origin.path) if forecast.origin else "RUN"
        return f"breakeven calibrate {known.url or 'URL'}", f"breakeven forecast {path} --calibration FILE"
    if forecast.origin is not None and forecast.origin.engine not in (None, chosen.engine):
        known = Known(prompts=known.prompts)
    pays = cell.speedup.estimate > 1
    return trial_commands(chosen.engine, chosen.flags, known, forecast.concurrency) if pays else ()


def trial_commands(
    engine: str | None, flags: str, known: Known = NOTHING, concurrency: int = 1
) -> tuple[str, ...]:
    """A server with these flags, and a trial of it; nothing without flags, or for an unknown engine."""
    if not flags or engine not in _SERVERS:
        return ()
    at_once = f" --concurrency {concurrency}" if concurrency > 1 else ""
    prompts = f" --prompts {shlex.quote(known.prompts)}" if known.prompts else ""
    if known.embedded and known.model:
        sides = f"--model {shlex.quote(known.model)}{prompts} --candidate {shlex.quote(flags)}"
        return (f"breakeven trial {sides}{at_once}",)
    server = _SERVERS[engine].format(shlex.quote(known.model or "MODEL"))
    if engine == "llama.cpp" and known.url is None:
        return f"{server} {flags}", f"breakeven trial … --candidate {shlex.quote(flags)}{at_once}"
    sides = f"--baseline-url {known.url or 'URL'} --candidate-url URL"
    return f"{server} {flags}", f"breakeven trial {sides}{prompts}{at_once}"
