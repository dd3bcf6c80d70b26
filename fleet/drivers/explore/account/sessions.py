"""The explorer of a web site behind its log-in: two accounts by its forms, and what each may do to the other.

It looks for the forms that sign up and log in, sees the pages that an account gets, then asks of its session,
of its log-in, and form by form of what an account writes. Most questions make two accounts, so a run asks a
few; the forms that were asked least come first.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any
from urllib.parse import urlsplit

from fleet.drivers.desk import ACCOUNTS, Left, Question, led_by
from fleet.drivers.explore.account.api_rows import TOOL, Row
from fleet.drivers.explore.account.bodies import MAIL, NAME, PHRASE
from fleet.drivers.explore.account.follow_up import Flow, MadeThing, flow_of, follow, go_on
from fleet.drivers.explore.account.site_rows import WHOLE, SiteKnowledge, apart, spares, strings
from fleet.drivers.explore.account.ways import role_of
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import ExplorerContext, Results
from fleet.personas.model import Step
from sandbox.sites.accounts import SECRET, USER

FETCH = "qa_fetch"
TOOLS = (FETCH, TOOL)
VERSION = 1
DOORS = (
    *("/", "/login", "/log-in", "/signin", "/sign-in", "/register", "/signup", "/sign-up", "/join"),
    *(
        "/account/login",
        "/account/register",
        "/users/sign_in",
        "/users/sign_up",
        "/auth/login",
        "/auth/register",
    ),
)
"""Where the forms of a site are that sign up and log in."""
FURTHER = 12
"""Pages of one run that others lead to."""
LOOKS = 3
"""Looks at the pages of an account, of up to WHOLE pages each."""
FORMS = 6
"""New forms of one run by which something is written; where none is new, the one that was asked least."""
FLOWS = 3
"""Forms without a text of one run, by which something is begun in several steps."""
QUESTIONS = 32
"""Questions of one run, each of which may make two accounts: they cannot be removed again."""
TOGETHER = 4
"""Questions of one batch, about different things: what is asked next of one rests on its answer. They share
accounts where they leave them as they are."""
KNOWN = 200
_LOG = logging.getLogger("fleet.explore")


@dataclass(frozen=True, slots=True)
class DoorLookup(Question):
    """A page that may have the form that signs up or logs in."""

    url: str = ""

    @property
    def why(self) -> str:
        return "a page that may have the form that signs up or logs in"


@dataclass(frozen=True, slots=True)
class AccountLook(Question):
    """Pages as an account and as a visitor see them."""

    rows: tuple[Row, ...] = ()

    @property
    def why(self) -> str:
        return "pages that were only seen as a visitor"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLook(Question):
    """Something was made by a form: where everybody sees it."""

    thing: MadeThing | Flow

    @property
    def why(self) -> str:
        return "what a form of this run wrote"


@dataclass(frozen=True, slots=True)
class EntryForm:
    """A form with a passphrase: the URLs of its page and its action, and what is filled in."""

    page: str
    action: str
    fields: Mapping[str, str]


class SessionExplorer:
    """Implements Explorer. `asked`: how often each form was asked, by its path."""

    def __init__(self, context: ExplorerContext, _chance: Random, state: Mapping[str, Any]) -> None:
        self._urls = OwnUrls(context.platform)
        asked = state.get("asked") if state.get("version") == VERSION else None
        pairs = asked.items() if isinstance(asked, dict) else ()
        self._pages = [one for one in strings(state.get("pages")) if one.startswith("/")][:WHOLE]
        self.asked = {str(key): times for key, times in list(pairs)[:KNOWN] if type(times) is int}
        self._doors: dict[str, EntryForm] = {}
        self._accounts = context.platform.accounts
        self._start: dict[str, Any] = {}
        self._known = SiteKnowledge("")
        starts = [*self._urls.named(), *(place + path for place in self._urls.places for path in DOORS)]
        self._lookups = list(dict.fromkeys(starts)) if context.acts and context.platform.web.act_paths else []
        self._seen, self._further = set(self._lookups), FURTHER
        self._others: list[str] = []
        """Pages that others lead to by other words: looked at while a door is missing."""
        self._looks, self._left, self._chosen = LOOKS, QUESTIONS, False
        self._next: dict[str, list[Question]] = {}
        """By what it is about, what is next first: each has its turn."""

    def ask(self, most: int) -> Sequence[Question]:
        if self._lookups:
            urls, self._lookups = self._lookups[:most], self._lookups[most:]
            return [DoorLookup((Step(tool=FETCH, args={"url": url}),), url) for url in urls]
        if (
            not {"enter", *(() if self._accounts else ("join",))} <= set(self._doors)
            and self._further > 0
            and self._others
        ):
            self._further -= 1
            url = self._others.pop(0)
            return [DoorLookup((Step(tool=FETCH, args={"url": url}),), url)]
        if not self._start and not (self._doors and self._enter()):
            return []
        if not any(self._next.values()) and self._looks > 0 and (pages := self._known.unread()):
            self._looks -= 1
            seen: list[Row] = [[who, "GET", page, {}, ""] for page in pages for who in ("one", "anonymous")]
            self._next["pages"] = [AccountLook(self._steps(seen), tuple(seen))]
        elif not any(self._next.values()) and not self._chosen and self._known.inside:
            self._chosen = True
            self._next = self._questions()
        most = min(most, self._left, TOGETHER)
        abouts = [about for about, waiting in self._next.items() if waiting][:most]
        self._left -= len(abouts)
        self._next |= {about: self._next.pop(about) for about in abouts}  # the last ones now
        return [
            question
            for about in abouts
            for question in led_by(
                f"pages and forms as accounts see them: what was {about}", self._next[about].pop(0)
            )
        ]

    def learn(self, question: Question, results: Results) -> None:
        if not results:
            return
        answers = [one for one in _list(results[-1].get("answers")) if isinstance(one, Mapping)]
        match question:
            case DoorLookup(url=url):
                self._door(url, results[0])
            case AccountLook(rows=rows) if not answers:
                self._looks = 0
                _LOG.info(
                    "no account by the forms of %.100s: %.200s", self._start["url"], results[-1].get("error")
                )
            case AccountLook(rows=rows):
                start = results[-1].get("start")  # what a refusal led to
                self._start |= start if isinstance(start, Mapping) else {}
                self._known.learn(rows, answers)
            case WrittenLook(thing=Flow() as flow):
                more = go_on(self._known, flow, answers, self._may_post)
                begun = [*map(self._asked, more), *self._next.pop("begun")]
                self._next = {"begun": begun, **self._next}  # each of its steps is a few requests
            case WrittenLook(thing=MadeThing() as thing):
                found = follow(self._known, thing, answers, self._may_post)
                self._next["written"][:0] = [self._asked(one) for one in found if one]

    def left(self) -> Sequence[Left]:
        """That nothing was looked at behind a log-in that was found."""
        door = self._doors.get("enter") or self._doors.get("join")
        if self._start or door is None:
            return []
        closed = [one.action for one in self._doors.values() if not self._urls.may_act(one.action)]
        why = "the site shows no form that signs up"
        if closed:
            why = f"acts are not permitted at {self._path(closed[0])} (act_paths in the profile)"
        return [Left(f"{ACCOUNTS} of {door.action}", f"no account could be made, because {why}")]

    def state(self) -> Mapping[str, Any]:
        pages = list(self._known.pages) or self._pages
        return {"version": VERSION, "asked": dict(list(self.asked.items())[-KNOWN:]), "pages": pages[:WHOLE]}

    def _door(self, url: str, result: Mapping[str, Any]) -> None:
        """Learn of forms with a passphrase, and of pages that may have one."""
        if result.get("status") != 200:
            return
        for form in _list(result.get("forms")):
            names = form.get("fields") if isinstance(form, Mapping) else None
            names = names if isinstance(names, Mapping) else {}
            phrases = [name for name in names if PHRASE.match(name)]
            action = self._urls.spelled(str(form.get("action", "")), url) if phrases else ""
            if action and form.get("method") == "POST" and not form.get("json"):
                ways = (role_of(urlsplit(self._urls.actual(one)).path) for one in (action, url))
                role = next(filter(None, ways), "join" if len(phrases) > 1 else "enter")
                known = ((PHRASE, "{phrase}"), (MAIL, "{email}"), (NAME, "{handle}"))
                asked = {
                    one: next((word for form, word in known if form.search(one)), "")
                    for one in map(str, names)
                }
                filled = {one: word for one, word in asked.items() if word}  # what its fields' names ask for
                self._doors.setdefault(role, EntryForm(url, action, filled))
        for link in strings(result.get("links")):
            found = self._urls.spelled(link, url)
            if found and found not in self._seen and len(self._seen) < KNOWN:
                self._seen.add(found)
                named = role_of(urlsplit(found).path) and self._further > 0
                self._further -= 1 if named else 0
                (self._lookups if named else self._others).append(found)

    def _enter(self) -> bool:
        """Know how to sign up and log in; False where no form signs up, or acts are not permitted there."""
        join, enter = self._doors.get("join"), self._doors.get("enter")
        if self._accounts and enter is not None:  # those that the profile names log in alone
            words = {"{handle}": USER, "{email}": USER, "{phrase}": SECRET}
            known = {name: words[word] for name, word in enter.fields.items()}
            join, enter = EntryForm(enter.page, enter.action, known), None
        if join is None or not all(self._urls.may_act(one.action) for one in (join, enter) if one):
            return False
        self._start = {"url": join.action, "fields": join.fields, "page": self._path(join.page)}
        if enter and self._path(enter.action, host=True) == self._path(join.action, host=True):
            page = self._path(enter.page)
            self._start |= {
                "login": self._path(enter.action),
                "login_fields": enter.fields,
                "login_page": page,
            }
        self._known = SiteKnowledge(str(self._start.get("login_page", "")))
        self._known.met += dict.fromkeys(["/", self._start["page"], *self._pages])
        return True

    def _path(self, spelled: str, *, host: bool = False) -> str:
        """The path of a URL on its host, or the host."""
        parts = urlsplit(self._urls.actual(spelled))
        return parts.netloc if host else parts.path or "/"

    def _steps(self, rows: Iterable[Row]) -> tuple[Step, ...]:
        args = {**self._start, "steps": [list(row) for row in rows]}
        return (Step(tool=TOOL, args=args | ({"shared": True} if spares(args["steps"]) else {})),)

    def _asked(self, one: MadeThing | Flow | list[Row]) -> Question:
        if isinstance(one, MadeThing | Flow):
            return WrittenLook(self._steps(one.rows), minimal=True, apart=apart(one.rows), thing=one)
        return Question(self._steps(one), minimal=True, apart=apart(one))

    def _may_post(self, path: str) -> bool:
        """Whether the profile lists a path; a word of ours stands for one of its segments."""
        bare = re.sub(r"\{[a-z-]+\}", "x", path)
        origin = "{0.scheme}://{0.netloc}".format(urlsplit(self._urls.actual(self._start["url"])))
        return self._urls.may_act(origin + bare)

    def _questions(self) -> dict[str, list[Question]]:
        """What is asked of the session, of the forms that begin something, of those that write, of those of
        one's own record, and of the inputs of pages and of forms."""
        known, doors = self._known, (self._path(self._start["url"]), self._start.get("login"))
        session = [[one for one in known.session() if one[1] != "POST" or self._may_post(one[2])]]
        if "login" in self._start:
            session.append(known.away(self._start["login"], self._start["login_fields"]))
        found = [*known.makers(), *known.uploads()]
        forms = [one for one in found if one.action not in doors and self._may_post(one.action)]
        new = [one for one in forms if one.action not in self.asked]
        again = sorted(forms, key=lambda one: self.asked.get(one.action, 0))
        writing = new[:FORMS] or again[:1]
        begun = [one for one in known.buttons() if one.action not in doors and self._may_post(one.action)]
        begun = sorted(begun, key=lambda one: self.asked.get(one.action, 0))[:FLOWS]
        for form in (*writing, *begun):
            self.asked[form.action] = self.asked.get(form.action, 0) + 1
        rows: dict[str, Iterable[MadeThing | Flow | list[Row]]] = {
            "session": session,
            "begun": map(flow_of, begun),
            "written": (MadeThing(form, tuple(known.written(form))) for form in writing),
            "ranked": (known.ranked(form) for form in writing if form.own),
            "queried": known.queried(),
            "tried": (known.tried(form) for form in writing if not form.file),
        }
        return {about: [self._asked(one) for one in each] for about, each in rows.items()}


make = SessionExplorer


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()
