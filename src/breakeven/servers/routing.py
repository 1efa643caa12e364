"""Reading which experts the tokens of real replies use, by llama.cpp in a child process of its own."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from breakeven.engines.llamacpp import default_threads
from breakeven.errors import MissingExtra, ServerError, UsageError
from breakeven.servers.child import ending

LOG_LINES = 8

Messages = Sequence[Mapping[str, Any]]
"""A chat."""


@dataclass(frozen=True, slots=True, eq=False)
class Routed:
    """The experts of the tokens of some replies, as they were read."""

    experts: NDArray[np.int32]
    """[tokens, layers, top_k], reply after reply."""
    lengths: tuple[int, ...]
    """Tokens of each reply; those without any are left out."""
    count: int
    """Routed experts of a layer."""
    description: str
    """What the model file says of itself; empty where it says nothing."""


def record_routing(
    model: Path, prompts: Sequence[Messages], tokens: int, decoded: Callable[[], object]
) -> Routed:
    """Decode a reply to each prompt, greedily, up to `tokens` long, and read the experts of its tokens.

    Each token is decoded alone, as a baseline does it; `decoded` is called after each.
    A crash of the engine ends its process only.

    Raises UsageError for a model without experts, prompts that do not fit into it, or an xllamacpp whose
    structs are not known; MissingExtra without xllamacpp; ServerError when the engine fails, with the end of
    its log.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "routing.npz"
        request = {
            "model": str(model),
            "prompts": [[_turn(message) for message in messages] for messages in prompts],
            "tokens": tokens,
            "threads": default_threads(),
            "out": str(out),
        }
        with (Path(folder) / "engine.log").open("w+b") as log:
            answer = _ask(request, log, decoded)
            _refuse(model, answer, log)
        with np.load(out) as arrays:
            return Routed(
                arrays["experts"],
                tuple(arrays["lengths"].tolist()),
                answer["count"],
                answer["description"],
            )


def _ask(request: dict[str, Any], log: IO[bytes], decoded: Callable[[], object]) -> dict[str, Any]:
    """The child's last line; {"error"} where it ended without one."""
    answer: dict[str, Any] = {}
    with subprocess.Popen(
        [sys.executable, "-m", "breakeven.servers.routing_child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    ) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101  pipes were asked for
        try:
            with contextlib.suppress(BrokenPipeError), process.stdin:
                process.stdin.write(json.dumps(request).encode())
            for line in process.stdout:
                answer = json.loads(line)
                if "decoded" in answer:
                    decoded()
        except BaseException:
            process.kill()
            raise
    if not answer or "decoded" in answer:
        return {"error": f"the engine {ending(process.returncode)}"}
    return answer


def _turn(message: Mapping[str, Any]) -> dict[str, str]:
    """Role and text; of a content in parts, the texts."""
    content = message.get("content") or ""
    if not isinstance(content, str):
        content = "".join(part.get("text") or "" for part in content)
    return {"role": message["role"], "content": content}


def _refuse(model: Path, answer: dict[str, Any], log: IO[bytes]) -> None:
    if "missing" in answer:
        raise MissingExtra(answer["missing"], "local")
    if "usage" in answer:
        raise UsageError(f"{model}: {answer['usage']}")
    if "error" in answer:
        raise ServerError(f"{model}: {answer['error']}; the end of the engine's log:{_tail(log)}")


def _tail(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").splitlines()
    return "".join(f"\n  {line}" for line in lines[-LOG_LINES:])
