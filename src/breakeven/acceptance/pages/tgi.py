"""TGI's /metrics. Each prefill and each decode step of a request observes in `tgi_request_skipped_tokens` how
many tokens it emitted beyond one: those accepted. What was drafted, and whether a step drafted at all, it
does not count."""

from __future__ import annotations

from breakeven.acceptance.counters import SpecCounters
from breakeven.acceptance.exposition import Samples, total
from breakeven.acceptance.page import Page
from breakeven.acceptance.pages.loads import load_of

ENGINE = "tgi"
SOURCE = "TGI /metrics"
PREFIX = "tgi_"
NOTE = (
    "TGI counts the prefills of finished requests only: its decode steps are too many by one for each "
    "request in flight"
)

_STEPS, _ACCEPTED = "tgi_request_skipped_tokens_count", "tgi_request_skipped_tokens_sum"
_LOAD = {
    "requests": "tgi_request_success",
    "prompt_tokens": "tgi_request_input_length_sum",
    "output_tokens": "tgi_request_generated_tokens_sum",
}
_RUNNING, _WAITING = "tgi_batch_current_size", "tgi_queue_size"
NAMES = frozenset((_STEPS, _ACCEPTED, *_LOAD.values(), _RUNNING, _WAITING))


def read(samples: Samples) -> Page:
    """The page whose lines under NAMES these are."""
    load = load_of(samples, _LOAD, _RUNNING, _WAITING)
    if _STEPS not in samples:
        return Page(ENGINE, None, load)
    passes = total(samples, _STEPS)
    steps = None if passes is None or load.requests is None else max(passes - load.requests, 0)
    spec = SpecCounters(steps=steps, accepted_tokens=total(samples, _ACCEPTED), source=SOURCE)
    return Page(ENGINE, spec, load, notes=(NOTE,) if load.running else (), by_rank={"": spec})
