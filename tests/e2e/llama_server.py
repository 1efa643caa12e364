"""`llama-server` for tests: its flags, and the llama.cpp that is inside the embedded engine.

`python -m tests.e2e.llama_server --model FILE --port N [--alias NAME] [--headroom-mb N] [FLAGS]` serves until
SIGTERM. What `llama_server` makes has the name by which a command line is known to start llama.cpp.
"""

from __future__ import annotations

import os
import resource
import shlex
import signal
import sys
import time
from pathlib import Path

from breakeven.engines.llamacpp import LlamaSettings
from breakeven.servers.embedded_child import common_params

ROOT = Path(__file__).parents[2]
PROGRAM = f"""#!{sys.executable}
import runpy, sys
sys.path[:0] = [{str(ROOT)!r}]
runpy.run_module("tests.e2e.llama_server", run_name="__main__")
"""


def llama_server(folder: Path) -> Path:
    """The program, made in a folder."""
    program = folder / "llama-server"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return program


def main() -> None:
    import xllamacpp

    words = sys.argv[1:]
    own = {name: _taken(words, name) for name in ("--model", "--port", "--alias", "--headroom-mb")}
    settings = LlamaSettings.parse(shlex.join(words))
    params = common_params(xllamacpp, own["--model"], own["--alias"] or "tiny", settings)
    params.port = int(own["--port"])
    server = xllamacpp.Server(params)
    signal.signal(signal.SIGTERM, lambda number, frame: os._exit(0))
    if own["--headroom-mb"]:
        _limit_memory(int(own["--headroom-mb"]))
    print(f"main: server is listening on {server.listening_address}", flush=True)
    while True:
        time.sleep(600)


def _limit_memory(headroom_mb: int) -> None:
    """From now on the kernel refuses what goes so far beyond the memory that is taken already (Linux)."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    taken_kb = int(status["VmData"].split()[0])
    limit = (taken_kb << 10) + (headroom_mb << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _taken(words: list[str], name: str) -> str:
    """The value of an option, taken out of the words; empty where it is not given."""
    if name not in words:
        return ""
    at = words.index(name)
    value = words[at + 1]
    del words[at : at + 2]
    return value


if __name__ == "__main__":
    main()
