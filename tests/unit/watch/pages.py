"""Pages, windows and calibrations that are easy to reckon with."""

from __future__ import annotations

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.load import Load
from breakeven.acceptance.page import Page
from breakeven.cost.calibration import Calibration
from breakeven.cost.curve import CurvePoint
from breakeven.trace.meta import ServerInfo
from breakeven.watch.window import Counted

MODEL = "some-model"


def page(
    drafts: int = 0, output_tokens: int = 0, running: float = 2, engine: str = "vllm", **spec: int
) -> Page:
    """Whose drafts have 4 tokens each, of which 3, 2 and 1 of 4 drafts accept the first, second and third."""
    counters = SpecCounters(
        drafts=drafts,
        drafted_tokens=4 * drafts,
        accepted_tokens=6 * (drafts // 4),
        accepted_per_position=tuple(n * (drafts // 4) for n in (3, 2, 1, 0)),
        source="vLLM /metrics",
        **spec,
    )
    load = Load(requests=0, output_tokens=output_tokens, running=running, waiting=1.0, kv_usage=0.25)
    return Page(engine, counters, load, by_rank={"": counters})


def counted(
    drafts: int = 400,
    drafted: int = 1600,
    accepted: int = 600,
    steps: int | None = 1000,
    running: tuple[float, ...] = (2.0,),
    load: Load | None = None,
) -> Counted:
    spec = SpecCounters(steps, drafts, drafted, accepted, source="vLLM /metrics")
    return Counted(60.0, spec, load or Load(), running)


def calibration(
    ms: tuple[float, ...] = (10.0, 10.5, 11.5, 13.5, 17.5),
    engine: str | None = "vllm",
    model: str | None = MODEL,
    moe: bool | None = False,
) -> Calibration:
    """Points at 1, 2, 4, 8 and 16 in flight: 9.5 ms and half of one for each token, unless given."""
    points = tuple(
        CurvePoint(2**place, at / 1e3, at / 1e3 * 0.99, at / 1e3 * 1.01, 24) for place, at in enumerate(ms)
    )
    return Calibration(
        created="2026-01-01T12:00:00+00:00",
        breakeven_version="0.1.0",
        url="http://h/v1",
        api="chat",
        model=model,
        server=ServerInfo(engine, "0.32.0"),
        workload="default",
        max_tokens=128,
        moe=moe,
        points=points,
        complete=True,
    )
