"""Every error that breakeven raises on purpose. Each message says what to type or do next.

BreakevenError
├── UsageError              the request was wrong                              exit 2
│   ├── WorkloadError       a prompt file or set that cannot be used
│   ├── RunFormatError      a run folder that is foreign, truncated or too new
│   └── MissingExtra        an optional dependency is not installed
├── EndpointError           the server or the network failed                   exit 3
│   ├── ConnectFailed       nothing answered at that address
│   ├── TimedOut            connect, first token or idle time ran out
│   ├── HttpError           an answer with a status of 400 or above
│   ├── ProtocolError       an answer that is not HTTP, SSE or JSON where due
│   └── StreamError         the stream carried an error, or broke off
├── ServerError             a server that breakeven started failed             exit 3
├── DownloadError           weights could not be fetched or failed their checksum  exit 3
└── StorageError            a disk that is full or not writable                exit 3
"""

from __future__ import annotations


class BreakevenError(Exception):
    """Base of the tree; `exit_code` is what the command line returns for it."""

    exit_code = 3


class UsageError(BreakevenError):
    """The request was wrong; the message says what to type instead."""

    exit_code = 2


class WorkloadError(UsageError):
    """A prompt file or built-in set that cannot be used."""


class RunFormatError(UsageError):
    """A run folder that is foreign, truncated, or written by a newer version."""


class MissingExtra(UsageError):
    """An optional dependency is missing."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} is not installed: type  pip install 'breakeven[{extra}]'")


class EndpointError(BreakevenError):
    """The server or the network failed."""


class ConnectFailed(EndpointError):
    """Nothing answered at the address."""


class TimedOut(EndpointError):
    """`phase` is connect, first_token or idle."""

    def __init__(self, phase: str, seconds: float, option: str) -> None:
        self.phase = phase
        waited_for = {
            "connect": "the connection",
            "first_token": "the first token",
            "idle": "the next token",
        }
        super().__init__(f"no sign of {waited_for[phase]} within {seconds:g} s: raise {option}")


class HttpError(EndpointError):
    """An HTTP status of 400 or above; `status` and the server's own `detail` are kept."""

    def __init__(self, status: int, detail: str, advice: str) -> None:
        self.status = status
        self.detail = detail
        said = (detail or "no message").rstrip(".")
        super().__init__(f"HTTP {status}: {said}{': ' if advice else ''}{advice}")


class ProtocolError(EndpointError):
    """An answer that is not HTTP, SSE or JSON where it was due."""


class StreamError(EndpointError):
    """The stream carried an error object, or broke off before its end."""


class ServerError(BreakevenError):
    """A server that breakeven started did not become ready, crashed, or could not be stopped."""


class DownloadError(BreakevenError):
    """Weights could not be fetched, or what came has the wrong checksum."""


class StorageError(BreakevenError):
    """A disk that is full or not writable; what was saved before it is kept."""
