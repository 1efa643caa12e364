"""What is asked: prompts, sampling, and the requests made of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt. Either `messages` (chat) or `text` (a plain completion) is set, never both."""

    id: str
    category: str
    messages: tuple[Mapping[str, Any], ...] | None = None
    text: str | None = None
    max_tokens: int | None = None
    """Overrides the run's max_tokens for this prompt."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A named, ordered set of prompts with unique ids."""

    name: str
    prompts: tuple[Prompt, ...]
    warnings: tuple[str, ...] = ()
    """What was left out of the file, and why."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters sent with every request; None is not sent: the server's own default holds."""

    max_tokens: int = 256
    temperature: float | None = 0.0
    top_p: float | None = None
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further body fields, sent as they are (`cache_prompt`, `chat_template_kwargs`, …)."""


@dataclass(frozen=True, slots=True)
class Request:
    """One prompt asked once. `repeat` counts from 0; `block` numbers the trial's ABBA blocks from 0."""

    prompt: Prompt
    repeat: int = 0
    block: int = 0

    @property
    def id(self) -> str:
        return f"{self.prompt.id}#{self.repeat}"


def requests(workload: Workload, repeats: int) -> Iterator[Request]:
    """Every prompt once, then every prompt again: repeats of one prompt are spread over the run."""
    for repeat in range(repeats):
        for prompt in workload.prompts:
            yield Request(prompt, repeat, block=repeat)
