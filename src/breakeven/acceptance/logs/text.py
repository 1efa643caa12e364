"""The bytes of a log, whatever they hold, as blocks of whole lines and as plain text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

from breakeven.secrets import masked_text

BLOCK = 1 << 20
"""Bytes that are looked through at once."""
MAX_LINE = 1 << 16
"""A line's bytes beyond these are passed over."""
MAX_KEPT = 8000
"""Characters of a line that are looked through for secrets, before the rest is cut off."""

# ECMA-48: CSI sequences, then string sequences (OSC, DCS, …) up to BEL or ST, then two-byte escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c|$)"
    r"|\x1b[ -/]*[0-~]"
)
# Unicode TR 9: marks, embeddings, overrides and isolates, which reorder the text around them; line breaks.
_DROPPED = dict.fromkeys(
    (*range(0x20), *range(0x7F, 0xA0), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A))
)
_PLAIN = {**_DROPPED, 0x09: " "}
_SURROGATES = re.compile("[\ud800-\udfff]")
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|(?<!\d)\d\d-\d\d \d\d:\d\d:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{1,6}\.\d\d\.\d{3}\.\d{3}"
)
"""ISO 8601 (docker, Kubernetes, SGLang, TGI), vLLM's, a journal's, llama.cpp's."""
_MESSAGES = ("MESSAGE", "log", "message", "msg")
"""Names of the message in lines of JSON: a journal's, docker's, and what JSON formatters write."""
_LOGGER = re.compile(
    r"[^\"'`?]{0,200}?(?:(?:DEBUG|INFO|WARNING|ERROR|CRITICAL) +\d\d-\d\d \d\d:\d\d:\d\d"
    r"|\[\d{2,4}[-/]\d\d[-/]\d\d(?:\d\d)?[ T:-]\d\d:\d\d:\d\d[^\]]{0,60}\]|\[T(?:ensor)?RT-LLM\]"
    r"|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[\d.,]{0,10}Z? +(?:DEBUG|INFO|WARN|ERROR)"
    r"|\d{1,6}\.\d\d\.\d{3}\.\d{3} [DIWE] )"
)
"""What vLLM, SGLang, TensorRT-LLM, TGI and llama.cpp write before a message; a journal, before that."""
_EXCEPTION = re.compile(r"[^\"'`?:]{0,120}?\b(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): ")
"""The last line of a traceback has no such prefix."""
_OF_LOGGERS = ("INFO", "WARN", "ERROR", "DEBUG", "CRITICAL", "[", " I ", " W ", " E ", " D ")
_OF_EXCEPTIONS = ("Error: ", "Exception: ")
_ACCESS = re.compile(
    r"\"[A-Z-]{3,20} \S{0,9000} HTTP/|log_server_r: |\b(?:otel\.name|http\.target|http\.route)="
)
"""A line of a web server: uvicorn's and nginx's, llama-server's, TGI's."""
_PROMPT = re.compile(r"Received request|prompt: ['\"]|(?:Receive|Finish): obj=")
_OF_OTHERS = (
    *(" HTTP/", "log_server_r: ", "otel.name=", "http.target=", "http.route="),
    *("Received request", "prompt: ", ": obj="),
)
"""Each line that those patterns match holds one of these words, which are found sooner than a pattern."""
_QUOTED = re.compile(r"(?<!\w)'[^']*'?|\"[^\"]*\"?")
_TIMES = ("time", "timestamp", "ts", "asctime", "__REALTIME_TIMESTAMP")


def blocks(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Whole lines, about BLOCK bytes at once. NULs are dropped: a rotated log begins with thousands, and
    UTF-16 has one in every other byte. Of a line without end, what is beyond MAX_LINE is dropped too."""
    held = bytearray()
    for chunk in chunks:
        for start in range(0, len(chunk), BLOCK):
            part = chunk[start : start + BLOCK]
            held += part.replace(b"\0", b"") if b"\0" in part else part
            if len(held) < BLOCK:
                continue
            if cut := held.rfind(b"\n") + 1 or held.rfind(b"\r") + 1:
                yield bytes(held[:cut])
                del held[:cut]
            else:
                del held[MAX_LINE:]
    if held:
        yield bytes(held)


def plain(raw: bytes) -> str:
    """One line as harmless text: no escape sequence, no control character, nothing that reorders text."""
    text = raw[:MAX_LINE].decode("utf-8", "replace")
    if "\x1b" in text or "\x9b" in text:
        text = _ESCAPES.sub("", text)
    return text if text.isprintable() else text.translate(_PLAIN)


def message(raw: bytes) -> tuple[str, str | None]:
    """The text of a line, out of its JSON where it is wrapped in some, and the time that the JSON gives."""
    text = plain(raw)
    if not text.startswith("{"):
        return text, None
    try:
        record = json.loads(raw[:MAX_LINE])
    except (ValueError, RecursionError):
        return text, None
    inner = next((record[name] for name in _MESSAGES if name in record), None)
    time = next((str(record[name]) for name in _TIMES if name in record), None)
    if isinstance(inner, list):
        inner = bytes(one for one in inner if type(one) is int and 0 <= one < 256)
    if isinstance(inner, str):
        inner = _SURROGATES.sub("\ufffd", inner).encode()
    if not isinstance(inner, bytes):
        return text, None
    return plain(inner.strip()), time and kept(plain(time.encode("utf-8", "replace")), 40)


def kept(text: str, length: int) -> str:
    """The beginning of a line, as it may be shown and kept: without the keys that it holds."""
    return masked_text(text[:MAX_KEPT])[:length]


def is_of_others(text: str) -> bool:
    """Whether a line holds what a request said, its address or its prompt: anyone may put anything there."""
    if not _holds(text, _OF_OTHERS):
        return False
    return _PROMPT.search(text) is not None or _ACCESS.search(text) is not None


def is_logged(text: str) -> bool:
    """Whether a line is of the engine's own logger, or ends a traceback."""
    if _holds(text, _OF_LOGGERS) and _LOGGER.match(text):
        return True
    return _holds(text, _OF_EXCEPTIONS) and _EXCEPTION.match(text) is not None


def _holds(text: str, words: tuple[str, ...]) -> bool:
    for word in words:  # noqa: SIM110 (a generator would cost more than most of these looks)
        if word in text:
            return True
    return False


def without_quotes(text: str) -> str:
    """The line with what it quotes blanked, such as a model's name that a request has made up."""
    if "'" not in text and '"' not in text:
        return text
    return _QUOTED.sub(lambda found: " " * len(found[0]), text)


def time_of(prefix: str) -> str | None:
    """The time that stands nearest before a message, which is the engine's own."""
    found = _TIME.findall(prefix[-300:])
    return found[-1] if found else None
