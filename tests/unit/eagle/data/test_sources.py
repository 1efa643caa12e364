"""Files, folders and built-in sets as chats."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from breakeven.eagle.data.chats import Chat
from breakeven.eagle.data.sources import ChatSource, open_sources
from breakeven.eagle.recipe import Recipe
from breakeven.eagle.recipe_file import read_recipe
from breakeven.errors import UsageError
from breakeven.workload.builtin import load_set
from tests.unit.eagle.data.plain import write_recipe

ASK = {"role": "user", "content": "Hi"}
ANSWER = {"role": "assistant", "content": "Hello"}
MORE = {"role": "user", "content": "And?"}
LAST = {"role": "assistant", "content": "Bye", "reasoning_content": "Done."}


def recipe(folder: Path, *sources: object) -> Recipe:
    return read_recipe(write_recipe(folder, folder, sources))


def lines(path: Path, records: Sequence[Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def read(sources: Sequence[ChatSource], replies: bool) -> tuple[list[Chat], Counter[str]]:
    left_out: Counter[str] = Counter()
    return [chat for one in sources for chat in one.chats(replies, left_out)], +left_out


def one(folder: Path, record: Any, replies: bool = True) -> Chat | str:
    """The chat of a record, or why there is none."""
    lines(folder / "a.jsonl", [record])
    chats, left_out = read(open_sources(recipe(folder, "a.jsonl")), replies)
    return chats[0] if chats else next(iter(left_out))


def asked(chat: Chat | str) -> list[str]:
    assert isinstance(chat, Chat) and isinstance(chat.asked, tuple), chat
    return [f"{turn['role']}: {turn['content']}" for turn in chat.asked]


def replied(chat: Chat | str) -> Any:
    assert isinstance(chat, Chat)
    return chat.reply and dict(chat.reply)


@pytest.mark.parametrize(
    ("record", "before", "reply"),
    [
        ({"messages": [ASK, ANSWER]}, ["user: Hi"], ANSWER),
        ({"messages": [ASK, ANSWER, MORE, LAST]}, ["user: Hi", "assistant: Hello", "user: And?"], LAST),
        ({"messages": [ASK, ANSWER, MORE]}, ["user: Hi"], ANSWER),
        ({"messages": [ASK], "response": "Hello"}, ["user: Hi"], ANSWER),
        ({"prompt": "Hi", "response": "Hello"}, ["user: Hi"], ANSWER),
        ({"prompt": [ASK], "completion": "Hello"}, ["user: Hi"], ANSWER),
        ({"system": "S", "prompt": "Hi", "output": "Hello"}, ["system: S", "user: Hi"], ANSWER),
        (
            {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hello"}]},
            ["user: Hi"],
            ANSWER,
        ),
    ],
)
def test_recorded_replies(record: Any, before: list[str], reply: Any, tmp_path: Path) -> None:
    chat = one(tmp_path, record)
    assert asked(chat) == before
    assert replied(chat) == reply


@pytest.mark.parametrize(
    ("record", "prompts"),
    [
        ({"messages": [ASK, ANSWER]}, [["Hi"]]),
        ({"messages": [ASK, ANSWER, MORE]}, [["Hi"], ["Hi", "Hello", "And?"]]),
        ({"messages": [ASK, ANSWER, MORE, LAST]}, [["Hi"], ["Hi", "Hello", "And?"]]),
        ({"prompt": "Hi"}, [["Hi"]]),
        ({"prompt": "Hi", "response": "Hello"}, [["Hi"]]),
    ],
)
def test_each_turn_is_a_prompt_to_answer(record: Any, prompts: list[list[str]], tmp_path: Path) -> None:
    chat = one(tmp_path, record, replies=False)
    assert isinstance(chat, Chat)
    assert [
        [turn["content"] for turn in prompt] for prompt in chat.prompts() if isinstance(prompt, tuple)
    ] == prompts


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning", "thinking"])
def test_reasoning_is_kept_whatever_its_name(name: str, tmp_path: Path) -> None:
    chat = one(tmp_path, {"messages": [ASK, {**ANSWER, name: "Hm."}]})
    assert replied(chat) == {**ANSWER, "reasoning_content": "Hm."}


@pytest.mark.parametrize(
    ("record", "replies", "reason"),
    [
        ({"messages": [ASK]}, True, "no reply"),
        ({"prompt": "Hi"}, True, "no reply"),
        ({"prompt": "Hi", "response": " "}, True, "no reply"),
        ({"messages": [ASK, {"role": "assistant", "content": " "}]}, True, "no reply"),
        ({"messages": [ASK, {**ANSWER, "content": "", "reasoning_content": "\n"}]}, True, "no reply"),
        ({"messages": [ANSWER]}, True, "no prompt"),
        ({"messages": []}, False, "no prompt"),
        ({"prompt": " "}, False, "no prompt"),
        ({"prompt_token_ids": [1], "token_ids": [2]}, False, "no prompt"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}, ANSWER]},
            True,
            "pictures or sound",
        ),
    ],
)
def test_what_is_left_out_has_its_reason(record: Any, replies: bool, reason: str, tmp_path: Path) -> None:
    assert one(tmp_path, record, replies) == reason


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({"text": "x"}, "no conversation"),
        ({"messages": "x"}, "turns must be a list"),
        ({"messages": ["x"]}, "turn 1 is no object"),
        ({"messages": [ASK, {"role": "robot", "content": "x"}]}, "unknown role 'robot' in turn 2"),
        ({"messages": [{"role": "user"}]}, "turn 1 has no `content`"),
        ({"messages": [{"role": ["user"], "content": "x"}]}, "unknown role"),
        ({"messages": [{"role": "user", "content": {"a": 1}}]}, "turn 1 has no `content`"),
        ({"prompt": 5, "response": "x"}, "turns must be a list"),
        ({"prompt": "Hi", "response": 5}, "`response` is '5'"),
        ({"prompt": "Hi", "response": "x", "system": 5}, "`system` must be text"),
        ({"messages": [{"role": "system", "content": "x"}, ASK, ANSWER], "system": "y"}, "both `system`"),
        ({"messages": [ASK, ANSWER], "tools": "{"}, "`tools` is no JSON"),
        ({"messages": [ASK, ANSWER], "tools": [5]}, "`tools` must be a list"),
        ({"prompt_token_ids": ["a"], "token_ids": [2]}, "`prompt_token_ids` holds"),
        ({"prompt_token_ids": [1], "token_ids": [2**31]}, "no token id"),
    ],
)
def test_what_is_no_chat_is_told_with_its_line(record: Any, said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        one(tmp_path, record)
    assert "a.jsonl, line 1: " in str(caught.value)


def test_ids_of_both_sides_are_kept(tmp_path: Path) -> None:
    chat = one(tmp_path, {"messages": [ASK, ANSWER], "prompt_token_ids": [1, 2], "token_ids": [3]})
    assert isinstance(chat, Chat) and chat.ids is not None
    assert (chat.ids.prompt.tolist(), chat.ids.output.tolist()) == ([1, 2], [3])
    alone = one(tmp_path, {"prompt_token_ids": [1, 2], "token_ids": [3], "finish_reason": "length"})
    assert isinstance(alone, Chat) and alone.asked is None and alone.reply is None and not alone.ended
    assert isinstance(chat := one(tmp_path, {"messages": [ASK, ANSWER], "token_ids": [3]}), Chat)
    assert chat.ids is None


def test_tools_may_be_text(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "f"}}]
    for said in (tools, json.dumps(tools)):
        chat = one(tmp_path, {"messages": [ASK, ANSWER], "tools": said})
        assert isinstance(chat, Chat) and list(chat.tools) == tools


def test_categories(tmp_path: Path) -> None:
    for said, category in [("math", "math"), (7, "7"), (None, "uncategorised"), ("", "uncategorised")]:
        chat = one(tmp_path, {"prompt": "Hi", "response": "x", "category": said})
        assert isinstance(chat, Chat) and chat.category == category


def test_parquet_and_compressed_lines_say_the_same(tmp_path: Path) -> None:
    records = [{"messages": [ASK, ANSWER]}, {"messages": [ASK, ANSWER, MORE, LAST]}]
    lines(tmp_path / "a.jsonl", records)
    pq.write_table(pa.Table.from_pylist(records), tmp_path / "b.parquet")
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress((tmp_path / "a.jsonl").read_bytes()))
    (tmp_path / "d.json").write_text(json.dumps(records))
    found = [
        read(open_sources(recipe(tmp_path, name)), True)[0]
        for name in ("a.jsonl", "b.parquet", "c.jsonl.gz", "d.json")
    ]
    said = [[(chat.id, asked(chat), replied(chat)) for chat in chats] for chats in found]
    assert said[0] == said[1] == said[2] == said[3] and len(said[0]) == 2


@pytest.mark.parametrize("column", ["system", "tools"])
def test_parquet_columns_that_would_be_passed_over_are_refused(column: str, tmp_path: Path) -> None:
    pq.write_table(
        pa.Table.from_pylist([{"prompt": "a", "response": "b", column: "c"}]), tmp_path / "a.parquet"
    )
    with pytest.raises(UsageError, match=f"column `{column}`, which is not read from parquet"):
        read(open_sources(recipe(tmp_path, "a.parquet")), True)


def test_a_folder_is_its_files_in_the_order_of_their_names(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    lines(tmp_path / "set/b.jsonl", [{"prompt": "2", "response": "x"}])
    lines(tmp_path / "set/a.jsonl", [{"prompt": "1", "response": "x"}])
    (tmp_path / "set/README.md").write_text("no data")
    sources = open_sources(recipe(tmp_path, "set"))
    assert [one.name for one in sources] == ["set/a.jsonl", "set/b.jsonl"]
    assert [asked(chat) for chat in read(sources, True)[0]] == [["user: 1"], ["user: 2"]]
    assert sources[0].inputs != sources[1].inputs and list(sources[0].inputs) == ["set/a.jsonl"]


def test_built_in_sets_and_text_files_are_prompts_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("one\n\ntwo\n")
    builtin, text = open_sources(recipe(tmp_path, "brief", "mine.txt"))
    assert len(read([builtin], False)[0]) == len(load_set("brief").prompts)
    assert {chat.category for chat in read([builtin], False)[0]} >= {"coding", "math"}
    assert [asked(chat) for chat in read([text], False)[0]] == [["user: one"], ["user: two"]]
    assert builtin.inputs == {} and list(text.inputs) == ["mine.txt"]
    for one in (builtin, text):
        with pytest.raises(UsageError, match="regenerate = true"):
            read([one], True)


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match=r"no file or folder .*nothing"):
        open_sources(recipe(tmp_path, "nothing"))
    with pytest.raises(UsageError, match="no run and holds no data"):
        open_sources(recipe(tmp_path, "empty"))


def test_a_last_line_that_is_cut_off_is_counted(tmp_path: Path) -> None:
    lines(tmp_path / "a.jsonl", [{"prompt": "1", "response": "x"}])
    with (tmp_path / "a.jsonl").open("a") as file:
        file.write('{"prompt": "2", "respon')
    chats, left_out = read(open_sources(recipe(tmp_path, "a.jsonl")), True)
    assert len(chats) == 1 and left_out == {"a last line that is cut off": 1}


def test_equal_prompts_have_equal_ids_and_conversations_equal_openings(tmp_path: Path) -> None:
    turns = [ASK, ANSWER, MORE, LAST]
    first = one(tmp_path, {"messages": turns[:2]})
    again = one(tmp_path, {"prompt": "Hi", "response": "Something else", "category": "other"})
    later = one(tmp_path, {"messages": turns})
    assert isinstance(first, Chat) and isinstance(again, Chat) and isinstance(later, Chat)
    assert first.id == again.id != later.id
    assert first.opening == again.opening == later.opening
    other = one(tmp_path, {"system": "S", "prompt": "Hi", "response": "x"})
    assert isinstance(other, Chat) and other.opening != first.opening
