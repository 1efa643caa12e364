"""What is said of a replay or a sweep in words, once, so that terminal, page and JSON say the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from breakeven.acceptance.counters import SpecCounters
from breakeven.drafters import naming
from breakeven.forecast.records import Forecast, ForecastRow
from breakeven.replay.records import FirstToken, Origin, Replay, Sweep, SweepRow
from breakeven.report.replay_warmup import warm_up
from breakeven.report.text import line
from breakeven.units import ABSENT, count, share

_LOSSLESS = "as a lossless drafter cannot change a greedy output"
_SAMPLED = (
    "under exact-match acceptance; for the server, which samples anew and accepts with probability, an "
    "estimate"
)
_IF_SAME = "if the ids are those that were generated (they are as many as the server counted)"
_OTHER_IDS = "as ids made again from the text may differ from those that the model wrote"
_MISCOUNTED = "their drafts are approximate"
"""How a source ends its warning of requests with another number of ids than the server counted."""
_MADE_AGAIN = {
    "server tokenizer": ", token ids made from the text by the server's tokenizer",
    "tokenizer": ", token ids made from the text by a tokenizer",
}
_LAST_STEP = (
    "Of each request's last step only what the record holds is counted; a server also counts what it accepts "
    "past the end of the reply (up to k tokens)"
)
_DRAFTED_END = ", and llama.cpp one token less where the end-of-sequence token itself was drafted"
PAYS = (
    "Acceptance is not speedup: whether this pays also depends on what a step that checks a draft costs on "
    "your server. `breakeven trial` decides."
)
LLAMACPP = "llama.cpp"
"""Its flags are those that `breakeven trial --candidate` takes."""
ENGINES = {
    "vllm": "vLLM",
    "sglang": "SGLang",
    LLAMACPP: "llama.cpp",
    "tensorrt-llm": "TensorRT-LLM",
    "transformers": "Hugging Face transformers",
    "own": "your own",
    "none": "no engine",
}
"""Names of engines by their ids."""
MATTERS = 1.05
"""Tokens per step: a drafter that gives less is not worth the time of a trial."""


class Recorded(Protocol):
    """A replay, a sweep, or a source that was read to its end."""

    @property
    def origin(self) -> Origin: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


def record_sentence(record: Replay | Sweep) -> str:
    """What was replayed: `runs/x (run): 80 requests, 49,848 output tokens`."""
    total = (record.requests, record.output_tokens) if isinstance(record, Sweep) else _size(record)
    return record_words(record.origin, *total)


def record_words(origin: Origin, requests: int, output_tokens: int) -> str:
    """A record's name, kind and size, and whether its ids are made again."""
    said = f"{count(requests, 'request')}, {count(output_tokens, 'output token')}"
    return f"{line(origin.path, 500)} ({origin.kind}): {said}{_MADE_AGAIN.get(origin.ids, '')}"


def _size(replay: Replay) -> tuple[int, int]:
    return replay.total.requests, replay.total.output_tokens


def engine_name(engine: str) -> str:
    """As its makers write it; an unknown id as it is."""
    return ENGINES.get(engine, line(engine, 60))


def meaning(record: Replay | Sweep) -> list[str]:
    """What the counts mean, a sentence each: sampling, the last step, what was learned, what was chosen."""
    chosen = chosen_sentence(record) if isinstance(record, Sweep) else ""
    sentences = (
        sampling_sentence(record),
        last_step_sentence(record),
        learning_sentence(record),
        chosen,
    )
    return [sentence for sentence in sentences if sentence]


def chosen_sentence(record: Sweep | Forecast) -> str:
    """Why the best of several looks a little better than it is; empty where there was no choice."""
    if len(record.rows) < 2:
        return ""
    same = count(record.requests, "request")
    return f"The best is chosen and scored on the same {same}: expect somewhat less on others."


def too_little_sentence(sweep: Sweep) -> str | None:
    """That not even the row to try next is worth a trial; None where it is."""
    best = sweep.suggested
    if best.tokens_per_step >= MATTERS:
        return None
    whose = "the drafters" if sweep.best_of_engine is None else f"the drafters of {engine_name(best.engine)}"
    most = f"at most {decimal(best.tokens_per_step)} tokens per step"
    return f"None of {whose} here drafts enough to matter ({most})."


def last_step_sentence(record: Replay | Sweep) -> str:
    """How a server's own counts differ from these at the end of a reply."""
    engines = {row.engine for row in _rows(record)}
    return f"{_LAST_STEP}{_DRAFTED_END if LLAMACPP in engines else ''}."


def learning_sentence(record: Replay | Sweep | Forecast) -> str:
    """On which server the counts of drafters that learn are so; empty where none does."""
    names = {line(row.drafter, 60) for row in _rows(record) if row.learns}
    if not names:
        return ""
    who = names.pop() if len(names) == 1 else f"{len(names)} of these drafters"
    return (
        f"What {who} learned is as on a server that takes one request at a time, in the record's order, and "
        "starts empty."
    )


def _rows(record: Replay | Sweep | Forecast) -> tuple[Replay | SweepRow | ForecastRow, ...]:
    return (record,) if isinstance(record, Replay) else record.rows


def sampling_sentence(record: Recorded) -> str:
    """What the counts mean under the sampling that gave the outputs, with ids that may be made again."""
    temperature, (greedy, sampled) = record.origin.temperature, _claims(record)
    if temperature is None:
        return f"Temperature unknown. If it was 0: {greedy}. If it was above 0: {sampled}."
    return f"Temperature {temperature:g}: {sampled if temperature > 0 else greedy}."


def _claims(record: Recorded) -> tuple[str, str]:
    """What is claimed at temperature 0, and above."""
    if record.origin.ids == "recorded":
        return (
            f"exact for the recorded tokens, {_LOSSLESS}",
            f"an exact count for this recorded sample {_SAMPLED}",
        )
    if are_approximate(record):
        return f"approximate, {_OTHER_IDS}", f"an approximate count, {_OTHER_IDS}, {_SAMPLED}"
    return f"exact {_IF_SAME}, {_LOSSLESS}", f"an exact count {_IF_SAME} {_SAMPLED}"


def are_approximate(record: Recorded) -> bool:
    """Whether ids were made again from text, and nothing says that they are as many as were generated."""
    if record.origin.ids == "server tokenizer":
        return any(warning.endswith(_MISCOUNTED) for warning in record.warnings)
    return record.origin.ids == "tokenizer"


def first_token_sentence(first_token: FirstToken) -> str:
    """Where stepping starts."""
    if first_token == "prefill":  # noqa: S105
        return "Steps start after each first output token, which a server's prefill gives."
    return "Steps start before each first output token (--first-token replayed); a server's prefill gives it."


def skipped_sentences(skipped: Mapping[str, int]) -> list[str]:
    """What was left out of the record, and why."""
    return [f"{count(n, 'record')} left out: {line(reason, 500)}" for reason, n in skipped.items()]


def settings_words(settings: Mapping[str, Any], only: Collection[str] | None = None) -> str:
    """As in drafters/naming.py, safe to print."""
    return line(naming.settings_words(settings, only), 300)


def headline(tokens_per_step: float | None) -> str:
    """The answer at a glance: `1.672 tokens per step`."""
    return "No decode step to replay" if tokens_per_step is None else f"{tokens_per_step:.3f} tokens per step"


def answer(replay: Replay) -> str:
    """The headline and what it is made of."""
    return f"{headline(replay.total.tokens_per_step)}: {explanation(replay)}"


def explanation(replay: Replay) -> str:
    """What the headline is made of."""
    counters = replay.total.counters
    if not counters.steps:
        return "every output has one token, and the prefill gives that."
    if not counters.drafts:
        return f"not one of {count(counters.steps, 'step')} drafted anything."
    return (
        f"{share(counters.draft_share)} of the steps drafted, and "
        f"{share(counters.acceptance_rate)} of the drafted tokens were accepted."
    )


def counts_sentence(replay: Replay) -> str:
    """The raw counts behind the answer."""
    counters = replay.total.counters
    mean = counters.mean_acceptance_length
    return (
        f"{count(counters.steps or 0, 'step')}, {count(counters.drafts or 0, 'draft')}, "
        f"{count(counters.drafted_tokens or 0, 'drafted token')}, {counters.accepted_tokens:,} accepted, "
        f"{count(replay.total.emitted_tokens, 'token')} emitted; "
        f"mean acceptance length {decimal(mean)}"
    )


def per_position_sentence(replay: Replay) -> str | None:
    """Where the figures of --per-position are; None where they were not asked for."""
    asked = any(one.accepted_lengths is not None for one in replay.requests)
    return "Accepted lengths at every position are in --json." if asked else None


def flags_sentence(drafter: str, flags: str) -> str:
    """How to turn the drafter on."""
    if not flags:
        return f"{line(drafter)} names no flags that turn it on in an engine."
    return f"To turn it on: {line(flags, 1000)}"


def warm_up_sentence(replay: Replay) -> str | None:
    """How a drafter that learns did at first and later; None where that is not compared."""
    found = warm_up(replay)
    if isinstance(found, str):
        return None
    first, rest = found.first_tenth, found.rest
    return (
        f"Warm-up: {decimal(first.tokens_per_step)} tokens per step in the first "
        f"{count(first.requests, 'request')}, {decimal(rest.tokens_per_step)} in the {rest.requests:,} after."
    )


def decimal(value: float | None) -> str:
    """Three digits after the point."""
    return ABSENT if value is None else f"{value:.3f}"


def per_step(tokens: int | None, counters: SpecCounters) -> str:
    """Tokens over all steps: `0.672`."""
    return f"{tokens / counters.steps:.3f}" if tokens is not None and counters.steps else ABSENT


def row_words(row: SweepRow | ForecastRow) -> str:
    """Drafter and settings."""
    return f"{line(row.drafter, 60)} {settings_words(row.settings)}".rstrip()
