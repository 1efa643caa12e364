"""The only place that formats durations, rates, ratios and bytes."""

from __future__ import annotations

ABSENT = "–"
_MOST_PERCENT = 100_000
"""Larger changes are said to be larger: no measurement knows more of them."""
_MOST_DIGITS = 6


def duration(seconds: float | None) -> str:
    """Seconds in the unit that reads best: `21.3 ms`, `4.2 s`, `3 min 05 s`, `1 h 30 min`."""
    if seconds is None:
        return ABSENT
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = round(seconds) // 60
    if minutes < 60:
        return f"{minutes} min {round(seconds) % 60:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def milliseconds(seconds: float | None) -> str:
    """Seconds as milliseconds without the unit, for a table column that names it: `21.32`."""
    return ABSENT if seconds is None else f"{seconds * 1e3:.2f}"


def rate(per_second: float | None) -> str:
    """A rate per second without the unit: `62.6`."""
    return ABSENT if per_second is None else f"{per_second:.1f}"


def ratio(value: float | None) -> str:
    """A speedup: `1.08×`; beyond a thousand times only that it is."""
    if value is None:
        return ABSENT
    most = _MOST_PERCENT // 100
    return f"{value:.2f}×" if value <= most else f"over {most:,}×"


def change(value: float | None) -> str:
    """A speedup as a signed change: 1.08 is `+8.0 %`, 0.74 is `−26.0 %`."""
    if value is None:
        return ABSENT
    percent = (value - 1) * 100
    if percent > _MOST_PERCENT:
        return f"over +{_MOST_PERCENT:,} %"
    return f"{'−' if percent < 0 else '+'}{abs(percent):.1f} %"


def share(value: float | None) -> str:
    """A fraction as a percentage: 0.338 is `33.8 %`. What is not all is never shown as 100, nor some as 0."""
    if value is None:
        return ABSENT
    for digits in range(1, _MOST_DIGITS):
        shown = f"{value * 100:.{digits}f}"
        if (float(shown) in (0.0, 100.0)) == (value in (0.0, 1.0)):
            break
    return f"{shown} %"


def between(low: float, high: float) -> str:
    """`0.24 to 0.49`; one figure where both read alike."""
    return f"{low:.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:.2f} to {high:.2f}"


def shares(low: float, high: float) -> str:
    """`17.0 % to 31.0 %`, likewise."""
    return share(low) if share(low) == share(high) else f"{share(low)} to {share(high)}"


def size(n_bytes: int | None) -> str:
    """Bytes in decimal units, as disks and package indexes do: `98.4 MB`."""
    if n_bytes is None:
        return ABSENT
    value = float(n_bytes)
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.1f} TB"


def count(n: int, noun: str) -> str:
    """`1 request`, `3 requests`."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
