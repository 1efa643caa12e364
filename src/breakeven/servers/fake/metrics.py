"""GET /metrics of the fake server: Prometheus text that agrees with what was served."""

from __future__ import annotations

from dataclasses import dataclass, field

from breakeven.acceptance.counters import SpecCounters
from breakeven.servers.fake.reply import Reply
from breakeven.servers.fake.stream import Served
from breakeven.servers.fake.timeline import Timeline


@dataclass(slots=True)
class Totals:
    """Running sums over everything that the server served."""

    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished: dict[str, int] = field(default_factory=lambda: {"stop": 0, "length": 0, "abort": 0})
    prefill_s: float = 0.0
    decode_s: float = 0.0
    running: int = 0
    waiting: int = 0
    speculates: bool = False
    counters: SpecCounters = field(
        default_factory=lambda: SpecCounters(0, 0, 0, 0, (), source="fake server"),
    )

    def add(self, served: Served, reply: Reply, times: Timeline) -> None:
        """Count one request that is over."""
        self.prompt_tokens += reply.prompt_tokens
        whole = served.outcome == "served"
        self.generation_tokens += served.n_tokens if whole else sum(served.tokens)
        reason = served.finish_reason if whole else "abort"
        self.finished[reason] = self.finished.get(reason, 0) + 1
        self.prefill_s += times.due_s[0]
        self.decode_s += times.due_s[-1] - times.due_s[0]
        self.speculates |= reply.script.speculation is not None
        self.counters += served.counters


def vllm_metrics(totals: Totals, model: str) -> str:
    """As vLLM names them. The speculative counters are absent on a server that never speculated."""
    label = f'engine="0",model_name="{model}"'
    text = _gauge("vllm:num_requests_running", label, totals.running)
    text += _gauge("vllm:num_requests_waiting", label, totals.waiting)
    text += _counter("vllm:prompt_tokens_total", label, totals.prompt_tokens)
    text += _counter("vllm:generation_tokens_total", label, totals.generation_tokens)
    text += "# TYPE vllm:request_success_total counter\n"
    for reason, count in totals.finished.items():
        labels = f'engine="0",finished_reason="{reason}",model_name="{model}"'
        text += f"vllm:request_success_total{{{labels}}} {count}.0\n"
    return text + _speculation("vllm", totals, label)


def llamacpp_metrics(totals: Totals) -> str:
    """As llama.cpp names them."""
    text = _counter("llamacpp:prompt_tokens_total", "", totals.prompt_tokens)
    text += _counter("llamacpp:prompt_seconds_total", "", totals.prefill_s)
    text += _counter("llamacpp:tokens_predicted_total", "", totals.generation_tokens)
    text += _counter("llamacpp:tokens_predicted_seconds_total", "", totals.decode_s)
    text += _gauge("llamacpp:requests_processing", "", totals.running)
    text += _gauge("llamacpp:requests_deferred", "", totals.waiting)
    return text + _speculation("llamacpp", totals, "")


def _speculation(prefix: str, totals: Totals, label: str) -> str:
    if not totals.speculates:
        return ""
    counters = totals.counters
    name = f"{prefix}:spec_decode_num"
    text = _counter(f"{name}_drafts_total", label, counters.drafts or 0)
    if prefix == "vllm":
        text += _gauge(f"{name}_drafts_created", label, 1.75e9)
    text += _counter(f"{name}_draft_tokens_total", label, counters.drafted_tokens or 0)
    text += _counter(f"{name}_accepted_tokens_total", label, counters.accepted_tokens or 0)
    text += f"# TYPE {name}_accepted_tokens_per_pos_total counter\n"
    for position, count in enumerate(counters.accepted_per_position or ()):
        labels = f'{label},position="{position}"' if label else f'position="{position}"'
        text += f"{name}_accepted_tokens_per_pos_total{{{labels}}} {count}\n"
    return text


def _counter(name: str, label: str, value: float) -> str:
    return _sample("counter", name, label, value)


def _gauge(name: str, label: str, value: float) -> str:
    return _sample("gauge", name, label, value)


def _sample(kind: str, name: str, label: str, value: float) -> str:
    labels = f"{{{label}}}" if label else ""
    return f"# HELP {name} Of the fake server.\n# TYPE {name} {kind}\n{name}{labels} {value}\n"
