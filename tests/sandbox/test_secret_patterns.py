"""The one table of secrets: what it finds, what it only masks, and that no page makes it slow."""

from __future__ import annotations

import base64
import json
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.findings import redact
from fleet.findings.redact import Redactor
from sandbox.secrets.patterns import SECRETS, SecretPattern, fold, hide_all
from sandbox.text import mask
from tests.sandbox.steps import matches, steps

ROWS = [*SECRETS, *(SecretPattern("", one) for one in (redact._PUBLIC_HASH, redact._KEY64, redact._WORDS))]
HEAD = "-----BEGIN PRIVATE KEY-----"
UNITS = (
    HEAD,
    f"{HEAD}\n",
    "-----BEGIN ",
    f"{HEAD}-----END ",
    "-",
    "a",
    "0x",
    "abc ",
    "bearer ",
    "bearer\t=",
    "eyJaaaaaa-",
    "eyJaaaaaa.",
    "eyJaaaaaa.aaaa.",
    "sk-",
    "sk-aaaaaaaaaaaaaaaa",
    "AIza",
    "ghp_",
    "://a:a",
    "cookie: ",
    "tx ",
    "private key is ",
    "privatekey",
    "sponsor\n",
    "a1.) ",
    "SG.",
    "postgres://a:",
    "https://a:a",
    "secret_key=",
    "SECRET_KEY=a",
    "discord.com/api/webhooks/1",
)
PATIENCE = 2.5
"""Twice the text may cost twice the steps, and a little for the ends; a quadratic search costs four times."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("unit", UNITS)
def test_twice_the_page_is_twice_the_work(unit: str) -> None:
    short, long = (unit * (size // len(unit)) for size in (300, 600))
    for row in ROWS:
        assert work(row, long) <= PATIENCE * work(row, short), row.pattern.pattern


def work(row: SecretPattern, text: str) -> int:
    """Steps of the search, and of the judgement of all that it finds."""
    if row.certain is None:
        return steps(row.pattern, text)
    found = [match[match.lastindex or 0] for match in row.pattern.finditer(text)]
    return steps(row.pattern, text) + sum(steps(row.certain, one, once=True) for one in found)


def test_the_counter_counts_what_grows() -> None:
    """The pattern that this table had: each head was searched for an end, up to 8192 characters away."""
    old = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]{0,8192}?-----END [A-Z ]*PRIVATE KEY-----")
    assert steps(old, HEAD * 40) > 3.5 * steps(old, HEAD * 20)


LEAKS = (
    ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----", "private-key"),
    ("sk-ABCDEFGHIJKLMNOPQRST", "api-key"),
    ("sk-proj-abcDEF0123456789", "api-key"),
    ("sk_live_0123456789abcdefghij", "api-key"),
    ("AIzaSyA1234567890abcdefghijklmnopqrstu", "api-key"),
    ("ghp_0123456789abcdefghijABCDEFGHIJ012345", "api-key"),
    ("github_pat_" + "11ABCDEFG0" * 5, "api-key"),
    ("glpat-abcdefghij0123456789", "api-key"),
    ("xoxb-123456789012-abcdefghijklmnopqrst", "api-key"),
    ("AKIAABCDEFGHIJKLMNOP", "api-key"),
    ("npm_" + "a1B2" * 9, "api-key"),
    ("Bearer abcdefghijklmnop1234", "bearer"),
    ("private key: 0x" + "ab" * 32, "private-key"),
)
SHOWN_BY_RIGHT = (
    "sk-folding-cube-container",
    "AKIAIOSFODNN7EXAMPLE",
    "npm_config_registry_of_the_project",
    "Bearer YOUR_ACCESS_TOKEN_HERE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl",
    "http://user:hunter22@host/",
    "cookie: abcdefgh",
    f"0x{'ab' * 20}:1781259648:0x{'12' * 65}",
    "-----BEGIN PRIVATE KEY-----\n...",
)


@pytest.mark.parametrize(("text", "kind"), LEAKS)
def test_what_the_finder_reports_the_redactor_masks(text: str, kind: str) -> None:
    page = f"before {text} after"
    masked, kinds = mask(page)
    assert kinds == (kind,)
    assert f"[{kind}]" in masked
    shown = Redactor().text(page)
    assert f"[redacted:{kind}]" in shown
    assert text not in shown


@pytest.mark.parametrize("text", SHOWN_BY_RIGHT)
def test_what_a_page_may_show_is_masked_and_never_reported(text: str) -> None:
    page = f"before {text} after"
    assert mask(page) == (page, ())
    assert "[redacted:" in Redactor().text(page)


@pytest.mark.parametrize("text", [text for text, _ in LEAKS] + list(SHOWN_BY_RIGHT))
def test_the_counter_matches_what_the_engine_matches(text: str) -> None:
    for row in ROWS:
        ends = [match.end() for match in row.pattern.finditer(text)]
        assert matches(row.pattern, text) == ends, row.pattern.pattern


@pytest.mark.parametrize("row", SECRETS, ids=lambda row: row.kind)
@settings(max_examples=8)
@given(data=st.data())
def test_every_match_of_a_row_has_one_of_its_words(row: SecretPattern, data: st.DataObject) -> None:
    text = data.draw(st.from_regex(row.pattern))
    assert any(word in fold(text) for word in row.words), text
    assert all(word == fold(word) for word in row.words)


def test_letters_that_only_look_like_those_of_ascii_do_not_hide_a_secret() -> None:
    for sign in map(chr, range(128, 0x11000)):
        for letter in "abcdefghijklmnopqrstuvwxyz":
            assert letter in fold(sign) or not re.fullmatch(letter, sign, re.IGNORECASE), (sign, letter)
    assert Redactor().text("a cooKıe: abcdefgh") == "a [redacted:private]"


PIECES = st.sampled_from(
    [*UNITS, *(text for text, _ in LEAKS), *SHOWN_BY_RIGHT, " ", "\n", "ı", "[redacted:x]"]
)


@settings(max_examples=300)
@given(pieces=st.lists(PIECES, max_size=12))
def test_rows_that_are_left_out_by_their_words_would_have_hidden_nothing(pieces: list[str]) -> None:
    text = expected = "".join(pieces)
    for row in SECRETS:
        expected = row.hide(expected, f"[{row.kind}]")
    assert hide_all(text, SECRETS, lambda row: f"[{row.kind}]", lambda _: bool) == expected


TOKEN = "Q7fTz2Lw9XkB4mRc8YvN1sHd6JpG3aEu5ViZ0oqW"
ISSUED_ONES = (
    ("ghp_" + TOKEN[:36], "github-token"),
    ("glpat-" + TOKEN[:20], "gitlab-token"),
    ("xoxb-948372615243-" + TOKEN[:24], "slack-token"),
    ("AKIAQ7FTZ2LWXKB4MRCY", "aws-key"),
    ("sk_live_" + TOKEN[:24], "stripe-key"),
    ("sk-ant-api03-" + TOKEN + "-_" + TOKEN, "anthropic-key"),
    ("sk-proj-" + TOKEN, "openai-key"),
    ("npm_" + TOKEN[:36], "npm-token"),
    (f"SG.{TOKEN[:22]}.{TOKEN}abx", "sendgrid-key"),
    ("hf_" + TOKEN[:34], "huggingface-token"),
    ("84736251:AA" + TOKEN[:33], "telegram-token"),
    ('"client_secret": "' + TOKEN[:24] + '"', "labelled-secret"),
    ("JWT_SECRET=" + TOKEN[:24], "labelled-secret"),
    ("postgres://app:" + TOKEN[:14] + "@db.internal:5432/app", "database-url"),
    ("https://deploy:" + TOKEN[:14] + "@git.corp.io/x", "basic-auth-url"),
    ("umbrella mercy armor royal ghost mesh feed year media stairs response zoo", "mnemonic"),
)
EXAMPLES = (
    "ghp_" + "x" * 36,
    "postgres://user:password@localhost/db",
    "postgres://app:" + TOKEN[:14] + "@db.example.com/app",
    "https://user:your-password@host/",
    '"client_secret": "your-client-secret-here"',
    "JWT_SECRET=change-me-to-something-long",
    "sk_test_" + TOKEN[:24],
    "sk-ant-api03-your-key-goes-here-your-key-goes-here",
    "private key: 0x" + "1" * 64,
    "private key: 0x" + "0123456789abcdef" * 4,
    "test test test test test test test test test test test junk",
    "abandon " * 11 + "about",
    "umbrella mercy armor royal ghost mesh feed year media stairs response zone",
    "tx 0x" + "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
    "sha256:4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
)


@pytest.mark.parametrize(("text", "kind"), ISSUED_ONES)
def test_an_issued_secret_is_reported_by_its_issuer_wherever_it_stands(text: str, kind: str) -> None:
    quoted = json.dumps(json.dumps({"x": f" {text} "}))
    for page in (f"before: {text}\n.", quoted, f"<p title=&quot;{text}&quot;>", f"%22{text}%22"):
        masked, kinds = mask(page)
        assert kind in kinds
        assert TOKEN[:14] not in masked
        assert f"[{kind}]" in masked
    assert TOKEN[:14] not in Redactor().text(f"before: {text}\n.")
    masked, kinds = mask(f"config={base64.b64encode(f'key: {text}  '.encode()).decode()};")
    assert kinds == (kind,)
    assert masked == f"config=[{kind}];"


@pytest.mark.parametrize("text", EXAMPLES)
def test_an_example_is_not_reported(text: str) -> None:
    for page in (f"before: {text}. After", json.dumps({"x": text})):
        assert set(mask(page)[1]) <= {"api-key"}  # of which no oracle speaks


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("-----BEGIN PRIVATE KEY-----\nyour key here, in base64\n-----END PRIVATE KEY-----", ()),
        ("-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----", ()),
        ('{"hint": "-----BEGIN PRIVATE KEY-----\\n...\\n-----END PRIVATE KEY-----"}', ()),
        ("-----BEGIN PRIVATE KEY-----\n<your key>\n-----END PRIVATE KEY-----", ()),
        ("-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhki\n-----END PRIVATE KEY-----", ("private-key",)),
        (f"meter = '0x{'1c7e4a90' * 7}5b3d80f2'; // private key of the meter", ("private-key",)),
        (f"0x{'1c7e4a90' * 7}5b3d80f2  # TODO: the deployer's private key", ("private-key",)),
        (f"cast tx 0x{'1c7e4a90' * 7}5b3d80f2  # never share your private key", ()),
        (f"salt = 0x{'1c7e4a90' * 7}5b3d80f2; // any value, not a private key", ()),
        (f"cast receipt 0x{'1c7e4a90' * 7}5b3d80f2 # signed with the private key of alice", ()),
        (f"0x{'1c7e4a90' * 7}5b3d80f2  // hash of the public key; no private key is needed", ()),
        (f"topic = '0x{'1c7e4a90' * 7}5b3d80f2'; // hash of the meter", ()),
        ("private key: 0x2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6", ()),
        ("private key: 0x2b871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6", ("private-key",)),
    ],
)
def test_words_in_place_of_a_key_and_keys_that_everybody_has_are_no_leak(
    text: str, kinds: tuple[str, ...]
) -> None:
    assert mask(f"As {text} says.")[1] == kinds


def signed(claims: dict[str, object]) -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, claims)
    return ".".join(
        [
            *(base64.urlsafe_b64encode(json.dumps(one).encode()).decode().rstrip("=") for one in parts),
            "s" * 43,
        ]
    )


@pytest.mark.parametrize(
    ("claims", "lead", "leaks"),
    [
        ({"sub": "mina", "exp": 3600}, "authorization=Bearer ", True),
        ({"sub": "mina", "exp": 3600}, "token=", False),  # a platform may give one to its reader
        ({"sub": "mina", "exp": -60}, "Authorization: Bearer ", False),  # an example in a document
        ({"sub": "mina"}, "Authorization: Bearer ", False),
        ({"sub": "anon", "exp": 3600 * 24 * 3650}, "Authorization: Bearer ", False),  # made to be public
        ({"iss": "team", "exp": 3600}, "Authorization: Bearer ", False),
    ],
)
def test_a_token_that_somebody_sent_and_that_is_valid_is_a_leak(
    claims: dict[str, object], lead: str, leaks: bool
) -> None:
    if "exp" in claims:
        claims = claims | {"exp": int(time.time()) + int(str(claims["exp"]))}
    text, kinds = mask(f"04:13 GET /me {lead}{signed(claims)} 200")
    assert ("session-token" in kinds) is leaks
    assert not leaks or signed(claims) not in text
