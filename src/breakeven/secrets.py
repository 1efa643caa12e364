"""Secrets in words, variables, settings and texts, made fit to be printed and kept."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

HIDDEN = "***"
_ENDINGS = "token|keys?|pass|passwd|password|secret|credentials?|apikey|authorization"
"""What the names of secrets end in, as a part of their own."""
_PLACES = ("_file", "_path", "_dir", "_env")
"""What those end in that say where a secret is."""
_LISTS = ("api_key", "api_keys")
"""Flags with any number of values, as vLLM has it."""
_ENDS = re.compile(rf"(?:^|_)(?:{_ENDINGS})$")
_NAME = rf"(?:[\w.-]*[_.-])?(?:{_ENDINGS})"
_VALUE = r"""(?:(?P<open>["'])(?:\\.|(?!(?P=open)).)*(?:(?P=open)|$)|\[[^\]]*(?:\]|$)|[^\s,;&|"'\[\]{}()]+)"""
"""In quotes, in brackets, which a cut may have left open, or a word."""
_ASSIGNED = re.compile(
    r"(?im)(?<![\w.-])(?!(?<=#)[\w-]{0,40}token: \d)"
    rf"""(?P<before>(?P<mark>["']?){_NAME}(?P=mark)\s{{0,9}}[=:]\s{{0,9}}(?:(?:basic|digest|token)\s+)?){_VALUE}"""
)
"""`NAME=VALUE`, `"name": "value"`, `'name': ['value', 'value']`, `Authorization: Basic VALUE`;
not `#new-token: 12`, which SGLang counts."""
_FLAG = re.compile(rf"(?im)(?<![\w.-])(?P<before>--?{_NAME}\s+)(?!-){_VALUE}")
_IN_URL = re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]*://)[^\s/\"']*@")
_BEARER = re.compile(r"(?i)\b(bearer\s+)(?!\*)[\w.~+/=-]+")
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|(?:sk|nvapi|glpat)-[\w-]{20,}|gh[pousr]_\w{30,}|AKIA[A-Z0-9]{16}"
    r"|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
"""Keys of Hugging Face, OpenAI, NVIDIA, GitLab, GitHub and AWS, and JSON web tokens, wherever they stand."""
_SETTING = re.compile(
    r"api.?key|password|secret|credential|authorization|(^|[-_.])(hf|auth|access|bearer).?token", re.I
)
"""In the name of a server's setting."""


def without_secrets(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a server, with the value of every one whose name says that it is a secret hidden."""
    return {name: HIDDEN if _SETTING.search(name) else value for name, value in settings.items()}


def masked_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables, with the values of secrets hidden."""
    return {name: HIDDEN if _is_secret(name) else masked_text(text) for name, text in environment.items()}


def masked_argv(argv: Sequence[str]) -> tuple[str, ...]:
    """A command line, with the value in `--api-key VALUE`, `--api-key=VALUE`, `HF_TOKEN=VALUE` and
    `https://USER:VALUE@HOST` hidden, also within a word that is a script or JSON."""
    words: list[str] = []
    flag = ""
    for word in argv:
        if flag and not word.startswith("--"):
            words.append(HIDDEN)
            flag = flag if _normal(flag) in _LISTS else ""
            continue
        name, equals, _ = word.partition("=")
        flag = word if word.startswith("-") and not equals and _is_secret(word) else ""
        is_hidden = equals and not re.search(r"\s", name) and _is_secret(name)
        words.append(f"{name}={HIDDEN}" if is_hidden else masked_text(word))
    return tuple(words)


def shown_argv(argv: Sequence[str]) -> str:
    """A command line in one line, quoted for a shell, with its secrets hidden."""
    return shlex.join(masked_argv(argv))


def masked_text(text: str) -> str:
    """Any text, such as a line of a log, with what looks like the value of a secret hidden."""
    text = _IN_URL.sub(rf"\1{HIDDEN}@", text)
    text = _BEARER.sub(rf"\1{HIDDEN}", text)
    for pattern in (_ASSIGNED, _FLAG):
        text = pattern.sub(_without_value, text)
    return _SHAPES.sub(HIDDEN, text)


def _without_value(found: re.Match[str]) -> str:
    mark = found["open"] or ""
    return f"{found['before']}{mark}{HIDDEN}{mark}"


def _normal(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")


def _is_secret(name: str) -> bool:
    normal = _normal(name)
    if normal.endswith(_PLACES):
        return False
    return bool(_ENDS.search(normal) or _SETTING.search(name))
