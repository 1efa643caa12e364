"""Natural text and code as token ids: the language reference and modules of Python's own library."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pydoc_data.topics import topics

MODULES = (
    *("argparse", "ast", "calendar", "cmd", "copy", "csv", "difflib", "dis", "doctest", "fractions"),
    *("heapq", "inspect", "pprint", "queue", "random", "shlex", "statistics", "string", "tarfile", "uuid"),
)
LONG = 9000
"""Characters: topics shorter than this are left out."""


def requests_of(kind: str, files: int, tokens: int) -> list[tuple[list[int], list[int]]]:
    """The first tokens of some texts, a token for each word, space or sign; 40 of each are the prompt."""
    known: dict[str, int] = {}
    requests = []
    for text, _ in zip(_texts(kind), range(files), strict=False):
        words = re.findall(r"\w+|\s+|[^\w\s]", text)[:tokens]
        ids = [known.setdefault(word, len(known)) for word in words]
        requests.append((ids[:40], ids[40:]))
    return requests


def _texts(kind: str) -> Iterator[str]:
    if kind == "code":
        return (inspect.getsource(import_module(name)) for name in MODULES)
    return (topics[name] for name in sorted(topics) if len(topics[name]) > LONG)
