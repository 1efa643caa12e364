"""The child process of EmbeddedServer: `python -m breakeven.servers.embedded_child`.

Reads one JSON line on stdin, {"model", "name", "flags", "parent_pid"}, serves on a free loopback port, and
writes one JSON line on stdout: {"url"}, {"error"}, or {"missing"} where xllamacpp is not installed. It leaves
at once when stdin ends, as it does when the parent is killed with -9. What llama.cpp writes goes to stderr.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any

from breakeven.engines.llamacpp import LlamaSettings
from breakeven.servers.guard import die_with

LAST_WORDS_S = 0.2
"""Waited after a failure: llama.cpp writes its log, where the reason stands, in a thread of its own."""


def main() -> None:
    """Serve until stdin ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    report = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    config = json.loads(sys.stdin.buffer.readline() or "{}")
    die_with(config["parent_pid"])  # also while a model loads and stdin cannot be watched
    watch = threading.Thread(target=_leave_when_stdin_ends, daemon=True)
    watch.start()
    server, answer = _start(config)
    report.write(json.dumps(answer) + "\n")
    report.flush()
    if server is not None:
        watch.join()
    os._exit(1)


def _leave_when_stdin_ends() -> None:
    while os.read(0, 4096):
        pass
    os._exit(0)


def _start(config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    try:
        import xllamacpp
    except ImportError:
        return None, {"missing": "xllamacpp"}
    try:
        params = common_params(
            xllamacpp, config["model"], config["name"], LlamaSettings.parse(config["flags"])
        )
        server = xllamacpp.Server(params)
        return server, {"url": server.listening_address}
    except Exception as error:
        time.sleep(LAST_WORDS_S)
        return None, {"error": f"{type(error).__name__}: {error}"}


def common_params(xllamacpp: Any, model: str, name: str, settings: LlamaSettings) -> Any:
    """The settings as xllamacpp.CommonParams. Port 0 lets the system choose a free one on loopback."""
    params = xllamacpp.CommonParams()
    params.model.path = model
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.endpoint_metrics = True
    params.ui = False
    params.n_ctx = settings.ctx_size
    params.n_parallel = settings.parallel
    params.n_batch = settings.batch_size
    params.n_ubatch = settings.ubatch_size
    params.cpuparams.n_threads = settings.threads
    params.cpuparams_batch.n_threads = settings.threads_batch or settings.threads
    params.cache_prompt = settings.cache_prompt
    params.kv_unified = settings.kv_unified
    params.cache_ram_mib = settings.cache_ram_mib
    if settings.gpu_layers is not None:
        params.n_gpu_layers = settings.gpu_layers
    params.flash_attn_type = _member(
        xllamacpp.llama_flash_attn_type,
        "LLAMA_FLASH_ATTN_TYPE",
        {"on": "enabled", "off": "disabled"}.get(settings.flash_attn, settings.flash_attn),
    )
    params.cache_type_k = _member(xllamacpp.ggml_type, "GGML_TYPE", settings.cache_type_k)
    params.cache_type_v = _member(xllamacpp.ggml_type, "GGML_TYPE", settings.cache_type_v)
    _set_speculation(xllamacpp, params.speculative, settings)
    return params


def _set_speculation(xllamacpp: Any, speculative: Any, settings: LlamaSettings) -> None:
    kinds = xllamacpp.common_speculative_type
    names = settings.spec_types or ("none",)
    speculative.types = [_member(kinds, "COMMON_SPECULATIVE_TYPE", name) for name in names]
    for name, lookup in settings.lookups().items():
        target = getattr(speculative, name.replace("-", "_"))
        target.size_n, target.size_m, target.min_hits = lookup.size_n, lookup.size_m, lookup.min_hits
    mod = settings.ngram_mod
    speculative.ngram_mod.n_match = mod.n_match
    speculative.ngram_mod.n_min, speculative.ngram_mod.n_max = mod.n_min, mod.n_max


def _member(enumeration: Any, prefix: str, word: str) -> Any:
    return enumeration[f"{prefix}_{word.upper().replace('-', '_')}"]


if __name__ == "__main__":
    main()
