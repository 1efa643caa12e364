"""Questions and answers out of the standard library's documentation strings: text that every Python has."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

MODULES: Mapping[str, tuple[str, ...]] = {
    "drawing": ("turtle", "colorsys"),
    "numbers": (
        *("_pydecimal", "fractions", "statistics", "random", "datetime", "_pydatetime", "calendar"),
        *("ipaddress", "heapq", "bisect", "_strptime", "numbers"),
    ),
    "files": (
        *("pathlib", "shutil", "tarfile", "zipfile", "tempfile", "os", "posixpath", "mailbox", "gzip"),
        *("lzma", "csv", "configparser", "filecmp", "fileinput", "glob", "_pyio", "pickletools", "zipimport"),
    ),
    "web": (
        *("http.client", "http.cookiejar", "http.server", "urllib.request", "urllib.parse", "email.message"),
        *("email.header", "email.utils", "email.charset", "ftplib", "imaplib", "smtplib", "nntplib"),
        *("poplib", "socketserver", "xmlrpc.client", "ssl", "html.parser", "selectors", "socket"),
    ),
    "code": (
        *("inspect", "ast", "dis", "tokenize", "unittest.case", "unittest.mock", "doctest", "bdb", "typing"),
        *("functools", "collections", "contextlib", "argparse", "logging", "logging.handlers", "optparse"),
        *("asyncio.events", "asyncio.streams", "asyncio.base_events", "threading", "queue", "sched"),
        *("weakref", "subprocess", "textwrap", "string", "difflib", "pprint", "copy", "types", "enum"),
        *("traceback", "multiprocessing.pool", "concurrent.futures._base", "importlib._bootstrap", "trace"),
    ),
}
"""By category. What a Python lacks is left out."""
LEAST, MOST = 24, 280
"""Characters of an answer; longer ones end with a line before that."""


@dataclass(frozen=True, slots=True)
class Chat:
    """One question with its answer."""

    id: str
    category: str
    prompt: str
    reply: str


def chats() -> list[Chat]:
    """Categories by turns, so that any first n have something of all; no prompt twice."""
    columns = {
        category: [chat for module in modules for chat in _of_module(category, module)]
        for category, modules in MODULES.items()
    }
    ordered = [
        column[row]
        for row in range(max(map(len, columns.values())))
        for column in columns.values()
        if row < len(column)
    ]
    return list({chat.prompt: chat for chat in reversed(ordered)}.values())[::-1]


def _of_module(category: str, module: str) -> Iterator[Chat]:
    path = _source(module)
    if path is None:
        return
    for name, node in _named(ast.parse(path.read_bytes()), module):
        reply = _answer(ast.get_docstring(node) or "")
        if len(reply) >= LEAST:
            arguments = f"({ast.unparse(node.args)})" if isinstance(node, ast.FunctionDef) else ""
            yield Chat(name, category, f"What is {name}{arguments}?", reply)


def _source(module: str) -> Path | None:
    stem = Path(os.__file__).parent.joinpath(*module.split("."))
    return next((path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()), None)


def _named(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef | ast.ClassDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            name = f"{prefix}.{child.name}"
            yield name, child
            yield from _named(child, name)


def _answer(text: str) -> str:
    """Its first lines."""
    text = re.sub(r"[^\x20-\x7e\n]", "?", re.sub(r"[ \t]+", " ", text)).strip()
    if len(text) <= MOST:
        return text
    return text[:MOST].rpartition("\n")[0].strip()
