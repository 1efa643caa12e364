"""What a line of a log may hold of a key, in ways that a command line has not."""

import pytest

from breakeven.secrets import HIDDEN, masked_text

S = "s3cr3t"


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Basic {S}",
        f"'api_key': ['{S}', '{S}2'], 'port': 8",
        f"Namespace(api_key='{S}",
        f'{{"token": "a\\"{S}"}}',
        f"https://me:p@{S}@host/v1",
        f"first\napi_key='{S}\nlast",
        f"AKIA{'A1' * 8} {'hf_' + 'a' * 20} eyJ{'a' * 12}.{'b' * 12}.{'c' * 12}",
    ],
)
def test_secrets_are_hidden(text: str):
    said = masked_text(text)
    assert HIDDEN in said
    assert not any(key in said for key in (S, "AKIA", "hf_", "eyJ"))


def test_spaces_without_end_take_no_time_to_look_through():
    text = f"token{' ' * 60_000}"
    assert masked_text(text) == text


def test_other_lines_stay():
    text = "#new-token: 12, #token: 3, pad tokens: 3, 'speculative_config': {'method': 'ngram'}"
    assert masked_text(text) == text
