"""Whatever a server's page says, it is watched: no figure is shown that cannot be, and nothing is raised."""

from __future__ import annotations

import io
import json
import math

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from rich.console import Console

from breakeven.acceptance.prometheus import read_page
from breakeven.report.watch_json import watch_json
from breakeven.report.watch_live import print_lines, print_view
from breakeven.watch.exporter import Gauges
from breakeven.watch.state import DEFINITIONS, PER_POSITION, ServerState, now, value
from breakeven.watch.window import Reading, Window
from breakeven.watch.yardstick import Yardstick
from tests.unit.watch.answering import vllm_page
from tests.unit.watch.pages import MODEL, calibration

YARDSTICK = Yardstick(calibration(moe=None))
NUMBERS = st.one_of(
    st.integers(0, 2**53),
    st.integers(0, 40),
    st.floats(),
    st.sampled_from(["NaN", "+Inf", "-0", "1e308", "9007199254740993", "", "0x10", "\x1b[2J", "１"]),
)
LINES = vllm_page(40).decode().splitlines()


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A page of vLLM in which some values are others, some lines are gone, and some come twice."""
    page = []
    for line in LINES:
        name = line.rpartition(" ")[0]
        page += [f"{name} {draw(NUMBERS)}" if draw(st.booleans()) else line] * draw(
            st.sampled_from([0, 1, 1, 1, 2])
        )
    return "\n".join(page) + draw(st.text(max_size=40))


@given(pages=st.lists(texts(), min_size=1, max_size=4))
@settings(max_examples=150)
def test_pages_that_lie(pages: list[str]):
    window = Window(60.0)
    for at_s, text in enumerate(pages):
        page = read_page(text)
        if page is None:
            continue
        window.add(Reading(float(at_s), page))
        found = now(window, page, YARDSTICK, MODEL)
        state = ServerState("http://h", MODEL, found, "", 1.7e9, window.resets)
        for name in DEFINITIONS.keys() - {PER_POSITION}:
            known = value(state, name)
            assert known is None or (0 <= known.low <= known.high and math.isfinite(known.high)), (
                name,
                known,
            )
        assert all(0 <= share <= 1 for share in found.per_position or ())
        show(state)


def show(state: ServerState) -> None:
    console = Console(file=io.StringIO(), width=100, highlight=False)
    print_view([state], console, "")
    print_lines([state], console)
    assert "\x1b" not in console.file.getvalue()  # type: ignore[attr-defined]
    json.dumps(watch_json([state], 5.0, None), allow_nan=False)
    registry = CollectorRegistry()
    registry.register(Gauges(lambda: [state]))
    assert b"NaN" not in generate_latest(registry)
