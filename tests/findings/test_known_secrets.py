"""A secret that the fleet holds is masked however a server hides it in its words."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from html import escape
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.findings.known_secrets import PIECE, KnownSecrets
from fleet.findings.redact import Redactor, mask

TOKEN = "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuVwXyZ0123456789"
KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
Hide = Callable[[str], str]


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def cut(text: str, size: int, between: str) -> str:
    return between.join(text[at : at + size] for at in range(0, len(text), size))


HIDDEN: dict[str, Hide] = {
    "reversed": lambda one: one[::-1],
    "base64": b64,
    "base64 of it with a name": lambda one: b64(f"x-access-token:{one}"),
    "base64 of it in words": lambda one: b64(f"ab {one} is not known here"),
    "base64url": lambda one: base64.urlsafe_b64encode(f"??>{one}~~".encode()).decode(),
    "base64 reversed": lambda one: b64(one[::-1]),
    "reversed base64": lambda one: b64(one)[::-1],
    "hex": lambda one: one.encode().hex(),
    "hex in upper case": lambda one: one.encode().hex().upper(),
    "hex in pairs": lambda one: " ".join(f"{byte:02x}" for byte in one.encode()),
    "percent": lambda one: "".join(f"%{byte:02x}" for byte in one.encode()),
    "percent twice": lambda one: quote("".join(f"%{byte:02X}" for byte in one.encode())),
    "half percent": lambda one: one[:9] + "".join(f"%{byte:02X}" for byte in one[9:].encode()),
    "escapes of JSON": lambda one: "".join(f"\\u{ord(char):04x}" for char in one),
    "escapes of a program": lambda one: "".join(f"\\x{ord(char):02x}" for char in one),
    "entities": lambda one: "".join(f"&#{ord(char)};" for char in one),
    "entities in hex": lambda one: "".join(f"&#x{ord(char):X};" for char in one),
    "upper case": str.upper,
    "lower case": str.lower,
    "blanks": lambda one: cut(one, 1, " "),
    "lines": lambda one: cut(one, 7, "\n"),
    "quotes": lambda one: cut(one, 5, '" + "'),
    "a list": lambda one: json.dumps(re.findall("..?", one)),
    "zero-width blanks": lambda one: cut(one, 2, "\u200b"),
    "html": lambda one: escape(cut(one, 3, "'")),
    "a half": lambda one: one[len(one) // 2 :],
    "pieces in words": lambda one: cut(one, PIECE + 4, " and then "),
    "base64 in lines": lambda one: cut(b64(f"user:{one}"), 20, "\r\n"),
    "reversed in quotes": lambda one: cut(one[::-1], 4, '","'),
    "a base64 in a base64's words": lambda one: b64(one).rstrip("="),
}


def pieces(secret: str) -> set[str]:
    """What must be seen nowhere: pieces of it and of what it is encoded as, in letters and digits."""
    forms = [secret, secret.encode().hex(), *(b64("x" * at + secret)[4:-4] for at in range(3))]
    plain = [re.sub("[^0-9a-z]", "", form.lower()) for form in forms]
    turned = [*plain, *(form[::-1] for form in plain)]
    return {form[at : at + PIECE] for form in turned for at in range(len(form) - PIECE + 1)}


@pytest.mark.parametrize("secret", [TOKEN, KEY, "Tr0ub4dor&3-correct horse"])
@pytest.mark.parametrize("how", HIDDEN)
def test_a_held_secret_is_masked_however_it_is_hidden(how: str, secret: str) -> None:
    hidden = HIDDEN[how](secret)
    shown = Redactor([secret]).text(f"the server said: {hidden} (bad)")
    assert shown.startswith("the server said: ")
    assert mask("secret") in shown
    left = re.sub("[^0-9a-z]", "", shown.replace(mask("secret"), "").lower())
    assert not [piece for piece in pieces(secret) if piece in left]


@pytest.mark.parametrize("how", HIDDEN)
def test_words_without_the_secret_stay(how: str) -> None:
    other = HIDDEN[how]("git: the remote end hung up, of a request to https://host.example/x")
    text = f"fatal: {other}"
    assert KnownSecrets([TOKEN, KEY]).masked(text, "#") == text


@given(st.text(max_size=200), st.text(max_size=20))
def test_what_is_beside_a_piece_stays_and_masking_twice_changes_nothing(text: str, other: str) -> None:
    known = KnownSecrets([TOKEN])
    once = known.masked(f"{text}<{TOKEN[::-1]}>{other}", "#")
    assert known.masked(once, "#") == once
    assert "#" in once


def test_it_does_not_tell_what_it_knows() -> None:
    assert TOKEN not in f"{KnownSecrets([TOKEN])!r}{KnownSecrets([TOKEN])}"
