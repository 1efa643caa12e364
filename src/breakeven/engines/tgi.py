"""Tgi: the command line and the log of Hugging Face's text-generation-inference.

Settings and variables from `launcher/src/main.rs`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from breakeven.engines import known_names
from breakeven.engines.argv import (
    Given,
    after_program,
    given,
    last_value,
    port_number,
    set_for,
    without,
)
from breakeven.engines.dialect import Address, Dialect
from breakeven.engines.log import LogTable, facts, patterns
from breakeven.engines.names import Names
from breakeven.engines.speculation import SpeculationConfig
from breakeven.errors import UsageError

SPECULATE = "--speculate"
PROGRAMS = ("text-generation-launcher", "tgi-entrypoint.sh")


class Tgi(Dialect):
    """`text-generation-launcher`: n-grams of the prompt, or the heads of a Medusa or MLP model."""

    name: ClassVar[str] = "tgi"
    title: ClassVar[str] = "TGI"
    names: ClassVar[Names] = known_names.TGI
    log: ClassVar[LogTable] = LogTable(
        patterns(
            ("loading weights", r"Starting shard|Waiting for shard to be ready|Loading .*shards"),
            ("capturing graphs", r"Cuda Graphs are enabled for sizes"),
            ("warming up", r"Warming up model|Shard ready in|Starting Webserver|KV-cache blocks:"),
            ("serving", r"text_generation_router\S*: .*Connected$"),
            ("starting", r"Args \{|Starting (?:check and )?download"),
        ),
        facts(
            ("attention_backend", r"Using [Aa]ttention (?:= )?(\w+)"),
            ("cuda_graphs", r"Cuda Graphs are enabled for sizes \[([\d, ]+)\]"),
            ("cuda_graphs", r"Cuda Graphs are disabled", "none"),
            ("kv_cache_tokens", r"Setting max batch total tokens to (\d+)"),
        ),
    )

    def start(self, argv: Sequence[str]) -> int | None:
        return after_program(argv, PROGRAMS)

    def flags(self, config: SpeculationConfig, version: str | None = None) -> tuple[str, ...]:
        config.refuse("TGI", "options")
        self.check_names(config, version)
        if config.method not in ("ngram", "medusa"):
            raise UsageError(f"TGI has no {config.method}: type --method ngram")
        config.require("TGI", "k")
        config.refuse("TGI", "min_n", "max_n", "draft")
        return SPECULATE, str(config.k)

    def speculation(self, argv: Sequence[str]) -> SpeculationConfig | None:
        found = self._found(argv)
        k = found[-1].number() if found else 0
        return SpeculationConfig("ngram", k) if k else None

    def without(self, argv: Sequence[str]) -> tuple[str, ...]:
        return without(argv, self._found(argv))

    def elsewhere(self, argv: Sequence[str], environment: Mapping[str, str]) -> str | None:
        inside = set_for(argv, self.start(argv) or 0, environment)
        if inside.get("SPECULATE", "0") in ("", "0"):
            return None
        return "SPECULATE turns speculation on: give it as --speculate instead, and restart"

    def address(self, argv: Sequence[str], environment: Mapping[str, str]) -> Address:
        start = self.start(argv) or 0
        inside = set_for(argv, start, environment)
        host = last_value(argv, start, "--hostname") or inside.get("HOSTNAME") or "0.0.0.0"  # noqa: S104
        port = last_value(argv, start, "--port", "-p") or inside.get("PORT") or "3000"
        return Address(host, port_number(port, "--port"))

    def warnings(
        self, config: SpeculationConfig, argv: Sequence[str], version: str | None = None
    ) -> tuple[str, ...]:
        if config.method != "ngram":
            return ()
        return ("with a Medusa or MLP speculator model, --speculate drafts by its heads, not by n-grams",)

    def _found(self, argv: Sequence[str]) -> list[Given]:
        return given(argv, self.start(argv) or 0, lambda name: "one" if name == SPECULATE else None)
