"""As much of PromQL as the examples use: its tokens, its brackets, and the metrics that it names."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*")
      | (?P<range>\[(?:[\d]+[smhdw]|\$__rate_interval)\])
      | (?P<number>\d+(?:\.\d+)?)
      | (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
      | (?P<open>[({])
      | (?P<close>[)}])
      | (?P<operator>=~|!=|!~|==|<=|>=|[=<>+\-*/,])
    )""",
    re.VERBOSE,
)
_WORDS = {"by", "on", "group_left", "without", "ignoring", "and", "or", "unless", "bool"}
_FUNCTIONS = {"sum", "avg", "rate", "max_over_time", "changes"}
_CLOSES = {")": "(", "}": "{"}


def metrics(expression: str) -> set[str]:
    """The metrics that it names. Raises ValueError for what is no PromQL, as far as this knows it."""
    named: set[str] = set()
    opened: list[str] = []
    tokens = list(_tokens(expression))
    for place, (kind, text) in enumerate(tokens):
        following = tokens[place + 1][1] if place + 1 < len(tokens) else ""
        if kind == "open":
            opened.append("by" if text == "(" and place and tokens[place - 1][1] in _WORDS else text)
        elif kind == "close":
            if not opened or opened.pop() not in (_CLOSES[text], "by"):
                raise ValueError(f"{expression}: {text} closes nothing")
        elif kind == "name" and not {"by", "{"} & set(opened) and text not in _WORDS:
            if text in _FUNCTIONS:
                if following not in ("(", "by"):
                    raise ValueError(f"{expression}: {text} is a function")
            else:
                named.add(text)
    if opened or not named:
        raise ValueError(f"{expression}: {opened} is not closed, or nothing is named")
    return named


def _tokens(expression: str) -> list[tuple[str, str]]:
    found, place = [], 0
    while place < len(expression):
        match = _TOKEN.match(expression, place)
        if match is None or match.lastgroup is None:
            raise ValueError(f"{expression}: what is {expression[place : place + 20]!r}?")
        found.append((match.lastgroup, match[match.lastgroup]))
        place = match.end()
    return found
