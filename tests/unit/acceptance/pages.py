"""Pages for tests: those that real servers gave, and small ones made up."""

from pathlib import Path

from breakeven.acceptance.page import Page
from breakeven.acceptance.prometheus import read_page

GOLDEN = Path(__file__).parents[2] / "golden"


def text_of(name: str) -> str:
    (path,) = (path for path in GOLDEN.glob(f"{name}.*") if path.name.endswith((".metrics.txt", ".json")))
    return path.read_text()


def golden(name: str) -> Page:
    page = read_page(text_of(name))
    assert page is not None
    return page


def vllm(engine: int = 0, started: float | None = None, **counters: float) -> str:
    """Lines of one vLLM engine; positions are `p0`, `p1`, …"""
    lines = [] if started is None else [f"process_start_time_seconds {started}"]
    for name, value in counters.items():
        if name[0] == "p" and name[1:].isdecimal():
            labels = f'engine="{engine}",position="{name[1:]}"'
            lines.append(f"vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels}}} {value}")
            continue
        family = f"spec_decode_num_{name}" if name in ("drafts", "draft_tokens", "accepted_tokens") else name
        lines.append(f'vllm:{family}_total{{engine="{engine}"}} {value}')
    return "".join(line + "\n" for line in lines)


def page(*engines: str) -> Page:
    read = read_page("".join(engines))
    assert read is not None
    return read
