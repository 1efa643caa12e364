"""vLLM against the replay of what it answered: the same drafts and the same accepted tokens, step by step.

How vLLM 0.32 counts, as its replies' metrics.speculative_decoding shows and as these tests hold it to:

1. The prefill gives the first output token. The drafter runs after it and after every later step. Steps that
   drafted at least one token are counted, each with what it drafted and accepted.
2. max_tokens and the end-of-sequence token cut no draft. The last step counts all that it accepted, also what
   lies past the end of the reply; a replay knows no more than the reply.
3. A draft is cut so that context, draft and one more token fit into the model. Where the last step's context
   and draft and k more do not fit, the drafter rests: k zeros are drafted in its place, and cut likewise.
4. A repeated prompt of a whole number of cache blocks and one token needs a prefill of that token only. The
   step is padded with a draft of k tokens, none of them accepted, and gives the first output token.
5. The suffix drafter learns all that a step gave, also what lies past the end of the reply.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from breakeven.drafters.base import Drafter, Ids, Limits
from breakeven.drafters.registry import make_drafter
from breakeven.drafters.tokens import flat
from breakeven.replay.steps import accepted_of, step_through
from breakeven.trace.records import RequestTrace
from breakeven.trace.run import load_run
from tests.e2e.command import breakeven, traces_of
from tests.e2e.tiny_qwen import EOS, prompt_ids, text_of, write_tiny_qwen
from tests.e2e.vllm_server import vllm_server

PYTHON = os.environ.get("BREAKEVEN_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(not PYTHON, reason="BREAKEVEN_VLLM_PYTHON names no Python that has vLLM"),
]

ROOM, BLOCK = 512, 128
"""--max-model-len, and vLLM's cache block on a CPU."""
BLOCK_AND_ONE = "k" * (BLOCK + 1 - len(prompt_ids("")))
PROMPTS = (
    ("alpha alpha alpha", 64),
    ("what is a river?", 150),
    ("write a poem", 200),
    ("def f(x): return x", 33),
    ("hello", 100),
    ("hello", 1),
    ("copy: the cat sat on the mat, the cat sat on the mat", 2),
    ("one two three one two three", 97),
    ("zebra", 61),
    ("Lorem ipsum dolor sit amet", 180),
    ("x=1;y=2;x=1;y=3;", 45),
    (BLOCK_AND_ONE, 50),
    (BLOCK_AND_ONE, 50),
    ("alpha alpha alpha", 90),
    ("what is a river?", 77),
    ("q" * (ROOM - 27), ROOM - 1),
)
"""With the most tokens of each reply: long and short ones, ended by length, by the end-of-sequence token and
by the model's room; some asked twice."""
PADDED = "p12"
Step = tuple[int, int]
"""Tokens drafted, tokens accepted."""


@dataclass(frozen=True)
class Method:
    """A drafter, as the server and as the replay are told of it."""

    speculative: Mapping[str, Any]
    drafter: str
    settings: Mapping[str, Any]

    @property
    def k(self) -> int:
        return int(self.settings["k"])


@dataclass(frozen=True)
class Recorded:
    """What a server answered to PROMPTS, in their order."""

    method: Method
    run: Path
    traces: tuple[RequestTrace, ...]
    beyond: Mapping[str, tuple[int, ...]]
    """By prompt, how the server went on after the end of the reply when it was let."""

    def drafter(self) -> Drafter[Any]:
        return make_drafter(self.method.drafter, self.method.settings)

    def counted(self, trace: RequestTrace) -> list[Step]:
        """The drafts that the server counted after the first token (rule 4)."""
        assert trace.server_timings is not None
        speculation = trace.server_timings["metrics"]["speculative_decoding"]
        drafted, accepted = (speculation.get(f"per_step_{name}") or [] for name in ("drafted", "accepted"))
        steps = list(zip(drafted, accepted, strict=True))
        if trace.prompt_id == PADDED:
            assert steps.pop(0) == (self.method.k, 0)
        return steps


NGRAM = Method(
    {"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_min": 2, "prompt_lookup_max": 4},
    "vllm-ngram",
    {"k": 5, "min_n": 2, "max_n": 4},
)
SUFFIX = Method({"method": "suffix", "num_speculative_tokens": 8}, "vllm-suffix", {"k": 8})


@pytest.fixture(scope="module", params=(NGRAM, SUFFIX), ids=("ngram", "suffix"))
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    method: Method = request.param
    folder = tmp_path_factory.mktemp(method.drafter)
    model = write_tiny_qwen(folder / "model")
    with vllm_server(PYTHON, model, method.speculative, folder / "vllm.log", ROOM) as url:
        traces = measured(url, folder / "run", 0)
        longer = measured(url, folder / "longer", method.k + 1, "--extra", "ignore_eos=true")
    beyond = {name: _beyond(traces[name], longer[name]) for name in traces}
    yield Recorded(method, folder / "run", tuple(traces.values()), beyond)


def measured(url: str, out: Path, more: int, *words: str) -> dict[str, RequestTrace]:
    """The traces of PROMPTS by prompt, with up to so many more tokens than they ask for.

    No warm-up: a drafter that learns would know more than the record.
    """
    prompts = out.with_suffix(".jsonl")
    rows = [
        {"id": f"p{i:02}", "category": "tiny", "prompt": text, "max_tokens": min(most + more, ROOM - 1)}
        for i, (text, most) in enumerate(PROMPTS)
    ]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows))
    given = ("--prompts", prompts, "--token-ids", "--warmup", 0, "--json", "--out", out)
    done = breakeven("measure", "--url", url, *given, *words).succeeded().json()
    assert (done["requests"], done["errors"]) == (len(PROMPTS), 0)
    return {trace.prompt_id: trace for trace in traces_of(out).values()}


def _beyond(trace: RequestTrace, longer: RequestTrace) -> tuple[int, ...]:
    output, longer_output = trace.output_token_ids, longer.output_token_ids
    assert output and longer_output
    assert longer_output[: len(output)] == output, f"{trace.id}: the same prompt gave another greedy reply"
    return longer_output[len(output) :]


@dataclass(frozen=True)
class Drafted:
    """One step of a replay that drafted: where it starts in the output, its draft, and what was accepted."""

    at: int
    drafted: int
    accepted: int


def ids_of(trace: RequestTrace) -> tuple[Ids, Ids]:
    return np.array(trace.prompt_token_ids, np.int32), np.array(trace.output_token_ids, np.int32)


def drafts_by_the_rules(drafter: Drafter[Any], trace: RequestTrace, k: int) -> list[Drafted]:
    """A replay of its own, by rules 1 to 3, of a request that has begun."""
    prompt, output = ids_of(trace)
    ids = np.concatenate([prompt, output])
    found: list[Drafted] = []
    p, reach = 1, len(prompt)
    while p < len(output):
        context = len(prompt) + p
        room = ROOM - context - 1
        rests = reach + k > ROOM
        draft = [0] * min(k, room) if rests else [*drafter.propose(ids[:context], room)] if room else []
        accepted = accepted_of(draft, ids[context:])
        if draft:
            found.append(Drafted(p, len(draft), accepted))
        if draft and not rests:
            drafter.accept(accepted)
        p, reach = p + accepted + 1, context + len(draft)
    return found


def tokens_beyond(steps: Sequence[Step], replayed: Sequence[Drafted], output_tokens: int) -> int:
    """How many tokens the last step gave past the end of the reply: of those it accepted, and its own."""
    return max(0, replayed[-1].at + steps[-1][1] + 1 - output_tokens) if steps and replayed else 0


def learnt(recorded: Recorded) -> Iterator[tuple[RequestTrace, list[Drafted], Ids]]:
    """Each request in turn, its drafts by the rules, and the tokens that the server's drafter has seen of it
    in the end (rule 5).
    """
    drafter = recorded.drafter()
    for trace in recorded.traces:
        prompt, output = ids_of(trace)
        drafter.begin(prompt, Limits(trace.max_tokens, ROOM))
        drafts = drafts_by_the_rules(drafter, trace, recorded.method.k)
        beyond = tokens_beyond(recorded.counted(trace), drafts, len(output))
        seen = np.concatenate([prompt, output, np.array(recorded.beyond[trace.prompt_id][:beyond], np.int32)])
        drafter.end(seen)
        yield trace, drafts, seen


class Knowing:
    """A drafter that learns of each request what the server's has, beyond what a record holds."""

    def __init__(self, drafter: Drafter[Any], seen: Sequence[Ids]) -> None:
        self._drafter = drafter
        self._seen = iter(seen)

    def end(self, context: Ids) -> None:
        self._drafter.end(next(self._seen))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._drafter, name)


def test_the_run_knows_its_server(recorded: Recorded) -> None:
    server = load_run(recorded.run).meta.server
    assert server.engine == "vllm" and server.version
    assert server.flags == {"max_model_len": ROOM}


def test_the_ids_are_those_of_the_texts(recorded: Recorded) -> None:
    for trace, (text, _) in zip(recorded.traces, PROMPTS, strict=True):
        output = trace.output_token_ids
        assert trace.prompt_token_ids == prompt_ids(text)
        assert output is not None and trace.usage is not None
        assert text_of(output) == trace.text
        assert len(output) == trace.usage["completion_tokens"]
        assert (output[-1] == EOS) == (trace.finish_reason == "stop")


def test_every_step_drafts_and_accepts_as_on_the_server(recorded: Recorded) -> None:
    for trace, drafts, _ in learnt(recorded):
        output_tokens = len(trace.output_token_ids or ())
        steps = recorded.counted(trace)
        assert len(steps) == len(drafts), trace.id
        for draft, (drafted, accepted) in zip(drafts, steps, strict=True):
            in_the_reply = min(accepted, output_tokens - draft.at)
            assert (draft.drafted, draft.accepted) == (drafted, in_the_reply), trace.id


def test_a_replay_makes_the_same_steps(recorded: Recorded) -> None:
    """All but those of the last request, which fills the model: rule 3 adds drafts of zeros."""
    requests, drafts, seen = zip(*learnt(recorded), strict=True)
    pairs = [(prompt.tolist(), output.tolist()) for prompt, output in map(ids_of, requests)]
    tokens = flat(pairs, [trace.max_tokens for trace in requests], [ROOM] * len(requests))
    drafter = recorded.drafter()
    told: Any = Knowing(drafter, seen) if drafter.learns else drafter
    steps = step_through(told, tokens, first=1)
    ends = np.cumsum(steps.counts)
    for r in range(len(requests) - 1):
        of_it = slice(ends[r] - steps.counts[r], ends[r])
        at = steps.at[of_it] - tokens.positions[r]
        rows = zip(at, steps.drafted[of_it], steps.accepted[of_it], strict=True)
        assert [Drafted(*map(int, row)) for row in rows if row[1]] == drafts[r], requests[r].id


def test_the_command_gives_the_same_counts(recorded: Recorded) -> None:
    """Of every request but the last; of a drafter that learns, by rule 5, nearly so."""
    words = (
        word for name, value in recorded.method.settings.items() for word in ("--set", f"{name}={value}")
    )
    command = ("replay", recorded.run, "--drafter", recorded.method.drafter, *words, "--json")
    rows = breakeven(*command).succeeded().json()["per_request"]
    found = [(row["id"], row["drafts"], row["drafted_tokens"], row["accepted_tokens"]) for row in rows]
    expected = [
        (trace.id, len(drafts), sum(step.drafted for step in drafts), sum(step.accepted for step in drafts))
        for trace, drafts, _ in learnt(recorded)
    ]
    if not recorded.drafter().learns:
        assert found[:-1] == expected[:-1]
    for counts in range(1, 4):
        totals = (sum(row[counts] for row in of_all[:-1]) for of_all in (found, expected))
        assert next(totals) == pytest.approx(next(totals), rel=0.05)


def test_the_record_holds_what_a_drafter_meets(recorded: Recorded) -> None:
    """Else the tests above would show little."""
    steps = [step for trace in recorded.traces for step in recorded.counted(trace)]
    assert any(accepted == drafted == recorded.method.k for drafted, accepted in steps)
    assert any(0 < accepted < drafted for drafted, accepted in steps)
    assert any(accepted == 0 for _, accepted in steps)
    assert any(drafted < recorded.method.k for drafted, _ in steps)
    assert {trace.finish_reason for trace in recorded.traces} == {"stop", "length"}
    full = recorded.traces[-1]
    assert len(full.prompt_token_ids or ()) + len(full.output_token_ids or ()) == ROOM
