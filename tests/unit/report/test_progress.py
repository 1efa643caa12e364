import io

from rich.console import Console

from breakeven.report.progress import PLAIN_EVERY_S, progress


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_plain_lines_are_few_and_say_what_is_left():
    clock, console = Clock(), Console(file=io.StringIO(), width=80)
    with progress("trial", 40, console, clock) as ticker:
        for _ in range(40):
            clock.now_s += 1
            ticker.advance(note="coding")
    lines = console.file.getvalue().splitlines()
    assert lines[0] == "trial: 1 of 40 (coding)"
    assert lines[1] == "trial: 6 of 40, 34.0 s left (coding)"
    assert len(lines) == 40 / PLAIN_EVERY_S


def test_an_unknown_total_promises_nothing():
    console = Console(file=io.StringIO(), width=80)
    with progress("trial", None, console) as ticker:
        ticker.advance()
    assert console.file.getvalue() == "trial: 1\n"


def test_a_total_that_becomes_known():
    clock, console = Clock(), Console(file=io.StringIO(), width=80)
    with progress("download", None, console, clock) as ticker:
        ticker.set_total(10)
        clock.now_s = 2
        ticker.advance(4)
    assert console.file.getvalue() == "download: 4 of 10, 3.0 s left\n"


def test_a_bar_on_a_terminal_shows_note_and_count():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress("trial [x]", 4, console) as ticker:
        ticker.advance(3, note="[red]\x1b[31mcoding")
        ticker.set_total(5)
        ticker.advance(1)
    text = console.file.getvalue()
    assert "trial [x]" in text and "4/5" in text and "[red]coding" in text


def test_what_is_left_is_not_guessed_from_a_slow_start():
    clock, console = Clock(), Console(file=io.StringIO(), width=80)
    with progress("forecast", 200, console, clock) as ticker:
        for now_s, done in ((60.0, 5), (66.0, 1)):
            clock.now_s = now_s
            ticker.advance(done)
    assert console.file.getvalue().splitlines() == [
        "forecast: 5 of 200",
        "forecast: 6 of 200, 35 min 34 s left",
    ]


def test_a_bar_tells_what_is_left_as_late():
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    with progress("quick", 4, console) as ticker:
        ticker.advance(3)
    assert "0:00" not in console.file.getvalue()
