"""Script: how one reply of the fake server goes. It is all data, so that a test can print what it asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one engine words its chunks."""

    name: Literal["vllm", "llamacpp", "openai"]
    role_content: str | None
    """`content` of the role chunk that comes before any token."""
    chunk_per_step: bool
    """Tokens of one decode step share a chunk; otherwise each has one of its own, written together."""
    finish_in_last_chunk: bool
    """finish_reason rides on the last text chunk, unless an end-of-sequence token closes the reply."""
    reasoning_key: str
    has_token_ids: bool
    """`return_token_ids` in the request is obeyed."""
    has_timings: bool
    """A `timings` object closes the reply without being asked for."""


VLLM = Dialect("vllm", "", True, True, "reasoning", True, False)
LLAMACPP = Dialect("llamacpp", None, False, False, "reasoning_content", False, True)
OPENAI = Dialect("openai", "", True, False, "reasoning_content", False, False)


@dataclass(frozen=True, slots=True)
class Noise:
    """Random step times, seeded. Every factor has mean 1, so that the mean TPOT stays the script's."""

    token_sigma: float = 0.0
    """Log-normal spread of each decode step."""
    request_sigma: float = 0.0
    """Log-normal spread of a factor that a whole request shares, its time to first token included."""
    drift_per_s: float = 0.0
    """Linear drift: at a server's age of t seconds each step takes 1 + drift_per_s · t times as long."""
    ar1_sigma: float = 0.0
    """Stationary spread of the logarithm of a slow AR(1) factor that all requests share."""
    ar1_rho: float = 0.9
    """Its correlation from one `ar1_step_s` to the next."""
    ar1_step_s: float = 1.0
    stall_probability: float = 0.0
    """Of each decode step."""
    stall_s: float = 0.1
    """Mean of the exponentially distributed stall."""
    seed: int = 0
    drift_seed: int | None = None
    """Seed of the AR(1) path, if two servers are to drift together; None takes `seed`."""


@dataclass(frozen=True, slots=True)
class Speculation:
    """Steps that draft. A plain step takes the script's tpot_s."""

    k: int
    """Tokens drafted in a drafted step."""
    acceptance: float
    """Probability that a draft token is accepted, given that all before it in the draft were."""
    draft_share: float = 1.0
    """Probability that a step drafts."""
    verify_cost: float = 0.0
    """What a drafted step costs more, as a share of a plain step."""
    overhead: float = 0.0
    """What every step costs more, as a share of a plain step."""

    @property
    def accepted_per_draft(self) -> float:
        """Expected accepted tokens of a draft: a + a² + … + a^k (Leviathan 2023, less the bonus token)."""
        return sum(self.acceptance**position for position in range(1, self.k + 1))

    @property
    def speedup(self) -> float:
        """Expected plain TPOT / speculative TPOT: (1 + f·A) / (1 + d + f·V), A accepted per draft."""
        emitted = 1 + self.draft_share * self.accepted_per_draft
        return emitted / (1 + self.overhead + self.draft_share * self.verify_cost)


@dataclass(frozen=True, slots=True)
class Wire:
    """How the bytes of a reply travel. None of it changes what the reply says."""

    events_per_write: int = 1
    """Consecutive events merged into one write, made when the last of them is due."""
    split: Literal["none", "utf8", "anywhere"] = "none"
    """Cut each write in two: inside its first multi-byte character (if it has one), or at a random byte."""
    split_gap_s: float = 0.0
    """Between the two halves; from about 2 ms on the reader sees two reads."""
    line_end: Literal["\n", "\r\n", "\r"] = "\n"
    multi_line: bool = False
    """Each JSON object is spread over two `data:` lines."""
    comments: bool = False
    """A comment line, an `event:` and an `id:` field in each event."""
    ping_s: float | None = None
    """A comment event of its own at this interval, from the start of the reply to its end."""
    transfer: Literal["chunked", "close"] = "chunked"
    gzip: bool = False
    header_at_s: float = 0.0
    """When the response header is written, after the request came."""
    trickle_header: bool = False
    """Write the header in three pieces, 5 ms apart."""
    done: bool = True
    """Close with `data: [DONE]`."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A plain HTTP answer in place of a reply."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Script:
    """How one reply goes. Token i ≥ n_first is due at ttft_s + (i − n_first + 1) · tpot_s."""

    ttft_s: float = 0.01
    tpot_s: float = 0.001
    """Of a plain decode step. Both 0: as fast as the client reads."""
    n_tokens: int = 32
    """Tokens of the reply, all kinds. The request's max_tokens cuts it; `ignore_eos` stretches it to that."""
    tokens_per_chunk: int = 1
    first_chunk_tokens: int | None = None
    """Tokens that are ready at ttft_s, in one chunk; None takes tokens_per_chunk."""

    reasoning_tokens: int = 0
    """The first of n_tokens that are reasoning."""
    reasoning_key: str | None = None
    """Key of the delta, or `inline` for <think> tags in the content; None takes the dialect's."""
    think_pieces: int = 1
    """Inline: tokens that each tag is cut into. They count as reasoning."""
    null_content: bool = False
    """Reasoning deltas carry `content: null` beside the reasoning."""
    tool_tokens: int = 0
    """The last of n_tokens that are one tool call."""
    hidden_reasoning_tokens: int = 0
    """Counted by usage on top of n_tokens, never streamed."""

    role_chunk: bool = True
    role_at_s: float | None = None
    """When the role chunk is due; None is with the first token."""
    eos: bool = False
    """The last of n_tokens is an end-of-sequence token: no text, it comes with the finish chunk."""
    finish_reason: str | None = None
    """None: `length` when max_tokens cut the reply, otherwise `stop`, or `tool_calls`."""

    usage: Literal["asked", "always", "absent", "finish_chunk", "every_chunk"] = "asked"
    """As `stream_options` asks; or in any case: in a chunk with `choices: []`, on the last or on each."""
    usage_lies: tuple[tuple[str, int], ...] = ()
    """Replaces prompt_tokens, completion_tokens, total_tokens or reasoning_tokens in the final usage."""
    timings: bool | None = None
    """llama.cpp `timings` or vLLM `metrics` in the last chunk; None takes the dialect's habit."""
    timings_lies: tuple[tuple[str, float], ...] = ()
    prompt_tokens: int | None = None
    """None: one per four characters of the prompt."""

    stall_at: int | None = None
    """Token (from 0) that comes `stall_s` late, and all after it."""
    stall_s: float = 0.0
    die_at: int | None = None
    """The connection breaks once that many tokens have been written; −1: before the response header."""
    die_how: Literal["close", "reset"] = "close"
    error_at: int | None = None
    """An error object is sent in place of token number error_at (from 0), and the reply ends."""
    error_message: str = "CUDA out of memory"
    error_as_token: Literal["", "object", "text", "finish_reason", "unfinished"] = ""
    """The error comes as a one-token reply, with status 200: as an error object in its text; in words;
    in words, with `finish_reason: error`; or in words, without a finish_reason."""
    answer: Answer | None = None

    seed: int = 0
    """Of the text. Servers with one seed give one prompt the same greedy reply."""
    hold_every: int | None = None
    """The text of every hold_every-th token comes with the next, as with a character cut in two."""
    diverge_at: int | None = None
    """From this token on the text differs from that of a server without it."""
    loop_from: int | None = None
    """From this token on two tokens alternate."""

    dialect: Dialect = VLLM
    wire: Wire = Wire()
    noise: Noise | None = None
    speculation: Speculation | None = None

    @property
    def n_first(self) -> int:
        """Tokens in the first chunk that carries any."""
        return min(self.first_chunk_tokens or self.tokens_per_chunk, self.n_tokens)
