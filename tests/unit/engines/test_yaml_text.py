"""A configuration file's entries are read, and taken out, without another byte changed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from breakeven.engines.yaml_text import entry, value, without_entry, written

NAMES = st.sampled_from(["a", "speculative", "speculative_config2", "b-c"])
VALUES = st.one_of(st.integers(), st.booleans(), st.none(), st.text("ab: #'\"é", max_size=5))
FLAT = st.dictionaries(st.sampled_from(["x", "y", "z"]), VALUES, min_size=1)
BLOCKS = st.lists(
    st.one_of(
        st.tuples(NAMES, FLAT).map(lambda one: written(*one)),
        st.just("list:\n- a\n- b\n"),
        st.just("# a comment\n\n"),
        st.just("deep:\n  a:\n    b: 1 # why\n\n  c: 2\n"),
    )
).map("".join)


@given(BLOCKS, FLAT, BLOCKS)
def test_what_is_written_is_read_and_taken_out(before: str, settings: dict[str, object], after: str) -> None:
    text = before + written("speculative_config", settings) + after
    assert without_entry(text, "speculative_config") == before + after
    assert entry(before + after, "speculative_config") is None
    assert value(text, "speculative_config") == settings


def test_scalars() -> None:
    text = "a: 1\nb: 'it''s' # so\nc: \"x # y\"\nd: ~\ne: True\n\"f\": word\n"
    read = {name: value(text, name) for name in "abcdef"}
    assert read == {"a": 1, "b": "it's", "c": "x # y", "d": None, "e": True, "f": "word"}
    assert value("s:   # ours\n  x: 1 # one\n  # no\n  y: 'a # b' # two\n", "s") == {"x": 1, "y": "a # b"}
    assert value(None, "a") is None and value(text, "g") is None
