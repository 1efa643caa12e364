"""IdleNgram: a drafter of vLLM that never drafts, to measure what having one costs a server."""

from __future__ import annotations

import os
from typing import Any

from breakeven.guard.config import MODE
from breakeven.guard.vllm import GuardedNgram


class IdleNgram(GuardedNgram):
    """GuardedNgram with its mode `off`, whatever the environment has: its class alone sets it, so that a
    change of the command line is enough."""

    def __init__(self, vllm_config: Any) -> None:
        """What vLLM gives. Raises UsageError that says what to set."""
        super().__init__(vllm_config, environment={**os.environ, MODE: "off"})
