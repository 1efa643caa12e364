"""A candidate that runs out of memory at the first full batch, on a real llama.cpp with a real limit.

A verified token needs a row of logits. The vocabulary is so large, and the limit such, that there is room for
one request's drafts, and for a token of all requests, but not for the drafts of all.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.command import breakeven
from tests.e2e.llama_server import llama_server
from tests.e2e.test_live_trial import free_port, is_free
from tests.tiny_gguf import write_tiny

SLOTS, VOCABULARY, DRAFT = 16, 131_072, 15
HEADROOM_MB = 44
"""Of memory beyond the start's, all requests of the baseline take some 26 MB, the candidate's 65 or more."""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limit is Linux's RLIMIT_DATA")


def write_prompts(path: Path) -> Path:
    """So many that all slots have one; each repeats itself, so that any token is looked up with success."""
    prompts = [{"id": f"p{i}", "prompt": f"{i}: la la la la la la la la"} for i in range(SLOTS)]
    path.write_text("".join(json.dumps(prompt) + "\n" for prompt in prompts))
    return path


def test_the_baseline_is_back_and_the_logs_last_error_is_shown(tmp_path: Path):
    port = free_port()
    model = write_tiny(tmp_path / "wide.gguf", vocabulary=VOCABULARY)
    slots = ("-t", 1, "-np", SLOTS, "-c", SLOTS * 256, "--headroom-mb", HEADROOM_MB)
    server = (llama_server(tmp_path), "--model", model, "--port", port, *slots)
    drafter = ("--method", "ngram", "--k", DRAFT, "--min-n", 1, "--max-n", 1)
    asked = ("--prompts", write_prompts(tmp_path / "prompts.jsonl"), "--max-tokens", 16, "--repeats", 1)
    words = ("trial", "--server", "process:", "--yes", *drafter, *asked, "--concurrency", SLOTS)
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    done = breakeven(*words, "--out", tmp_path / "trial", "--json", "--", *server, env=env, is_steady=True)
    assert (done.code, done.orphans) == (3, ())
    told = done.json()
    assert told["verdict"] == "refused" and told["stopped_after"] == 0
    assert f"it answered alone, but of {SLOTS} requests at once" in told["reason"]
    assert "insufficient memory (attempted to allocate" in told["reason"], told["reason"]
    log = (tmp_path / "trial" / "server.log").read_text(errors="replace")
    assert log.count("main: server is listening") == 3
    assert is_free(port) and not list(tmp_path.glob("state/breakeven/journals/*.jsonl"))
