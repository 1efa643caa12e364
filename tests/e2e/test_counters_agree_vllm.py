"""What one run counted, by four sources: vLLM's /metrics, its log, its replies, and a replay of its ids.

    BREAKEVEN_VLLM_PYTHON=V/bin/python pytest -m vllm -s tests/e2e/test_counters_agree_vllm.py

A mixture of experts with ngram, one request at a time, nothing but the run since the server's start. The
table of all counts is printed. They agree exactly, but where "How vLLM counts" in docs/vllm-on-cpu.md says
that they count other things: accepted tokens past the end of a reply, which only the server knows, and so the
steps that follow from a reply's length. The settings keep away from what else is told there: no reply comes
near the end of the model, and no prompt is asked twice.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from breakeven.acceptance.combine import total
from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.logs.reader import read_log
from breakeven.acceptance.logs.summary import LogSummary
from breakeven.trace.run import Run, load_run
from tests.e2e.command import breakeven, soon
from tests.e2e.small_qwen import write_small_qwen
from tests.e2e.vllm_server import vllm_server

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

K, MIN_N, MAX_N = 5, 2, 4
SPECULATIVE = {
    "method": "ngram",
    "num_speculative_tokens": K,
    "prompt_lookup_min": MIN_N,
    "prompt_lookup_max": MAX_N,
}
ROOM, EXPERT_FF = 1024, 64
INTERVAL_S = 2.0
"""Between two reports in the log: several of one run."""
PROMPTS = {
    "alpha alpha alpha": 180,
    "what is a river?": 150,
    "def f(x): return x": 97,
    "write a poem": 200,
    "x=1;y=2;x=1;y=3;": 61,
    "one two three one two three": 130,
    "zebra": 33,
    "hello": 1,
}
"""With the tokens of each reply."""
COUNTS = ("steps", "drafts", "drafted_tokens", "accepted_tokens", "emitted_tokens")


@dataclass(frozen=True)
class Counted:
    """One run, as each source tells it."""

    run: Run
    log: Path
    replay: Mapping[str, Any]
    """As `breakeven replay --json` prints it."""

    @property
    def page(self) -> SpecCounters:
        assert self.run.meta.counters is not None
        return self.run.meta.counters

    @cached_property
    def replies(self) -> SpecCounters:
        found = total(trace.speculation for trace in self.run.traces())
        assert found is not None
        return found

    @cached_property
    def summary(self) -> LogSummary:
        return read_log([self.log.read_bytes()])

    @property
    def logged(self) -> SpecCounters:
        assert self.summary.counters is not None
        return self.summary.counters

    @property
    def replayed(self) -> SpecCounters:
        return SpecCounters(**{name: self.replay[name] for name in COUNTS}, source="replay")

    @property
    def beyond(self) -> int:
        """Tokens that steps gave past the ends of the replies, by the page alone: each step gives its own
        token and those accepted in it."""
        steps, accepted, emitted = self.page.steps, self.page.accepted_tokens, self.page.emitted_tokens
        assert steps is not None and accepted is not None and emitted is not None
        return steps + accepted - emitted


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Counted]:
    folder = tmp_path_factory.mktemp("moe")
    model = write_small_qwen(folder / "model", moe=True, ff=EXPERT_FF)
    log, run = folder / "vllm.log", folder / "run"
    how: dict[str, Any] = {"dtype": "bfloat16", "log_interval_s": INTERVAL_S}
    with vllm_server(PYTHON, model, SPECULATIVE, log, ROOM, **how) as url:
        given = ("--prompts", prompts(folder), "--token-ids", "--warmup", 0, "--json", "--out", run)
        done = breakeven("measure", "--url", url, *given).succeeded().json()
        assert (done["requests"], done["errors"]) == (len(PROMPTS), 0)
        assert soon(lambda: is_at_rest(log), patience_s=20 * INTERVAL_S), log.read_text(errors="replace")[
            -2000:
        ]
    settings = ("--k", K, "--min-n", MIN_N, "--max-n", MAX_N)
    replay = breakeven("replay", run, "--drafter", "vllm-ngram", *settings, "--json").succeeded().json()
    made = Counted(load_run(run), log, replay)
    print(f"\n{table(made)}")
    yield made


def prompts(folder: Path) -> Path:
    path = folder / "prompts.jsonl"
    rows = [
        {"id": f"p{i}", "category": "moe", "prompt": text, "max_tokens": most}
        for i, (text, most) in enumerate(PROMPTS.items())
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def is_at_rest(log: Path) -> bool:
    """Whether the last report is of an interval without a token: what was counted before it is printed."""
    states = [
        line for line in log.read_text(errors="replace").splitlines() if "generation throughput" in line
    ]
    return bool(states) and "Avg generation throughput: 0.0 tokens/s" in states[-1]


def table(made: Counted) -> str:
    sources = {
        "/metrics": made.page,
        "log": made.logged,
        "replies": made.replies,
        "replay": made.replayed,
    }
    rows = [f"{'':16}{''.join(f'{name:>10}' for name in sources)}"]
    for name in COUNTS:
        values = [getattr(counters, name) for counters in sources.values()]
        cells = ("not told" if value is None else f"{value:,}" for value in values)
        rows.append(f"{name:16}" + "".join(f"{cell:>10}" for cell in cells))
    positions = {name: counters.accepted_per_position for name, counters in sources.items()}
    rows += [f"accepted to each position, {name}: {value}" for name, value in positions.items() if value]
    return "\n".join((*rows, f"past the ends of the replies: {made.beyond}"))


def test_the_run_holds_what_is_to_be_counted(counted: Counted) -> None:
    page = counted.page
    assert page.drafts and page.drafted_tokens and page.accepted_tokens and page.steps
    assert page.accepted_tokens < page.drafted_tokens and page.drafts < page.steps
    assert counted.summary.periods > 1 and counted.beyond > 0
    assert counted.run.meta.warnings == ()


def test_the_page_and_the_replies_count_alike(counted: Counted) -> None:
    page, replies = counted.page, counted.replies
    for name in ("drafts", "drafted_tokens", "accepted_tokens", "accepted_per_position", "emitted_tokens"):
        assert getattr(page, name) == getattr(replies, name), name


def test_steps_that_follow_from_a_replys_length_lack_what_lies_past_its_end(counted: Counted) -> None:
    assert counted.page.steps is not None and counted.replies.steps is not None
    assert counted.page.steps - counted.replies.steps == counted.beyond
    assert 0 <= counted.beyond <= K * len(PROMPTS)


def test_the_log_counts_as_the_page(counted: Counted) -> None:
    page, logged = counted.page, counted.logged
    assert (logged.drafted_tokens, logged.accepted_tokens) == (page.drafted_tokens, page.accepted_tokens)
    assert logged.drafts in (None, page.drafts), "its lines round: not every number can be told from others"
    assert logged.accepted_per_position in (None, page.accepted_per_position)
    assert logged.steps is None, "it does not count them"
    for one in counted.summary.stated:
        truth = getattr(page, one.name)
        assert one.value is None or one.value.low <= truth <= one.value.high


def test_the_replay_makes_the_same_steps_and_drafts(counted: Counted) -> None:
    page, replayed = counted.page, counted.replayed
    assert replayed.emitted_tokens == page.emitted_tokens
    for name in ("steps", "drafts", "drafted_tokens"):
        assert getattr(replayed, name) == getattr(page, name), name


def test_the_replay_accepts_the_same_but_for_what_lies_past_a_replys_end(counted: Counted) -> None:
    """A step whose draft ends the reply gives no token of its own there: it lies past the end too."""
    own = sum(
        row["steps"] + row["accepted_tokens"] - row["emitted_tokens"] for row in counted.replay["per_request"]
    )
    page, replayed = counted.page.accepted_tokens, counted.replayed.accepted_tokens
    assert page is not None and replayed is not None
    assert page - replayed == counted.beyond - own


def test_each_reply_agrees_with_its_replay(counted: Counted) -> None:
    rows = {row["id"]: row for row in counted.replay["per_request"]}
    for trace in counted.run.traces():
        row, mine = rows[trace.id], trace.speculation
        assert mine is not None and mine.accepted_tokens is not None
        assert (row["drafts"], row["drafted_tokens"]) == (mine.drafts, mine.drafted_tokens), trace.id
        assert 0 <= mine.accepted_tokens - row["accepted_tokens"] <= K, trace.id


def test_a_diagnosis_finds_them_agreeing(counted: Counted) -> None:
    words = ("diagnose", counted.run.path, "--logs", counted.log, "--json")
    made = breakeven(*words).succeeded().json()
    assert [one["source"] for one in made["other_sources"]] == ["vLLM log"]
    assert made["acceptance"]["steps"] == counted.page.steps
    told = {one["id"] for one in made["findings"]}
    assert not told & {"sources_disagree", "foreign_traffic", "drafted_less", "accepted_less"}
