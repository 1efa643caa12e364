"""Progress: how far a server is with its start, as somebody who waits is told."""

from __future__ import annotations

from dataclasses import dataclass

from breakeven.engines.phase import Phase
from breakeven.units import duration


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a start is."""

    phase: Phase | None
    elapsed_s: float
    usual_s: float | None
    """What the last start took; None where none was seen."""
    waiting_for: str
    """What the last look found, such as `connection refused`."""
    is_unseen: bool = False
    """It answers, and there is no sign yet that it was restarted."""

    def describe(self) -> str:
        """One line: `loading weights 3/8, 42 s of about 90 s`; what it waits for, if it answers already."""
        phase = self.phase
        name = phase.name if phase else "starting"
        units = f" {phase.done}/{phase.total}" if phase and phase.done is not None and phase.total else ""
        usual = f" of about {duration(self.usual_s)}" if self.usual_s is not None else ""
        waiting = f": {self.waiting_for}" if self.is_unseen else ""
        elapsed = duration(self.elapsed_s) if self.elapsed_s >= 1 else "0 s"
        return f"{name}{units}, {elapsed}{usual}{waiting}"
