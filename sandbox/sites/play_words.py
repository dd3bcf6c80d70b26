"""The words of a row of steps: texts of two accounts, ids that a site gave, and how both are spelled."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from sandbox import http
from sandbox.pages.forms import ReadPage
from sandbox.pages.handlers import kept_by_caches
from sandbox.sites.accounts import ACCOUNTS, PHRASE, AccountAnswer, new_marks, quoted, replaced, words
from sandbox.sites.site_visitor import Part, Spelling, differing, leads, led, own, parts
from sandbox.spec import Mistake
from sandbox.text import decode

_IDENT = re.compile(r"\{(?:id|one-id)\}")
WORD_LENGTH = 8
"""Letters from which on a word or a secret of ours is taken out of a text: a shorter one may be any word."""
_OWN = frozenset(("my", "mine", "your", "yours", "private", "personal"))


def _canary() -> str:
    return "qac" + os.urandom(6).hex()


class PlayWords:
    """`ident` is what the site calls the thing last made, `idents` what it calls each account."""

    def __init__(self, origin: str, accounts: Mapping[str, Mapping[str, str]] | None = None) -> None:
        self.origin, self.ident = origin, ""
        self.canary = _canary()
        self.idents: dict[str, str] = {}
        self._prefixes, self._met = frozenset[str](), frozenset[Part]()
        self._everywhere = set(_OWN)
        """Words of one's own that stand in the title of every page: they say nothing of one."""
        self._words = {label: words((accounts or {}).get(label)) for label in ACCOUNTS}
        self._confirmed: set[str] = set()
        """What stands before an id in paths where `one` read its mark, or what the other is refused."""
        self._served: dict[tuple[str, str], set[str]] = {}
        """The same of paths that `one` was served, each with the id that it stood for."""

    def forget(self) -> None:
        """Other marks, another canary, and nothing known of the thing last made."""
        self.canary, self.ident = _canary(), ""
        self._met, self._confirmed, self._served = frozenset(), set(), {}
        for label in ACCOUNTS:
            self._words[label] |= new_marks()

    def adopt(self, label: str, fields: Iterable[Any]) -> None:
        """Know an account by the name that it signed up with in the end."""
        known = self._words[label]
        shaped = (one for one in fields if isinstance(one, str) and one.startswith("{handle:"))
        known["{handle}"] = next((str(replaced(one, known)) for one in shaped), known["{handle}"])

    def handle(self, label: str) -> str:
        """What an account is called."""
        return self._words[label]["{handle}"]

    def known(self, path: str, given: Mapping[str, Any]) -> bool:
        """Whether everything that a step names is there."""
        named = f"{path} {list(given.values())}"
        return ("{id}" not in named or bool(self.ident)) and ("-id}" not in named or bool(self.idents))

    def may_change(self, who: str, path: str, given: Mapping[str, Any]) -> bool:
        """Whether what a step changes by its id is certainly ours; `one` may use what names its account."""
        if mark := _IDENT.search(path):
            own_account = who == "one" and mark[0] == "{one-id}"
            return own_account or path[: mark.start()] in self._confirmed
        return bool(self._confirmed) or not any("{id}" in str(one) for one in given.values())

    def confirm(self, path: str, reply: http.HttpReply, seen: ReadPage) -> None:
        """`one` read a page: if its mark is there, what the path names is ours, for its forms as well."""
        mark = _IDENT.search(path)
        if mark and 200 <= reply.status < 300:
            forms = (self._spelling().path(one.action) for one in seen.forms)
            found = [found for one in forms if (found := _IDENT.search(one))]
            served = {path[: mark.start()], *(one.string[: one.start()] for one in found)}
            self._served[path, self.ident] = served
            if self._shows("one", reply, path):
                self._confirmed |= served

    def refused(self, path: str, status: int) -> None:
        """The other read a page: what `one` was served and it is refused is that of `one`."""
        if status in (403, 404):
            self._confirmed |= self._served.get((path, self.ident), set())

    def find_id(self, urls: Iterable[str], known: set[Part]) -> None:
        """What the new thing is called: the first part with a digit of a new URL, its path from the end."""
        for url in urls:
            for part in parts(url) if own(url, self.origin) else ():
                if part not in known and len(part[1]) <= 100 and any(map(str.isdigit, part[1])):
                    self.ident, self._met = part[1], frozenset(known)
                    return

    def meet_titles(self, seen: ReadPage) -> None:
        """Learn which words the site's titles have in common."""
        self._everywhere &= set(seen.titles.lower().split()) or self._everywhere

    def name_accounts(self, mine: list[str], theirs: list[str]) -> None:
        """What the site calls each account: the part in which the URLs of their first pages differ."""
        found, self._prefixes = differing(mine, theirs)
        self.idents = dict(zip(ACCOUNTS, found, strict=False))

    def filled(self, value: Any, label: str) -> Any:  # noqa: ANN401  any JSON
        """A value with the words in it filled in, as this account says them."""
        known = {
            "{id}": self.ident,
            "{one}": self._words["one"]["{handle}"],
            "{other}": self._words["other"]["{handle}"],
            "{one-mark}": self._words["one"]["{mark}"],
            "{other-mark}": self._words["other"]["{mark}"],
            "{canary}": self.canary,
            **{f"{{{name}-id}}": ident for name, ident in self.idents.items()},
        }
        return replaced(value, self._words[label] | known)

    def url(self, path: str, label: str) -> str:
        """The URL of a step's path."""
        if not path.startswith("/") or path.startswith("//"):
            raise Mistake("/args/steps: expected a path")
        quoted = {"{id}": quote(self.ident, safe="")}
        return http.absolute(f"{self.origin}{self.filled(replaced(path, quoted), label)}")

    def quoted(self, label: str, reply: http.HttpReply) -> str:
        """What a refusal says, without the words of this account."""
        return quoted(reply, self._words[label])

    def hidden(self, text: str, secrets: Iterable[str]) -> str:
        """A text without the passphrases and the other words of the accounts, and without these secrets."""
        ours = [one for known in self._words.values() for one in known.values()]
        phrases = [known[PHRASE] for known in self._words.values() if known[PHRASE]]
        long = [one for one in (*ours, *secrets) if len(one) >= WORD_LENGTH]
        for secret in sorted({*phrases, *long}, key=len, reverse=True):
            text = text.replace(secret, "[secret]")
        return text

    def _shows(self, label: str, reply: http.HttpReply, path: str) -> bool:
        """Whether an answer holds the mark of an account, its own path aside."""
        text = decode(reply.body).replace(self.filled(path.partition("?")[0], label), "")
        return self._words[label]["{mark}"] in text

    def answer(
        self, label: str, first: tuple[http.HttpReply, str], last: tuple[http.HttpReply, str], seen: ReadPage
    ) -> AccountAnswer:
        """What leaves the jail: of the first answer its status, of the last one what stands in it."""
        reply, where = last
        spelling = self._spelling()
        to, path = led(*first), urlsplit(where).path
        return AccountAnswer(
            status=first[0].status,
            one=self._shows("one", reply, path),
            other=self._shows("other", reply, path),
            named=self._words[label]["{handle}"] in decode(reply.body),
            own=bool((_OWN - self._everywhere) & set(seen.titles.lower().split())),
            shared=kept_by_caches(first[0]),
            leads=leads(to, self.origin, spelling.path(to)),
            links=spelling.links(seen),
            forms=spelling.forms(seen),
        )

    def _spelling(self) -> Spelling:
        ours = [
            (self._words[whose][f"{{{what}}}"], word)
            for whose in ACCOUNTS
            for what, word in (("handle", f"{{{whose}}}"), ("mark", f"{{{whose}-mark}}"))
        ]
        idents = {ident: f"{{{whose}-id}}" for whose, ident in self.idents.items()}
        return Spelling(self.origin, self.ident, tuple(ours), idents, self._prefixes, self._met)
