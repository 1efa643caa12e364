"""The llama-server flags that the embedded engine takes, as one table that is read and written alike.

Names, ranges and defaults are those of llama.cpp's common/arg.cpp and common/common.h.
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from breakeven.errors import UsageError

STATEFUL_TYPES = ("ngram-mod", "ngram-cache")
"""Drafters whose tables outlive a request; all slots share them (llama.cpp common/ngram-{mod,cache}.cpp)."""

SPEC_TYPES = ("none", "ngram-simple", "ngram-map-k", "ngram-map-k4v", *STATEFUL_TYPES)
"""Values of --spec-type that need no second model."""

CACHE_TYPES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
FLASH_ATTN = ("auto", "on", "off")

LARGEST = 2**31 - 1
LARGEST_NGRAM = 1024


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag. `target` is the field of LlamaSettings, dotted for a nested one."""

    names: tuple[str, ...]
    """The long name that is written first."""
    target: str
    low: int = 1
    high: int = LARGEST
    choices: tuple[str, ...] = ()
    """Allowed words; empty for a whole number from low to high."""
    listed: bool = False
    """Takes several words, parted by commas."""

    def read(self, word: str) -> int | str | tuple[str, ...]:
        """The value that a word on the command line stands for; UsageError if it stands for none."""
        if self.listed:
            return tuple(name for name in map(self._choice, word.split(",")) if name != "none")
        return self._choice(word) if self.choices else self._number(word)

    def _choice(self, word: str) -> str:
        if word in self.choices:
            return word
        if word.startswith("draft-") and self.listed:
            raise UsageError(f"{self.names[0]} {word} {SECOND_MODEL}")
        near = difflib.get_close_matches(word, self.choices, 1)
        guess = f" (did you mean {near[0]}?)" if near else ""
        raise UsageError(f"{self.names[0]} takes {', '.join(self.choices)}, not {word!r}{guess}")

    def _number(self, word: str) -> int:
        try:
            number = int(word)
        except ValueError:
            raise UsageError(f"{self.names[0]} takes a whole number, not {word!r}") from None
        self.check(number)
        return number

    def check(self, value: Any) -> None:
        """Raise UsageError unless the field's value is one that this flag could have set."""
        if self.choices:
            for word in value if self.listed else (value,):
                self._choice(word)
        elif value is not None and not self.low <= value <= self.high:
            raise UsageError(f"{self.names[0]} takes a number from {self.low} to {self.high}, not {value}")

    def write(self, value: Any) -> list[str]:
        """The words that `read` turns into the value."""
        return [self.names[0], (",".join(value) or "none") if self.listed else str(value)]


def _lookup_flags() -> Iterator[Flag]:
    for name in ("simple", "map-k", "map-k4v"):
        for part in ("size-n", "size-m", "min-hits"):
            target = f"ngram_{name}.{part}".replace("-", "_")
            yield Flag((f"--spec-ngram-{name}-{part}",), target, high=LARGEST_NGRAM)


FLAGS: tuple[Flag, ...] = (
    Flag(("--threads", "-t"), "threads"),
    Flag(("--threads-batch", "-tb"), "threads_batch"),
    Flag(("--ctx-size", "-c"), "ctx_size", low=0),
    Flag(("--parallel", "-np"), "parallel"),
    Flag(("--batch-size", "-b"), "batch_size"),
    Flag(("--ubatch-size", "-ub"), "ubatch_size"),
    Flag(("--gpu-layers", "--n-gpu-layers", "-ngl"), "gpu_layers", low=0),
    Flag(("--flash-attn", "-fa"), "flash_attn", choices=FLASH_ATTN),
    Flag(("--cache-type-k", "-ctk"), "cache_type_k", choices=CACHE_TYPES),
    Flag(("--cache-type-v", "-ctv"), "cache_type_v", choices=CACHE_TYPES),
    Flag(("--cache-ram", "-cram"), "cache_ram_mib", low=-1),
    Flag(("--spec-type",), "spec_types", choices=SPEC_TYPES, listed=True),
    *_lookup_flags(),
    *(Flag((f"--spec-ngram-mod-n-{part}",), f"ngram_mod.n_{part}", high=LARGEST_NGRAM)
      for part in ("match", "min", "max")),
)  # fmt: skip

SWITCHES = {
    "--cache-prompt": ("cache_prompt", True),
    "--no-cache-prompt": ("cache_prompt", False),
    "--kv-unified": ("kv_unified", True),
    "-kvu": ("kv_unified", True),
    "--no-kv-unified": ("kv_unified", False),
    "-no-kvu": ("kv_unified", False),
}
WRITTEN = {meaning: name for name, meaning in reversed(SWITCHES.items())}
"""The first name of each switch, by what it sets."""

BY_NAME = {name: flag for flag in FLAGS for name in flag.names}

SECOND_MODEL = (
    "needs a second model, which the embedded engine does not load: "
    "start llama-server yourself and type  --candidate-url http://127.0.0.1:8080"
)

OWNED = {
    **dict.fromkeys(("--model", "-m", "--hf-repo", "-hf"), "is set by breakeven: type  --model"),
    **dict.fromkeys(("--host", "--port", "--metrics", "--alias", "-a"), "is set by breakeven: leave it out"),
    **dict.fromkeys(("--temp", "--temperature"), "belongs to the requests: type  --temperature"),
    **dict.fromkeys(("--spec-draft-model", "--model-draft", "-md", "--spec-draft-n-max"), SECOND_MODEL),
    "--spec-draft-n-min": SECOND_MODEL,
    "--draft": "is an older llama-server's: type  --spec-ngram-simple-size-m",
    "--draft-max": "is an older llama-server's: type  --spec-ngram-simple-size-m",
    "--spec-ngram-size-n": "is an older llama-server's: type  --spec-ngram-simple-size-n",
    "--spec-ngram-size-m": "is an older llama-server's: type  --spec-ngram-simple-size-m",
    "--spec-ngram-min-hits": "is an older llama-server's: type  --spec-ngram-simple-min-hits",
}
"""Real flags that are refused, and what to type instead."""


def parse(text: str) -> dict[str, Any]:
    """Values by target, for the flags that the text names; UsageError for one that cannot be taken."""
    words = iter(_split(text))
    values: dict[str, Any] = {}
    for word in words:
        if word in SWITCHES:
            target, value = SWITCHES[word]
            values[target] = value
        elif word in BY_NAME:
            values[BY_NAME[word].target] = BY_NAME[word].read(_value(word, words))
        else:
            raise UsageError(_refusal(word))
    return values


def unparse(values: dict[str, Any]) -> list[str]:
    """Words that `parse` turns into these values by target; None is left out, which is its default."""
    words: list[str] = []
    for flag in FLAGS:
        if flag.target in values and values[flag.target] is not None:
            words += flag.write(values[flag.target])
    words += [name for (target, on), name in WRITTEN.items() if values.get(target) is on]
    return words


def check(value_of: Callable[[str], Any]) -> None:
    """Raise UsageError for the first target whose value no flag could have set."""
    for flag in FLAGS:
        flag.check(value_of(flag.target))


TARGETS = (*(flag.target for flag in FLAGS), *dict(SWITCHES.values()))


def _split(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise UsageError(f"cannot read {text!r} as flags: {error}") from None


def _value(name: str, words: Iterator[str]) -> str:
    word = next(words, None)
    if word is None or word in BY_NAME or word in SWITCHES or word.startswith("--"):
        raise UsageError(f"{name} needs a value: type  {name} {_example(BY_NAME[name])}")
    return word


def _example(flag: Flag) -> str:
    return flag.choices[-1] if flag.choices else str(max(flag.low, 3))


def _refusal(word: str) -> str:
    name, _, value = word.partition("=")
    if value and name in BY_NAME:
        return f"llama-server parts a flag from its value by a space: type  {name} {value}"
    if word in OWNED:
        return f"{word} {OWNED[word]}"
    if not word.startswith("-"):
        return f"{word!r} is not a flag: flags look like  --spec-type ngram-simple"
    near = difflib.get_close_matches(name, [*BY_NAME, *SWITCHES], 1, 0.5)
    known = ", ".join([*(flag.names[0] for flag in FLAGS), *SWITCHES])
    return f"{word} is not a flag of the embedded engine: " + (
        f"did you mean {near[0]}?" if near else f"it takes {known}"
    )
