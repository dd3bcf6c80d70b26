from __future__ import annotations

import base64
import dataclasses
import json
import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.findings.redact import Redactor, chain_words, mask, public_names
from sandbox.secrets.mnemonics import bip39_words
from sandbox.tools import TOOLS

KEY = "4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318"
HASH = "c7e666f164da054d2ca2bd712fb261158473066d414c8cfc33a1b9c7df775fe7"
ADDRESS = "0x" + "ab" * 20
WORDS = "legal winner thank year wave sausage worth useful legal winner thank yellow"


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("use sk-proj-abcDEF0123456789 now", "use [redacted:api-key] now"),
        ("AIzaSyA1234567890abcdefghijklmnopqrstuv", "[redacted:api-key]"),
        ("push with ghp_0123456789abcdefghijABCDEFGHIJ012345", "push with [redacted:api-key]"),
        (f"key 0x{KEY}!", "key [redacted:private-key]!"),
        (f"key {KEY.upper()}", "key [redacted:private-key]"),
        ("Authorization: Bearer abc.def-123456", "Authorization: [redacted:bearer]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl", "[redacted:jwt]"),
        (f"x {ADDRESS}:1781259648:0x{'12' * 65} y", "x [redacted:call-token] y"),
        ("http://user:hunter22@host/", "http://[redacted:password]@host/"),
        ('{"api_key": "abcdef123"}', '{"[redacted:private]"}'),
        ("-----BEGIN EC PRIVATE KEY-----\nabc\n-----END EC PRIVATE KEY-----z", "[redacted:private-key]z"),
        ("-----BEGIN PRIVATE KEY-----\ncut off", "[redacted:private-key]"),
        (f"seed: {WORDS}.", "seed: [redacted:mnemonic]."),
        (f"SEED {WORDS.upper()}", "[redacted:mnemonic]"),
        (f"tx 0x{HASH} reverted", f"tx 0x{HASH} reverted"),
        (f"tx=0x{HASH}", f"tx=0x{HASH}"),
        (f"ev=sha256:{HASH}", f"ev=sha256:{HASH}"),
        (f"owner {ADDRESS}", f"owner {ADDRESS}"),
        (f"data 0x{KEY}{KEY}", f"data 0x{KEY}{KEY}"),
        ("bearer tokens are not checked", "bearer tokens are not checked"),
        ("risk-based scoring of sk-learn", "risk-based scoring of sk-learn"),
    ],
)
def test_row_52_what_is_masked_and_what_stays(text: str, kept: str) -> None:
    assert Redactor().text(text) == kept


def test_prose_of_twelve_short_words_is_not_a_mnemonic() -> None:
    prose = "compile panics with empty enum where clean error should have been returned instead"
    assert Redactor().text(prose) == prose
    assert len(bip39_words()) == 2_048


def test_hash_fields_keep_their_hash_and_others_do_not() -> None:
    seen = Redactor().value({"tx": "0x" + HASH, "sha256": HASH, "tail": "0x" + HASH, "topics": ["0x" + HASH]})
    assert seen == {
        "tx": "0x" + HASH,
        "sha256": HASH,
        "tail": mask("private-key"),
        "topics": ["0x" + HASH],
    }


@pytest.mark.parametrize("field", ["value", "returned", "before"])
def test_a_word_that_a_view_returned_stays_unless_the_fleet_holds_it(field: str) -> None:
    """A root, a hash or an id of 32 bytes looks like a key; what a public chain answers is no secret."""
    root = {field: ["0x" + HASH] if field == "before" else "0x" + HASH}
    redactor = Redactor([KEY])
    assert redactor.answer("qa_chain", root) == root
    assert redactor.answer("qa_fetch", {"text": "0x" + HASH}) == {"text": mask("private-key")}
    told = redactor.showing(chain_words([("qa_chain", root)])).text
    assert told(f"the root is 0x{HASH.upper()}, not 0x{'1' * 64}") == (
        f"the root is 0x{HASH.upper()}, not {mask('private-key')}"
    )
    assert redactor.answer("qa_chain", {"value": "0x" + KEY}) == {"value": "0x" + mask("secret")}
    assert KEY not in redactor.showing([KEY]).text(f"0x{KEY}")


def test_a_number_as_the_abi_spells_it_is_no_key() -> None:
    """Without it, no repro with a view's arguments could be asked again."""
    watch = {"watch": [f"0x6352211e({7:064x})"]}
    assert Redactor().value(watch) == watch


def test_a_registered_secret_is_masked_even_where_a_hash_belongs() -> None:
    redactor = Redactor([KEY])
    assert redactor.value({"tx": "0x" + KEY}) == {"tx": "0x" + mask("secret")}
    assert KEY not in redactor.text(f"tx 0x{KEY}")


def test_fields_are_private_until_they_are_on_the_list() -> None:
    record = {"ok": True, "status": 200, "brand_new": "value", "secrets": ["api-key"], "reply": f"0x{KEY}"}
    assert Redactor().fields(record) == {
        "ok": True,
        "status": 200,
        "brand_new": mask("not-public"),
        "secrets": ["api-key"],
        "reply": mask("private-key"),
    }


@pytest.mark.parametrize("tool", sorted(TOOLS))
def test_every_field_of_every_tool_was_decided_about(tool: str) -> None:
    spec = TOOLS[tool]
    names = {field.name for kind in (spec.args, spec.result) for field in dataclasses.fields(kind)}
    assert names - {spec.attaches} <= spec.public <= public_names()  # what it attaches is kept apart


def test_private_names_lose_their_value_at_any_depth() -> None:
    seen = Redactor().value(
        {"headers": [{"set-cookie": "a=b", "x-goog-api-key": "k", "etag": "e"}], "password": 1}
    )
    assert seen == {
        "headers": [{"set-cookie": mask("private"), "x-goog-api-key": mask("private"), "etag": "e"}],
        "password": mask("private"),
    }


def test_the_word_for_a_passphrase_that_a_jail_makes_stays_in_a_repro() -> None:
    given = {"password": "{phrase}", "secret": "{phrase}x"}
    assert Redactor().value(given) == {"password": "{phrase}", "secret": "[redacted:private]"}


def test_unknown_types_and_endless_nesting_fail_closed() -> None:
    nest: list[object] = []
    nest.append(nest)
    assert Redactor().value({"a": b"raw", "b": object()}) == {
        "a": mask("unknown-type"),
        "b": mask("unknown-type"),
    }
    assert mask("too-deep") in json.dumps(Redactor().value(nest))


@pytest.mark.parametrize("secret", [KEY, "0x" + KEY, bytes.fromhex(KEY)])
def test_a_registered_key_is_masked_in_every_spelling(secret: str | bytes) -> None:
    raw = bytes.fromhex(KEY)
    redactor = Redactor([secret])
    spellings = [KEY, "0x" + KEY, KEY.upper(), repr(raw), base64.b64encode(raw).decode(), str(int(KEY, 16))]
    for spelling in [*spellings, base64.urlsafe_b64encode(raw).decode()]:
        shown = redactor.text(f"before{spelling}after")
        assert mask("secret") in shown
        assert spelling.strip("=") not in shown
    assert redactor.value({"n": int(KEY, 16)}) == {"n": mask("secret")}


@given(
    st.text(st.characters(codec="utf-8"), min_size=8, max_size=60), st.text(max_size=20), st.text(max_size=20)
)
def test_canary_is_gone_from_any_structure(canary: str, before: str, after: str) -> None:
    canary = "C4" + canary.strip() + "zq"
    seen = Redactor([canary]).value({canary: [before + canary + after, {"tx": canary}], "t": (canary,)})
    assert canary not in repr_all(seen)


def repr_all(value: object) -> str:
    if isinstance(value, dict):
        return "\n".join(repr_all(k) + "\n" + repr_all(v) for k, v in value.items())
    return "\n".join(map(repr_all, value)) if isinstance(value, list) else str(value)


@given(st.text(max_size=300) | st.from_regex(r"(Bearer |sk-|0x|password=|://)[a-zA-Z0-9:@\[\]. -]{0,80}"))
def test_masking_twice_changes_nothing(text: str) -> None:
    once = Redactor(["canary-value"]).text(text)
    assert Redactor(["canary-value"]).text(once) == once


def test_a_redactor_does_not_tell_what_it_knows() -> None:
    redactor = Redactor([KEY])
    assert KEY not in f"{redactor!r}{redactor}"
    with pytest.raises(TypeError):
        pickle.dumps(redactor)
    with pytest.raises(ValueError, match="fewer than 8"):
        Redactor(["short"])


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "0x",
        "abc ",
        "abandon ",
        "bearer ",
        "eyJaaaaaa.",
        "-----BEGIN PRIVATE KEY-----",
        "://a:",
        "cookie: ",
        "tx ",
    ],
)
def test_no_pattern_is_slow_on_hostile_text(unit: str) -> None:
    started = time.process_time()
    Redactor([KEY]).text(unit * (400_000 // len(unit)))
    assert time.process_time() - started < 5
