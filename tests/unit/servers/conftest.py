"""What is waited for on real machines is not waited for on those in memory."""

import pytest

from breakeven.servers.docker import container, stop


@pytest.fixture(autouse=True)
def _quick_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stop, "LOOK_S", 0.001)
    monkeypatch.setattr(stop, "SLACK_S", 0.0)
    monkeypatch.setattr(container, "STOP_GRACE_S", 0.002)
