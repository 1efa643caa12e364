"""Bytes → server-sent events, with no input or output of its own.

Semantics: WHATWG HTML, "Server-sent events", section "Interpreting an event stream". Work is done on bytes,
so a character that is split between two reads needs no care. One deviation, in `close`: an event that the
end of the stream completes is given out, because servers exist that end with `data: [DONE]` and no blank
line.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from breakeven.errors import ProtocolError

MAX_EVENT_BYTES = 64 * 1024 * 1024
"""Longest line, and longest event, that is kept: far above any reply, far below a machine's memory."""
_KEPT_STRAY_BYTES = 4096
_BOM = b"\xef\xbb\xbf"


class NamedEvent(NamedTuple):
    """An event with an `event:` field, such as `event: error`."""

    name: bytes
    data: bytes


Item = bytes | NamedEvent
"""The data of an event without a name, or an event with one."""


class SseParser:
    """Feed it reads, take complete events. Its memory is bounded by MAX_EVENT_BYTES."""

    __slots__ = (
        "_after_cr",
        "_at_start",
        "_data",
        "_data_bytes",
        "_name",
        "_partial",
        "_partial_bytes",
        "stray",
    )

    def __init__(self) -> None:
        self._at_start = True
        self._after_cr = False
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0
        self._name = b""
        self.stray = b""
        """The last line that was no field, cut short: an error that a server wrote without `data:`."""

    def feed(self, read: bytes) -> Sequence[Item]:
        """Events that `read` completes, in order. Raises ProtocolError on an endless line or event."""
        if (
            not self._partial
            and not self._data
            and read[:6] == b"data: "
            and read[-2:] == b"\n\n"
            and not self._name
            and b"\r" not in read
            and len(read) <= MAX_EVENT_BYTES
        ):
            events = read[6:-2].split(b"\n\ndata: ")
            if read.count(b"\n") == 2 * len(events):
                self._at_start = self._after_cr = False
                return events
        return self._feed_lines(read)

    def close(self) -> list[Item]:
        """The event that the end of the stream completes, if any."""
        events: list[Item] = []
        if self._partial:
            self._line(self._take_partial(b""), events)
        self._dispatch(events)
        return events

    def _feed_lines(self, read: bytes) -> list[Item]:
        if self._after_cr and read:
            self._after_cr = False
            read = read[1:] if read[:1] == b"\n" else read
        if b"\n" not in read and b"\r" not in read:
            self._keep_partial(read)
            return []
        text = self._take_partial(read) if self._partial else read
        if b"\r" in text:
            self._after_cr = text[-1:] == b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = text.split(b"\n")
        events: list[Item] = []
        for line in lines:
            if line:
                self._line(line, events)
            else:
                self._dispatch(events)
        self._keep_partial(rest)
        return events

    def _keep_partial(self, piece: bytes) -> None:
        if piece:
            self._partial.append(piece)
            self._partial_bytes += len(piece)
            _check_size(self._partial_bytes, "line")

    def _take_partial(self, read: bytes) -> bytes:
        self._partial.append(read)
        text = b"".join(self._partial)
        self._partial = []
        self._partial_bytes = 0
        return text

    def _line(self, line: bytes, events: list[Item]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
            if not line:
                self._dispatch(events)
                return
        if line[:6] == b"data: ":
            self._add_data(line[6:])
        elif line[:1] != b":":
            self._field(line)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"data":
            self._add_data(value)
        elif name == b"event":
            self._name = value
        elif name not in (b"id", b"retry"):
            self.stray = line[:_KEPT_STRAY_BYTES]

    def _add_data(self, value: bytes) -> None:
        self._data.append(value)
        self._data_bytes += len(value) + 1
        _check_size(self._data_bytes, "event")

    def _dispatch(self, events: list[Item]) -> None:
        self._at_start = False
        if self._data:
            data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
            events.append(NamedEvent(self._name, data) if self._name else data)
            self._data = []
            self._data_bytes = 0
        self._name = b""


def _check_size(n_bytes: int, what: str) -> None:
    if n_bytes > MAX_EVENT_BYTES:
        raise ProtocolError(
            f"the server sent one {what} of more than {MAX_EVENT_BYTES // 2**20} MiB: this is no event stream"
        )
