"""What a server's environment may say to the guard, and what is said of what it may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breakeven.errors import UsageError
from breakeven.guard.config import CONFIG, MODE, GuardConfig, config_of
from breakeven.guard.settings import GuardSettings


def test_nothing_set_is_the_defaults() -> None:
    assert config_of({}) == GuardConfig()
    assert GuardConfig().to_json() == "{}"


def test_what_is_written_is_read() -> None:
    config = GuardConfig(
        GuardSettings(epsilon=0.01, most_tokens=6), calibration="/c", kill_file="/k", metrics_port=9400
    )
    assert config_of({CONFIG: config.to_json()}) == config


def test_a_file_holds_it(tmp_path: Path) -> None:
    file = tmp_path / "guard.json"
    file.write_text(json.dumps({"epsilon": 0.05, "mode": "shadow"}))
    config = config_of({CONFIG: str(file)})
    assert (config.settings.epsilon, config.mode) == (0.05, "shadow")


def test_the_mode_has_a_variable_of_its_own() -> None:
    assert config_of({CONFIG: '{"mode": "on"}', MODE: " OFF "}).mode == "off"


@pytest.mark.parametrize(
    ("text", "said"),
    (
        ("{", "no JSON"),
        ("/no/such/file", "cannot be read"),
        ('{"epsilom": 1}', "epsilom.*epsilon"),
        ('{"epsilon": "2%"}', 'epsilon "2%"'),
        ('{"epsilon": 2}', "epsilon 2"),
        ('{"most_tokens": 0}', "most_tokens 0"),
        ('{"most_tokens": true}', "most_tokens true"),
        ('{"mode": "of"}', 'mode "of"'),
        ('{"metrics_port": 0}', "metrics_port 0"),
        ('{"calibration": 3}', "calibration 3"),
        ('{"settings": {}}', "settings"),
        (f'{{"epsilon": {10**400}}}', "epsilon 1000"),
    ),
)
def test_what_cannot_be_is_refused_by_name(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        config_of({CONFIG: text})


def test_a_file_without_an_object_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "guard.json"
    file.write_text("[]")
    with pytest.raises(UsageError, match="no JSON object"):
        config_of({CONFIG: str(file)})


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="on, off, shadow"):
        config_of({MODE: "maybe"})


def test_each_engine_has_a_port_and_a_file_of_its_own() -> None:
    config = GuardConfig(metrics_port=9400, state_file="/s")
    assert config.of_engine(0) is config
    assert config.of_engine(2) == GuardConfig(metrics_port=9402, state_file="/s.2")
    assert GuardConfig().of_engine(1) == GuardConfig()


def test_an_engine_without_a_port_left_is_told() -> None:
    with pytest.raises(UsageError, match="metrics_port 65536"):
        GuardConfig(metrics_port=65535).of_engine(1)


@pytest.mark.parametrize("pair", (("kill_file", "state_file"), ("calibration", "state_file")))
def test_a_file_is_for_one_thing(pair: tuple[str, str]) -> None:
    """A state that is written to the kill file would turn the guard off."""
    with pytest.raises(UsageError, match=f"{pair[0]} and {pair[1]} are both /x: name another"):
        config_of({CONFIG: json.dumps(dict.fromkeys(pair, "/x"))})
