"""Trtllm: the command line and the log of TensorRT-LLM's `trtllm-serve`.

Speculation is set in a YAML file alone (`docs/source/features/speculative-decoding.md`), and of several
--config the last counts (`tensorrt_llm/commands/serve.py`, an option of click). So nothing of the file that
is there is changed: a copy with the other speculation is written beside it, and named last.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, ClassVar

from breakeven.engines import known_names, yaml_text
from breakeven.engines.argv import (
    Given,
    after_module,
    after_program,
    given,
    is_older,
    last_value,
    port_number,
    take,
    without,
)
from breakeven.engines.dialect import Address, Dialect, Reader, read_here
from breakeven.engines.log import LogTable, facts, patterns
from breakeven.engines.names import Names
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

CONFIG = ("--config", "--extra-llm-api-options")
CONFIG_SINCE = (1, 2)
"""--config is another name of --extra_llm_api_options since 1.2: NVIDIA/TensorRT-LLM pull request 9104."""
SECTION = "speculative_config"
OVERLAP = "disable_overlap_scheduler"
MODULES = ("tensorrt_llm.commands.serve",)
OURS = "breakeven-speculation-"
"""What the names of written files begin with; the rest follows from the settings."""
TYPES = {"ngram": "NGram", "eagle3": "Eagle3", "mtp": "MTP", "draft-model": "DraftTarget"}
"""decoding_type by what we call it; other names are taken as TensorRT-LLM's own, such as PARD."""
NEW_NAMES_SINCE = (1, 3)
"""Before it, its settings, which are strict, are those of OLD_NAMES, and Eagle is the type that has EAGLE-3.
1.2 takes some of the newer names too, and the older ones in any case: NVIDIA/TensorRT-LLM pull requests 10099
and 12341, and `EagleDecodingConfig` of `tensorrt_llm/llmapi/llm_args.py` in 1.1."""
OLD_NAMES = {"speculative_model": "speculative_model_dir"}
OLD_MTP_NAMES = {"max_draft_len": "num_nextn_predict_layers"}
TWO_MODELS = ("NGram", "DraftTarget")
"""They need the overlap scheduler off."""


class Trtllm(Dialect):
    """`trtllm-serve MODEL`."""

    name: ClassVar[str] = "tensorrt-llm"
    title: ClassVar[str] = "TensorRT-LLM"
    names: ClassVar[Names] = known_names.TRTLLM
    log: ClassVar[LogTable] = LogTable(
        patterns(
            ("loading weights", r"Loading [^|]*weights[^|]*\|.*\| (?P<done>\d+)/(?P<total>\d+) \["),
            (
                "loading weights",
                r"Loading .*weights|prefetching .* to memory|Use [\d.]+ GB for model weights",
            ),
            ("capturing graphs", r"CUDA graph warmup"),
            ("compiling", r"torch\.compile|[Cc]ompil(?:ing|ation)"),
            ("warming up", r"[Aa]utotun|max tokens in paged KV cache|Waiting for application startup"),
            ("starting", r"TensorRT[- ]LLM version:"),
            ("serving", r"Application startup complete"),
        ),
        facts(
            ("version", r"TensorRT[- ]LLM version: (\S+)"),
            ("cuda_graphs", r"CUDA graph warmup", "on"),
            ("kv_cache_tokens", r"max tokens in paged KV cache \((\d+)\)"),
        ),
    )

    def __init__(self, read: Reader = read_here, folder: str = ".") -> None:
        """Files go to `folder`, on the machine where the server runs."""
        super().__init__(read)
        self.folder = folder

    def start(self, argv: Sequence[str]) -> int | None:
        start = after_program(argv, ("trtllm-serve",))
        start = after_module(argv, MODULES) if start is None else start
        has_verb = start is not None and tuple(argv[start : start + 1]) == ("serve",)
        return start + 1 if start is not None and has_verb else start

    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        name = "--extra_llm_api_options" if is_older(version, CONFIG_SINCE) else "--config"
        return name, self._path(self._checked(config, version))

    def line(self, config: SpeculationConfig, version: str | None = None) -> str:
        """bash makes the file, once, as trtllm-serve reads it; JSON is YAML too."""
        text = json.dumps(self._checked(config, version), separators=(",", ":")).replace("'", "'\\''")
        return f"{self.flags(config, version)[0]} <(echo '{text}')"

    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        path = last_value(argv, self.start(argv) or 0, *CONFIG)
        return None if path is None else _config(yaml_text.value(self._text(path), SECTION))

    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        theirs = self._theirs(argv)
        return (*theirs, self._option(theirs), self._path({})) if self._speculates(theirs) else theirs

    def with_speculation(
        self, argv: Sequence[str], config: SpeculationConfig, version: str | None = None
    ) -> tuple[str, ...]:
        theirs = self._theirs(argv)
        name, path = self.flags(config, version)
        return (*theirs, self._option(theirs) or name, path)

    def files(
        self, argv: Sequence[str], config: SpeculationConfig | None, version: str | None = None
    ) -> dict[str, str]:
        theirs = self._theirs(argv)
        if config is None and not self._speculates(theirs):
            return {}
        entries = {} if config is None else self._checked(config, version)
        rest = yaml_text.without_entry(self._original(theirs), SECTION, *(entries.keys() - {SECTION}))
        rest += "" if rest.endswith("\n") or not rest else "\n"
        added = [
            yaml_text.written(name, value) if isinstance(value, dict) else f"{name}: {json.dumps(value)}\n"
            for name, value in entries.items()
        ]
        return {self._path(entries): rest + "".join(added)}

    def copied(self, argv: Sequence[str]) -> str | None:
        theirs = self._theirs(argv)
        return last_value(theirs, self.start(theirs) or 0, *CONFIG)

    def learns(self, config: SpeculationConfig) -> bool:
        return config.method == "ngram" and config.options.get("is_public_pool", True) is not False

    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        start = self.start(argv) or 0
        port = last_value(argv, start, "--port") or "8000"
        return Address(last_value(argv, start, "--host") or "localhost", port_number(port, "--port"))

    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        found = [*self.doubts(config, version)]
        if self.learns(config):
            found.append("the n-gram pool is shared by all requests: a repeated prompt is not a repeat")
        if TYPES.get(config.method, config.method) in TWO_MODELS:
            found.append(
                f"{config.method} needs the overlap scheduler off, which the baseline may have on: "
                "a loss may come from that, not from the drafts"
            )
        return tuple(found)

    def _found(self, argv: Sequence[str]) -> list[Given]:
        return given(argv, self.start(argv) or 0, lambda name: "one" if name in CONFIG else None)

    def _theirs(self, argv: Sequence[str]) -> tuple[str, ...]:
        """Without the files of ours."""
        ours = [one for one in self._found(argv) if PurePosixPath(one.value or "").name.startswith(OURS)]
        return without(argv, ours)

    def _option(self, theirs: Sequence[str]) -> str:
        """The option by the name that it has there, which this version knows; empty where it is not given."""
        found = self._found(theirs)
        return theirs[found[-1].start].partition("=")[0] if found else ""

    def _speculates(self, theirs: Sequence[str]) -> bool:
        return yaml_text.entry(self._original(theirs), SECTION) is not None

    def _original(self, theirs: Sequence[str]) -> str:
        path = self.copied(theirs)
        return "" if path is None else self._text(path)

    def _text(self, path: str) -> str:
        text = self.read(path)
        if text is None:
            raise UsageError(f"--config {path} cannot be read, and may turn speculation on: give a file")
        return text

    def _checked(self, config: SpeculationConfig, version: str | None) -> dict[str, Any]:
        """Entries of the file, once the names in it are known to be right. Raises UsageError."""
        self.check_names(config, version)
        return _entries(config, version)

    def _path(self, entries: Mapping[str, Any]) -> str:
        digest = hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:8] if entries else "off"
        return str(PurePosixPath(self.folder) / f"{OURS}{digest}.yaml")


def _entries(config: SpeculationConfig, version: str | None) -> dict[str, Any]:
    """Top-level entries of the file, by this version's names. Raises UsageError for what TensorRT-LLM has
    not."""
    kind = TYPES.get(config.method, config.method)
    if config.method in ("suffix", "eagle", "medusa"):
        raise UsageError(f"TensorRT-LLM has no {config.method}: type --method {', '.join(TYPES)}, or SA")
    config.require("TensorRT-LLM", "k", *(["draft"] if kind in ("Eagle3", "DraftTarget") else []))
    if kind == "NGram":
        config.refuse("TensorRT-LLM", "draft")
        if (config.min_n or 1) > 1:
            raise UsageError("TensorRT-LLM looks up n-grams from one token on: leave out --min-n")
    else:
        config.refuse("TensorRT-LLM", "min_n", "max_n")
    settings: dict[str, Any] = {
        "decoding_type": kind,
        "max_draft_len": config.k,
        "max_matching_ngram_size": config.max_n,
        "speculative_model": config.draft,
    }
    if is_older(version, NEW_NAMES_SINCE):
        settings = _by_old_names(settings)
    section = {**{name: each for name, each in settings.items() if each is not None}, **config.options}
    return {**({OVERLAP: True} if kind in TWO_MODELS else {}), SECTION: section}


def _by_old_names(settings: dict[str, Any]) -> dict[str, Any]:
    kind = settings["decoding_type"]
    names = {**OLD_NAMES, **(OLD_MTP_NAMES if kind == "MTP" else {})}
    renamed = {names.get(name, name): value for name, value in settings.items()}
    return {**renamed, "decoding_type": "Eagle" if kind == "Eagle3" else kind}


def _config(section: Any) -> SpeculationConfig | None:
    if section is None:
        return None
    if not isinstance(section, dict) or not isinstance(section.get("decoding_type"), str):
        raise UsageError(f"{SECTION} has no decoding_type: give it, as in  decoding_type: NGram")
    rest = dict(section)
    kind = rest.pop("decoding_type")
    method = {own.lower(): ours for ours, own in TYPES.items()}.get(kind.lower(), kind)
    return SpeculationConfig(
        "eagle3" if kind == "Eagle" else method,
        take(int, "max_draft_len", rest) or take(int, "num_nextn_predict_layers", rest),
        None,
        take(int, "max_matching_ngram_size", rest),
        take(str, "speculative_model", rest) or take(str, "speculative_model_dir", rest),
        rest,
    )
