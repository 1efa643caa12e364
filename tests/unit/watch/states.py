"""States of watched servers."""

from __future__ import annotations

from dataclasses import replace

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.stated import stated
from breakeven.interval import Interval
from breakeven.watch.pays import Speculation
from breakeven.watch.state import Now, ServerState

SPEC = SpecCounters(100, 40, 160, 60, (30, 20, 10, 0), "vLLM /metrics")
PAYS = Speculation(
    "pays",
    speedup=Interval(1.32, 1.18, 1.44),
    step_ratio=Interval(1.2, 1.1, 1.3),
    drafted_per_draft=4.0,
    accepted_per_draft=1.5,
    sequences=2.5,
    notes=("drafting: what is known of it",),
)
NOW = Now(
    engine="vllm",
    ratios=stated(SPEC),
    speculation=PAYS,
    seconds=60.0,
    counters=SPEC,
    per_position=(0.75, 0.5, 0.25, 0.0),
    running=2.0,
    waiting=1.0,
    kv_usage=0.25,
    output_tokens_per_s=61.25,
)
UP = ServerState("http://h:8000", "some-model", NOW, "", 1_700_000_000.0)
DOWN = ServerState("http://gone:8000", problem="nothing answers at http://gone:8000")
UNKNOWN = replace(
    UP,
    now=Now(
        "llama.cpp",
        stated(SpecCounters(source="llama.cpp /metrics")),
        Speculation("not derivable", "no drafts"),
    ),
)
HOSTILE = replace(
    UP,
    model='evil\x1b[2J\n"model"\\ [bold]\ud800\u202e',
    now=replace(NOW, notes=("a note \x1b]0;title\x07",)),
)
