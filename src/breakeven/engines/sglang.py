"""Sglang: the command line and the log of SGLang.

Settings from `docs/advanced_features/speculative_decoding.md` and `python/sglang/srt/server_args.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from breakeven.engines import known_names, yaml_text
from breakeven.engines.argv import (
    Given,
    Takes,
    after_module,
    after_program,
    given,
    hyphened,
    is_older,
    last_value,
    port_number,
    scalar,
    take,
    without,
)
from breakeven.engines.dialect import Address, Dialect
from breakeven.engines.log import LogTable, facts, patterns
from breakeven.engines.names import Named, Names
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

NO_WINDOW = (0, 5, 10)
"""From this version on n-grams of every length match: sgl-project/sglang pull request 21225 took the window
away in March 2026, after 0.5.9."""
MODULES = ("sglang.launch_server",)
ALGORITHM = "--speculative-algorithm"
DRAFT = ("--speculative-draft-model-path", "--speculative-draft-model")
STEPS, TOPK, TOKENS = "speculative-num-steps", "speculative-eagle-topk", "speculative-num-draft-tokens"
MIN_N, MAX_N = "speculative-ngram-min-match-window-size", "speculative-ngram-max-match-window-size"
SWITCHES = ("--speculative-adaptive", "--speculative-skip-dp-mlp-sync")
ALGORITHMS = {
    "ngram": "NGRAM",
    "eagle": "EAGLE",
    "eagle3": "EAGLE3",
    "mtp": "NEXTN",
    "draft-model": "STANDALONE",
}
"""By what we call them; other names are taken as SGLang's own, such as dflash."""


class Sglang(Dialect):
    """`python -m sglang.launch_server` and `sglang serve`."""

    name: ClassVar[str] = "sglang"
    title: ClassVar[str] = "SGLang"
    names: ClassVar[Names] = known_names.SGLANG
    log: ClassVar[LogTable] = LogTable(
        patterns(
            ("loading weights", r"Loading [\w ]*shards:.*\| (?P<done>\d+)/(?P<total>\d+) \["),
            ("capturing graphs", r"Capturing [^|]*\|.*\| (?P<done>\d+)/(?P<total>\d+) \["),
            ("capturing graphs", r"Capture [\w ]*cuda graph (?:begin|bs)"),
            ("loading weights", r"Load weight begin|Init torch distributed"),
            ("compiling", r"[Cc]ompiling|torch\.compile"),
            ("warming up", r"Load weight end|KV Cache is allocated|Memory pool end|Capture .*graph end"
                           r"|max_total_num_tokens=|Application startup complete|Uvicorn running on"),
            ("starting", r"server_args="),
            ("serving", r"The server is fired up and ready to roll"),
        ),
        facts(
            ("attention_backend", r"attention_backend='(\w+)'"),
            ("attention_backend", r"Use (\w+) (?:attention )?backend by default"),
            ("async_scheduling", r"disable_overlap_schedule=False", "on"),
            ("async_scheduling", r"disable_overlap_schedule=True", "off"),
            ("async_scheduling", r"[Oo]verlap schedule(?:r)? is (?:disabled|turned off)", "off"),
            ("cuda_graphs", r"disable_cuda_graph=True", "none"),
            ("cuda_graphs", r"Capture cuda graph bs \[([\d, ]+)\]"),
            ("kv_cache_tokens", r"#tokens: (\d+)"),
            ("kv_cache_tokens", r"max_total_num_tokens=(\d+)"),
        ),
    )  # fmt: skip

    def start(self, argv: Sequence[str]) -> int | None:
        module = after_module(argv, MODULES)
        return module if module is not None else after_program(argv, ("sglang",), ("serve",))

    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        algorithm = ALGORITHMS.get(config.method, config.method.upper())
        if config.method in ("suffix", "medusa"):
            raise UsageError(f"SGLang has no {config.method}: type --method {' or '.join(ALGORITHMS)}")
        self.check_names(config, version)
        options = {name.replace("_", "-"): value for name, value in config.options.items()}
        own = _lookup(config, version) if config.method == "ngram" else _drafted(config, options)
        return (ALGORITHM, algorithm, *_words({**own, **options}))

    def named(self, config: SpeculationConfig) -> Named:
        return Named((config.method,), tuple(name.replace("_", "-") for name in config.options))

    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        settings = {_name(one): _value(one) for one in self._found(argv)}
        if not isinstance(algorithm := settings.pop(ALGORITHM, None), str):
            return None
        options = {name.removeprefix("--"): value for name, value in settings.items() if name not in DRAFT}
        draft = next((str(settings[name]) for name in DRAFT if name in settings), None)
        method = {own: ours for ours, own in ALGORITHMS.items()}.get(algorithm.upper(), algorithm.lower())
        if method == "ngram":
            tokens = take(int, TOKENS, options)
            return SpeculationConfig(
                "ngram",
                # SGLang counts the token before the draft, too.
                tokens and tokens - 1,
                take(int, MIN_N, options),
                take(int, MAX_N, options),
                options=options,
            )
        if method == "eagle" and draft is None:
            method = "mtp"
        return SpeculationConfig(method, _depth(options), draft=draft, options=options)

    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        return without(argv, self._found(argv))

    def elsewhere(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        path = self._last(argv, "--config")
        if path is None:
            return None
        text = self.read(path)
        if text is None:
            return f"--config {path} cannot be read here: look whether it turns speculation on"
        if yaml_text.entry(text, "speculative-algorithm", "speculative_algorithm") is None:
            return None
        return f"{path} turns speculation on: move it from there to the command line, and restart"

    def learns(self, config: SpeculationConfig) -> bool:
        return config.method == "ngram"

    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        path = self._last(argv, "--config")
        text = self.read(path) if path else None
        host = self._last(argv, "--host") or yaml_text.value(text, "host") or "127.0.0.1"
        port = self._last(argv, "--port") or yaml_text.value(text, "port") or 30000
        return Address(str(host), port_number(str(port), "--port"))

    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        found = [*self.doubts(config, version)]
        if config.method == "ngram":
            found.append("NGRAM learns across requests: a repeated prompt is not a repeat")
            found.append(
                "NGRAM needs CUDA, and SGLang turns the overlap scheduler and mixed chunked prefill off with "
                "it, not without: a loss may come from that, not from the drafts"
            )
            found += self._page_warnings(config, argv)
        if config.method in ("ngram", "draft-model") and "--enable-dp-attention" in map(hyphened, argv):
            found.append(
                f"SGLang does not start with {ALGORITHMS[config.method]} and --enable-dp-attention: "
                "leave out one of them"
            )
        return tuple(found)

    def _page_warnings(self, config: SpeculationConfig, argv: Sequence[str]) -> list[str]:
        options = {name.replace("_", "-"): value for name, value in config.options.items()}
        breadth = options.get("speculative-ngram-max-bfs-breadth", 10)
        page = self._last(argv, "--page-size") or "1"
        if breadth == 1 or page == "1" or self._last(argv, "--attention-backend") == "flashinfer":
            return []
        return [
            f"NGRAM with --page-size {page} needs --attention-backend flashinfer, or --set "
            "speculative-ngram-max-bfs-breadth=1: else SGLang does not start"
        ]

    def _last(self, argv: Sequence[str], name: str) -> str | None:
        return last_value(argv, self.start(argv) or 0, name)

    def _found(self, argv: Sequence[str]) -> list[Given]:
        return given(argv, self.start(argv) or 0, _takes)


def _takes(name: str) -> Takes | None:
    # argparse takes a long option's beginning for the option.
    if not name.startswith(("--spec-", "--specu")):
        return None
    return "none" if name in SWITCHES else "one"


def _name(one: Given) -> str:
    is_algorithm = one.name.startswith("--speculative-al") and ALGORITHM.startswith(one.name)
    return ALGORITHM if is_algorithm else one.name


def _value(one: Given) -> Any:
    return True if one.name in SWITCHES else scalar(one.text())


def _depth(options: dict[str, Any]) -> int | None:
    """k of a chain of drafts, whose other numbers follow from it; those of a tree stay options."""
    k = take(int, STEPS, options)
    if options.get(TOPK) == 1 and k is not None and options.get(TOKENS) == k + 1:
        del options[TOPK], options[TOKENS]
    return k


def _lookup(config: SpeculationConfig, version: str | None) -> dict[str, Any]:
    config.refuse("SGLang", "draft")
    if not is_older(version, NO_WINDOW) and (config.min_n or config.max_n):
        raise UsageError(
            "SGLang looks up n-grams of every length since 0.5.10: leave out --min-n and --max-n, "
            "or type --engine-version 0.5.9 for an older one"
        )
    numbers = {TOKENS: config.k and config.k + 1, MIN_N: config.min_n, MAX_N: config.max_n}
    return {name: value for name, value in numbers.items() if value is not None}


def _drafted(config: SpeculationConfig, options: Mapping[str, Any]) -> dict[str, Any]:
    """A chain of k drafts; SGLang wants its three numbers all, or none."""
    config.refuse("SGLang", "min_n", "max_n")
    if config.method != "mtp":
        config.require("SGLang", "draft")
    own: dict[str, Any] = {} if config.draft is None else {DRAFT[0].removeprefix("--"): config.draft}
    if config.k is None:
        return own
    return {**own, STEPS: config.k, TOPK: 1, TOKENS: config.k + 1, **options}


def _words(settings: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in settings.items():
        if _takes(f"--{name}") is None:
            raise UsageError(f"{name} is no setting of SGLang's speculation: type --set speculative-…=VALUE")
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words
