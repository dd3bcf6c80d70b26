"""`[notify]` refuses what it would not understand."""

from __future__ import annotations

import pytest

from fleet.config import NotifySection, parse
from fleet.errors import ConfigError


@pytest.mark.parametrize(
    "text",
    [
        'quiet = "22-07"',
        'quiet = "24:00-07:00"',
        'timezone = "Mars/Base"',
        'timezone = "../../etc/passwd"',
        'every = "0m"',
        'events = ["anything"]',
        'webhook = "http://elsewhere.example/hook"',
    ],
)
def test_a_wrong_key_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse(NotifySection, text, file="fleet.toml")
