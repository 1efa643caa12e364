"""A server that can pace, bundle, reason, split, stall, lie and die, and knows the truth about what it did.

Times, rates and texts follow a `Script`; `python -m breakeven.servers.fake` serves one from the command line.
"""

from __future__ import annotations

from breakeven.servers.fake.presets import (
    empty_body,
    html_page,
    http_error,
    json_not_sse,
    llamacpp_script,
    vllm_script,
)
from breakeven.servers.fake.script import (
    LLAMACPP,
    OPENAI,
    VLLM,
    Answer,
    Dialect,
    Noise,
    Script,
    Speculation,
    Wire,
)
from breakeven.servers.fake.server import Director, FakeServer, new_event_loop
from breakeven.servers.fake.stream import Served
from breakeven.servers.fake.timeline import Drift, Timeline, timeline

__all__ = [
    "LLAMACPP",
    "OPENAI",
    "VLLM",
    "Answer",
    "Dialect",
    "Director",
    "Drift",
    "FakeServer",
    "Noise",
    "Script",
    "Served",
    "Speculation",
    "Timeline",
    "Wire",
    "empty_body",
    "html_page",
    "http_error",
    "json_not_sse",
    "llamacpp_script",
    "new_event_loop",
    "timeline",
    "vllm_script",
]
