"""LlamacppServer: the command line and the log of llama.cpp's llama-server.

Settings from `tools/server/README.md` and `common/arg.cpp`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from breakeven.engines import known_names
from breakeven.engines.argv import (
    Given,
    Takes,
    after_program,
    given,
    is_older,
    last_value,
    port_number,
    scalar,
    set_for,
    without,
)
from breakeven.engines.dialect import Address, Dialect
from breakeven.engines.llamacpp_flags import SPEC_TYPES, STATEFUL_TYPES
from breakeven.engines.llamacpp_options import ALIASES, OTHERS, PRESETS, SWITCHES, VARIABLES
from breakeven.engines.log import LogTable, facts, patterns
from breakeven.engines.names import Named, Names
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

OWN_SIZES = (8942,)
"""From this build on each drafter has sizes of its own: ggml-org/llama.cpp pull request 22397, merged by 29
April 2026; build 8941 is of 27 April."""

METHODS = {
    "ngram": "ngram-simple",
    "draft-model": "draft-simple",
    "eagle3": "draft-eagle3",
    "mtp": "draft-mtp",
}
"""Where llama.cpp calls a method otherwise."""
LOOKUPS = ("ngram-simple", "ngram-map-k", "ngram-map-k4v")
MOD = "ngram-mod"
DRAFT_K = "spec-draft-n-max"

_OLD_SIZES = {"size-n": "spec-ngram-size-n", "size-m": "spec-ngram-size-m", "min-hits": "spec-ngram-min-hits"}
_OLD_NAMES = {
    "spec-draft-model": "model-draft",
    "spec-draft-n-max": "draft-max",
    "spec-draft-n-min": "draft-min",
}


class LlamacppServer(Dialect):
    """`llama-server`; it parts an option from its value by a space only."""

    name: ClassVar[str] = "llama.cpp"
    title: ClassVar[str] = "llama.cpp"
    names: ClassVar[Names] = known_names.LLAMACPP
    log: ClassVar[LogTable] = LogTable(
        patterns(
            ("warming up", r"warming up the model with an empty run|load_model: initializing"),
            ("loading weights", r"loading model|load_tensors:|llama_model_loader: loaded meta data"),
            ("serving", r"(?:init: |server is )listening on|all slots are idle"),
            ("starting", r"build(?:_info)?: |HTTP server is listening"),
        ),
        facts(
            ("version", r"build_info: (b[1-9]\d*-\w+)"),
            ("version", r"\bbuild: ([1-9]\d* \(\w+\))"),
            ("attention_backend", r"Flash Attention was auto, set to (?:enabled)", "flash attention"),
            ("attention_backend", r"Flash Attention was auto, set to disabled", "no flash attention"),
            ("attention_backend", r"flash_attn\s+= (?:1|enabled|on)\b", "flash attention"),
            ("attention_backend", r"flash_attn\s+= (?:0|disabled|off)\b", "no flash attention"),
            ("kv_cache_tokens", r"kv_cache\S*: +size = .*\( *(\d+) cells"),
        ),
    )  # fmt: skip

    def start(self, argv: Sequence[str]) -> int | None:
        server = after_program(argv, ("llama-server",))
        return server if server is not None else after_program(argv, ("llama",), ("serve", "server"))

    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        self.check_names(config, version)
        kind = METHODS.get(config.method, config.method)
        if not all(one in SPEC_TYPES or one.startswith("draft-") for one in kind.split(",")):
            raise UsageError(
                f"llama.cpp has no {config.method}: type --method {', '.join([*METHODS, *SPEC_TYPES[1:]])}"
            )
        settings = {**_sizes(config, kind), **_named(config.options)}
        if is_older(version, OWN_SIZES):
            return _old_flags(config, kind, settings)
        return ("--spec-type", kind, *_words(settings))

    def named(self, config: SpeculationConfig) -> Named:
        """Several drafters may be given, parted by commas."""
        settings = tuple(name.replace("_", "-") for name in config.options)
        return Named(tuple(config.method.split(",")), settings)

    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        settings = {one.name.removeprefix("--"): _value(one) for one in self._found(argv)}
        kind = str(settings.pop("spec-type", ""))
        draft = settings.pop("spec-draft-model", None)
        if not kind and (draft is not None or "spec-draft-hf" in settings):
            kind = "draft-simple"
        if not kind and settings.get("spec-default"):
            kind = "default"
        if kind in ("", "none"):
            return None
        method = {own: ours for ours, own in METHODS.items() if ours != "ngram"}.get(kind, kind)
        k, n = _read_sizes(kind, settings)
        return SpeculationConfig(method, k, n, n, None if draft is None else str(draft), settings)

    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        return without(argv, self._found(argv))

    def elsewhere(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        inside = set_for(argv, self.start(argv) or 0, environment)
        preset = next((word for word in argv if word in PRESETS), None)
        if preset is not None:
            return f"{preset} loads a draft model too: name the model itself instead, and restart"
        name = next((name for name in VARIABLES if inside.get(name, "none") not in ("", "none")), None)
        return name and f"{name} turns speculation on: give it as a flag instead, and restart"

    def learns(self, config: SpeculationConfig) -> bool:
        return any(kind in STATEFUL_TYPES for kind in config.method.split(","))

    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        """8080 is to become 9931 in a future build (ggml-org/llama.cpp pull request 26508)."""
        start = self.start(argv) or 0
        inside = set_for(argv, start, environment)
        host = last_value(argv, start, "--host", joined=False) or inside.get("LLAMA_ARG_HOST")
        port = last_value(argv, start, "--port", joined=False) or inside.get("LLAMA_ARG_PORT")
        return Address(host or "127.0.0.1", port_number(port or "8080", "--port"))

    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        kind = METHODS.get(config.method, config.method)
        found = [
            f"{one} learns across requests: a repeated prompt is not a repeat"
            for one in kind.split(",")
            if one in STATEFUL_TYPES
        ]
        if kind in LOOKUPS:
            found += _size_warnings(kind, {**_sizes(config, kind), **_named(config.options)})
        return (*self.doubts(config, version), *found)

    def _found(self, argv: Sequence[str]) -> list[Given]:
        found = given(argv, self.start(argv) or 0, _takes, joined=False)
        return [Given(ALIASES.get(one.name, one.name), one.value, one.start, one.stop) for one in found]


def _takes(name: str) -> Takes | None:
    name = ALIASES.get(name, name)
    if name in SWITCHES:
        return "none"
    return "one" if name in OTHERS or name.startswith("--spec-") else None


def _value(one: Given) -> Any:
    if one.name in SWITCHES:
        return True
    return one.text() if one.name in ("--spec-type", "--spec-draft-model") else scalar(one.text())


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options by the names that are written."""
    named = {f"--{name}".replace("_", "-"): value for name, value in options.items()}
    for name in named:
        if _takes(name) is None:
            raise UsageError(f"{name[2:]} is no setting of llama.cpp's speculation: type --set spec-…=VALUE")
    return {ALIASES.get(name, name).removeprefix("--"): value for name, value in named.items()}


def _sizes(config: SpeculationConfig, kind: str) -> dict[str, Any]:
    """k, n and draft by llama.cpp's names. Raises UsageError for those that this drafter has not."""
    if kind in (*LOOKUPS, MOD):
        config.refuse("llama.cpp", "draft")
        n, k = ("n-match", "n-max") if kind == MOD else ("size-n", "size-m")
        sizes: dict[str, Any] = {f"spec-{kind}-{n}": _one_n(config), f"spec-{kind}-{k}": config.k}
    else:
        config.refuse("llama.cpp", "min_n", "max_n")
        if kind.startswith("ngram"):
            config.refuse("llama.cpp", "draft", *([] if "," in kind else ["k"]))
        if kind in ("draft-simple", "draft-eagle3") and "spec-draft-hf" not in _named(config.options):
            config.require("llama.cpp", "draft")
        sizes = {"spec-draft-model": config.draft, DRAFT_K: config.k}
    return {name: value for name, value in sizes.items() if value is not None}


def _one_n(config: SpeculationConfig) -> int | None:
    n = config.min_n or config.max_n
    if n is not None and (config.max_n or n) != n:
        raise UsageError(
            f"llama.cpp looks up n-grams of one length: type --min-n {config.max_n} --max-n {config.max_n}"
        )
    return n


def _read_sizes(kind: str, settings: dict[str, Any]) -> tuple[int | None, int | None]:
    """k and n, taken out of the settings, in the names of any build."""
    ks: tuple[str, ...]
    ns: tuple[str, ...]
    if kind == MOD:
        ks, ns = ("spec-ngram-mod-n-max", "draft-max"), ("spec-ngram-mod-n-match", "spec-ngram-size-n")
    elif kind in LOOKUPS:
        ks, ns = (f"spec-{kind}-size-m", "spec-ngram-size-m"), (f"spec-{kind}-size-n", "spec-ngram-size-n")
    else:
        ks, ns = (DRAFT_K, "draft-max"), ()
    return _take(ks, settings), _take(ns, settings)


def _take(names: Sequence[str], settings: dict[str, Any]) -> int | None:
    name = next((name for name in names if isinstance(settings.get(name), int) and settings[name] > 0), None)
    return None if name is None else int(settings.pop(name))


def _words(settings: Mapping[str, Any]) -> list[str]:
    words: list[str] = []
    for name, value in settings.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


def _old_flags(config: SpeculationConfig, kind: str, settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Builds up to 8941: one set of sizes for all lookups, and a draft model is on by being named."""
    if "," in kind or (kind.startswith("draft-") and kind != "draft-simple"):
        raise UsageError(f"llama.cpp has {config.method} only in newer builds: update it")
    old: dict[str, Any] = {}
    for name, value in settings.items():
        part = name.removeprefix(f"spec-{kind}-")
        if kind == MOD and part.startswith("n-"):
            old[{"n-match": "spec-ngram-size-n", "n-max": "draft-max", "n-min": "draft-min"}[part]] = value
        else:
            old[_OLD_SIZES.get(part, _OLD_NAMES.get(name, name))] = value
    turned_on = () if kind == "draft-simple" else ("--spec-type", kind)
    return (*turned_on, *_words(old))


def _size_warnings(kind: str, settings: Mapping[str, Any]) -> list[str]:
    """ngram-simple drops a draft shorter than n (common/ngram-map.cpp)."""
    n, k = settings.get(f"spec-{kind}-size-n"), settings.get(f"spec-{kind}-size-m")
    found = []
    if n is None or k is None:
        found.append(
            f"without --min-n and --k, {kind} looks up 12 tokens and drafts 48: such matches are rare, and "
            "such drafts long"
        )
    if kind == "ngram-simple" and isinstance(k, int) and k < (n if isinstance(n, int) else 12):
        found.append(f"{kind} drops drafts shorter than n, so that k {k} drafts nothing: type a larger --k")
    return found
