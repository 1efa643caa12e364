"""When a server that fails is taken for gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from breakeven.client.failures import GONE_AFTER, Failures
from breakeven.errors import ConnectFailed, EndpointError, HttpError
from breakeven.trace.records import RequestError, RequestTrace
from tests.cases.builders import reply


def ended(kind: str | None) -> RequestTrace:
    return replace(reply(), error=None if kind is None else RequestError(kind, f"a {kind}"))


def test_failures_in_a_row_are_counted_from_the_last_answer() -> None:
    failures = Failures(limit=3)
    for kind in ("HttpError", "HttpError", None, "HttpError", "HttpError"):
        failures.see(ended(kind))
    with pytest.raises(EndpointError, match="3 requests in a row failed, the last with: a HttpError"):
        failures.see(ended(HttpError.__name__))


def test_a_server_that_nothing_reaches_is_gone_sooner() -> None:
    failures = Failures()
    for kind in (*[ConnectFailed.__name__] * (GONE_AFTER - 1), "HttpError"):
        failures.see(ended(kind))
    for _ in range(GONE_AFTER - 1):
        failures.see(ended(ConnectFailed.__name__))
    with pytest.raises(EndpointError):
        failures.see(ended(ConnectFailed.__name__))
