"""A delivery passes when everything about it is right; each way to be wrong has its own word."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.config import FleetConfig, HookSection, hook_files
from fleet.errors import ConfigError, Refused
from fleet.personas.model import Persona, Trigger
from fleet.triggers.hooks import webhook
from fleet.triggers.hooks.secret import hook_secrets
from fleet.triggers.hooks.webhook import Delivery, headers, sign, unfired, verify
from fleet.triggers.model import Firing, Skip
from tests.triggers.conftest import START

SECRET, OTHER = b"s" * 16, b"o" * 32
BODY = b'{"ref": "main"}'
STAMP = int(START.timestamp())


def signed(
    ident: str = "delivery-1", stamp: int = STAMP, body: bytes = BODY, secret: bytes = SECRET
) -> Delivery:
    pairs = (
        ("Content-Type", "application/json"),
        ("X-QA-Delivery", ident),
        ("x-qa-timestamp", str(stamp)),
        ("X-Qa-Signature", sign(secret, ident, stamp, body)),
    )
    return Delivery("deploy", pairs, body)


def header(number: int, value: str) -> Delivery:
    """A good delivery with one header of another."""
    pairs = list(signed().headers)
    pairs[number] = (pairs[number][0], value)
    return replace(signed(), headers=tuple(pairs))


def judged(delivery: Delivery, now: datetime = START, secrets: tuple[bytes, ...] = (SECRET,)) -> list[Firing]:
    return verify(delivery, secrets=secrets, personas=("qa-a", "qa-b"), now=now)


def rule(delivery: Delivery, secrets: tuple[bytes, ...] = (SECRET,)) -> str:
    with pytest.raises(Refused) as caught:
        judged(delivery, secrets=secrets)
    return caught.value.rule


def test_a_good_delivery_fires_each_persona_under_its_id() -> None:
    assert judged(signed()) == [
        Firing("qa-a@hook:deploy:delivery-1", "qa-a", "webhook deploy", START),
        Firing("qa-b@hook:deploy:delivery-1", "qa-b", "webhook deploy", START),
    ]


def test_the_signature_is_the_documented_one() -> None:
    text = b"delivery-1." + str(STAMP).encode() + b"." + BODY
    assert (
        sign(SECRET, "delivery-1", STAMP, BODY)
        == "sha256=" + hmac.new(SECRET, text, hashlib.sha256).hexdigest()
    )


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (signed(secret=OTHER), "hook-signature"),
        (replace(signed(), body=BODY + b" "), "hook-signature"),
        (header(1, "delivery-2"), "hook-signature"),
        (header(2, str(STAMP + 1)), "hook-signature"),
        (header(3, sign(SECRET, "delivery-1", STAMP, BODY).upper()), "hook-header"),
        (signed(stamp=STAMP - 301), "hook-timestamp"),
        (signed(stamp=STAMP + 301), "hook-timestamp"),
        (signed(body=b"x" * (webhook.LARGEST + 1)), "hook-size"),
        (signed("short"), "hook-header"),
        (signed("delivery 1"), "hook-header"),
        (signed("delivery-1\n"), "hook-header"),
        (signed(stamp=-1), "hook-header"),
        (replace(signed(), headers=signed().headers[:3]), "hook-header"),
        (replace(signed(), headers=signed().headers[:2]), "hook-header"),
        (replace(signed(), headers=()), "hook-header"),
        (replace(signed(), headers=signed().headers + signed().headers[1:2]), "hook-header"),
    ],
)
def test_each_way_to_be_wrong_is_refused(changed: Delivery, expected: str) -> None:
    assert rule(changed) == expected


@pytest.mark.parametrize("seconds", [-300, 0, 300])
def test_the_window_is_five_minutes_both_ways(seconds: int) -> None:
    assert len(judged(signed(stamp=STAMP + seconds))) == 2


def test_a_delivery_again_is_the_same_key_and_one_of_another_hook_is_not() -> None:
    keys = [firing.key for firing in judged(signed())]
    assert [firing.key for firing in judged(signed(stamp=STAMP + 9, body=b"other"))] == keys
    elsewhere = judged(replace(signed(), hook="other"))
    assert not {firing.key for firing in elsewhere} & set(keys)


def test_secrets_can_be_changed() -> None:
    assert len(judged(signed(secret=OTHER), secrets=(SECRET, OTHER))) == 2
    assert rule(signed(), secrets=()) == "hook-signature"


def test_the_headers_that_we_send_are_the_ones_that_pass() -> None:
    made = headers(SECRET, "delivery-1", STAMP, BODY)
    assert len(judged(Delivery("deploy", tuple(made.items()), BODY))) == 2


def test_a_persona_on_a_webhook_that_is_not_configured_is_told() -> None:
    triggers = tuple(Trigger(on=on) for on in ("hook:deploy", "hook:gone", "registered"))
    persona = Persona.model_construct(name="qa-a", surface="ux", triggers=triggers)
    why = "no [hooks.gone] in fleet.toml: no delivery can fire it"
    assert unfired(persona, {"deploy"}) == [Skip("qa-a", "qa-a@hook:gone:-", why)]


class TestSecret:
    @pytest.fixture(autouse=True)
    def _no_credentials(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)

    def write(self, path: Path, text: str = "s" * 32 + "\n", mode: int = 0o600) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    def config(self, **files: str) -> FleetConfig:
        return FleetConfig(hooks={"deploy": HookSection.model_validate(files)})

    def test_the_newest_and_the_one_before(self, tmp_path: Path) -> None:
        self.write(tmp_path / "keys" / "hook.deploy")
        self.write(tmp_path / "old", "o" * 32)
        got = hook_secrets(self.config(old_secret_file="old"), "deploy", tmp_path)
        assert got == (b"s" * 32, b"o" * 32)

    def test_a_credential_wins_over_the_default_alone(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "c"))
        assert hook_files(self.config(), "deploy", tmp_path) == (tmp_path / "keys" / "hook.deploy",)
        self.write(tmp_path / "c" / "hook.deploy", mode=0o440)
        assert hook_secrets(self.config(), "deploy", tmp_path) == (b"s" * 32,)
        assert hook_files(self.config(secret_file="own"), "deploy", tmp_path) == (tmp_path / "own",)

    @pytest.mark.parametrize(
        ("mode", "text", "why"),
        [
            (0o640, "s" * 32, "lets others in"),
            (0o600, "s" * 15, "at least 16 bytes"),
            (0o600, "s" * 15 + "\n\n\n", "at least 16 bytes"),
            (0o600, "s" * 20_000, "larger than"),
        ],
    )
    def test_a_bad_file_is_good_for_nothing(self, tmp_path: Path, mode: int, text: str, why: str) -> None:
        self.write(tmp_path / "keys" / "hook.deploy", text, mode)
        with pytest.raises(ConfigError, match=why) as caught:
            hook_secrets(self.config(), "deploy", tmp_path)
        assert "sss" not in str(caught.value)

    def test_a_missing_one_and_a_link_are_refused(self, tmp_path: Path) -> None:
        self.write(tmp_path / "real")
        for there in (False, True):
            if there:
                (tmp_path / "link").symlink_to(tmp_path / "real")
            with pytest.raises(ConfigError):
                hook_secrets(self.config(secret_file="link"), "deploy", tmp_path)


@given(
    st.lists(st.tuples(st.sampled_from(["x-qa-delivery", "X-QA-Timestamp", "x-qa-signature"]), st.text())),
    st.binary(),
)
def test_no_forgery_passes(pairs: list[tuple[str, str]], body: bytes) -> None:
    with pytest.raises(Refused):
        judged(Delivery("deploy", tuple(pairs), body))
