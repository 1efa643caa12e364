"""The built-in sets: ids, categories, and enough to copy where copying is the point."""

import pytest

from breakeven.errors import WorkloadError
from breakeven.workload.builtin import load_set, set_names


def test_names():
    assert set_names() == ("brief", "copy", "default")


def test_default_is_brief_then_copy():
    default = load_set("default").prompts
    assert default == load_set("brief").prompts + load_set("copy").prompts
    assert len({prompt.id for prompt in default}) == len(default) == 11


def test_brief_covers_its_categories():
    categories = [prompt.category for prompt in load_set("brief").prompts]
    assert categories == ["coding", "math", "structured", "explanatory", "reasoning"]


def test_copy_prompts_carry_their_source():
    for prompt in load_set("copy").prompts:
        assert prompt.category == "copy"
        (message,) = prompt.messages
        assert len(message["content"].split()) >= 45


def test_completions_get_raw_text():
    for prompt in load_set("default", api="completions").prompts:
        assert prompt.messages is None
        assert prompt.text


def test_unknown_set_names_a_near_one():
    with pytest.raises(WorkloadError, match="did you mean brief"):
        load_set("brif")
