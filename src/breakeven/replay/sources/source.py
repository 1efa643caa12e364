"""Source: recorded requests, one at a time, wherever they are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping

from breakeven.errors import UsageError
from breakeven.replay.records import Origin, RecordedRequest


class Source(ABC):
    """Iterate it as often as needed; each time begins anew, with memory for the longest request only.

    `skipped` and `warnings` are of the latest iteration, and whole when it ends.
    """

    def __init__(self, origin: Origin, warnings: tuple[str, ...] = ()) -> None:
        self.origin = origin
        self._lasting = warnings
        self._warnings: dict[str, None] = {}
        self._skipped: Counter[str] = Counter()

    @property
    def skipped(self) -> Mapping[str, int]:
        """Records left out, counted by the reason."""
        return dict(self._skipped)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What must be said beside figures made from these requests, each once."""
        return (*self._lasting, *self._warnings)

    @property
    def acceptance_warnings(self) -> tuple[str, ...]:
        """What must be said beside figures made from acceptance that was recorded elsewhere."""
        return ()

    @property
    def acceptance_columns(self) -> tuple[str, ...]:
        """Columns in which some record holds such acceptance; of the latest iteration, whole when it ends."""
        return ()

    @property
    def expected(self) -> int | None:
        """About how many requests an iteration gives, for a progress bar; None where only reading tells."""
        return None

    def __iter__(self) -> Iterator[RecordedRequest]:
        """Raises UsageError, which names the place, for what cannot be read, or if no request can be used."""
        self._skipped.clear()
        self._warnings.clear()
        return self._some(self._requests())

    @abstractmethod
    def _requests(self) -> Iterator[RecordedRequest]:
        """From the first request on."""

    def _skip(self, reason: str) -> None:
        self._skipped[reason] += 1

    def _warn(self, warning: str) -> None:
        self._warnings[warning] = None

    def _some(self, requests: Iterator[RecordedRequest]) -> Iterator[RecordedRequest]:
        n = 0
        for n, request in enumerate(requests, 1):  # noqa: B007
            yield request
        if n == 0:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in self._skipped.items())
            raise UsageError(
                f"{self.origin.path} holds no request to replay ({reasons or 'it has no records'})"
            )
