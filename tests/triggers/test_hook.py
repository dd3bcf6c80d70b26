"""A delivery passes when everything about it is right; each way to be wrong has its own word."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import ConfigError, Refused
from fleet.triggers import hook
from fleet.triggers.hook import Delivery, Replays, sign, verify
from fleet.triggers.model import Firing
from tests.triggers.conftest import START

SECRET, OTHER = b"s" * 16, b"o" * 32
BODY = b'{"ref": "main"}'
STAMP = int(START.timestamp())


def signed(
    ident: str = "delivery-1", stamp: int = STAMP, body: bytes = BODY, secret: bytes = SECRET
) -> Delivery:
    headers = (
        ("Content-Type", "application/json"),
        ("X-QA-Delivery", ident),
        ("x-qa-timestamp", str(stamp)),
        ("X-Qa-Signature", sign(secret, ident, stamp, body)),
    )
    return Delivery("deploy", headers, body)


def header(number: int, value: str) -> Delivery:
    """A good delivery with one header of another."""
    headers = list(signed().headers)
    headers[number] = (headers[number][0], value)
    return replace(signed(), headers=tuple(headers))


def judged(
    delivery: Delivery,
    now: datetime = START,
    replays: Replays | None = None,
    secrets: tuple[bytes, ...] = (SECRET,),
) -> list[Firing] | Refused:
    return verify(delivery, secrets=secrets, personas=("qa-a", "qa-b"), now=now, replays=replays or Replays())


def rule(*args: object, **options: object) -> str:
    found = judged(*args, **options)  # type: ignore[arg-type]
    assert isinstance(found, Refused)
    return found.rule


def test_a_good_delivery_fires_each_persona_under_its_id() -> None:
    assert judged(signed()) == [
        Firing("qa-a@hook:delivery-1", "qa-a", "webhook deploy", START),
        Firing("qa-b@hook:delivery-1", "qa-b", "webhook deploy", START),
    ]


def test_the_signature_is_the_documented_one() -> None:
    text = b"delivery-1." + str(STAMP).encode() + b"." + BODY
    assert (
        sign(SECRET, "delivery-1", STAMP, BODY)
        == "sha256=" + hmac.new(SECRET, text, hashlib.sha256).hexdigest()
    )


@pytest.mark.parametrize(("changed", "expected"), [
    (signed(secret=OTHER), "hook-signature"),
    (replace(signed(), body=BODY + b" "), "hook-signature"),
    (header(1, "delivery-2"), "hook-signature"),
    (header(2, str(STAMP + 1)), "hook-signature"),
    (header(3, sign(SECRET, "delivery-1", STAMP, BODY).upper()), "hook-header"),
    (signed(stamp=STAMP - 301), "hook-timestamp"),
    (signed(stamp=STAMP + 301), "hook-timestamp"),
    (signed(body=b"x" * (hook.LARGEST + 1)), "hook-size"),
    (signed("short"), "hook-header"),
    (signed("delivery 1"), "hook-header"),
    (signed("delivery-1\n"), "hook-header"),
    (signed(stamp=-1), "hook-header"),
    (replace(signed(), headers=signed().headers[:3]), "hook-header"),
    (replace(signed(), headers=signed().headers[:2]), "hook-header"),
    (replace(signed(), headers=()), "hook-header"),
    (replace(signed(), headers=signed().headers + signed().headers[1:2]), "hook-header"),
])  # fmt: skip
def test_each_way_to_be_wrong_is_refused(changed: Delivery, expected: str) -> None:
    assert rule(changed) == expected


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_the_window_is_five_minutes_both_ways(seconds: int) -> None:
    assert isinstance(judged(signed(stamp=STAMP + seconds)), list)


def test_a_replay_is_refused_as_long_as_it_could_pass() -> None:
    replays = Replays()
    assert isinstance(judged(signed(stamp=STAMP + 300), replays=replays), list)
    late = START + timedelta(seconds=600)
    assert rule(signed(stamp=STAMP + 300), now=late, replays=replays) == "hook-replay"
    assert isinstance(judged(signed("delivery-2"), replays=replays), list)


def test_a_bad_delivery_uses_up_no_id() -> None:
    replays = Replays()
    assert rule(signed(secret=OTHER), replays=replays) == "hook-signature"
    assert isinstance(judged(signed(), replays=replays), list)


def test_a_crowd_is_refused_and_then_forgotten() -> None:
    replays = Replays()
    for number in range(hook.CROWD):
        replays.take(f"delivery-{number}", START.timestamp())
    assert rule(signed("delivery-new"), replays=replays) == "hook-rate"
    later = START + timedelta(seconds=601)
    assert isinstance(judged(signed("delivery-new", STAMP + 601), now=later, replays=replays), list)


def test_secrets_can_be_changed_and_must_be_long() -> None:
    assert isinstance(judged(signed(secret=OTHER), secrets=(SECRET, OTHER)), list)
    assert rule(signed(), secrets=()) == "hook-signature"
    with pytest.raises(ConfigError, match="too short"):
        judged(signed(), secrets=(SECRET, b"short"))


@given(
    st.lists(st.tuples(st.sampled_from(["x-qa-delivery", "X-QA-Timestamp", "x-qa-signature"]), st.text())),
    st.binary(),
)
def test_no_forgery_passes(headers: list[tuple[str, str]], body: bytes) -> None:
    assert isinstance(judged(Delivery("deploy", tuple(headers), body)), Refused)
