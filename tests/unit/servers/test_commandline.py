import pytest

from breakeven.errors import UsageError
from breakeven.servers.argv_diff import argv_diff
from breakeven.servers.commandline import read_command_line

SPECULATING = ("--speculative-config", '{"method":"ngram"}')


def test_plain_words_are_the_servers_own():
    line = read_command_line(["vllm", "serve", "m"])
    assert line.argv == ("vllm", "serve", "m")
    assert line.with_argv((*line.argv, *SPECULATING)) == ("vllm", "serve", "m", *SPECULATING)


@pytest.mark.parametrize("shell", [("/bin/sh", "-c"), ("bash", "-lc"), ("sh", "-e", "-c")])
def test_a_shells_script_is_looked_into(shell):
    line = read_command_line([*shell, "cd /x && vllm serve m", "name"])
    assert line.argv == ("vllm", "serve", "m")
    changed = "cd /x && vllm serve m --port 1"
    assert line.with_argv(("vllm", "serve", "m", "--port", "1")) == (*shell, changed, "name")


@pytest.mark.parametrize("words", [("bash", "start.sh"), ("sh", "--login", "-c"), ("sh", "-c")])
def test_a_shell_that_runs_a_file_is_a_program(words):
    assert read_command_line(words).argv == words


def test_no_words_are_no_command():
    with pytest.raises(UsageError, match="write it down"):
        read_command_line(())


def test_a_diff_hides_secrets_and_shows_words():
    line = read_command_line(["vllm", "serve", "m", "--api-key", "sk-mine"])
    text = argv_diff(line.argv, (*line.argv, *SPECULATING), "docker:vllm")
    assert "sk-mine" not in text
    assert text.startswith("--- docker:vllm (now)\n+++ docker:vllm (in the trial)\n")
    assert "+--speculative-config\n" in text
