from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.acceptance.logs import text as words
from breakeven.acceptance.logs.text import (
    BLOCK,
    MAX_LINE,
    blocks,
    is_logged,
    is_of_others,
    message,
    plain,
    time_of,
)

GOLDEN = Path(__file__).parents[3] / "golden" / "logs"
PIECES = (
    *("INFO 11-29 10:00:00 ", "[2026-11-29 10:00:00 TP0]", "[TensorRT-LLM]", "2026-11-29T10:00:00.1Z INFO"),
    *("0.01.548.629 I ", "ValueError: ", "torch.cuda.OutOfMemoryError: ", '"GET / HTTP/', "log_server_r: "),
    *("http.route=", " otel.name=", "Received request", "prompt: '", "Finish: obj=", "x", " ", '"', "[", ":"),
)


def test_blocks_are_whole_lines_and_nothing_is_lost():
    log = b"".join(b"line %d\n" % n for n in range(200_000)) + b"the last, without an end"
    parts = list(blocks(log[at : at + 1000] for at in range(0, len(log), 1000)))
    assert b"".join(parts) == log
    assert all(part.endswith(b"\n") for part in parts[:-1])
    assert all(len(part) <= 2 * BLOCK for part in parts)


def test_a_line_without_end_is_held_only_in_part():
    parts = list(blocks([b"x" * (5 * BLOCK), b"\nnext\n"]))
    assert len(parts) == 1
    assert parts[0].startswith(b"x" * MAX_LINE)
    assert parts[0].endswith(b"x\nnext\n")
    assert len(parts[0]) < 2 * BLOCK


def test_nuls_are_dropped():
    assert list(blocks([b"\0\0a\0b\0"])) == [b"ab"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"\x1b[31mred\x1b[0m", "red"),
        (b"\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
        (b"a\tb\x08\x7f", "a b"),
        ("left\u202eright\u2066x".encode(), "leftrightx"),
        (b"half \xe2\x82", "half \ufffd"),
        ("█▄█▀ version 0.32.0".encode(), "█▄█▀ version 0.32.0"),
    ],
)
def test_plain_text_is_harmless(raw: bytes, shown: str):
    assert plain(raw) == shown


@pytest.mark.parametrize(
    ("raw", "text", "time"),
    [
        (b'{"log":"hello\\n","time":"2026-11-29T11:18:25Z"}', "hello", "2026-11-29T11:18:25Z"),
        (b'{"MESSAGE":[27,91,51,50,109,104,105],"__REALTIME_TIMESTAMP":"17"}', "hi", "17"),
        (b'{"MESSAGE":[1,256,-1,"x",null,104]}', "h", None),
        (b'{"message":"lone \\ud800"}', "lone \ufffd", None),
        (b'{"other":1}', '{"other":1}', None),
        (b'{"message":17}', '{"message":17}', None),
        (b"{not json", "{not json", None),
        (b'{"a":' * 10_000, None, None),
        (b'{"message":"x","time":' + b"9" * 5000 + b"}", None, None),
        (b"no json", "no json", None),
    ],
)
def test_messages_are_taken_out_of_json(raw: bytes, text: str | None, time: str | None):
    assert message(raw) == (raw.decode() if text is None else text, time)


@pytest.mark.parametrize(
    ("prefix", "time"),
    [
        (
            "Nov 29 11:18:27 host vllm[1]: (APIServer pid=1) INFO 11-29 11:18:25 [metrics.py:120] ",
            "11-29 11:18:25",
        ),
        ("2026-11-29T11:18:25.123456789Z ", "2026-11-29T11:18:25.123456789Z"),
        ("[2025-10-22 10:27:57 DP0 TP0] ", "2025-10-22 10:27:57"),
        ("[53409] 5.05.552.787 I ", "5.05.552.787"),
        ("Nov  9 01:08:27 host llama[1]: ", "Nov  9 01:08:27"),
        ("no time ", None),
    ],
)
def test_the_time_nearest_to_the_message_counts(prefix: str, time: str | None):
    assert time_of(prefix) == time


@given(st.lists(st.sampled_from(PIECES), max_size=8).map("".join))
def test_the_words_looked_for_first_change_nothing(line: str):
    assert is_of_others(line) == bool(words._PROMPT.search(line) or words._ACCESS.search(line))
    assert is_logged(line) == bool(words._LOGGER.match(line) or words._EXCEPTION.match(line))


def test_nor_in_any_real_log():
    lines = [line for path in GOLDEN.glob("*.log") for line in path.read_text(errors="replace").splitlines()]
    assert any(map(is_logged, lines)) and any(map(is_of_others, lines))
    for line in lines:
        assert is_of_others(line) == bool(words._PROMPT.search(line) or words._ACCESS.search(line)), line
        assert is_logged(line) == bool(words._LOGGER.match(line) or words._EXCEPTION.match(line)), line
