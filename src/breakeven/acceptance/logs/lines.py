"""Which lines of an engine's log say something: the events, the starts, and the bytes that mark them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from breakeven.acceptance.logs import llamacpp, sglang, tensorrt, vllm
from breakeven.acceptance.logs.text import without_quotes

EVENTS = {
    "preemption": "requests put back to wait, for want of KV cache",
    "kv_cache_full": "no room in the KV cache",
    "out_of_memory": "memory of the device ran out",
    "compile": "compilation before the first request was served",
    "late_compile": "compilation after the first request was served",
    "graph_capture": "capture of CUDA graphs before the first request was served",
    "late_graph_capture": "capture of CUDA graphs after the first request was served",
    "async_scheduling_off": "asynchronous (overlapped) scheduling turned off",
    "cuda_graph_downgraded": "CUDA graphs changed to a lesser mode than was asked for",
    "cuda_graph_off": "CUDA graphs turned off by a setting",
    "cuda_graph_unused": "decode batches that ran without a CUDA graph",
    "attention_backend": "the attention backend",
    "speculation_off": "speculation turned off, for a batch or for good",
    "restart": "the server started anew",
    "died": "the server died while it served",
    "nan": "values that are no numbers, or output called garbage",
}
"""By name, what such a line tells."""
LATE = {"compile": "late_compile", "graph_capture": "late_graph_capture"}
"""What an event is called once a request has been served."""
SERVING = "serving"
STOPPED, DIED, DIED_OUTRIGHT = "stopped", "died", "died outright"
"""Somebody stops the server; it dies, as its logger says; it dies, as systemd or a bare line says."""
UNQUOTED = frozenset({*EVENTS, STOPPED, DIED_OUTRIGHT})
"""Told only outside of what a line quotes."""
STARTS = ("vllm", "sglang", "llama.cpp", "tensorrt-llm", "tgi")
"""Engines whose starts are known. A line that stands near the beginning of one is named after the engine."""


@dataclass(frozen=True, slots=True)
class Telling:
    """Lines that hold one of `markers`, and match."""

    name: str
    """An event, SERVING, STOPPED, DIED_OUTRIGHT, one of STARTS, or what an engine's counts are called."""
    pattern: re.Pattern[str]
    markers: tuple[bytes, ...]

    def search(self, text: str) -> re.Match[str] | None:
        """Where the line tells it; of an event, outside of what the line quotes."""
        if self.name not in UNQUOTED:
            return self.pattern.search(text)
        found = self.pattern.search(without_quotes(text))
        return found and self.pattern.search(text, found.start())


def _lines(name: str, pattern: str | re.Pattern[str], *markers: bytes) -> Telling:
    return Telling(name, re.compile(pattern), markers)


SGLANG_BATCH, LLAMACPP_REQUEST, VLLM_STATE = "sglang batch", "llama.cpp request", "vllm state"
VLLM_COUNTS, TENSORRT_COUNTS = "vllm counts", "tensorrt-llm counts"
TABLE = (
    _lines(SGLANG_BATCH, sglang.LINE, b"Decode batch", b"Prefill batch"),
    _lines(LLAMACPP_REQUEST, llamacpp.LINE,
           b"draft acceptance", b"  eval time = ", b": #calls", b"speculative implem", b"decoding context"),
    _lines(VLLM_COUNTS, vllm.SPECULATION, b"Decoding metrics: ", b"Speculative metrics: "),
    _lines(VLLM_STATE, vllm.STATUS, b"prompt throughput: "),
    _lines(TENSORRT_COUNTS, tensorrt.MARKER, tensorrt.MARKER.encode()),
    _lines("vllm", r"█ +version \d|vLLM API server version|Initializing an? (?:V\d )?LLM engine",
           b"  version ", b"API server version", b" LLM engine"),
    _lines("sglang", r"server_args=ServerArgs", b"server_args="),
    _lines("llama.cpp", r"build_info: |\bbuild: \d+ \(", b"build_info: ", b"build: "),
    _lines("tensorrt-llm", r"TensorRT[- ]LLM version: ", b"LLM version: "),
    _lines("tgi", r"text_generation_launcher\S*: Args \{", b"text_generation_launcher: Args"),
    _lines(SERVING,
           r"Application startup complete|fired up and ready|listening on|all slots are idle"
           r"|launch_slot_\w*: id|text_generation_router\S*: .*Connected$",
           b"startup complete", b": Connected", b"fired up and ready", b" listening on", b"slots are idle",
           b"launch_slot_"),
    _lines(STOPPED,
           r"signal=SIG(?:TERM|INT)|[Rr]eceived (?:signal )?SIG(?:TERM|INT)|SIG(?:TERM|INT) received"
           r"|KeyboardInterrupt|\bINFO: +Shutting down$|cleaning up before exit|Gracefully exiting"
           r"|(?:systemd\[\d+\]: |^)Stopping \S.{0,200}(?:\.\.\.|…)$"
           r"|[Mm]ain process exited, code=\w+, status=(?:15/TERM|2/INT|130|143)",
           b"SIGTERM", b"SIGINT", b"KeyboardInterrupt", b"Shutting down", b"cleaning up before",
           b"racefully exiting", b"Stopping ", b"ain process exited"),
    _lines(DIED,
           r"EngineCore (?:encountered a fatal error|hit an exception)|\w*EngineDeadError: "
           r"|engine core exited unexpectedly|(?:[Ee]ngine core|Worker) proc \S{1,80} died unexpectedly"
           r"|[Gg]ot fatal signal from worker|Scheduler hit an exception: |Watchdog timeout \("
           r"|[Rr]eceived sigquit from a child|SIGQUIT received|Shard \d+ crashed"
           r"|Executor loop crashed|Hang detected on rank"
           r"|CUDA error: (?:an illegal (?:memory access|instruction)|device-side assert|misaligned address"
           r"|unspecified launch failure)",
           b"encountered a fatal", b"hit an exception", b"EngineDeadError", b"unexpectedly",
           b"fatal signal from", b"Watchdog timeout", b"sigquit from", b"SIGQUIT", b" crashed",
           b"Hang detected", b"CUDA error"),
    _lines(DIED_OUTRIGHT,
           r"\.(?:service|scope): (?:[Mm]ain process exited, code=(?:killed|dumped|exited), status=(?!0)"
           r"|A process of this unit has been killed by the OOM killer)"
           r"|\.(?:cuh?|cpp|c|m|h):\d{1,6}: (?:GGML_ASSERT\(|(?:CUDA|ROCm) error)"
           r"|terminate called (?:after throwing|without an active)"
           r"|Fatal Python error: (?:Aborted|Segmentation fault|Bus error|Illegal instruction)"
           r"|(?:Segmentation fault|Aborted|Bus error|Illegal instruction) +\(core dumped\)",
           b"ain process exited", b"killed by the OOM", b"GGML_ASSERT", b"CUDA error", b"ROCm error",
           b"terminate called", b"Fatal Python error", b"(core dumped)"),
    _lines("preemption", r"is preempted by|Retract requests|Preemptions: [1-9]",
           b"preempted by", b"Retract requests", b"Preemptions: "),
    _lines("kv_cache_full",
           r"No available memory for the cache blocks|failed to find free space in the KV cache"
           r"|failed to find a memory slot|Decode out of memory|KV cache pool is full",
           b"No available memory", b"free space in the KV", b"find a memory slot", b"cache pool is full"),
    _lines("out_of_memory", r"OutOfMemoryError|(?<!running )[Oo]ut of memory",
           b"OutOfMemoryError", b"ut of memory"),
    _lines("compile",
           r"Dynamo bytecode transform|Compiling a graph|torch\.compile (?:takes|took)"
           r"|JIT compilation during inference",
           b"Dynamo bytecode", b"Compiling a graph", b"torch.compile t", b"JIT compilation during"),
    _lines("graph_capture",
           r"Graph capturing finished|Capturing [^|]{0,80}(?:CUDA |cuda)graph[^|]{0,80}: +100%"
           r"|Capture [\w ]{0,40}graph end",
           b"Graph capturing", b"Capturing ", b"graph end"),
    _lines("async_scheduling_off",
           r"Async(?:hronous)? scheduling (?:is )?(?:not supported|disabled|will be disabled)"
           r"|[Oo]verlap schedule(?:r)? is (?:disabled|turned off)",
           b"sync scheduling", b"nous scheduling", b"verlap schedule"),
    _lines("cuda_graph_off", r"Enforce eager set|[Cc]udagraph is disabled|CUDAGraphs? (?:is|are) disabled",
           b"Enforce eager", b"graph is disabled", b"Graphs are disabled"),
    _lines("cuda_graph_downgraded",
           r"CUDAGraphMode\.\w+ is not supported|setting cudagraph_mode=|Overriding cudagraph_mode",
           b"cudagraph_mode", b"CUDAGraphMode"),
    _lines("attention_backend",
           r"Using (?:\w+\.)?(?:[A-Z][A-Z0-9_]+|Flash ?Attention|FlashInfer|Triton) (?:attention )?backend"
           r"|Use \w+ (?:attention )?backend by default|Flash Attention was auto, set to"
           r"|Using [Aa]ttention (?:= )?\w+",
           b" backend", b"Flash Attention was", b"Using Attention", b"Using attention"),
    _lines("speculation_off",
           r"[Ss]peculati(?:ve|on)(?: decoding)? (?:is |will be |has been )?"
           r"(?:disabled|turned off|not supported)"
           r"|[Dd]isabl(?:e|ed|ing) (?:the )?speculati(?:ve|on)"
           r"|(?:draft|target) .{0,60}(?:not compatible|incompatible)",
           b"peculative", b"peculation", b"compatible"),
    _lines("nan",
           r"\b(?:NaNs?|nans?)\b.{0,60}(?:logits|detected|prob|output)|Corrupted: [1-9]"
           r"|(?:logits|[Pp]robab\w{0,9}|hidden states?|output)\b.{0,80}\b(?:NaNs?|nan)\b|garbage output",
           b"NaN", b"nan in", b"`nan`", b"garbage", b"Corrupted: "),
)  # fmt: skip
"""The first that a line matches counts."""

ANYWHERE = frozenset(
    {LLAMACPP_REQUEST, TENSORRT_COUNTS, SERVING, STOPPED, DIED_OUTRIGHT, "llama.cpp", "graph_capture"}
)
"""What engines also tell in lines without their logger's prefix."""
PROOF = re.compile(r"encountered a fatal error")
"""In a line that tells of a death: a start that fails is told in other words."""
SPECULATES = re.compile(r"speculative_config=(?!None)\S")
"""In a line of vLLM's start: with speculation."""
WARMED_UP = "fired up and ready"
"""Requests before it are SGLang's own."""
REQUEST = b'"POST /'
"""In the line of a web server's log, as vLLM and SGLang write it."""
WRAPPED = b'"MESSAGE":['
"""A journal writes as numbers what is not plain text: such a line may tell anything."""


def _by_marker() -> dict[bytes, list[int]]:
    places: dict[bytes, list[int]] = {WRAPPED: list(range(len(TABLE)))}
    for place, telling in enumerate(TABLE):
        for marker in telling.markers:
            places.setdefault(marker, []).append(place)
    return places


_BY_MARKER = _by_marker()
"""Where in TABLE each marker stands."""


def marked(lines: bytes) -> list[tuple[int, tuple[Telling, ...]]]:
    """Which of the lines (their places) may say something, and what, in the order of TABLE.

    Lines of a log are alike but for their numbers: without digits, which no marker holds, few are different,
    and only those are looked through.
    """
    likenesses = lines.translate(None, b"0123456789").split(b"\n")
    different = b"\n".join(dict.fromkeys(likenesses))
    places: dict[bytes, set[int]] = {}
    for marker, told in _BY_MARKER.items():
        for line in _lines_with(marker, different):
            places.setdefault(line, set()).update(told)
    tellings = {line: tuple(TABLE[place] for place in sorted(told)) for line, told in places.items()}
    return [(place, tellings[line]) for place, line in enumerate(likenesses) if line in tellings]


def _lines_with(marker: bytes, lines: bytes) -> Iterator[bytes]:
    at = lines.find(marker)
    while at >= 0:
        end = lines.find(b"\n", at)
        end = len(lines) if end < 0 else end
        yield lines[lines.rfind(b"\n", 0, at) + 1 : end]
        at = lines.find(marker, end)
