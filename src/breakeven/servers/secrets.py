"""Words and variables that hold secrets, made fit to be printed and kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from breakeven.trace.provenance import without_secrets

HIDDEN = "***"


def masked_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the values of secrets hidden."""
    return {name: HIDDEN if _is_secret(name) else value for name, value in environment.items()}


def masked_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line, with the value in `--api-key VALUE`, `--api-key=VALUE` and `HF_TOKEN=VALUE` hidden."""
    words: list[str] = []
    for word in argv:
        follows = words and words[-1].startswith("-") and "=" not in words[-1] and _is_secret(words[-1])
        name, equals, _ = word.partition("=")
        if follows and not word.startswith("--"):
            words.append(HIDDEN)
        elif equals and " " not in name and _is_secret(name):
            words.append(f"{name}={HIDDEN}")
        else:
            words.append(word)
    return tuple(words)


def _is_secret(name: str) -> bool:
    return without_secrets({name: ""})[name] == HIDDEN or name.upper().endswith(("_TOKEN", "_KEY", "_PASS"))
