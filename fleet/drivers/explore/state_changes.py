"""Which GET requests change a platform's state: by their name, by their answer, or by their effect. Pure.

The one home of that decision. Such a request is asked at most once in a run but by a proof of what it showed:
by an explorer as a visitor follows a link, never in a measurement, with parameters of ours, or for a smaller
question.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from urllib.parse import unquote, urlsplit

from fleet.drivers.explore.pages import TOOL, body_template, first_page

KNOWN = 400
"""Requests that are remembered."""
RULE = "changes-state"
EXPLORING, FREE = "explore", ""
"""Who asks, in place of a probe's id: an explorer, or a search for a smaller question; a driver on its own,
whose claim may ask once more."""
PLAIN = frozenset({"url", "longest", "canary"})
"""Arguments of a request as a visitor makes it."""
FEW = 8
"""Requests, one of which changed something, that are held back together."""
SHORT = 400
"""Characters of an answer that may be no more than the word that something was done."""
TELLING = 1_500
"""Characters of an answer whose words tell what it did: a longer one may be about something else."""
_SPLIT = re.compile(r"[^0-9a-zA-Z]+|(?<=[a-z])(?=[A-Z])")
_VERBS = frozenset(
    """reset delete remove destroy drop truncate purge wipe erase flush logout logoff signout shutdown reboot
    restart terminate toggle startover reinit reinstall reseed rollback uninstall unsubscribe revoke
    deactivate resetdb createdb initdb dropdb setlevel deleteall clearall resetall killall factoryreset
    """.split()  # noqa: SIM905  a table
)
"""Words of a path that act, whatever else it says."""
_SPENDS = _VERBS | frozenset(
    """close cancel pay buy checkout order transfer withdraw invite subscribe confirm vote like follow block
    ban""".split()  # noqa: SIM905  a table
)
"""Words of a path that may end something, spend, or reach a person."""
_MAKES = frozenset("claim burn release register signup create publish send webhook".split())  # noqa: SIM905  as above
"""Words of a path that may make something."""
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


def names_act(url: str) -> bool:
    """Whether a request's path or query names an act."""
    parts = urlsplit(url)
    if _DOCUMENT.search(parts.path):
        return False
    for part in (unquote(parts.path), *map(unquote, parts.query.split("&"))):
        for segment in (*part.split("/"), " ".join(part.split("/")[-2:])):
            words = _words(segment)
            acts = _VERBS.intersection(words) or _PAIRS.search(" ".join(words))
            if acts and not _FORMS.search(segment) and len(words) <= 5:
                return True
    return False


def ends_or_spends(path: str) -> bool:
    """Whether a word of a path or its query says that it may end something, spend, or reach a person."""
    return names_act(path) or not _SPENDS.isdisjoint(_words(unquote(path)))


def may_act(path: str) -> bool:
    """Whether a word of a path or its query says that it may act in any way: nothing to ask repeatedly."""
    words = _words(unquote(path))
    pairs = {first + second for first, second in pairwise(words)}  # sign-up
    return ends_or_spends(path) or not _MAKES.isdisjoint((*words, *pairs))


def reports_change(result: Mapping[str, Any]) -> bool:
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
    asked: dict[str, str] = field(default_factory=dict)
    """Requests that were asked in this run, each with the probe that asked first."""
    _order: list[str] = field(default_factory=list)
    _last: dict[str, tuple[int, str]] = field(default_factory=dict)
    _maybe: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    """By page that changed: what it says now, and what was asked right before."""
    _brief: set[str] = field(default_factory=set)
    """Requests with an answer that may be no more than the word that something was done."""

    _acted: int = -1
    _taken: set[str] = field(default_factory=set)
    _held: set[str] = field(default_factory=set)
    """Of a few requests, one changed something: in this run none of them is asked but as a visitor would."""
    _restless: set[str] = field(default_factory=set)
    """First pages that change by themselves: nothing is learned from them in this run."""

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
        return names_act(url) or not {_route(url), _path(url)}.isdisjoint(self.known | self._held)

    def _key(self, url: str) -> str:
        """What is asked at most once: a path whatever its parameters are, if it is the path that acts."""
        path = _path(url)
        return path if names_act(path) or path in self.known | self._held else _route(url)

    def why_not(self, tool: str, args: Mapping[str, Any], asker: str, *, proof: bool = False) -> str:
        """Why a request is not sent now; "" for one that is, which then counts as asked by this probe.

        The steps of one probe may ask it again, as its author wrote them; those of another may not. A proof
        of what it showed, and a check whether it answers, are only not measured.
        """
        url = _url(tool, args)
        if not url or not self.changes(url):
            return ""
        if args.get("repeat", 1) != 1 or args.get("rate") or args.get("control"):
            return "it changes the platform's state: it is not measured"
        if proof:
            return ""
        key, explores = self._key(url), asker == EXPLORING
        again = key in self.asked and (asker in (EXPLORING, FREE) or self.asked[key] not in (FREE, asker))
        varied = explores and (set(args) - PLAIN or (key == _path(url) != url and key in self.known))
        if again or varied:
            return "it changes the platform's state: it is asked at most once in a run"
        self.asked[key] = asker
        return ""

    def unsettled(self, tool: str, args: Mapping[str, Any]) -> str:
        """The page of a measurement of which it is not known whether a request changes something."""
        url = _url(tool, args)
        measured = args.get("repeat", 1) != 1 or args.get("rate")
        return url if url and measured and not self.changes(url) and _route(url) not in self.settled else ""

    def observe(
        self, tool: str, args: Mapping[str, Any], result: Mapping[str, Any], asker: str = EXPLORING
    ) -> bool:
        """Learn from an answer; whether a request is known now to change something."""
        url = _url(tool, args)
        if not url or set(args) - PLAIN or not result.get("status"):
            return False
        before, key = len(self.known), _route(url)
        self._order.append(url)
        self.asked.setdefault(self._key(url), asker)
        if reports_change(result) and key not in self.known and key not in self.settled:
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
        if at <= self._acted:
            return
        between = tuple(dict.fromkeys(one for one in self._order[at:-1] if one != url))
        now, suspects = self._maybe.pop(url, ("", ()))
        if suspects and said == now:
            brief = [one for one in suspects if one in self._brief]
            found = {_route(one) for one in suspects if one != first_page(one)}
            if len(found) == 1 or brief:
                self.known |= found if len(found) == 1 else found & set(map(_route, brief))
            elif len(found) <= FEW:
                self._held |= found
        if said != earlier and between and url not in self._restless:
            suspects = tuple(one for one in between if _route(one) not in self.settled)
            if suspects:
                self._maybe[url] = (said, suspects)
            else:
                self._restless.add(url)
        elif between and url == first_page(url) and len(self.settled) < 4 * KNOWN:
            self.settled.update(map(_route, between))

    def acted(self) -> None:
        """Something was changed by a request that is meant to: pages are not compared with what they said
        before it."""
        self._acted = len(self._order)
        self._maybe.clear()

    def take_new(self, urls: Sequence[str]) -> list[str]:
        """First pages, seen before, whose look tells whether one of these requests changed something: of
        those that were made for the first time."""
        new = [one for one in urls if one in self._last and _route(one) not in self._taken]
        self._taken.update(map(_route, new))
        found = dict.fromkeys(first_page(one) for one in new if one != first_page(one))
        return [one for one in found if one in self._last and one not in self._restless]

    @property
    def doubtful(self) -> list[str]:
        """Pages to look at once more: they changed."""
        return list(self._maybe)


def _words(text: str) -> list[str]:
    return [word.lower() for word in _SPLIT.split(text) if word]


def _url(tool: str, args: Mapping[str, Any]) -> str:
    return str(args.get("url", "")) if tool == TOOL and args.get("method", "GET") == "GET" else ""


def _path(url: str) -> str:
    return url.partition("?")[0]


def _route(url: str) -> str:
    """A request without the values of its query."""
    path, _, query = url.partition("?")
    names = sorted(pair.partition("=")[0] for pair in query.split("&") if pair)
    return path + ("?" + "&".join(names) if names else "")
