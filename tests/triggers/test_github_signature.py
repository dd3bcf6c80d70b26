"""GitHub's own signature starts runs, once for each body, and no recorded delivery passes for another."""

from __future__ import annotations

import hashlib
import hmac
import shutil
import subprocess
from datetime import timedelta

import pytest

from fleet.errors import Refused
from fleet.triggers.hooks.webhook import Delivery, head, sign, verify
from fleet.triggers.model import Firing
from tests.triggers.conftest import START

SECRET, OTHER = b"s" * 16, b"o" * 32
BODY = b'{"ref": "refs/heads/main"}'
STAMP = int(START.timestamp())


def mac(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def from_github(body: bytes = BODY, signature: str = "", *more: tuple[str, str]) -> Delivery:
    pairs = (("X-GitHub-Delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"), ("X-GitHub-Event", "push"))
    signed = ("X-Hub-Signature-256", signature or mac(body))
    return Delivery("deploy", (*pairs, ("X-Hub-Signature", "sha1=00"), signed, *more), body)


def judged(delivery: Delivery, secrets: tuple[bytes, ...] = (SECRET,), later: int = 0) -> list[Firing]:
    return verify(delivery, secrets=secrets, personas=("qa-a",), now=START + timedelta(seconds=later))


def test_one_body_is_one_firing_at_any_time() -> None:
    (first,) = judged(from_github(), (OTHER, SECRET))
    (again,) = judged(from_github(), later=86_400)
    assert first.key == again.key == f"qa-a@hook:deploy:gh-{hashlib.sha256(BODY).hexdigest()[:40]}"
    assert first.due == START
    (another,) = judged(from_github(BODY + b" "))
    assert another.key != first.key


def test_it_matches_the_example_of_github() -> None:
    """docs.github.com: validating webhook deliveries, "testing the webhook payload validation"."""
    value = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    body, secret = b"Hello, World!", b"It's a Secret to Everybody"
    assert len(judged(from_github(body, value), (secret,))) == 1


@pytest.mark.parametrize(
    ("delivery", "rule"),
    [
        (from_github(signature=mac(BODY, OTHER)), "hook-signature"),
        (from_github(signature=mac(BODY + b"x")), "hook-signature"),
        (from_github(signature=mac(BODY).upper()), "hook-header"),
        (from_github(signature="sha1=" + "0" * 40), "hook-header"),
        (from_github(BODY, "", ("x-hub-signature-256", mac(BODY))), "hook-header"),
        (from_github(BODY, "", ("X-QA-Timestamp", str(STAMP))), "hook-header"),
        (from_github(b"x" * (256 * 1024 + 1)), "hook-size"),
    ],
    ids=["another secret", "another body", "upper case", "sha1", "twice", "mixed", "too large"],
)
def test_a_wrong_one_is_refused(delivery: Delivery, rule: str) -> None:
    with pytest.raises(Refused) as caught:
        judged(delivery)
    assert caught.value.rule == rule


def test_a_recorded_delivery_of_our_form_is_none_of_githubs() -> None:
    signed = sign(SECRET, "delivery-1", STAMP, BODY)
    body = f"delivery-1.{STAMP}.".encode() + BODY
    assert signed == mac(body)
    with pytest.raises(Refused) as caught:
        judged(from_github(body, signed))
    assert caught.value.rule == "hook-signature"


def test_headers_are_judged_before_the_body() -> None:
    assert head(from_github().headers, START).ident == ""


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_openssl_signs_both_forms_as_the_guide_says() -> None:
    def openssl(text: bytes) -> str:
        words = ["openssl", "dgst", "-sha256", "-hmac", SECRET.decode(), "-r"]
        return subprocess.run(words, input=text, capture_output=True, check=True).stdout.split()[0].decode()

    assert "sha256=" + openssl(BODY) == mac(BODY)
    assert "sha256=" + openssl(f"delivery-1.{STAMP}.".encode() + BODY) == sign(
        SECRET, "delivery-1", STAMP, BODY
    )
