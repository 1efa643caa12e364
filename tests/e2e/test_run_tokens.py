"""Token ids of runs on llama.cpp: a trial and a measurement leave folders that can be replayed."""

from __future__ import annotations

from pathlib import Path

import pytest

from breakeven.engines.llamacpp import baseline_settings
from breakeven.replay.sources import open_source
from breakeven.servers.embedded import EmbeddedServer
from breakeven.trace.run import load_run
from breakeven.trace.tokens import load_tokens
from tests.e2e.command import Command, breakeven, write_prompts

ASCII = ("--extra", 'grammar="root ::= [a-z]+"')
"""The tiny model says bytes at random; the text of others than these has other tokens."""
WORDS = ("--max-tokens", 16, *ASCII)


def check(folder: Path) -> None:
    """Every answer's ids are there, and as many as the server counted, for prompt and output."""
    tokens = load_tokens(folder)
    assert tokens is not None and tokens.header.incomplete is None
    traces = list(load_run(folder).traces())
    assert len(tokens) == len(traces) > 0
    for trace in traces:
        made = tokens.get(trace.id)
        assert made is not None and made.counts_match is True and trace.usage is not None
        assert len(made.output) == trace.usage["completion_tokens"] > 1
        assert len(made.prompt) == trace.usage["prompt_tokens"] > 1


@pytest.mark.parametrize("api", ["chat", "completions"])
def test_both_sides_of_a_trial_can_be_replayed(api: str, tiny_model: Path, tmp_path: Path) -> None:
    out, prompts = tmp_path / "run", write_prompts(tmp_path / "prompts.jsonl", 3)
    words = ("--model", tiny_model, "--prompts", prompts, "--api", api, "--repeats", 2, *WORDS, "--out", out)
    breakeven("trial", *words).succeeded()
    for side in ("baseline", "candidate"):
        check(out / side)
    source = open_source(out)
    requests = list(source)
    assert {request.id.partition("#")[0] for request in requests} == {"p0", "p1", "p2"}
    assert source.origin.kind == "trial" and source.origin.ids == "server tokenizer"
    assert len(requests) + sum(source.skipped.values()) == 6 and source.warnings == ()


async def test_a_measurement_can_be_replayed(tiny_model: Path, tmp_path: Path) -> None:
    out, prompts = tmp_path / "run", write_prompts(tmp_path / "prompts.jsonl", 3)
    async with EmbeddedServer() as server:
        url = await server.start(tiny_model, baseline_settings(), "tiny", tmp_path / "engine.log")
        words = ("--url", url, "--prompts", prompts, *WORDS, "--out", out)
        Command("measure", *words).end().succeeded()
    check(out)
    assert len(list(open_source(out))) == 3
