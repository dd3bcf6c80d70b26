"""Two accounts of a site with forms: signed up and logged in as a browser does it, and a row of steps.

A step that changes something that an {id} names is made only after its maker read it there: an id that was
guessed wrong must not lead to what is a stranger's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import urlsplit

from sandbox import http
from sandbox.browser.devtools import installed
from sandbox.errors import Deadline
from sandbox.pages.forms import PageForm, ReadPage, encoded
from sandbox.pages.handlers import runs_handler
from sandbox.sites.accounts import ACCOUNTS, READ, SECRET, AccountAnswer, lines, renamed
from sandbox.sites.play_words import PlayWords
from sandbox.sites.refusals import LONGEST_TEXT, SIGN_UPS, Adaptation
from sandbox.sites.site_visitor import ELSEWHERE, SiteVisitor, led, own, targets
from sandbox.spec import Mistake
from sandbox.text import decode

VIEW = "VIEW"
FRESH = 2_000
"""Letters of what a page says more than when it was read first."""
DERIVED = ("scripted", "plain", "before", "kept", "foreign")
WHO = (*ACCOUNTS, "anonymous", "again", *DERIVED)


class FormStart(Protocol):
    """How accounts are made: the arguments of `qa_account`."""

    @property
    def url(self) -> str: ...
    @property
    def fields(self) -> dict[str, Any]: ...
    @property
    def page(self) -> str: ...
    @property
    def login(self) -> str: ...
    @property
    def login_fields(self) -> dict[str, Any]: ...
    @property
    def login_page(self) -> str: ...


class FormPlay:
    """The two accounts while they last."""

    def __init__(
        self, start: FormStart, accounts: Mapping[str, Mapping[str, str]], deadline: Deadline
    ) -> None:
        split = urlsplit(start.url)
        self._start, self._deadline = start, deadline
        self._origin = f"{split.scheme}://{split.netloc}"
        self._words = PlayWords(self._origin, accounts)
        self._fields, self._login_fields = dict(start.fields), dict(start.login_fields)
        self.held: dict[str, SiteVisitor] = {}
        """Accounts that have a session."""
        self._landed: dict[str, list[str]] = {}
        """URLs of the first page of each account."""
        self._made: list[str] = []
        self._read: dict[str, frozenset[str]] = {}
        """The lines of pages when `one` read them first, by path."""
        self._shapes: dict[str, PageForm] = {}
        """The forms that `one` was given, by the path of their action."""

    def resume(self, start: FormStart, deadline: Deadline) -> None:
        """Ask other things as the same accounts: with other marks, and knowing of what was made before only
        where it is, so that it is not taken for new."""
        self._start, self._deadline = start, deadline
        self._made, self._read, self._shapes = [], {}, {}
        self._words.forget()
        for visitor in self.held.values():
            visitor.deadline = deadline

    def remove(self) -> tuple[str, ...]:
        """What was made and stays: no form is known to remove anything."""
        return tuple(self._made)

    def enter(self, label: str) -> str:
        """Sign up and log in; what was refused, or ""."""
        start = self._start
        first = "log-in" if SECRET in str(start.fields) else "sign-up"
        ways = [(first, start.url[len(self._origin) :], self._fields, start.page)]
        ways += [("log-in", start.login, self._login_fields, start.login_page)] if start.login else []
        for what, path, given, page in ways:
            visitor = self._visitor(label)
            renamed(self._login_fields, self._fields)
            reply = self._submit(visitor, label, path, given, page)
            if what == "sign-up":
                reply = self._adapted(visitor, reply, path, page)
                self._words.adopt(label, self._fields.values())
            if what == "sign-up" and 200 <= reply.status < 400:
                self._made.append(f"account {self._words.handle(label)}")
            if not 200 <= reply.status < 400:
                return f"the {what} answers {reply.status}{self._words.quoted(label, reply)}"
            visitor.before = visitor.kept
        last, where = visitor.follow(reply, self._words.url(path, label))
        landed = visitor.read(last, where)
        self._words.meet_titles(landed)
        self._landed[label] = targets(where, landed)
        if len(self._landed) == len(ACCOUNTS):
            self._words.name_accounts(*self._landed.values())
        if not visitor.jar.held:
            return f"the log-in sets no cookie{self._words.quoted(label, last)}"
        self.held[label] = visitor
        return ""

    def _adapted(self, visitor: SiteVisitor, reply: http.HttpReply, path: str, page: str) -> http.HttpReply:
        """Send a form that is shown again with what its page asks for now, a few times; the last answer."""
        label, url = visitor.label, self._words.url(path, visitor.label)
        adapted = Adaptation(self._fields, {}, urlsplit(self._origin).hostname or "")
        for _ in range(SIGN_UPS - 1):
            shown = self._chosen(visitor.read(reply, url), urlsplit(url).path) is not None
            if 300 <= reply.status < 400 or reply.status >= 500 or not shown:
                break
            before = visitor.send("GET", self._words.url(page, label), {})
            calm = frozenset(
                one[:LONGEST_TEXT] for one in lines(decode(before.body)[:READ], before.content_type)
            )
            if not adapted.learn(reply, calm):
                break
            self._fields |= {name: "on" if one is True else one for name, one in adapted.whole.items()}
            reply = self._submit(visitor, label, path, self._fields, page)
        return reply

    @property
    def start(self) -> dict[str, Any]:
        """What led to the accounts, where it is not what was given."""
        found = {"fields": self._fields, "login_fields": self._login_fields}
        return {name: value for name, value in found.items() if value != getattr(self._start, name)}

    def step(self, asked: Any, at: int) -> AccountAnswer:  # noqa: ANN401  any JSON
        kinds = (str, str, str, dict, str)
        if not isinstance(asked, list | tuple) or len(asked) != len(kinds) or asked[0] not in WHO:
            raise Mistake(f"/args/steps/{at}: expected who, method, path, fields, page")
        if not all(isinstance(one, kind) for one, kind in zip(asked, kinds, strict=True)):
            raise Mistake(f"/args/steps/{at}: expected who, method, path, fields, page")
        who, method, path, given, page = asked
        if method not in ("GET", "POST", VIEW):
            raise Mistake(f"/args/steps/{at}: expected GET, POST or {VIEW}")
        visitor, given = self._who(who), given | self._named(given)
        if visitor is None or not self._words.known(path, given):
            return AccountAnswer()
        if who in ACCOUNTS:
            visitor.kept = visitor.jar.copy()
        if method == "POST":
            may = self._words.may_change(who, path, given)
            return self._post(visitor, who, path, given, page) if may else AccountAnswer()
        return self._get(visitor, who, path) if method == "GET" else self._view(visitor, path)

    def _named(self, given: Mapping[str, Any]) -> dict[str, str]:
        """What names the account `one` in hidden fields: it differs between the two."""
        mine, theirs = (self.held[label].hidden for label in ACCOUNTS)
        fields = [name for name, value in given.items() if value == "{one-id}" and name in mine]
        return {name: mine[name] for name in fields if theirs.get(name, mine[name]) != mine[name]}

    def _get(self, visitor: SiteVisitor, who: str, path: str) -> AccountAnswer:
        url = self._words.url(path, visitor.label)
        reply, seen = visitor.look(url)
        if who == "one":
            self._words.confirm(path, reply, seen)
            self._met_forms(seen)
        elif who == "other":
            self._words.refused(path, reply.status)
        visitor.meet(url, seen)
        answer = self._words.answer(visitor.label, (reply, url), (reply, url), seen)
        return self._fresh(answer, path.partition("?")[0], reply) if who == "one" and "?" in path else answer

    def _met_forms(self, seen: ReadPage) -> None:
        self._shapes |= {urlsplit(one.action).path: one for one in seen.forms if one.method == "POST"}

    def _fresh(self, answer: AccountAnswer, asked: str, reply: http.HttpReply) -> AccountAnswer:
        """With what an answer to `one` says more than the first one to the same request."""
        text = decode(reply.body)
        said = lines(text[:READ], reply.content_type)
        before = self._read.setdefault(asked, frozenset(said))
        fresh = self._hidden(" ".join(one for one in said if one not in before))[:FRESH]
        handler = runs_handler(text, self._words.filled("{mark}", "one"), reply)
        return replace(answer, handler=handler, facts={"page": json.dumps(fresh)} if fresh else {})

    def _hidden(self, text: str) -> str:
        """A text without what the accounts were given: words, cookies, hidden values."""
        visitors = self.held.values()
        cookies = [cookie.value for one in visitors for cookie in one.jar.held.values()]
        return self._words.hidden(
            text, [*cookies, *(value for one in visitors for value in one.hidden.values())]
        )

    def _visitor(self, label: str) -> SiteVisitor:
        return SiteVisitor(label, self._origin, self._deadline)

    def _who(self, who: str) -> SiteVisitor | None:
        """The visitor of a step; None where it has no cookies of its kind."""
        if who in ACCOUNTS:
            return self.held[who]
        one, made = self.held["one"], self._visitor("other" if who == "foreign" else "one")
        match who:
            case "scripted":
                made.jar = one.jar.copy(lambda cookie: not cookie.http_only)
            case "plain" if self._origin.startswith("https:"):
                made.jar = one.jar.copy(lambda cookie: not cookie.secure)
            case "before":
                made.jar = one.before.copy()
            case "kept":
                made.jar = one.kept.copy()
            case "foreign":
                made.jar = one.jar.copy(lambda cookie: cookie.same_site in ("", "none"))
        return made if made.jar.held or who in ("anonymous", "again") else None

    def _post(
        self, visitor: SiteVisitor, who: str, path: str, given: dict[str, Any], page: str
    ) -> AccountAnswer:
        known = self.held["one"].known | self.held["other"].known
        reply = self._submit(visitor, who, path, given, page)
        url = self._words.url(path, visitor.label)
        last, where = (reply, url) if who == "foreign" else visitor.follow(reply, url)
        seen = visitor.read(last, where)
        if reply.status < 400:
            self._made.append(f"POST {path}")
        if who == "one" and reply.status < 400:
            self._words.find_id([led(reply, url), *targets(where, seen)], known)
        visitor.meet(where, seen)
        if who == "one":
            self._met_forms(seen)
        answer = self._words.answer(visitor.label, (reply, url), (last, where), seen)
        return self._fresh(answer, f"POST {path}", last) if who == "one" else answer

    def _submit(
        self, visitor: SiteVisitor, who: str, path: str, given: Mapping[str, Any], page: str
    ) -> http.HttpReply:
        """Send a form as its page has it, with `given` filled in."""
        url, label = self._words.url(path, visitor.label), visitor.label
        form = self._foreign_form(url, page) if who == "foreign" else self._form(visitor, who, url, page)
        entries = form.entries(given) if form else list(given.items())
        filled = [(name, self._words.filled(value, label)) for name, value in entries]
        files = any(isinstance(value, list) for _, value in filled)
        body, kind = encoded(filled, multipart=files or (form is not None and form.multipart))
        headers = {"content-type": kind, "origin": f"https://{ELSEWHERE}"}
        if who != "foreign":
            headers |= {"origin": self._origin, "referer": self._words.url(page, label) if page else url}
        visitor.kept = visitor.jar.copy()
        return visitor.send("POST", form.action if form and form.action else url, headers, body)

    def _form(self, visitor: SiteVisitor, who: str, url: str, page: str) -> PageForm | None:
        """The form that a page has for this visitor; else the shape that `one` saw, with the visitor's own
        hidden values."""
        path = urlsplit(url).path
        found = self._chosen(self._page(visitor, page), path) if page else None
        if found and who == "one":
            self._shapes[path] = found
        if found or path not in self._shapes:
            return found
        shape = self._shapes[path]
        kept = [
            one if not one.is_token else type(one)(one.name, one.kind, visitor.hidden.get(one.name, ""))
            for one in shape.controls
        ]
        return replace(shape, controls=kept)

    def _foreign_form(self, url: str, page: str) -> PageForm | None:
        """What another site knows of a form: no hidden value but what is equal in both accounts' forms."""
        path = urlsplit(url).path
        mine = self._chosen(self._page(self.held["one"], page), path)
        theirs = self._chosen(self._page(self.held["other"], page), path)
        if mine is None:
            return None
        same = {(one.name, one.value) for one in theirs.controls} if theirs else set()
        kept = [one for one in mine.controls if one.kind != "hidden" or (one.name, one.value) in same]
        return replace(mine, controls=kept)

    def _page(self, visitor: SiteVisitor, page: str) -> ReadPage:
        url = self._words.url(page, visitor.label)
        reply, where = visitor.follow(visitor.send("GET", url, {}), url)
        seen = visitor.read(reply, where)
        visitor.meet(where, seen)
        self._words.meet_titles(seen)
        return seen

    def _chosen(self, page: ReadPage, path: str) -> PageForm | None:
        """The form with this action; of several the one with the id of ours, else the last: what a list has
        first may be about to begin, or to run out."""
        found = [one for one in page.forms if one.method == "POST" and urlsplit(one.action).path == path]
        found = [one for one in found if own(one.action, self._origin)]
        marked = [
            one
            for one in found
            if self._words.ident and any(c.value == self._words.ident for c in one.controls)
        ]
        return next(iter([*marked, *reversed(found)]), None)

    def _view(self, visitor: SiteVisitor, path: str) -> AccountAnswer:
        """Open a page in a browser, with the visitor's cookies."""
        if not installed():
            return AccountAnswer()
        from sandbox.browser.traffic import Traffic  # most rows open no browser: 20 ms of a start
        from sandbox.browser.visit import Visit, visited

        def cookies(url: str) -> str:
            return visitor.jar.header(urlsplit(url).path) if own(url, self._origin) else ""

        url = self._words.url(path, visitor.label)
        reply = visitor.send("GET", url, {})
        if "attachment" in reply.headers.get("content-disposition", "").lower():  # a browser shows none
            return AccountAnswer(status=reply.status)
        visit = Visit(self._words.canary, self._origin)
        traffic = Traffic(self._deadline, cookies=cookies)
        visited(url, visit, traffic, 1280, self._deadline)
        return AccountAnswer(status=traffic.document.status, ran=bool(visit.ran_by))
