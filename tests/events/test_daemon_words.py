"""The daemon's events in words: each kind has a line of its own, safe to show, and a terminal shows it."""

from __future__ import annotations

import io
import json
import logging
import sys
from typing import Any, get_args

import pytest

from fleet.events import daemon_words
from fleet.events.daemon_events import DaemonEvent, DaemonStarted, PersonaRefused
from fleet.service.log_events import log_daemon
from fleet.service.logs import configure

AT = "2026-11-21T22:51:10.000Z"
EVENTS = get_args(get_args(DaemonEvent)[0])
GIVEN: dict[str, Any] = {
    "next": {"qa-a": "2026-11-21T22:52:00Z", "qa-b": "2026-11-22T22:52:00Z"},
    "runs": 3,
    "changed": ("never",),
    "kept": True,
    "last_seen": AT,
}


def made(kind: Any) -> DaemonEvent:
    """An event of this kind with something in each field."""
    fields = {}
    for name, field in kind.model_fields.items():
        if name in ("type", "at", "event_type"):
            continue
        by_type = {str: "x\x1b[2Jy", int: 7, float: 1.5, bool: True}
        fields[name] = GIVEN[name] if name in GIVEN else by_type.get(field.annotation, ())
    if kind.__name__ == "DaemonLost":
        fields["runs"] = ("a", "b")
    event: DaemonEvent = kind(at=AT, **fields)
    return event


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: str(kind.__name__))
def test_each_event_is_a_sentence_without_its_type(kind: Any) -> None:
    event = made(kind)
    words = daemon_words.words(event)
    assert event.type not in words
    assert len(words.split()) > 1
    assert "\x1b" not in words


def test_a_start_says_what_is_next_and_where_its_page_is() -> None:
    event = DaemonStarted(
        at=AT, version="1", pid=1, platform="acme", rung="observe", personas=2, next=GIVEN["next"], page="http://h/"
    )  # fmt: skip
    assert daemon_words.words(event) == (
        "fleet 1 is up, look at it at http://h/: 2 personas on acme, dial observe; next qa-a in under a "
        "minute (22:52 UTC), qa-b in 24 h (2026-11-22 22:52 UTC)"
    )


@pytest.mark.parametrize("as_json", [False, True])
def test_a_terminal_has_words_and_a_pipe_has_json(as_json: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    root, out = logging.getLogger(), io.StringIO()
    before, level = root.handlers[:], root.level
    monkeypatch.setattr(sys, "stderr", out)
    try:
        configure(as_json=as_json)
        log_daemon(PersonaRefused(file="qa-x.md", reason="qa-x.md:3: bad", kept=True))
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    (said,) = out.getvalue().splitlines()
    if as_json:
        found = json.loads(said)
        assert (found["event"], found["file"], "in_words" in found) == ("persona.refused", "qa-x.md", False)
    else:
        assert said[5:] == "  persona refused: qa-x.md:3: bad; its last valid version stays in use"
