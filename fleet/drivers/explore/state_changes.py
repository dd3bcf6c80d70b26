"""Which GET requests change a platform's state: by their name, by their answer, or by their effect. Pure.

The one home of that decision. Such a request is asked at most once in a run, as a visitor follows a link, and
never in a measurement, with parameters of ours, or for a smaller question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from fleet.drivers.explore.endings import TOOL, first_page
from fleet.drivers.explore.web.frontier import body_template

KNOWN = 400
"""Requests that are remembered."""
RULE = "changes-state"
PLAIN = frozenset({"url", "longest", "canary"})
"""Arguments of a request as a visitor makes it."""
SHORT = 400
"""Characters of an answer that may be no more than the word that something was done."""
TELLING = 1_500
"""Characters of an answer whose words tell what it did: a longer one may be about something else."""
_SPLIT = re.compile(r"[^0-9a-zA-Z]+|(?<=[a-z])(?=[A-Z])")
_VERBS = frozenset(
    [
        "reset",
        "delete",
        "remove",
        "destroy",
        "drop",
        "truncate",
        "purge",
        "wipe",
        "erase",
        "flush",
        "logout",
        "logoff",
        "signout",
        "shutdown",
        "reboot",
        "restart",
        "terminate",
        "toggle",
        "startover",
        "reinit",
        "reinstall",
        "reseed",
        "rollback",
        "uninstall",
        "unsubscribe",
        "revoke",
        "deactivate",
        "resetdb",
        "createdb",
        "initdb",
        "dropdb",
        "setlevel",
        "deleteall",
        "clearall",
        "resetall",
        "killall",
        "factoryreset",
    ]
)
"""Words of a path that act, whatever else it says."""
_PAIRS = re.compile(
    r"(?:^| )(?:(?:log|sign) (?:out|off)|start over|shut down|set (?:up )?(?:level|security|mode|difficulty)"
    r"|(?:create|init|initialize|setup|set up|install|rebuild|restore|import|migrate|seed|populate|clear"
    r"|empty)"
    r" (?:the )?(?:db|database|databases|data|tables?|schema|cache|all|everything|cart|history|session)"
    r"|(?:db|database|data) (?:reset|create|init|setup|install|restore|seed|clear)"
    r"|(?:enable|disable|activate) (?:\w+ )?(?:mode|level|security|user|account|debug)|factory reset)(?: |$)"
)
_FORMS = re.compile(r"(?i)password|passwd|forgot|forgotten")
"""Beside a verb: the page of a form, as in `reset-password`."""
_DOCUMENT = re.compile(r"(?i)\.(?:md|txt|css|m?js|map|json|ya?ml|xml|png|jpe?g|gif|svg|ico|woff2?|pdf)$")
_DONE = re.compile(
    r"(?i)\b(?:(?:has|have|had) been|was|were|successfully|is now|are now) (?:successfully )?"
    r"(?:reset|deleted|destroyed|dropped|cleared|purged|wiped|re-?initiali[sz]ed|toggled"
    r"|logged out|signed out)\b"
    r"|\b(?:reset|deletion|removal|setup|logout|installation)"
    r" (?:done|completed?|successful|succeeded|finished)\b"
    r"|\b(?:database|data|tables?|progress|score|cart|session|cache) (?:(?:has|have) been |was |were )?"
    r"(?:successfully )?(?:reset|deleted|cleared|created|dropped|removed|restored)\b"
    r"|\byou (?:are|have been) (?:now )?(?:logged|signed) out\b"
    r"|[\"'](?:status|result|message|state)[\"']\s?:\s?"
    r"[\"'](?:reset|deleted|removed|cleared|dropped|toggled|logged.?out)[\"']"
)
"""What a page says right after something was done."""
_CLEARED = re.compile(
    r"(?i)=\"?\"?(?:deleted)?;[^,]{0,200}?(?:max-age=0|expires=[^;]{0,12}0?1[- ]jan[- ]1970)"
)


def named(url: str) -> bool:
    """Whether a request's path or query names an act."""
    parts = urlsplit(url)
    if _DOCUMENT.search(parts.path):
        return False
    for said in (unquote(parts.path), *map(unquote, parts.query.split("&"))):
        for segment in (*said.split("/"), " ".join(said.split("/")[-2:])):
            words = [word.lower() for word in _SPLIT.split(segment) if word]
            acts = _VERBS.intersection(words) or _PAIRS.search(" ".join(words))
            if acts and not _FORMS.search(segment) and len(words) <= 5:
                return True
    return False


def told(result: Mapping[str, Any]) -> bool:
    """Whether an answer says that something was done: in its words, or by taking a cookie away."""
    status = result.get("status")
    if not isinstance(status, int) or not 200 <= status < 400:
        return False
    headers = result.get("headers")
    cookie = str(headers.get("set-cookie", "")) if isinstance(headers, Mapping) else ""
    text = str(result.get("text", ""))
    return _CLEARED.search(cookie) is not None or (len(text) < TELLING and _DONE.search(text) is not None)


@dataclass(slots=True)
class StateChanges:
    """What one run knows. `known` are requests that change something, found by earlier runs as well;
    `settled` those after which the first page of their host was the same."""

    known: set[str] = field(default_factory=set)
    settled: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    """Requests that may change something, and were asked in this run."""
    _order: list[str] = field(default_factory=list)
    _last: dict[str, tuple[int, str]] = field(default_factory=dict)
    _maybe: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """By page that changed: what it says now, and what was asked right before."""
    _brief: set[str] = field(default_factory=set)
    """Requests with an answer that may be no more than the word that something was done."""

    _taken: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, state: Mapping[str, Any]) -> StateChanges:
        """From the notebook; what is not understood is ignored."""
        kept = [state.get(name) for name in ("known", "settled")]
        known, settled = ({str(one) for one in rows} if isinstance(rows, list) else set() for rows in kept)
        return cls(known, settled)

    def state(self) -> Mapping[str, Any]:
        """As JSON."""
        return {"known": sorted(self.known)[:KNOWN], "settled": sorted(self.settled)[: 4 * KNOWN]}

    def changes(self, url: str) -> bool:
        """Whether a request changes something, as far as is known."""
        return named(url) or bool({_route(url), _path(url)} & self.known)

    def _key(self, url: str) -> str:
        """What is asked at most once: a path whatever its parameters are, if it is the path that acts."""
        path = _path(url)
        return path if named(path) or path in self.known else _route(url)

    def why_not(self, tool: str, args: Mapping[str, Any], *, explores: bool) -> str:
        """Why a request is not sent now; "" for one that is, which then counts as asked. What is not an
        explorer's, such as a proof, is only not measured."""
        url = _url(tool, args)
        if not url or not self.changes(url):
            return ""
        if args.get("repeat", 1) != 1 or args.get("rate") or args.get("control"):
            return "it changes the platform's state: it is not measured"
        if not explores:
            return ""
        key = self._key(url)
        if set(args) - PLAIN or key in self.asked or (key == _path(url) != url and key in self.known):
            return "it changes the platform's state: it is asked at most once in a run"
        self.asked.add(key)
        return ""

    def unsettled(self, tool: str, args: Mapping[str, Any]) -> str:
        """The page of a measurement of which it is not known whether a request changes something."""
        url = _url(tool, args)
        measured = args.get("repeat", 1) != 1 or args.get("rate")
        return url if url and measured and not self.changes(url) and _route(url) not in self.settled else ""

    def saw(self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
        """Learn from an answer; whether a request is known now to change something."""
        url = _url(tool, args)
        if not url or set(args) - PLAIN or not result.get("status"):
            return False
        before, key = len(self.known), _route(url)
        self._order.append(url)
        self.asked.add(self._key(url))
        if told(result) and key not in self.known and key not in self.settled:
            self.known.add(key)
        if result["status"] < 400 and (result["status"] >= 300 or len(str(result.get("text", ""))) < SHORT):
            self._brief.add(url)
        said = f"{result['status']} {body_template(result, ())}"
        self._compare(url, said)
        self._last[url] = (len(self._order), said)
        self.settled -= self.known
        return len(self.known) > before

    def _compare(self, url: str, said: str) -> None:
        """A page that says something else, and says it twice: what was asked right before the first time."""
        at, earlier = self._last.get(url, (0, said))
        between = tuple(dict.fromkeys(one for one in self._order[at:-1] if one != url))
        now, suspects = self._maybe.pop(url, ("", ()))
        if suspects and said == now:
            brief = [one for one in suspects if one in self._brief]
            found = suspects if len(suspects) == 1 else brief
            self.known |= {_route(one) for one in found if one != first_page(one)}
        if said != earlier and between:
            self._maybe[url] = (said, between)
        elif between and url == first_page(url) and len(self.settled) < 4 * KNOWN:
            self.settled.update(map(_route, between))

    def fresh(self, urls: Sequence[str]) -> Iterator[str]:
        """First pages, seen before, whose look tells whether one of these requests changed something: of
        those with an answer that may be the word of it."""
        found = dict.fromkeys(first_page(one) for one in urls if one in self._brief)
        yield from (one for one in found if one in self._last)

    def take_new(self, url: str) -> bool:
        """Whether a page was asked for the first time since the last question of this kind."""
        new = url in self._last and url not in self._taken
        self._taken.add(url)
        return new

    @property
    def doubtful(self) -> list[str]:
        """Pages to look at once more: they changed."""
        return list(self._maybe)


def _url(tool: str, args: Mapping[str, Any]) -> str:
    return str(args.get("url", "")) if tool == TOOL and args.get("method", "GET") == "GET" else ""


def _path(url: str) -> str:
    return url.partition("?")[0]


def _route(url: str) -> str:
    """A request without the values of its query."""
    path, _, query = url.partition("?")
    names = sorted(pair.partition("=")[0] for pair in query.split("&") if pair)
    return path + ("?" + "&".join(names) if names else "")
