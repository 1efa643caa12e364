"""Prompt files: every format, found from the content, and every way in which a file can be wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import WorkloadError
from breakeven.workload.builtin import load_set
from breakeven.workload.files import load_prompts
from breakeven.workload.formats import parse


def write(tmp_path, data, name="prompts.jsonl"):
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def jsonl(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def test_jsonl_prompt_becomes_a_chat_message(tmp_path):
    path = write(
        tmp_path, jsonl({"prompt": "Hi", "id": "a", "category": "c", "max_tokens": 7, "system": "Be brief."})
    )
    (prompt,) = load_prompts(path).prompts
    assert (prompt.id, prompt.category, prompt.max_tokens, prompt.text) == ("a", "c", 7, None)
    assert prompt.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
    )


def test_jsonl_messages_are_kept(tmp_path):
    messages = [
        {"role": "user", "content": "1+1?"},
        {"role": "assistant", "content": "2"},
        {"role": "user", "content": "Sure?"},
    ]
    (prompt,) = load_prompts(write(tmp_path, jsonl({"messages": messages}))).prompts
    assert list(prompt.messages) == messages
    assert prompt.id == "line1"


def test_completions_take_text(tmp_path):
    path = write(tmp_path, jsonl({"prompt": "Once"}, {"messages": [{"role": "user", "content": "upon"}]}))
    prompts = load_prompts(path, api="completions").prompts
    assert [(prompt.text, prompt.messages) for prompt in prompts] == [("Once", None), ("upon", None)]


def test_a_chat_is_refused_for_completions(tmp_path):
    path = write(tmp_path, jsonl({"prompt": "Hi", "system": "Be brief."}))
    with pytest.raises(WorkloadError, match="line 1: a chat is no raw completion"):
        load_prompts(path, api="completions")


@pytest.mark.parametrize("name", ["sharegpt.json", "no-extension", "odd.txt"])
def test_sharegpt(tmp_path, name):
    conversations = [
        {
            "id": "x_0",
            "conversations": [
                {"from": "gpt", "value": "left over"},
                {"from": "human", "value": "First?"},
                {"from": "gpt", "value": "Yes."},
                {"from": "human", "value": "Second?"},
            ],
        },
        {"id": "empty", "conversations": []},
        {"id": 7, "conversations": [{"from": "system", "value": "S"}, {"from": "user", "value": "U"}]},
    ]
    text = json.dumps(conversations) if name != "odd.txt" else jsonl(*conversations)
    workload = load_prompts(write(tmp_path, text, name))
    assert [prompt.id for prompt in workload.prompts] == ["x_0", "7"]
    assert workload.prompts[0].messages == ({"role": "user", "content": "First?"},)
    assert [message["role"] for message in workload.prompts[1].messages] == ["system", "user"]
    assert "1 conversations without a human turn" in workload.warnings[0]


def test_one_prompt_per_line_with_bom_crlf_and_blank_lines(tmp_path):
    path = write(tmp_path, b"\xef\xbb\xbfFirst \xc3\xa9\r\n\r\n  \r\n[INST] second \x0b[/INST]\r\n", "lines")
    assert [p.messages[0]["content"] for p in load_prompts(path).prompts] == [
        "First é",
        "[INST] second \x0b[/INST]",
    ]


def test_jsonl_with_bom_crlf_and_blank_lines(tmp_path):
    path = write(tmp_path, b'\xef\xbb\xbf\r\n{"prompt": "a"}\r\n\r\n{"prompt": "b"}\r\n')
    assert [prompt.id for prompt in load_prompts(path).prompts] == ["line2", "line4"]


def test_line_separators_inside_a_prompt_do_not_split_it(tmp_path):
    path = write(tmp_path, '{"prompt": "a\u2028b\x85c"}\n')
    assert load_prompts(path).prompts[0].messages[0]["content"] == "a\u2028b\x85c"


def test_a_pretty_printed_object_and_list(tmp_path):
    record = {"prompt": "a", "id": "one"}
    for text in (json.dumps(record, indent=2), json.dumps([record], indent=2)):
        assert load_prompts(write(tmp_path, text)).prompts[0].id == "one"


def test_a_txt_file_may_hold_braces(tmp_path):
    path = write(tmp_path, "{x} is a set\n[1, 2] is a list\n", "maths.txt")
    assert len(load_prompts(path).prompts) == 2


def test_built_in_name_wins_and_a_path_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "mine\n", "copy")
    assert load_prompts("copy") == load_set("copy")
    assert load_prompts("./copy").prompts[0].messages[0]["content"] == "mine"


BAD = {
    "empty": (b"", "holds no prompt"),
    "blank": (b"\n \n", "holds no prompt"),
    "empty list": (b"[]", "holds no prompt"),
    "json error": (b'{"prompt": "a"}\n{"prompt": \n', r"line 2: not JSON \("),
    "list error": (b'[{"prompt": "a"},\n {"prompt" "b"}]', "line 2: not JSON"),
    "not an object": (b'{"prompt": "a"}\n"b"\n', "line 2: not a JSON object"),
    "duplicate": (
        jsonl({"prompt": "a", "id": "x"}, {"prompt": "b", "id": "x"}),
        "line 2: id 'x' is that of line 1",
    ),
    "role": (jsonl({"messages": [{"role": "robot", "content": "a"}]}), "line 1: unknown role 'robot'"),
    "odd role": (jsonl({"conversations": [{"from": ["x"], "value": "a"}]}), "unknown role"),
    "no prompt": (jsonl({"question": "a"}), "no prompt: add `prompt`"),
    "near miss": (jsonl({"message": "a"}), "rename `message` to `messages`"),
    "empty prompt": (jsonl({"prompt": " "}), "`prompt` is empty"),
    "prompt list": (jsonl({"prompt": ["a"]}), "must be a string"),
    "zero": (jsonl({"prompt": "a", "max_tokens": 0}), "line 1: max_tokens is 0"),
    "negative": (jsonl({"prompt": "a", "max_tokens": -1}), "max_tokens is -1"),
    "boolean": (jsonl({"prompt": "a", "max_tokens": True}), "max_tokens is True"),
    "both": (jsonl({"prompt": "a", "messages": []}), "both `prompt` and `messages`"),
    "two systems": (
        jsonl({"messages": [{"role": "system", "content": "a"}], "system": "b"}),
        "both `system` and a system message",
    ),
    "no content": (jsonl({"messages": [{"role": "user"}]}), "message 1 has no `content`"),
    "no messages": (jsonl({"messages": []}), "`messages` must be a list"),
    "latin1": (b"one\ntwo caf\xe9\n", "line 2: not UTF-8"),
    "utf-16": ("a prompt".encode("utf-16"), "UTF-16"),
    "binary": (b"ab\0c", "NUL"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files(tmp_path, case):
    data, message = BAD[case]
    with pytest.raises(WorkloadError, match=message):
        load_prompts(write(tmp_path, data))


def test_every_message_names_the_file(tmp_path):
    for data, _ in BAD.values():
        with pytest.raises(WorkloadError, match=r"named-file\.jsonl"):
            load_prompts(write(tmp_path, data, "named-file.jsonl"))


def test_missing_file_lists_sets_and_near_names(tmp_path):
    write(tmp_path, "x", "questions.jsonl")
    with pytest.raises(WorkloadError, match=r"questions\.jsonl.*Built-in sets: brief, copy, default"):
        load_prompts(tmp_path / "question.jsonl")
    with pytest.raises(WorkloadError, match="Near: default"):
        load_prompts("defualt")


def test_a_folder_names_a_file_in_it(tmp_path):
    write(tmp_path, "x", "questions.jsonl")
    with pytest.raises(WorkloadError, match=r"is a folder: name a file in it, such as .*questions\.jsonl"):
        load_prompts(tmp_path)


KEYS = [
    "prompt",
    "messages",
    "conversations",
    "id",
    "max_tokens",
    "role",
    "content",
    "from",
    "value",
    "system",
]
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)


@given(st.lists(json_values, max_size=4), st.booleans(), st.sampled_from(["chat", "completions"]))
def test_any_json_is_read_or_refused(records, as_list, api):
    text = json.dumps(records) if as_list else jsonl(*records)
    try:
        prompts = parse(text, "file", api).prompts
    except WorkloadError:
        return
    assert prompts
    assert all((prompt.text is None) == (api == "chat") for prompt in prompts)


@given(st.text())
def test_any_text_is_read_or_refused(text):
    try:
        prompts = parse(text, "file").prompts
    except WorkloadError:
        return
    assert len({prompt.id for prompt in prompts}) == len(prompts) >= 1
