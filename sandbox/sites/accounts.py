"""What two throwaway accounts are called and write, and what leaves the jail of an answer to one of them."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any

from sandbox.http import HttpReply
from sandbox.sites.likeness import like
from sandbox.text import clean, decode, mask

ACCOUNTS = ("one", "other")
PHRASE = "{phrase}"
"""Stands for a passphrase that is made in the jail: a repro keeps it."""
SHAPED = re.compile(r"\{(handle|email|phrase):(.{1,200})\}")
"""A word of an account in a form that a platform asks for: its name, and a pattern that it must fit."""
SEED = "{seed}"
"""Stands for what a name in a platform's form is made from: it lasts as long as the account."""
_MARKS = ("{mark}", "{tag}")
"""What accounts write, another one in each call."""
USER, SECRET = "{user}", "{secret}"
"""Stand for an account that the operator names, and its passphrase or key."""
READ, QUOTED = 16_000, 160
"""Characters of a refusal that are read, and quoted."""
_MARKUP = re.compile(r"(?is)<(script|style|title|template)\b.*?</\1\s*>|<!--.*?-->|<[^<>]{0,2000}>")
_REASON = re.compile(
    r"(?i)error|invalid|already|taken|must|required|not (?:allowed|valid|match|correct)|wrong|captcha|confirm"
    r"|too (?:short|long|many|weak)|verif|denied|forbidden|refused|limit|try again|disabled|closed|cannot"
)
"""Words of a line that says why."""
_INLINE = re.compile(r"(?i)</?(?:a|abbr|b|code|em|i|small|span|strong|u)\b")
_TOKEN = re.compile(r"(?=[^0-9]{0,200}[0-9])[\w+/=.:~-]{24,}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AccountForm:
    """A form of a page; `fields` are the kinds by name: `text`, `textarea`, `password`, `file` and the like,
    `token` for a hidden value that looks random, `id` for that of the thing last made, `own-id` for that
    of an account."""

    method: str
    """HTTP method that it is sent by."""
    action: str
    """Path that it is sent to, as in `links`."""
    fields: dict[str, str] = field(default_factory=dict)
    """Kind by name of a field."""


@dataclass(frozen=True, slots=True)
class AccountAnswer:
    """`status` 0: the step was not made, because there is no such token, cookie or thing, or no browser.

    After a form that leads on, the page that follows is what is looked at. The fields from `own` on are of
    a site with forms.
    """

    status: int = 0
    """HTTP status."""
    one: bool = False
    """Whether the mark of `one` stands in it."""
    other: bool = False
    """Whether the mark of `other` stands in it."""
    facts: dict[str, str] = field(default_factory=dict)
    """The plain values of its JSON object, as JSON, by name, but for what is called a secret. Of a page that
    `one` is shown for a query or a form, `page`: what it says more than at the first time."""
    named: bool = False
    """Whether it names the account that asks; of who is neither, `one`."""
    said: str = ""
    """What a refusal says, without words of ours."""
    many: int = 0
    """Entries of the list that its JSON is, or has."""
    private: tuple[str, ...] = ()
    """Names of fields of its JSON, at any depth, whose names and values are those of what nobody else should
    read, but for what the account that asks wrote or was given itself: see sandbox/secrets/fields.py."""
    holds: tuple[str, ...] = ()
    """Names of the plain values of its JSON that are there, at any depth, those in lists too."""
    shared: bool = False
    """Whether its headers say that any cache may keep it."""
    markup: bool = False
    """Whether it is JSON that a browser shows as a page, by its type."""
    handler: bool = False
    """Whether it is a page with an element of ours, by the mark of `one`, whose handler would run."""
    own: bool = False
    """Whether its title or headings speak of what is one's own."""
    leads: str = ""
    """Where it redirects: a path, `away` for the foreign host that a step named, `foreign` for another."""
    ran: bool = False
    """Whether the canary of this call ran as script of the site."""
    links: tuple[str, ...] = ()
    """Paths of the site that it links to; {id} is the thing last made, {one-id} an account."""
    forms: tuple[AccountForm, ...] = ()
    """Its forms."""


def words(known: Mapping[str, str] | None = None) -> dict[str, str]:
    """What one account is called, and what it writes; `known` are user and secret of one that is there."""
    handle = "qa" + os.urandom(5).hex()
    made = {
        "{handle}": handle,
        "{email}": f"{handle}@example.com",
        PHRASE: f"Qa1!{os.urandom(8).hex()}",
        "{mark}": "qam" + os.urandom(6).hex(),
        "{tag}": "qat" + os.urandom(6).hex(),
        SEED: os.urandom(6).hex(),
    }
    if known:
        made |= {
            "{handle}": known["user"],
            PHRASE: known["secret"],
            USER: known["user"],
            SECRET: known["secret"],
        }
    return made


def new_marks() -> dict[str, str]:
    """What an account writes in another call."""
    return {word: text for word, text in words().items() if word in _MARKS}


def replaced(value: Any, known: Mapping[str, str]) -> Any:  # noqa: ANN401  any JSON
    """A value with the words in its texts filled in; of a list or a table, in each of its members."""
    if isinstance(value, list | tuple):
        return [replaced(one, known) for one in value]
    if isinstance(value, dict):
        return {name: replaced(one, known) for name, one in value.items()}
    if isinstance(value, str) and (shaped := SHAPED.fullmatch(value)):
        # by a word that stays the same, so that it is the same text wherever it stands
        seed = known[PHRASE if shaped[1] == "phrase" else SEED]
        return like(shaped[2], seed) or known[f"{{{shaped[1]}}}"]
    for word, text in known.items() if isinstance(value, str) else ():
        value = value.replace(word, text)
    return value


def innermost(fields: dict[str, Any]) -> dict[str, Any]:
    """The table of a body that has words of an account: below those that only wrap it."""
    for _ in range(8):
        inner = [one for one in fields.values() if isinstance(one, dict)]
        if len(inner) != 1 or any("{" in one for one in fields.values() if isinstance(one, str)):
            break
        fields = inner[0]
    return fields


def renamed(sent: dict[str, Any], joined: Mapping[str, Any]) -> None:
    """Name an account in a log-in as it signed up in the end: by the same field, else by the same word."""
    texts = [one for one in joined.values() if isinstance(one, str)]
    for name, one in sent.items():
        word, same = re.fullmatch(r"\{(handle|email|phrase)\}", str(one)), joined.get(name)
        if isinstance(same, str) and same.startswith(f"{{{word[1]}" if word else "{"):
            sent[name] = same
        elif word and one not in texts:
            sent[name] = next((text for text in texts if text.startswith(f"{{{word[1]}:")), one)


def quoted(reply: HttpReply, known: Mapping[str, str]) -> str:
    """What an answer says, to end a sentence about it: a page's line that says why, else its first ones; ""
    if it says nothing.

    `known` are words of ours by placeholder; they stay in the jail, as does what looks like a token.
    """
    text = decode(reply.body)[:READ]
    if len(said := lines(text, reply.content_type)) > 1:
        text = next((one for one in said if _REASON.search(one)), " ".join(said))
    for word, value in sorted(known.items(), key=lambda pair: -len(pair[1])):
        text = text.replace(value, word)
    text = _TOKEN.sub("[hidden]", mask(text)[0])
    quote = clean(" ".join(text.split()), QUOTED)
    return f": {quote}" if quote else ""


def lines(text: str, content_type: str) -> list[str]:
    """The lines of a page as a person sees them; any other text is one."""
    if "html" not in content_type.lower():
        return [text]
    return [" ".join(one.split()) for one in unescape(_spaced(text)).split("\0")]


def _spaced(page: str) -> str:
    """A page's text: a tag of a paragraph or the like ends its line, one within a sentence does not."""

    def plain(tag: re.Match[str]) -> str:
        return "" if _INLINE.match(tag[0]) else "\0"

    return _MARKUP.sub(plain, page.replace("\n", " "))
