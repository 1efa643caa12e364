"""What the data must know of the target: its vocabulary, its special tokens, and how it spells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from breakeven.eagle.stage import checksum
from breakeven.errors import MissingExtra, UsageError

CONFIG, GENERATION, TOKENIZER, TOKENIZER_CONFIG = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
READ = (
    CONFIG,
    GENERATION,
    TOKENIZER,
    TOKENIZER_CONFIG,
    "special_tokens_map.json",
    "chat_template.jinja",
    "tokenizer.model",
    "tiktoken.model",
)
"""Files of the target that the data depend on, where they exist."""
OF_TARGET = "target/"
"""Begins their names among the inputs of a stage."""
MOST_TOKENS = 1 << 24
"""Of a vocabulary; real ones have a fiftieth."""
Decode = Callable[[Sequence[int]], str]


@dataclass(frozen=True, slots=True)
class TargetFolder:
    """A folder in the Hugging Face format, without its weights."""

    path: Path
    vocabulary: int
    """Rows of its output layer: token ids are below it."""
    ends: frozenset[int]
    """Tokens that end a reply."""
    special: frozenset[int]
    """These and all others that are no text."""

    def inputs(self) -> dict[str, str]:
        """SHA-256 of every file that the data depend on, by name."""
        there = (name for name in READ if (self.path / name).is_file())
        return {f"{OF_TARGET}{name}": checksum(self.path / name) for name in there}

    def decoder(self) -> Decode | None:
        """Ids → text without special tokens; None where the folder has no tokenizer.json.

        Raises MissingExtra, or UsageError for a file that is no tokenizer.
        """
        file = self.path / TOKENIZER
        if not file.is_file():
            return None
        try:
            from tokenizers import Tokenizer
        except ImportError as error:
            raise MissingExtra("tokenizers", "eagle") from error
        try:
            tokenizer = Tokenizer.from_file(str(file))
        except Exception as error:  # the library raises no narrower class
            raise UsageError(
                f"{file} is no tokenizer ({error}): restore it from the model's source"
            ) from error
        decode: Decode = tokenizer.decode
        return decode


def open_target(path: Path) -> TargetFolder:
    """Raises UsageError for a folder that is no model, or that does not say how large its vocabulary is."""
    if not (path / CONFIG).is_file():
        raise UsageError(
            f"{path} is no model's folder (it has no {CONFIG}): name one in the Hugging Face format as  "
            "model  under [target] of the recipe"
        )
    config = _json(path / CONFIG)
    text = config.get("text_config")
    inner = text if isinstance(text, dict) else {}
    size = inner.get("vocab_size", config.get("vocab_size"))
    if type(size) is not int or not 1 <= size <= MOST_TOKENS:
        raise UsageError(
            f"{path / CONFIG} does not say its vocab_size: name a language model under [target] of the recipe"
        )
    said = (config, inner, _json(path / GENERATION))
    special = dict(_special(path))
    last = _text(_json(path / TOKENIZER_CONFIG).get("eos_token"))
    ends = {one for part in said for one in _ids(part.get("eos_token_id"))}
    ends |= {one for one, name in special.items() if last is not None and name == last}
    begins = {one for part in said for one in _ids(part.get("bos_token_id"))}
    return TargetFolder(path, size, frozenset(ends), frozenset(ends | begins | special.keys()))


def places(inputs: Iterable[str], folder: Path) -> dict[str, Path]:
    """Of the names of a stage's inputs those of the target's files, with where `folder` has each."""
    known = frozenset(inputs)
    named = {f"{OF_TARGET}{name}": folder / name for name in READ}
    return {name: path for name, path in named.items() if name in known}


def _special(path: Path) -> Iterator[tuple[int, str | None]]:
    """Special tokens that the tokenizer's files name: id and text."""
    added = _json(path / TOKENIZER).get("added_tokens")
    by_id = _json(path / TOKENIZER_CONFIG).get("added_tokens_decoder")
    found = [
        (one.get("id"), one) for one in (added if isinstance(added, list) else ()) if isinstance(one, dict)
    ]
    for name, one in by_id.items() if isinstance(by_id, dict) else ():
        if isinstance(one, dict) and name.isdecimal():
            found.append((int(name), one))
    for token, one in found:
        if one.get("special") is True:
            yield from ((known, _text(one)) for known in _ids(token))


def _text(token: Any) -> str | None:
    """Of a token, which may be its text alone."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _ids(said: Any) -> Iterator[int]:
    """One id, a list of them, or none."""
    for one in said if isinstance(said, list) else (said,):
        if type(one) is int and one >= 0:
            yield one


def _json(path: Path) -> Mapping[str, Any]:
    """Empty for a file that does not exist. Raises UsageError for one that is no JSON object."""
    try:
        said = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} is damaged ({error}): restore it from the model's source") from error
    if not isinstance(said, dict):
        raise UsageError(f"{path} is damaged (no object): restore it from the model's source")
    return said
