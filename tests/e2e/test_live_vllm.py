"""A live trial on a real vLLM on this machine's CPU: baseline, candidate, and back, dense and with experts.

    BREAKEVEN_VLLM_PYTHON=V/bin/python pytest -m "vllm and quiet" -s tests/e2e/test_live_vllm.py

The verdicts are printed. Both models have as many weights. Drafts that are garbage cost the one with experts
much, as each token has experts of its own, and the dense one next to nothing, as a step reads all weights
anyway: what drafting itself costs, some 3 ms a step, is below the floor.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.command import Command
from tests.e2e.small_qwen import EXPERTS, write_small_qwen
from tests.e2e.tiny_qwen import BYTE_0
from tests.e2e.vllm_server import OFFLINE

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.quiet,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

GARBAGE = '''
class Garbage:
    """Drafts bytes that no text has, others at each step: each goes to experts of its own."""

    def __init__(self, vllm_config):
        self.k = vllm_config.speculative_config.num_speculative_tokens
        self.next = 0

    def propose(self, sampled_token_ids, *given, **named):
        return [self.draft() if tokens else [] for tokens in sampled_token_ids]

    def draft(self):
        self.next = (self.next + self.k) % (100 - self.k)
        return list(range({first} + self.next, {first} + self.next + self.k))

    def load_model(self, *given, **named):
        pass
'''.replace("{first}", str(BYTE_0 + 0x80))
PATIENCE_S = 900.0
EXPERT_FF, FLOOR = 1024, 0.2
NGRAM = ("--method", "ngram", "--k", 3, "--min-n", 2, "--max-n", 4)
CUSTOM = ("--method", "custom_class", "--k", 5, "--draft", "garbage.Garbage")
FLAGS = (
    *("--max-model-len", 1024, "--max-num-seqs", 1, "--dtype", "bfloat16", "--enforce-eager"),
    *("--enable-per-request-metrics", "--host", "127.0.0.1"),
)


class Vllm:
    """A model and the command line that serves it."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.kind = kind
        self.folder = folder
        (folder / "garbage.py").write_text(GARBAGE)
        is_moe = kind == "moe"
        ff = EXPERT_FF if is_moe else EXPERTS * EXPERT_FF
        model = write_small_qwen(folder / "model", moe=is_moe, ff=ff)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        served = ("--model", model, "--served-model-name", kind, "--port", port, *FLAGS)
        self.words = (PYTHON, "-m", "vllm.entrypoints.openai.api_server", *served)

    def trial(self, name: str, *candidate: object) -> dict[str, Any]:
        out = self.folder / name
        asked = ("--prompts", "brief", "--max-tokens", 40, "--repeats", 4, "--floor", FLOOR)
        words = ("trial", "--server", "process:", "--yes", *candidate, *asked, "--start-limit", 300)
        env = {**OFFLINE, "PYTHONPATH": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state")}
        command = Command(*words, "--out", out, "--json", "--", *self.words, env=env)
        told = command.end(PATIENCE_S).succeeded().json()
        print(f"\n{self.kind}, {name}: {told['reason']}")
        for sentence in told["confounders"]:
            print(f"  {sentence}")
        return told


@pytest.fixture(scope="module", params=("dense", "moe"))
def vllm(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Vllm:
    return Vllm(tmp_path_factory.mktemp(request.param), request.param)


def test_ngram_and_back(vllm: Vllm) -> None:
    told = vllm.trial("ngram", *NGRAM)
    assert told["verdict"] in ("faster", "slower", "same", "undecided")
    assert told["reload_s"]["baseline"] > 0 and told["reload_s"]["candidate"] > 0
    assert told["acceptance"]["drafts"] > 0
    assert any("asynchronous scheduling" in sentence for sentence in told["confounders"])


def test_garbage_costs_where_there_are_experts(vllm: Vllm) -> None:
    told = vllm.trial("garbage", *CUSTOM)
    assert told["acceptance"]["accepted_tokens"] == 0
    if vllm.kind == "moe":
        assert told["verdict"] == "slower"
    else:
        assert told["verdict"] in ("same", "undecided")
