"""A second reading of the event-stream rules: whole input at once, line by line, written to be obviously
right.

It follows the steps of the WHATWG HTML standard, section 9.2.6, on bytes. Like the parser under test it
gives out an event that the end of the stream completes.
"""

from __future__ import annotations


def split_lines(text: bytes) -> list[bytes]:
    """Lines that end in LF, CR or CRLF; the last one may lack its end."""
    lines, current, position = [], b"", 0
    while position < len(text):
        byte = text[position : position + 1]
        position += 1
        if byte == b"\r":
            if text[position : position + 1] == b"\n":
                position += 1
            lines.append(current)
            current = b""
        elif byte == b"\n":
            lines.append(current)
            current = b""
        else:
            current += byte
    return [*lines, current] if current else lines


def parse_all(text: bytes) -> list[tuple[bytes, bytes]]:
    """(event name, data) of every event."""
    if text[:3] == b"\xef\xbb\xbf":
        text = text[3:]
    events = []
    name, data = b"", b""
    for line in [*split_lines(text), b""]:
        if line == b"":
            if data != b"":
                events.append((name, data[:-1]))
            name, data = b"", b""
            continue
        if line[:1] == b":":
            continue
        field, value = line, b""
        if b":" in line:
            colon = line.index(b":")
            field, value = line[:colon], line[colon + 1 :]
            if value[:1] == b" ":
                value = value[1:]
        if field == b"data":
            data = data + value + b"\n"
        elif field == b"event":
            name = value
    return events
