"""Secrets, wherever they stand in a command line, an environment or a log, and what is none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.secrets import HIDDEN, masked_argv, masked_environment, masked_text

S = "s3cr3t"
HUB = f"hf_{'a1B2' * 8}ab"


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (("--api-key", S, "--port", "1"), ("--api-key", HIDDEN, "--port", "1")),
        (("--api-key", S, S, "--port"), ("--api-key", HIDDEN, HIDDEN, "--port")),
        (("--api_key", S), ("--api_key", HIDDEN)),
        (("--token", S, "serve", "m"), ("--token", HIDDEN, "serve", "m")),
        (("--api-key", f"-{S}"), ("--api-key", HIDDEN)),
        ((f"--api-key={S}",), (f"--api-key={HIDDEN}",)),
        ((f"HF_TOKEN={S},{S}",), (f"HF_TOKEN={HIDDEN}",)),
        (("-e", f"AWS_SECRET_ACCESS_KEY={S}"), ("-e", f"AWS_SECRET_ACCESS_KEY={HIDDEN}")),
        (("--model", f"https://me:{S}@h/m"), ("--model", f"https://{HIDDEN}@h/m")),
        ((f"https://h/m?a=1&token={S}&b=2",), (f"https://h/m?a=1&token={HIDDEN}&b=2",)),
        ((f'{{"user": "me", "password": "{S}"}}',), (f'{{"user": "me", "password": "{HIDDEN}"}}',)),
        (("-c", f"export HF_TOKEN={S}; vllm serve m --api-key {S} --port 1"), None),
        (("--header", f"Authorization: Bearer {S}"), None),
        ((HUB, f"x:{HUB}"), None),
    ],
)
def test_secrets_are_hidden(argv: tuple[str, ...], shown: tuple[str, ...] | None):
    found = masked_argv(argv)
    assert S not in str(found) and HUB not in str(found)
    assert len(found) == len(argv)
    assert shown in (None, found)


@pytest.mark.parametrize(
    "argv",
    [
        (
            "vllm",
            "serve",
            "/models/hf_llama_3_checkpoint",
            "--tokenizer",
            "m",
            "--max-num-batched-tokens",
            "8",
        ),
        ("--speculative-config", '{"method":"ngram","num_speculative_tokens":5}'),
        ("--ssl-keyfile", "/etc/key.pem", "--api-key-file", "/run/key", "HF_TOKEN_PATH=/run/token"),
        ("--served-model-name", "sk-small", "NCCL_ALGO=Ring", "--key-value", "x", "http://host:8000/v1"),
        ("--hf-overrides", '{"num_key_value_heads": 8, "tokens": 3}', "monkey=banana"),
    ],
)
def test_what_is_no_secret_stays(argv: tuple[str, ...]):
    assert masked_argv(argv) == argv


@pytest.mark.parametrize(
    "line",
    [
        f"non-default args: {{'api_key': ['{S}'], 'port': 8000}}",
        f"args: Namespace(api_key='{S}', port=8000)",
        f"Started vllm serve m --api-key {S} --port 8000",
        f"fetching https://user:{S}@hub.example/m",
        f"Authorization: Bearer {S}",
    ],
)
def test_a_line_of_a_log(line: str):
    said = masked_text(line)
    assert S not in said and HIDDEN in said
    assert "8000" in said or "8000" not in line


def test_variables():
    found = masked_environment({"HF_TOKEN": S, "DB": f"postgres://u:{S}@h/d", "NCCL_ALGO": "Ring"})
    assert found == {"HF_TOKEN": HIDDEN, "DB": f"postgres://{HIDDEN}@h/d", "NCCL_ALGO": "Ring"}


@given(st.lists(st.text(max_size=20), max_size=6))
def test_hidden_twice_is_hidden_once(words: list[str]):
    once = masked_argv(words)
    assert len(once) == len(words)
    assert masked_argv(once) == once


@pytest.mark.parametrize("piece", ["a", "a-", "a.b_", '"', "key", "://", "--", "=", "x=y&", "\x00"])
def test_a_line_without_end_is_looked_through_all_the_same(piece: str):
    """Of a megabyte, as a program may log it: no pattern begins anew at each of its characters."""
    line = piece * (2**20 // len(piece))
    assert masked_text(line) == line
