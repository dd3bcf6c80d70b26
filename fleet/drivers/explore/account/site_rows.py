"""Rows of steps by two accounts of a site with forms: what is looked at, written, and tried by others. Pure.

Paths, forms and fields are a stranger's data. A row says what happens; the oracles say what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from fleet.drivers.explore.account.api_inputs import HANDLER, MARK
from fleet.drivers.explore.account.api_rows import Row
from fleet.drivers.explore.account.bodies import PHRASE
from fleet.drivers.explore.state_changes import ends_or_spends
from fleet.oracles.account.inputs import SMALL
from fleet.oracles.account.sessions import ends_visit
from fleet.oracles.account.site_rows import NOBODYS
from fleet.oracles.account.things import NO_RANK, RANKS
from fleet.oracles.account.tokens import leaves
from sandbox.sites.accounts import ACCOUNTS
from sandbox.tools.qa_account import MAX_STEPS

WHOLE = 16
"""Pages of one look."""
AFTER = 7
"""Pages that are looked at by everybody after something was made."""
ITEMS = 4
"""Pages of one thing."""
PAYLOAD = "{mark}'\"></title></textarea></style></script><img src onerror={canary}(name)>"
LINK = "javascript:{canary}(name)"
HTML = "<!doctype html><title>x</title><script>{canary}(name)</script>"
SVG = '<svg xmlns="http://www.w3.org/2000/svg"><script>{canary}(name)</script></svg>'
CLIMBS = ("../" * 8 + "etc/passwd", "....//" * 8 + "etc/passwd")
SUMS = ("{{1009*2003}}", "1009*2003", "2", "6", SMALL)
PARAMETERS = 10
"""Parameters of the pages of an account that are tried in one run."""
TEXTS = 2
"""Texts of one form that are tried."""
FOREIGN = ("https://elsewhere.example/", "//elsewhere.example/", "/\\elsewhere.example/")
_FREE = ("textarea", "text", "search")
_LEADING = re.compile(
    r"(?i)^(?:next|return|redirect|continue|go|back|dest|destination|target|url)(?:_?\w{0,12})$"
)
_OWN_RECORD = re.compile(r"(?i)/(?:(?:my-?)?(?:profile|account|settings|preferences)|me)/?(?:edit)?$")
_NO_PAGE = re.compile(r"(?i)\.(?:css|js|mjs|map|png|jpe?g|gif|svg|ico|webp|woff2?|ttf|mp4|zip|pdf)$")


@dataclass(frozen=True, slots=True)
class SiteForm:
    """A form that an account was given, and its page; paths as in the tool's answers."""

    action: str
    page: str
    fields: Mapping[str, str]
    whole: bool = False
    """Whether all its texts are filled in: with the first one alone it was refused."""

    @property
    def free(self) -> list[str]:
        """Its fields that take any text, the longest kind first."""
        return sorted(
            (name for name, kind in self.fields.items() if kind in _FREE),
            key=lambda name: _FREE.index(self.fields[name]),
        )

    @property
    def file(self) -> str:
        """Its field that takes a file; "" for none."""
        return next((name for name, kind in self.fields.items() if kind == "file"), "")

    @property
    def own(self) -> bool:
        """Whether it is that of an account's own record."""
        return self.personal or bool(_OWN_RECORD.search(self.action))

    @property
    def personal(self) -> bool:
        """Whether it names the account that it belongs to."""
        named = f"{self.action} {self.page}"
        return "{one" in named or "own-id" in self.fields.values()

    def post(self, who: str, given: Mapping[str, Any]) -> Row:
        """The step that sends it; a hidden id is that of the thing last made, or of the account `one`."""
        ids = {"id": "{id}"} | ({"own-id": "{one-id}"} if who == "other" else {})
        known = {name: ids[kind] for name, kind in self.fields.items() if kind in ids}
        return [who, "POST", self.action, {**known, **given}, self.page]

    def marked(self, who: str = "one") -> Row:
        """The step that sends it with the mark."""
        file = {self.file: ["{mark}.txt", "text/plain", "{mark}"]} if self.file else self.texts("{mark}")
        return self.post(who, file)

    def texts(self, said: str) -> dict[str, str]:
        """What is filled into its first text, or into all of them."""
        return dict.fromkeys(self.free if self.whole else self.free[:1], said)


@dataclass(slots=True)
class SiteKnowledge:
    """What the accounts saw: pages by path with the answer to `one` and to a visitor, and forms by action."""

    login_page: str
    pages: dict[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=dict)
    forms: dict[str, SiteForm] = field(default_factory=dict)
    searches: dict[str, list[str]] = field(default_factory=dict)
    """Fields that take any text of forms that are sent by GET, by action."""
    met: list[str] = field(default_factory=list)
    """Paths that pages link to, in the order in which they were met."""

    def learn(self, steps: Sequence[Row], answers: Sequence[Any]) -> None:
        """Take the answers to a look."""
        given = {(row[0], row[2]): got for row, got in zip(steps, answers, strict=False) if row[1] == "GET"}
        for (who, path), got in given.items():
            if who == "one":
                self.pages[path] = (got, given.get(("anonymous", path), {}))
                self.read(path, got)

    def read(self, path: str, got: Mapping[str, Any]) -> list[SiteForm]:
        """Learn where a page leads; its forms."""
        for to in (*strings(got.get("links")), str(got.get("leads", ""))):
            if to.startswith("/") and to not in self.met and len(self.met) < 400 and visitable(to):
                self.met.append(to)
        found = shown(path, got)
        for one in got.get("forms", ()):
            if isinstance(one, Mapping) and one.get("method") == "GET" and visitable(str(one.get("action"))):
                kinds = one["fields"] if isinstance(one.get("fields"), Mapping) else {}
                texts = [str(name) for name, kind in kinds.items() if kind in (*_FREE, "number")]
                self.searches.setdefault(str(one["action"]).partition("?")[0], texts)
        for one in found:
            if one.action.startswith("/") and "{id}" not in one.action:
                self.forms.setdefault(one.action, one)
        return found

    def unread(self) -> list[str]:
        """The next pages to look at, of different kinds first."""
        waiting = [one for one in self.met if one not in self.pages and "{id}" not in one]
        kinds: dict[str, list[str]] = {}
        for one in waiting:
            kinds.setdefault(re.sub(r"\d+", "0", one.partition("?")[0]), []).append(one)
        return [group[0] for group in kinds.values()][:WHOLE]

    @property
    def inside(self) -> str:
        """A page that is served as the account to it alone; "" for none."""
        return next(
            (
                path
                for path, (mine, theirs) in self.pages.items()
                if _named(mine) and theirs and not _named(theirs)
            ),
            "",
        )

    def makers(self) -> list[SiteForm]:
        """Forms by which an account writes something that can be recognised."""
        return [one for one in self.forms.values() if _writes(one) and one.free and not one.file]

    def buttons(self) -> list[SiteForm]:
        """Forms without a text: a choice, or one button, that may begin something in several steps."""
        return [
            one for one in self.forms.values() if _writes(one) and not (one.free or one.file or one.personal)
        ]

    def uploads(self) -> list[SiteForm]:
        return [one for one in self.forms.values() if _writes(one) and one.file]

    def session(self) -> list[Row]:
        """The account's page with parts of its cookies; then the session ends, and it is asked again."""
        page = self.inside
        reading = [_get(who, page) for who in ("one", "anonymous", "scripted", "plain", "before")]
        form = next((one for one in self.forms.values() if _leaving(one.action)), None)
        link = next((one for one in self.met_leaving() if _leaving(one)), "")
        ends: list[Row] = [form.post("one", {})] if form else [_get("one", link)] if link else []
        after = [_get("kept", page), _get("one", page)] if ends else []
        return [*reading, *ends, *after]

    def met_leaving(self) -> list[str]:
        """Links of pages that were read, those that end a session included."""
        return [link for mine, _ in self.pages.values() for link in strings(mine.get("links"))]

    def away(self, login: str, fields: Mapping[str, Any]) -> list[Row]:
        """Log-ins that are asked to lead to a foreign host, by the parameters that the site uses for it."""
        base = self.login_page.partition("?")[0]
        led = [str(theirs.get("leads", "")) for _, theirs in self.pages.values()]
        links = [*led, *self.met_leaving()]
        queries = [one.partition("?")[2] for one in links if one.partition("?")[0] == base]
        pairs = [pair for query in queries for pair in parse_qsl(query)]
        names = [name for name, value in pairs if value.startswith("/") or _LEADING.match(name)]
        form = self.forms.get(login)
        hidden = [name for name in (form.fields if form else ()) if _LEADING.match(name)]
        rows: list[Row] = []
        for name in list(dict.fromkeys([*names, "next"]))[:2]:
            pages = [f"{base}?{quote(name, safe='')}={quote(value, safe='')}" for value in FOREIGN]
            rows += [["again", "POST", login, dict(fields), page] for page in pages]
        return rows + [["again", "POST", login, {**fields, hidden[0]: FOREIGN[0]}, base] for _ in hidden[:1]]

    def queried(self) -> Iterator[list[Row]]:
        """Parameters of pages that the account is shown: plain, with a quote, with two, and plain again; then
        sums, paths of a file that everybody may read, a word and markup around it."""
        named: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for path in self.met if self.inside else ():
            base, _, query = path.partition("?")
            pairs = parse_qsl(query) if "{" not in path else []
            for name, _ in pairs:
                named.setdefault((base, name), pairs)
        for base, names in self.searches.items() if self.inside else ():
            for name in names if "{" not in base else ():
                named.setdefault((base, name), [(other, "1") for other in names])
        rows: list[list[Row]] = []
        for (base, name), pairs in list(named.items())[:PARAMETERS]:
            plain = next(value for other, value in pairs if other == name)
            sent = (plain, f"{plain}'", f"{plain}''", plain, *SUMS, *CLIMBS)
            asked = [urlencode({**dict(pairs), name: value}) for value in sent]
            asked += [urlencode({**dict(pairs), name: value}, safe="{}") for value in (MARK, HANDLER)]
            rows.append([_get("one", f"{base}?{query}") for query in asked])
        while rows:
            each = MAX_STEPS // len(rows[0])
            yield [row for group in rows[:each] for row in group]
            del rows[:each]

    def tried(self, form: SiteForm) -> list[Row]:
        """The first texts of a form, each plain, with a quote, with two, plain again, then sums and markup;
        and a sum by its first button that has a name."""
        rows: list[Row] = []
        buttons = [name for name, kind in form.fields.items() if kind == "submit"]
        for name in form.free[:TEXTS]:
            sent = (MARK, f"{MARK}'", f"{MARK}''", MARK, *SUMS[:2], HANDLER)
            given = [{**form.texts(MARK), name: value} for value in sent]
            given += [
                {**form.texts(MARK), name: value, buttons[0]: "1"} for value in (MARK, SUMS[0]) if buttons
            ]
            rows += [form.post("one", one) for one in given]
        return rows

    def ranked(self, form: SiteForm) -> list[Row]:
        """The form of one's own record as it is and with a word that names no rank, then with fields that may
        raise who sends it; its page after each."""
        more = [{}, *({name: value} for name, value in (NO_RANK, *RANKS) if name not in form.fields)]
        page = _get("one", form.page)
        return [row for given in more for row in (form.post("one", form.texts("{mark}") | given), page)]

    def written(self, form: SiteForm) -> list[Row]:
        """Something is made, and everybody looks for it on the pages nearest to its form; then the same form
        is sent from another site. A visitor tries it first: what anybody may send needs no session."""
        near, looks = self._near(form), self._before(form)
        if form.file:
            return [*looks, form.marked(), *self._everybody(near)]
        visitor = form.post("anonymous", form.texts("{other-mark}"))
        seen = self._everybody(near)
        return [*looks, visitor, form.marked(), *seen, form.marked("foreign"), *looks]

    def _near(self, form: SiteForm) -> list[str]:
        first = form.action.split("/")[1]
        served = [path for path, (mine, _) in self.pages.items() if mine.get("status") == 200]
        near = {path: path == form.page or "{one" in path for path in served}
        beside = {path: path.split("/")[1].partition("?")[0] == first for path in served}
        return sorted(served, key=lambda one: (not near[one], not beside[one]))[:AFTER]

    def _everybody(self, paths: Iterable[str]) -> list[Row]:
        return [_get(who, path) for path in paths for who in ("one", "other", "anonymous")]

    def item(self, form: SiteForm, lists: Sequence[str], items: Sequence[str]) -> list[Row]:
        """A thing, on the pages that list it and on its own, as everybody sees them; and the other looks for
        it on all other pages."""
        near = lists[:ITEMS]
        listed = [_get(who, path) for path in near for who in ACCOUNTS]
        others = [_get("other", path) for path in self.pages if path not in near]
        rows = [
            *(_get("one", path) for path in near),
            form.marked(),
            *listed,
            *self._everybody(items[:ITEMS]),
        ]
        return [*rows, *others][:MAX_STEPS]

    def changed(
        self, form: SiteForm, pages: Sequence[str], edit: SiteForm, lists: Sequence[str] = ()
    ) -> list[Row]:
        """The other sends the form that changes a thing; its maker reads it before and after."""
        looks = [_get(who, path) for path in lists[:ITEMS] for who in ACCOUNTS]
        after = [_get("one", path) for path in pages]
        whom = ("one", "other", "anonymous") if lists else ACCOUNTS
        seen = [_get(who, path) for path in pages for who in whom]
        return [*self._before(form), form.marked(), *looks, *seen, edit.marked("other"), *after]

    def personal(self, form: SiteForm) -> list[Row]:
        """The same of a form that names its account."""
        return self.changed(form, self._near(form), form)

    def _before(self, form: SiteForm) -> list[Row]:
        """Reads the pages on which a new thing may be, to recognise it."""
        return [_get("one", path) for path in self._near(form)]

    def below(
        self, made: Sequence[Row], item: str, pages: Sequence[str], forms: Sequence[SiteForm]
    ) -> list[Row]:
        """A thing is made; pages below its own are read by everybody, and by the other with an id that
        nothing has; then the other sends the forms of its page, each between two looks of its maker."""
        rows = [*made, *(_get(who, item) for who in ("one", "other", "anonymous"))]
        for page in pages:
            rows += [*self._everybody([page]), _get("other", page.replace("{id}", NOBODYS))]
        for form in forms:
            sent = SiteForm(form.action, item, form.fields)
            rows += [_get("one", item), sent.post("other", {}), _get("one", item)]
        return rows[:MAX_STEPS]

    def scripts(self, form: SiteForm, where: str, who: str) -> list[Row]:
        """A benign text, then script, each in a browser; then in the next field."""
        links = {name: LINK for name, kind in form.fields.items() if kind == "url"}
        main, *more = form.free
        view: Row = [who, "VIEW", where, {}, ""]
        calm = [*self._before(form), form.marked(), view]
        second = [form.post("one", {main: "{mark}", more[0]: PAYLOAD}), view] if more else []
        return [*calm, form.post("one", {**form.texts("{mark}"), main: PAYLOAD, **links}), view, *second]

    def uploaded(self, form: SiteForm, where: str) -> list[Row]:
        """A text, a page and a drawing, each opened by the other in a browser."""
        rows: list[Row] = [_get("one", form.page)]
        for kind, text in (("txt", "{mark}"), ("html", HTML), ("svg", SVG)):
            rows.append(form.post("one", {form.file: [f"{{mark}}.{kind}", "text/plain", text]}))
            rows.append(["other", "VIEW", where.replace("{one-mark}.txt", f"{{one-mark}}.{kind}"), {}, ""])
        return rows

    def climbed(self, form: SiteForm, where: str) -> list[Row]:
        """Files whose names lead one and two folders up, and where they would be."""
        folders = where.split("/")[:-1]
        above = ["/".join([*folders[:-up], "{one-mark}.txt"]) for up in (1, 2) if len(folders) > up]
        sent = [
            form.post("one", {form.file: ["../" * up + "{mark}.txt", "text/plain", "{mark}"]})
            for up in range(1, len(above) + 1)
        ]
        looks = [_get("one", path) for path in above]
        return [*looks, *sent, *looks] if where.endswith("/{one-mark}.txt") else []


def apart(rows: Sequence[Row]) -> tuple[tuple[int, ...], ...]:
    """The steps of a row on which no other depends, in groups (`Question.apart`).

    Of inputs in a row each but the first to its page, whose answer says what is new in the others; and all to
    one page. Else each page that is read; where the row names a thing, what was read before it was made says
    which is new, and whether the other may send a form about it rests on the pages that name it.
    """
    if all(row[0] == "one" and (row[1] == "POST" or "?" in row[2]) for row in rows):
        pages: dict[str, list[int]] = {}
        for at, row in enumerate(rows):
            pages.setdefault(f"{row[1]} {row[2].partition('?')[0]}", []).append(at)
        whole = [tuple(page) for page in pages.values()]
        return (*whole, *((at,) for page in whole for at in page[1:]))
    read = [at for at, row in enumerate(rows) if row[1] == "GET"]
    if "{id}" in str(rows) or "{one-id}" in str(rows):
        sent = [at for at in range(len(rows)) if at not in read]
        made = max((at for at in sent if rows[at][0] == "one"), default=-1)
        last = max(sent, default=-1)
        read = [
            at
            for at in read
            if at > last or (at > made and rows[at][0] != "one" and "{id}" not in rows[at][2])
        ]
    return tuple((at,) for at in read)


def spares(rows: Sequence[Row]) -> bool:
    """Whether a row leaves the accounts as they are, so that others may be asked as them."""
    return not any(
        who == "again"
        or _leaving(path)
        or (method == "POST" and ("{one" in f"{path}{given}" or _OWN_RECORD.search(path)))
        for who, method, path, given, _ in rows
    )


def shown(path: str, got: Mapping[str, Any]) -> list[SiteForm]:
    """The forms that a page has, that send something."""
    return [
        SiteForm(str(one.get("action", "")), path, {str(k): str(v) for k, v in one["fields"].items()})
        for one in got.get("forms", ())
        if isinstance(one, Mapping) and one.get("method") == "POST" and isinstance(one.get("fields"), Mapping)
    ]


def _get(who: str, path: str) -> Row:
    return [who, "GET", path, {}, ""]


def _named(got: Mapping[str, Any]) -> bool:
    return got.get("status") == 200 and got.get("named") is True


def visitable(path: str) -> bool:
    bare = path.partition("?")[0]
    return not (_leaving(path) or ends_or_spends(path) or _NO_PAGE.search(bare))


def _leaving(path: str) -> bool:
    return ends_visit(path) or leaves("POST", path, "")


def _writes(form: SiteForm) -> bool:
    phrases = [name for name, kind in form.fields.items() if kind == "password" or PHRASE.match(name)]
    return not phrases and visitable(form.action) and visitable(form.page)


def edits(forms: Iterable[SiteForm]) -> list[SiteForm]:
    """Those that change the thing last made."""
    return [
        one
        for one in forms
        if ("{id}" in one.action or "id" in one.fields.values())
        and one.free
        and _writes(one)
        and not one.file
    ]


def strings(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []
