"""RunSource: the requests of a run, or of a trial's baseline, with the ids that are known of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from breakeven.drafters.tokens import UNLIMITED
from breakeven.errors import UsageError
from breakeven.replay.records import Origin, RecordedRequest
from breakeven.replay.sources.ids import ids_of
from breakeven.replay.sources.source import Source
from breakeven.replay.sources.text import joined
from breakeven.replay.sources.tokenizer import MAY_DIFFER, Tokeniser
from breakeven.trace.records import Kind, RequestTrace
from breakeven.trace.run import Run, ServerInfo, load_run
from breakeven.trace.tokens import RunTokens, load_tokens
from breakeven.units import count
from breakeven.workload.prompts import Prompt

TRIAL = "trial.json"
BASELINE = "baseline"
NO_TEMPLATE = "prompts were tokenised without the model's chat template"
NO_PROMPT = "the run has no ids of its prompts: drafts look nothing up in the prompt"

Way = Literal["recorded", "server tokenizer", "tokenizer"]


@dataclass(frozen=True, slots=True)
class _Ids:
    prompt: NDArray[np.int32]
    output: NDArray[np.int32]
    reasoning_tokens: int | None
    counts_match: bool | None = None
    """Whether they are as many as the server counted; None where nobody looked."""


class RunSource(Source):
    """Of equal answers to one prompt the first is kept at temperature 0: greedy repeats add nothing, and a
    drafter that learns would know the later ones by heart. At others, equal answers are samples like any.

    `run` is the run itself, of a trial its baseline.

    Raises RunFormatError for a folder that is no run; UsageError for one without ids, if no tokenizer helps.
    """

    def __init__(self, path: Path, tokeniser: Tokeniser | None) -> None:
        is_trial = (path / TRIAL).is_file()
        self.run = load_run(path / BASELINE if is_trial else path)
        self._tokens = load_tokens(self.run.path)
        self._tokeniser = tokeniser
        self._way = self._find_way()
        self._prompts = _texts(self.run) if self._way == "tokenizer" else {}
        kind: Literal["run", "trial"] = "trial" if is_trial else "run"
        temperature = self.run.meta.sampling.temperature
        made = (MAY_DIFFER, NO_TEMPLATE) if self._way == "tokenizer" else ()
        engine = self.run.meta.server.engine
        super().__init__(Origin(str(path), kind, temperature, self._way, engine), (*made, *self._missing()))

    @cached_property
    def expected(self) -> int:
        """Known from ids as recorded, else from the texts: nothing is tokenised for it."""
        answers = [_answer(trace) for trace in self.run.traces() if self._is_promising(trace)]
        return len(set(answers)) if self._is_greedy else len(answers)

    def _is_promising(self, trace: RequestTrace) -> bool:
        says = trace.output_token_ids if self._way == "recorded" else trace.reasoning + trace.text
        return trace.error is None and bool(says)

    @property
    def _is_greedy(self) -> bool:
        return self.origin.temperature == 0

    def _find_way(self) -> Way:
        """The best way there is to ids: the same for every request."""
        if any(trace.output_token_ids for trace in self.run.traces()):
            return "recorded"
        if self._tokens is not None and len(self._tokens):
            return "server tokenizer"
        if self._tokeniser is None:
            raise UsageError(_no_ids(self.run, self._tokens))
        return "tokenizer"

    def _missing(self) -> tuple[str, ...]:
        if self._way != "server tokenizer" or self._tokens is None or not self._tokens.header.incomplete:
            return ()
        return (f"ids of some requests are missing: {self._tokens.header.incomplete}",)

    def _requests(self) -> Iterator[RecordedRequest]:
        seen: set[bytes] = set()
        doubtful = replayed = 0
        for trace in self.run.traces():
            ids = self._ids(trace)
            if ids is None:
                continue
            if self._is_greedy:
                if (key := _key(trace, ids)) in seen:
                    self._skip("repeat with the same output")
                    continue
                seen.add(key)
            replayed += 1
            doubtful += ids.counts_match is False
            yield self._request(trace, ids)
        if doubtful:
            self._warn(
                f"{doubtful} of {count(replayed, 'request')} have another number of tokens, made again from "
                "text, than the server counted: their drafts are approximate"
            )

    def _request(self, trace: RequestTrace, ids: _Ids) -> RecordedRequest:
        return RecordedRequest(
            id=trace.id,
            category=trace.category,
            prompt=ids.prompt,
            output=ids.output,
            answer_from=ids.reasoning_tokens,
            max_tokens=min(trace.max_tokens, UNLIMITED),
            max_model_len=_max_model_len(self.run.meta.server),
        )

    def _ids(self, trace: RequestTrace) -> _Ids | None:
        """None, counted by its reason, for a request that cannot be replayed."""
        if trace.error is not None:
            self._skip("failed request")
            return None
        ids = self._ids_by_way(trace)
        if ids is None:
            self._skip("no token ids" if _has_tokens(trace) else "empty output")
        elif not len(ids.output):
            self._skip("empty output")
        elif self._tokeniser is not None:
            where = f"{self.run.path}, request {trace.id}"
            self._tokeniser.check(ids.prompt, where)
            self._tokeniser.check(ids.output, where)
        return ids if ids is not None and len(ids.output) else None

    def _ids_by_way(self, trace: RequestTrace) -> _Ids | None:
        if self._way == "recorded":
            return self._recorded(trace)
        if self._way == "tokenizer":
            return self._tokenised(trace)
        made = self._tokens.get(trace.id) if self._tokens is not None else None
        if made is None:
            return None
        return _Ids(made.prompt, made.output, made.reasoning_tokens, made.counts_match)

    def _recorded(self, trace: RequestTrace) -> _Ids | None:
        if trace.output_token_ids is None:
            return None
        where = f"{self.run.path}, request {trace.id}"
        if trace.prompt_token_ids is None:
            self._warn(NO_PROMPT)
        prompt = ids_of(list(trace.prompt_token_ids or ()), where, "prompt_token_ids")
        output = ids_of(list(trace.output_token_ids), where, "output_token_ids")
        return _Ids(prompt, output, reasoning_tokens(trace))

    def _tokenised(self, trace: RequestTrace) -> _Ids:
        assert self._tokeniser is not None  # noqa: S101  this way is only taken with one
        reasoning, text = self._tokeniser.ids(trace.reasoning), self._tokeniser.ids(trace.text)
        prompt = self._tokeniser.ids(self._prompts.get(trace.prompt_id, ""))
        return _Ids(prompt, np.concatenate([reasoning, text]), len(reasoning))


def reasoning_tokens(trace: RequestTrace) -> int | None:
    """Tokens up to the last event that carried reasoning; None where some event's number is unknown."""
    last = max((i for i, event in enumerate(trace.events) if event.kind is Kind.REASONING), default=-1)
    counts = [event.n_tokens for event in trace.events[: last + 1]]
    return None if None in counts else sum(n for n in counts if n is not None)


def _has_tokens(trace: RequestTrace) -> bool:
    return bool(trace.text or trace.reasoning or trace.tool_calls)


def _answer(trace: RequestTrace) -> int:
    return hash((trace.prompt_id, trace.reasoning, trace.text, trace.output_token_ids))


def _key(trace: RequestTrace, ids: _Ids) -> bytes:
    return blake2b(trace.prompt_id.encode() + b"\0" + ids.output.tobytes(), digest_size=16).digest()


def _max_model_len(server: ServerInfo) -> int | None:
    value = (server.flags or {}).get("max_model_len")
    return min(value, UNLIMITED) if type(value) is int and value > 0 else None


def _texts(run: Run) -> Mapping[str, str]:
    return {prompt.id: _text(prompt, run) for prompt in run.prompts()}


def _text(prompt: Prompt, run: Run) -> str:
    if prompt.messages is None:
        return prompt.text or ""
    return joined(prompt.messages, f"{run.path}, prompt {prompt.id}")


def _no_ids(run: Run, tokens: RunTokens | None) -> str:
    """What to do about a run without ids."""
    why = ""
    if tokens is not None and tokens.header.incomplete:
        why = f" (its server's tokenizer gave none: {tokens.header.incomplete})"
    if run.meta.server.engine == "llama.cpp" and tokens is None:
        record = "measure again with this version, which has llama.cpp tokenise the outputs"
    elif run.meta.server.engine == "llama.cpp":
        record = "measure again"
    else:
        record = "measure again with  --token-ids  (vLLM, SGLang)"
    return f"{run.path} has no token ids{why}: {record}, or name the model's --tokenizer FOLDER"
