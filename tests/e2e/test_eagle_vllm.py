"""A head that was trained, exported and evaluated here, served by a real vLLM: it accepts what evaluate says.

Target, head and server are in float32 and greedy, one request at a time. So nearly every step can be compared
by itself, and not only rates: a step of the server drafts K tokens after the prefill's first token and after
every later step, and accepts as many as evaluate recorded for the place where it begins. Only the last step
of a reply differs: vLLM counts what it accepted past the end, which no record knows.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("speculators")

from breakeven.trace.records import RequestTrace
from tests.e2e.command import Command, breakeven, traces_of
from tests.e2e.docstrings import chats
from tests.e2e.small_recipe import write_data, write_recipe
from tests.e2e.small_target import small_target
from tests.e2e.vllm_server import vllm_server

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.eagle,
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

K, ROOM, CHATS = 3, 512, 160
PATIENCE_S = 900
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""The models are so small that a second thread costs more than it does."""
ERRORS = 3.0
"""Standard errors of a difference that chance is allowed."""
ALIKE = 0.95
"""Of the steps; the rest may round otherwise in one of the two."""
IDS = "eagle_aux_hidden_state_layer_ids"


@dataclass(frozen=True)
class Reply:
    """One that evaluate drafted on, from replies.jsonl."""

    id: str
    prompt: tuple[int, ...]
    output: tuple[int, ...]
    accepted: tuple[int, ...]
    """Drafts accepted before each token of the output; −1 before the first."""

    def steps(self) -> list[int]:
        """Accepted tokens of each of a server's steps but the last."""
        found, at = [], 1
        while at + self.accepted[at] + 1 < len(self.output):
            found.append(self.accepted[at])
            at += self.accepted[at] + 1
        return found


@dataclass(frozen=True)
class Made:
    """What the commands made."""

    target: Path
    folder: Path
    evaluation: Mapping[str, Any]
    replies: tuple[Reply, ...]


@dataclass(frozen=True)
class Served:
    """What vLLM did on the same prompts: accepted tokens of every step, by reply."""

    made: Made
    steps: Mapping[str, Sequence[int]]
    traces: Mapping[str, RequestTrace]

    def rates(self) -> list[float]:
        """Share of all steps that accepted 1 token or more, 2 or more, …"""
        every = [accepted for steps in self.steps.values() for accepted in steps]
        return [sum(accepted >= place for accepted in every) / len(every) for place in range(1, K + 1)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("eagle")
    target = small_target()
    recipe = write_recipe(
        folder,
        target,
        data={"max_tokens": 64},
        train={"epochs": 6, "checkpoint_every": 1000, "validate_every": 150},
        evaluate={"k": K, "max_tokens": 64, "prompts": CHATS},
    )
    write_data(recipe, CHATS, own=True)
    for stage in ("states", "train", "evaluate", "export"):
        Command("eagle", stage, recipe, env=ONE_THREAD).end(PATIENCE_S).succeeded()
    stages = folder / "eagle"
    lines = (stages / "evaluation" / "replies.jsonl").read_text().splitlines()
    evaluation = json.loads((stages / "evaluation" / "evaluation.json").read_text())
    return Made(target, stages, evaluation, tuple(map(_reply, lines)))


def _reply(line: str) -> Reply:
    said = json.loads(line)
    accepted = tuple(length - 1 for length in said["acc_eagle3"]["acc_len"])
    return Reply(said["id"], tuple(said["prompt_token_ids"]), tuple(said["output_token_ids"]), accepted)


@pytest.fixture(scope="module", params=("vllm", "sglang"))
def served(
    made: Made, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    """By both folders: vLLM reads SGLang's, too, and has another loader for its names."""
    yield serve(made, made.folder / "export" / request.param, tmp_path_factory.mktemp(request.param))


def serve(made: Made, head: Path, folder: Path) -> Served:
    speculative = {"method": "eagle3", "model": str(head), "num_speculative_tokens": K}
    with vllm_server(PYTHON, made.target, speculative, folder / "vllm.log", ROOM) as url:
        traces = measured(url, made, folder / "run")
    return Served(made, {name: _accepted(trace) for name, trace in traces.items()}, traces)


def measured(url: str, made: Made, out: Path) -> dict[str, RequestTrace]:
    """Each prompt, for as many tokens as its recorded reply has."""
    prompts = out.with_suffix(".jsonl")
    rows = [
        {"id": reply.id, "prompt": chats()[int(reply.id, 16)].prompt, "max_tokens": len(reply.output)}
        for reply in made.replies
    ]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = (
        "measure",
        "--url",
        url,
        "--prompts",
        prompts,
        "--token-ids",
        "--warmup",
        0,
        "--json",
        "--out",
        out,
    )
    done = breakeven(*words).succeeded().json()
    assert (done["requests"], done["errors"]) == (len(rows), 0)
    return {trace.prompt_id: trace for trace in traces_of(out).values()}


def _accepted(trace: RequestTrace) -> list[int]:
    assert trace.server_timings is not None
    speculation = trace.server_timings["metrics"]["speculative_decoding"]
    drafted, accepted = (speculation.get(f"per_step_{name}") or [] for name in ("drafted", "accepted"))
    assert set(drafted) <= {K}
    return list(accepted)


def _standard_error(share: float, n: int, m: int) -> float:
    return math.sqrt(share * (1 - share) * (1 / n + 1 / m))


def test_the_replies_are_those_that_were_evaluated(served: Served) -> None:
    for reply in served.made.replies:
        assert served.traces[reply.id].prompt_token_ids == reply.prompt
    same = [served.traces[reply.id].output_token_ids == reply.output for reply in served.made.replies]
    assert sum(same) >= ALIKE * len(same)


def test_steps_accept_what_evaluate_recorded(served: Served) -> None:
    """Of replies that are the same."""
    alike = [
        (live, recorded)
        for reply in served.made.replies
        if served.traces[reply.id].output_token_ids == reply.output
        for live, recorded in zip(served.steps[reply.id], reply.steps(), strict=False)
    ]
    assert len(alike) > 200
    same = sum(live == recorded for live, recorded in alike)
    assert same >= ALIKE * len(alike), f"{same} of {len(alike)} steps"


def test_acceptance_by_position_is_that_of_evaluate_within_sampling_error(served: Served) -> None:
    chained = served.made.evaluation["chained"]
    n, m = sum(map(len, served.steps.values())), chained["drafts"]
    for place, (live, said) in enumerate(
        zip(served.rates(), chained["accepted_by_position"], strict=True), 1
    ):
        error = _standard_error(said["estimate"], n, m)
        assert abs(live - said["estimate"]) <= ERRORS * error, f"token {place}: {live:.3f}, {said}"


def test_the_head_has_learned_something(made: Made) -> None:
    """Else there would be little to agree on."""
    first = made.evaluation["chained"]["accepted_by_position"][0]
    assert first["low"] > 0.2


def test_states_of_the_first_layers_accept_less(made: Made, tmp_path: Path) -> None:
    """The comparison would notice. Neighbouring layers of so small a target are too alike for it to tell."""
    head = tmp_path / "first"
    shutil.copytree(made.folder / "export" / "vllm", head)
    config = json.loads((head / "config.json").read_text())
    config[IDS] = [*range(len(config[IDS]))]
    (head / "config.json").write_text(json.dumps(config))
    live = serve(made, head, tmp_path)
    chained = made.evaluation["chained"]
    said, n = chained["accepted_by_position"][0]["estimate"], sum(map(len, live.steps.values()))
    assert live.rates()[0] < said - ERRORS * _standard_error(said, n, chained["drafts"])
