"""All engines whose command lines and logs are known."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from breakeven.engines.argv import SHELLS, program
from breakeven.engines.dialect import Dialect, Reader, read_here
from breakeven.engines.llamacpp_server import LlamacppServer
from breakeven.engines.sglang import Sglang
from breakeven.engines.tgi import Tgi
from breakeven.engines.trtllm import Trtllm
from breakeven.engines.vllm import Vllm
from breakeven.errors import UsageError

DIALECTS: tuple[type[Dialect], ...] = (Vllm, Sglang, LlamacppServer, Trtllm, Tgi)
NAMES = tuple(each.name for each in DIALECTS)
ALIASES = {"llamacpp": "llama.cpp", "llama-server": "llama.cpp", "trtllm": "tensorrt-llm"}
_SHELL_LINE = re.compile(r"-[a-z]*c")


def dialect(name: str, read: Reader = read_here) -> Dialect:
    """By its name. Raises UsageError for one that is not known, with the nearest."""
    name = ALIASES.get(name.lower(), name.lower())
    for each in DIALECTS:
        if each.name == name:
            return each(read)
    near = difflib.get_close_matches(name, [*NAMES, *ALIASES], 1)
    guess = f" (did you mean {near[0]}?)" if near else ""
    raise UsageError(f"{name!r} is no engine that is known{guess}: type one of {', '.join(NAMES)}")


def dialect_of(argv: Sequence[str], read: Reader = read_here) -> Dialect:
    """The engine that a command line starts. Raises UsageError where it starts none that is known, or has a
    shell start it."""
    for each in DIALECTS:
        if (found := each(read)).is_mine(argv):
            return found
    if any(program(word) in SHELLS for word in argv) and any(map(_SHELL_LINE.fullmatch, argv)):
        raise UsageError(
            "a shell starts this server, and a shell's line cannot be changed safely: give the engine's own "
            "command, as in  vllm serve MODEL"
        )
    titles = ", ".join(each.title for each in DIALECTS)
    raise UsageError(f"the command starts none of {titles}: give the engine's own command line")
