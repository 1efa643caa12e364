"""Names, places and text of drop-ins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breakeven.errors import UsageError
from breakeven.servers.fake.units import SYSTEM_PATH, USER_PATH
from breakeven.servers.systemd import dropin

NAMES = st.text(st.characters(exclude_characters="\0/", exclude_categories=("Cs",)), max_size=6)


def test_it_resets_before_it_sets():
    assert dropin.text("/bin/x a", "until reboot").decode().splitlines()[1:] == [
        "[Service]",
        "ExecStart=",
        "ExecStart=/bin/x a",
    ]


@given(st.lists(NAMES.map(lambda name: f"/etc/x.d/{name}.conf")))
def test_it_comes_last_and_is_known_again(existing: list[str]):
    kept = f"/etc/x.d/{dropin.name(existing, 'for good')}"
    ours = dropin.name([*existing, kept], "until reboot")
    others = [path.rpartition("/")[2] for path in (*existing, kept)]
    assert all(other.encode() < ours.encode() for other in others if other != ours)
    assert dropin.is_trial(f"/run/x.d/{ours}")
    assert not dropin.is_trial(kept)


def test_a_trial_lies_where_a_reboot_takes_it_away():
    assert dropin.folder(SYSTEM_PATH, False, "until reboot") == "/run/systemd/system"
    assert dropin.folder(SYSTEM_PATH, False, "for good") == "/etc/systemd/system"
    assert dropin.folder(USER_PATH, True, "until reboot") == "/run/user/1000/systemd/user"
    assert dropin.folder(USER_PATH, True, "for good") == "/home/llm/.config/systemd/user"
    with pytest.raises(UsageError, match="until reboot"):
        dropin.folder(("/etc/systemd/system",), False, "until reboot")
