"""Vllm: the command line and the log of vLLM, 0.6 to 0.33."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar

from breakeven.engines import known_names, vllm_flags, yaml_text
from breakeven.engines.argv import (
    Given,
    after_module,
    after_program,
    given,
    is_older,
    last_value,
    port_number,
    without,
)
from breakeven.engines.dialect import Address, Dialect
from breakeven.engines.log import LogTable, facts, patterns
from breakeven.engines.names import Named, Names
from breakeven.engines.speculation import SpeculationConfig

MODULES = ("vllm.entrypoints.openai.api_server",)
COMMANDS = ("vllm.entrypoints.cli.main",)
SYNCHRONOUS = ("ngram", "suffix", "custom_class", *vllm_flags.GUARDS)
"""Methods with which vLLM schedules a step only once the one before it is done (`vllm/config/vllm.py`)."""


class Vllm(Dialect):
    """`vllm serve MODEL` and `python -m vllm.entrypoints.openai.api_server`."""

    name: ClassVar[str] = "vllm"
    title: ClassVar[str] = "vLLM"
    names: ClassVar[Names] = known_names.VLLM
    log: ClassVar[LogTable] = LogTable(
        patterns(
            ("loading weights", r"Loading [\w ]*(?:shards|loader):.*\| (?P<done>\d+)/(?P<total>\d+) \["),
            ("capturing graphs", r"Capturing [^|]*(?:CUDA |cuda)graph.*\| (?P<done>\d+)/(?P<total>\d+) \["),
            ("capturing graphs", r"Capturing (?:the model for CUDA graphs|model for speculator|cudagraphs)"),
            ("loading weights", r"Starting to load model|Loading drafter model|Loading weights took"),
            ("compiling", r"Dynamo bytecode transform|Compiling a graph|compiled function|compiled graph"
                          r"|for vLLM's torch\.compile|Warming up model for the compilation"),
            ("warming up", r"warmup run took|Warming up done|Graph capturing finished|KV cache size:"
                           r"|init engine \(profile|Starting vLLM (?:API )?server"),
            ("starting", r"version \d+\.\d+\S*$|vLLM API server version|Initializing a V\d LLM engine"),
            ("serving", r"Application startup complete"),
        ),
        facts(
            ("version", r"(?:vLLM API server|█) +version (\S+)"),
            ("version", r"Initializing a V\d LLM engine \(v([^)]+)\)"),
            ("model_runner", r"using the V1 model runner|\[gpu_model_runner\.py:\d+\] Model loading", "V1"),
            ("model_runner", r"\[model_runner\.py:\d+\] Model loading", "V2"),
            ("async_scheduling", r"Async(?:hronous)? scheduling (?:not supported|is disabled)", "off"),
            ("async_scheduling", r"Asynchronous scheduling is enabled", "on"),
            ("cuda_graphs", r"'?cudagraph_mode'?[:=] ?<CUDAGraphMode\.(\w+)"),
            ("cuda_graphs", r"setting cudagraph_mode=(?:CUDAGraphMode\.)?(\w+)"),
            ("cuda_graphs", r"Overriding cudagraph_mode (?:from \S+ )?to (\w+)"),
            ("attention_backend", r"Using (?:\w+\.)?([A-Z][A-Z0-9_]+) (?:attention )?backend"),
            ("kv_cache_tokens", r"KV cache size: ([\d,]+) tokens"),
        ),
        drafter=re.compile(r"Loading drafter model"),
    )  # fmt: skip

    def start(self, argv: Sequence[str]) -> int | None:
        module = after_module(argv, MODULES)
        if module is not None:
            return module
        command = after_module(argv, COMMANDS)
        if command is not None:
            return command + 1 if tuple(argv[command : command + 1]) == ("serve",) else None
        return after_program(argv, ("vllm",), ("serve",))

    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        vllm_flags.check_guard(config, self.names.settings)
        self.check_names(config, version)
        return vllm_flags.written(config, version)

    def named(self, config: SpeculationConfig) -> Named:
        return Named((config.method,), tuple(name.replace("-", "_") for name in config.options))

    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        return vllm_flags.read(self._found(argv))

    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        return without(argv, self._found(argv))

    def elsewhere(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        path = self._last(argv, "--config")
        if path is None:
            return None
        text = self.read(path)
        if text is None:
            return f"--config {path} cannot be read here: look whether it turns speculation on"
        if yaml_text.entry(text, *vllm_flags.file_keys()) is None:
            return None
        return f"{path} turns speculation on: move it from there to the command line, and restart"

    def learns(self, config: SpeculationConfig) -> bool:
        return config.method == "suffix"

    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        """VLLM_PORT and VLLM_HOST_IP are for vLLM's processes among themselves (`vllm/envs.py`)."""
        path = self._last(argv, "--config")
        text = self.read(path) if path else None
        host = self._last(argv, "--host") or yaml_text.value(text, "host") or "0.0.0.0"  # noqa: S104
        port = self._last(argv, "--port") or yaml_text.value(text, "port") or 8000
        return Address(str(host), port_number(str(port), "--port"))

    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        found = [*self.doubts(config, version), *_lookup_warnings(config)]
        found += self._scheduling_warnings(config, argv)
        if config.method in vllm_flags.GUARDS:
            found.append(
                "the guard runs inside vLLM: its Python needs breakeven, so type there  "
                "pip install 'breakeven[replay]'"
            )
            if config.method == "guard" and (config.k or 0) > vllm_flags.GUARD_TOKENS:
                found.append(
                    f"the guard drafts {vllm_flags.GUARD_TOKENS} tokens at most, whatever --k says, unless "
                    "most_tokens of BREAKEVEN_GUARD_CONFIG in the server's environment is more"
                )
        if config.method == "suffix":
            found.append("suffix learns across requests: a repeated prompt is not a repeat")
            found.append(
                "suffix needs arctic-inference in the server's Python: vLLM does not start without it"
            )
        if "disable_by_batch_size" in config.options and not is_older(version, (0, 9)):
            found.append("disable_by_batch_size is an older vLLM's: 0.32 does not start with it")
        found.append(
            "requests with logit_bias or min_p are answered with HTTP 400 while speculation is on: "
            "look for them in your traffic"
        )
        return tuple(found)

    def _scheduling_warnings(self, config: SpeculationConfig, argv: Sequence[str]) -> list[str]:
        found = []
        if config.method in SYNCHRONOUS and self._is_given(argv, "--async-scheduling"):
            found.append(
                f"vLLM does not start with --async-scheduling beside {config.method}: take it out of the "
                "server's command line before the baseline is measured"
            )
        elif config.method in SYNCHRONOUS:
            found.append(
                f"vLLM turns asynchronous scheduling off with {config.method}: where the baseline has it, "
                "a loss may come from that, not from the drafts"
            )
        requests, tokens = self._last(argv, "--max-num-seqs"), self._last(argv, "--max-num-batched-tokens")
        k = vllm_flags.GUARD_TOKENS if config.method == "guard" and config.k is None else config.k
        if k and requests and tokens and requests.isdecimal() and tokens.isdecimal():
            verified = int(requests) * (k + 1)
            if verified > int(tokens):
                found.append(
                    f"a step verifies up to {verified} tokens for --max-num-seqs {requests}, more than "
                    f"--max-num-batched-tokens {tokens}: requests wait for each other at full load"
                )
        backend = self._last(argv, "--attention-backend") or ""
        if backend.upper() == "FLASHINFER":
            found.append(
                "with the FlashInfer backend vLLM drops full CUDA graphs for piecewise ones, or none, while "
                "speculation is on: compare the start of both logs"
            )
        return found

    def _last(self, argv: Sequence[str], name: str) -> str | None:
        return last_value(argv, self.start(argv) or 0, name)

    def _is_given(self, argv: Sequence[str], name: str) -> bool:
        return name in (word.replace("_", "-") for word in argv[self.start(argv) or 0 :])

    def _found(self, argv: Sequence[str]) -> list[Given]:
        return given(argv, self.start(argv) or 0, vllm_flags.takes)


def _lookup_warnings(config: SpeculationConfig) -> list[str]:
    if not config.method.startswith("ngram"):
        return []
    if config.min_n is None and config.max_n is None:
        return ["without prompt_lookup_min and _max vLLM looks up 5 tokens only: type --min-n 2 --max-n 4"]
    if config.min_n is None or config.max_n is None:
        n = config.min_n or config.max_n
        given_, other = ("max", "min") if config.min_n is None else ("min", "max")
        return [
            f"prompt_lookup_{given_} without prompt_lookup_{other}: vLLM sets both to {n}, so that only "
            f"{n} tokens are looked up: give both"
        ]
    return []
