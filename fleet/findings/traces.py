"""Traces of somebody else's break-in or of a crime in an answer. Pure.

A text about such things has some of these words; a trace is what the thing itself has: code of a web shell,
the note of a blackmailer, a shop's list of stolen cards. Pictures are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST = 200_000
"""Characters of one text that are read."""
_TRACES: Mapping[str, re.Pattern[str]] = {
    "malware": re.compile(r"X5O!P%@AP\[4\\PZX54\(P\^\)7CC\)7\}\$EICAR-STANDARD-ANTIVIRUS-TEST-FILE!"),
    "web-shell": re.compile(
        r"(?i)\b(?:eval|assert|system|passthru|shell_exec)\s{0,3}\("
        r"\s{0,3}(?:(?:base64_decode|gzinflate|str_rot13)\s{0,3}\(\s{0,3}){0,3}\$_(?:GET|POST|REQUEST|COOKIE)\b"
        r"|\b(?:c99|r57|b374k|wso) ?shell\b"
    ),
    "hidden-miner": re.compile(
        r"(?i)\bstratum\+(?:tcp|ssl)://|\bcoinhive(?:\.min)?\.js\b|\bcryptonight\.wasm\b"
    ),
    "ransom-note": re.compile(
        r"(?i)\byour (?:files|data|databases?) (?:has been|have been|are|is) (?:encrypted|stolen|backed)"
        r"\b[^<]{0,300}\b(?:bitcoin|btc|monero|xmr|\.onion)\b"
    ),
    "defacement": re.compile(r"(?i)(?:<title>|<h1[^>]{0,80}>)\s*(?:hacked|owned|pwned|defaced) by\b"),
    "command-channel": re.compile(
        r"(?i)\bnc(?:at)? (?:-[a-z]{1,4} ){0,4}-e /bin/(?:ba)?sh\b|\bbash -i >& ?/dev/tcp/"
    ),
    "stolen-cards": re.compile(r"(?i)\b(?:fullz|dumps? with pins?|cvv shop|carding shop)\b"),
}
KINDS = tuple(_TRACES)
DO = "ask nothing more there, keep the records, tell its owners"
"""What a person is advised to do."""


def traces(text: str) -> list[str]:
    """The kinds of what a text shows; [] for an ordinary one."""
    return [kind for kind, pattern in _TRACES.items() if pattern.search(text[:MOST])]
