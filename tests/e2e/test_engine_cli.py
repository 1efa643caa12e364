"""`breakeven engine` as a user types it."""

from __future__ import annotations

import json
import shlex

import pytest

from tests.e2e.command import breakeven

NGRAM = ("--method", "ngram", "--k", "5", "--min-n", "2", "--max-n", "4")
VLLM_FLAGS = (
    '--speculative-config \'{"method":"ngram","num_speculative_tokens":5,"prompt_lookup_min":2,'
    '"prompt_lookup_max":4}\'\n'
)


def test_flags_to_copy_and_warnings_apart() -> None:
    done = breakeven("engine", "vllm", *NGRAM).succeeded()
    assert done.out == VLLM_FLAGS
    assert "! vLLM turns asynchronous scheduling off with ngram" in done.err
    assert "HTTP 400" in done.err


def test_older_flags() -> None:
    done = breakeven("engine", "vllm", *NGRAM, "--engine-version", "0.8.2").succeeded()
    assert done.out.startswith("--speculative-model '[ngram]' --num-speculative-tokens 5 ")


def test_json() -> None:
    answer = breakeven("engine", "trtllm", "--method", "ngram", "--k", "3", "--json").succeeded().json()
    assert answer["engine"] == "tensorrt-llm"
    assert answer["flags"].startswith("--config <(echo '")
    ((path, text),) = answer["files"].items()
    assert answer["words"] == ["--config", path] and "speculative_config:" in text
    assert any("shared by all requests" in warning for warning in answer["warnings"])


def test_settings_of_the_engines_own() -> None:
    settings = ("suffix_decoding_max_tree_depth=16", "enforce_eager=true", "revision=a=b")
    words = (*(word for setting in settings for word in ("--set", setting)), "--json")
    answer = breakeven("engine", "vllm", "--method", "suffix", *words).succeeded().json()
    assert json.loads(answer["words"][1]) == {
        "method": "suffix",
        "suffix_decoding_max_tree_depth": 16,
        "enforce_eager": True,
        "revision": "a=b",
    }


def test_a_command_line_is_read_and_changed() -> None:
    command = f"numactl -m 0 vllm serve m --port 8001 {VLLM_FLAGS.strip()} --enforce-eager"
    done = breakeven("engine", "--command", command).succeeded()
    said, without, with_ = done.out.splitlines()
    assert said == "vLLM, speculation: ngram, k 5, n-grams of 2 to 4 tokens"
    assert without == "without: numactl -m 0 vllm serve m --port 8001 --enforce-eager"
    assert with_ == f"with:    {without.removeprefix('without: ')} {VLLM_FLAGS.strip()}"


def test_a_command_line_without_speculation() -> None:
    done = breakeven("engine", "sglang", "--command", "sglang serve --model-path m", "--json").succeeded()
    answer = done.json()
    assert answer["speculation"] is answer["with"] is None
    assert answer["absent"].keys() == {"speculation", "with"}
    assert answer["address"] == {"host": "127.0.0.1", "port": 30000}
    shown = breakeven("engine", "--command", "sglang serve --model-path m").succeeded().out
    assert "SGLang, speculation: none" in shown and "add  --method ngram" in shown


def test_secrets_are_not_printed() -> None:
    command = "env HF_TOKEN=hf_abc llama-server -m m.gguf --api-key sk-1 -md d.gguf"
    for words in ((), ("--json",)):
        done = breakeven("engine", "--command", command, *words).succeeded()
        assert "hf_abc" not in done.out + done.err and "sk-1" not in done.out + done.err
        assert "secrets are printed as ***" in " ".join((done.out + done.err).split())


def test_files_to_write_first() -> None:
    done = breakeven("engine", "--command", "trtllm-serve m", "--method", "ngram", "--k", "3").succeeded()
    path = shlex.split(done.out.splitlines()[2])[-1]
    assert f"{path} is to be written first:" in done.out and "  max_draft_len: 3" in done.out


@pytest.mark.parametrize(
    ("words", "fragments"),
    [
        ((), ("which engine?", "breakeven engine vllm --method ngram --k 5")),
        (("vlm", *NGRAM), ("did you mean vllm?",)),
        (("vllm",), ("which way to speculate?",)),
        (("vllm", "--k", "5"), ("--k stands without a method", "--method ngram")),
        (("vllm", "--set", "a=1"), ("--set stands without a method",)),
        (("vllm", *NGRAM, "--set", "a"), ("is not NAME=VALUE",)),
        (("vllm", "--method", "ngrm", "--k", "5"), ("has no ngrm", "did you mean ngram?")),
        (("vllm", *NGRAM, "--set", "revison=1"), ("no setting revison", "did you mean revision?")),
        (("vllm", *NGRAM, "--engine-version", "latest"), ("no version that can be read", "0.32.0")),
        (("vllm", "--method", "ngram"), ("needs k: type --k 5",)),
        (("vllm", "--method", "ngram", "--k", "5", "--min-n", "5", "--max-n", "2"), ("swap them",)),
        (("sglang", *NGRAM), ("leave out --min-n and --max-n",)),
        (("vllm", "--command", "sglang serve"), ("starts SGLang, not vLLM",)),
        (("--command", "sleep 1"), ("starts none of vLLM",)),
        (("--command", "vllm serve 'm"), ("cannot read the command line",)),
        (("--command", "bash -c 'vllm serve m'"), ("a shell starts this server",)),
        (("--command", "vllm serve m --speculative-config {a}"), ("takes a JSON object",)),
    ],
)
def test_refused(words: tuple[str, ...], fragments: tuple[str, ...]) -> None:
    breakeven("engine", *words).refused(2, *fragments)


def test_a_line_of_a_newer_version_is_read_as_it_stands() -> None:
    command = """vllm serve m --speculative-config '{"method":"ngram","num_speculative_tokens":5,"new":1}'"""
    answer = breakeven("engine", "--command", command, "--json").succeeded().json()
    assert answer["speculation"] == "ngram, k 5, new 1" and answer["with"] is None
    newer = breakeven("engine", "--command", command, "--engine-version", "0.99", "--json").succeeded().json()
    assert '"new":1' in newer["with"] and any("setting new is none" in one for one in newer["warnings"])
