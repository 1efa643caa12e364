"""What is watched, in words and cells: every figure of a server, and why one is missing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from breakeven.interval import Interval
from breakeven.report.text import line
from breakeven.units import ABSENT, between, ratio, share
from breakeven.watch.pays import Speculation
from breakeven.watch.state import DEFINITIONS, INTERVAL, PER_POSITION, Now, ServerState, value

TITLES = {
    "speculation_speedup": "speculation",
    "acceptance_rate": "acceptance",
    "draft_share": "draft share",
    "tokens_per_step": "tokens/step",
    "mean_acceptance_length": "length",
    "requests_running": "running",
    "requests_waiting": "waiting",
    "kv_cache_usage": "KV cache",
    "output_tokens_per_second": "tok/s",
}
"""Of the columns, in their order; keys of DEFINITIONS."""
BY_POSITION = "by position"
POSITIONS = 8
"""Of which the share is printed; more are told by their bar alone."""
MOST_BARS = 48
_BARS = "▁▂▃▄▅▆▇█"
_SHARES = ("acceptance_rate", "draft_share", "kv_cache_usage")
_WHOLE = ("requests_running", "requests_waiting")
_OF_LOAD = (*_WHOLE, "kv_cache_usage", "output_tokens_per_second")
_NOT_TOLD = "not derivable: the page does not tell"


@dataclass(frozen=True, slots=True)
class Row:
    """One server."""

    server: str
    cells: dict[str, str]
    """By key of TITLES."""
    positions: str
    """A bar and a share for each; empty where they are not known."""
    details: tuple[str, ...]
    """What is not known and why, and what else must be said, each a phrase."""
    answer: str
    """As Speculation.answer, or `no answer` where the server cannot be read."""


def row(state: ServerState) -> Row:
    found = state.now
    return Row(
        server=server_name(state),
        cells={name: _cell(state, name) for name in TITLES},
        positions=_positions(found.per_position) if found and found.per_position else "",
        details=_details(state),
        answer=found.speculation.answer if found else "no answer",
    )


def server_name(state: ServerState) -> str:
    of = ", ".join(filter(None, (line(state.model or "", 60), state.now.engine if state.now else "")))
    return f"{line(state.url, 120)} ({of})" if of else line(state.url, 120)


def by_position(states: Sequence[ServerState]) -> bool:
    """Whether any server tells acceptance by position."""
    return any(state.now and state.now.per_position for state in states)


def answer(found: Speculation) -> str:
    """`pays 1.32× (1.18 to 1.44)`."""
    if found.speedup is None:
        return found.answer
    return f"{found.answer} {_speedup(found.speedup)}"


def sentence(state: ServerState) -> str:
    """One line that says everything of a server."""
    if state.now is None:
        return f"{server_name(state)}: {line(state.problem, 300)}"
    words = [f"{TITLES[name]} {_cell(state, name)}" for name in TITLES if value(state, name) is not None]
    if state.now.speculation.speedup is None:
        words.insert(
            0, f"speculation {state.now.speculation.answer} ({line(state.now.speculation.why, 200)})"
        )
    if state.now.per_position:
        words.append(f"{BY_POSITION} {', '.join(_shares(state.now.per_position))}")
    return f"{server_name(state)}: {'; '.join(words)}"


def definition(name: str) -> str:
    """Of a number, by its key; with what the interval holds where it has one."""
    text = DEFINITIONS[name]
    return f"{text}; its interval: {INTERVAL}" if name == "speculation_speedup" else text


def definitions(states: Sequence[ServerState]) -> tuple[str, ...]:
    """Of every number that is shown, each after its title."""
    shown = [f"{title} = {definition(name)}" for name, title in TITLES.items()]
    if by_position(states):
        shown.append(f"{BY_POSITION} = {DEFINITIONS[PER_POSITION]}")
    return tuple(shown)


def notes(states: Iterable[ServerState]) -> tuple[str, ...]:
    """What qualifies the figures, each once."""
    said = (
        note for state in states if state.now for note in (*state.now.notes, *state.now.speculation.notes)
    )
    return tuple(dict.fromkeys(line(note, 1000) for note in said))


def _cell(state: ServerState, name: str) -> str:
    if name == "speculation_speedup":
        return answer(state.now.speculation) if state.now else "no answer"
    found = value(state, name)
    if found is None:
        return ABSENT
    if name in _SHARES:
        low, high = (share(end).removesuffix(" %") for end in (found.low, found.high))
        return _range(share(found.estimate), low, high)
    if name in _WHOLE:
        return f"{found.estimate:.0f}"
    digits = 1 if name == "output_tokens_per_second" else 2
    return _range(*(f"{number:.{digits}f}" for number in (found.estimate, found.low, found.high)))


def _range(estimate: str, low: str, high: str) -> str:
    return estimate if low == high else f"{estimate} ({low} to {high})"


def _speedup(found: Interval) -> str:
    return f"{ratio(found.estimate)} ({between(found.low, found.high)})"


def _details(state: ServerState) -> tuple[str, ...]:
    restarts = (f"its counters fell {state.resets} times: it started anew",) if state.resets else ()
    if state.now is None:
        return (line(state.problem, 500), *restarts)
    return (*_absences(state, state.now), *restarts)


def _positions(per_position: Sequence[float]) -> str:
    bars = "".join(_BARS[round(part * (len(_BARS) - 1))] for part in per_position[:MOST_BARS])
    return f"{bars} {' '.join(_shares(per_position))}"


def _shares(per_position: Sequence[float]) -> list[str]:
    shown = [f"{part * 100:.0f} %" for part in per_position[:POSITIONS]]
    more = len(per_position) - POSITIONS
    return [*shown, f"and {more} more"] if more > 0 else shown


def _absences(state: ServerState, found: Now) -> tuple[str, ...]:
    """Why a figure is missing: the titles of those that share a reason, and the reason."""
    why = found.speculation.why
    whys = {"speculation": f"{found.speculation.answer}: {why}"} if why else {}
    whys |= {TITLES[one.name]: one.why for one in found.ratios if one.value is None}
    whys |= {TITLES[name]: _NOT_TOLD for name in _OF_LOAD if value(state, name) is None}
    titles: dict[str, list[str]] = {}
    for title, reason in whys.items():
        titles.setdefault(reason, []).append(title)
    return tuple(line(f"{', '.join(names)}: {reason}", 500) for reason, names in titles.items())
