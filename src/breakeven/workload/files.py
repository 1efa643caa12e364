"""Prompts from a built-in set or from a file, whatever of the known formats it is in."""

from __future__ import annotations

import difflib
from pathlib import Path

from breakeven.errors import WorkloadError
from breakeven.workload.builtin import load_set, set_names
from breakeven.workload.formats import Api, parse
from breakeven.workload.prompts import Workload


def load_prompts(spec: str | Path, api: Api = "chat") -> Workload:
    """The prompts that `spec` names: a built-in set, a file, or standard input as `-`.

    The format is found from the content (see formats.py); a `.txt` file is read as one prompt per line
    unless its first line is a JSON object. A built-in name wins over a file of the same name: `./copy`
    is the file. With `api="completions"` a prompt is sent as raw text, without a chat template.

    Raises WorkloadError with the file, the line and what to change.
    """
    if isinstance(spec, str) and spec in set_names():
        return load_set(spec, api)
    path = Path("/dev/stdin" if spec == "-" else spec)
    parsed = parse(_decode(_read(path), path), str(path), api, plain=path.suffix.lower() in (".txt", ".text"))
    return Workload(path.stem, parsed.prompts, parsed.warnings)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise WorkloadError(_not_found(path)) from None
    except IsADirectoryError:
        raise WorkloadError(f"{path} is a folder: name a file in it{_example_in(path)}") from None
    except OSError as error:
        raise WorkloadError(f"cannot read {path}: {error.strerror}") from error


def _decode(data: bytes, path: Path) -> str:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise WorkloadError(f"{path} is UTF-16: save it as UTF-8, with  iconv -f UTF-16 -t UTF-8")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise WorkloadError(
            f"{path}, line {line}: not UTF-8 (byte 0x{data[error.start]:02x}): save the file as UTF-8, "
            f"for example with  iconv -f LATIN1 -t UTF-8"
        ) from error


def _not_found(path: Path) -> str:
    near = difflib.get_close_matches(path.name, [*set_names(), *_siblings(path.parent)], 3)
    hint = f" Near: {', '.join(near)}." if near else ""
    return f"no file {path} and no built-in set of that name.{hint} Built-in sets: {', '.join(set_names())}"


def _siblings(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    except OSError:
        return []


def _example_in(folder: Path) -> str:
    names = [name for name in _siblings(folder) if name.endswith((".jsonl", ".json", ".txt"))]
    return f", such as {folder / names[0]}" if names else ""
