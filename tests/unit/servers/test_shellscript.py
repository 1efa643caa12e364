"""Shell scripts whose one command is changed in place."""

import shlex
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.servers.shellscript import read_script

PLAIN = [
    ("vllm serve m --port 1", ("vllm", "serve", "m", "--port", "1")),
    ("exec vllm serve 'a b' \"c $D\"", ("vllm", "serve", "a b", "c $D")),
    ("A=1 B='2 3' vllm serve m", ("vllm", "serve", "m")),
    ("ulimit -l unlimited && vllm serve m # of ours", ("vllm", "serve", "m")),
    ("set -e\nvllm serve \\\n  m \\\n  --port 1\n", ("vllm", "serve", "m", "--port", "1")),
    ("vllm serve m 2>&1 | tee log", ("vllm", "serve", "m")),
    ("vllm serve m >log 2>&1 &", ("vllm", "serve", "m")),
    ("vllm serve ${MODEL:-m} --url http://h/#x", ("vllm", "serve", "${MODEL:-m}", "--url", "http://h/#x")),
    (
        'vllm serve m --json \'{"a": 1}\' "say \\"x\\""',
        ("vllm", "serve", "m", "--json", '{"a": 1}', 'say "x"'),
    ),
    ("vllm serve m; echo over", ("vllm", "serve", "m")),
]


def is_vllm(argv):
    return argv[:1] == ["vllm"]


@pytest.mark.parametrize(("text", "argv"), PLAIN)
def test_words_are_those_of_the_command(text, argv):
    assert read_script(text, is_vllm).argv == argv


@pytest.mark.parametrize(("text", "argv"), PLAIN)
def test_unchanged_it_stays_as_it_was_written(text, argv):
    assert read_script(text, is_vllm).with_argv(argv) == text


@pytest.mark.parametrize(("text", "argv"), PLAIN)
def test_a_change_is_that_of_the_words_and_nothing_else(text, argv):
    script = read_script(text, is_vllm)
    longer = script.with_argv((*argv, "--speculative-config", '{"k": 5, "a": "$5 it\'s"}'))
    again = read_script(longer, is_vllm)
    assert again.argv == (*argv, "--speculative-config", '{"k": 5, "a": "$5 it\'s"}')
    assert again.with_argv(argv) == text


def test_a_word_in_the_middle_goes_with_the_space_before_it():
    script = read_script("vllm serve m \\\n  --spec '{}' \\\n  --port 1 2>&1", is_vllm)
    assert script.with_argv(("vllm", "serve", "m", "--port", "1")) == "vllm serve m \\\n  --port 1 2>&1"


@pytest.mark.parametrize(
    "text", ["vllm serve $(cat m)", "vllm serve `cat m`", "vllm serve <<E\nE", 'vllm "$(x)"', "'"]
)
def test_what_a_shell_would_compute_is_refused(text):
    with pytest.raises(UsageError, match="list of words"):
        read_script(text, is_vllm)


@pytest.mark.parametrize("text", ["", "  # nothing\n", "A=1"])
def test_no_command_is_refused(text):
    with pytest.raises(UsageError, match="no command"):
        read_script(text, is_vllm)


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, max_size=4
    )
)
def test_a_real_shell_reads_the_changed_script_alike(added):
    script = read_script("printf '%s\\0' 'a b' | cat", lambda argv: False)
    script = read_script(script.text, lambda argv: argv[0] == "printf")
    changed = script.with_argv((*script.argv, *added))
    said = subprocess.run(["sh", "-c", changed], capture_output=True, check=True).stdout
    assert said.decode().split("\0")[:-1] == ["a b", *added]


@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1), min_size=1, max_size=4
    )
)
def test_quoted_words_are_read_back(words):
    words = ["vllm", *words]
    assert read_script(shlex.join(words), is_vllm).argv == tuple(words)
