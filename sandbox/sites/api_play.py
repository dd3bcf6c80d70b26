"""Two accounts of an API: signed up and logged in as a client does it, and a row of requests in their names.

A sign-up that is refused is tried again with what its refusal asks for, a few times.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Thread
from typing import Any, NamedTuple, Protocol, cast
from urllib.parse import quote, urlencode, urlsplit

from sandbox import http
from sandbox.chain.rpc import denial
from sandbox.errors import Deadline, Failure
from sandbox.pages.forms import encoded
from sandbox.pages.handlers import kept_by_caches, runs_handler
from sandbox.pages.page_request import page_request
from sandbox.secrets.fields import private_fields
from sandbox.sites import sessions
from sandbox.sites.accounts import (
    ACCOUNTS,
    SECRET,
    SHAPED,
    AccountAnswer,
    innermost,
    new_marks,
    quoted,
    renamed,
    replaced,
    words,
)
from sandbox.sites.graphql import graphql_answer, graphql_request
from sandbox.sites.idents import IDENT, IDENTS, as_was, id_of, named_in, own_ident, snake
from sandbox.sites.refusals import SIGN_UPS, Adaptation
from sandbox.sites.sessions import AccountSession
from sandbox.spec import UNSAFE, Mistake
from sandbox.text import clean, decode, mask

MAX_FACTS = 40
MAX_FACT = 80
FACT_DEPTH = 3
MAX_READ = 4_000
"""Characters of an answer that is no JSON and no page, read as its one value."""
MEDIA = ("image/", "audio/", "video/", "font/")
MAX_LISTED, DEEPEST = 50, 6
"""Entries of a list, and levels, in which names of values are looked for."""
MAX_LIST = 8
"""Texts of a list that is a plain value, such as that of roles."""
WHO = (*ACCOUNTS, "anonymous", "wrong", "stranger", "new", *sessions.FORGED)
"""`wrong` logs in as `one` with another passphrase, `stranger` by a name that was never signed up; `new` is a
further account, another one at each sign-up, with its session; the forged ones are the token of `one`."""
LOG_INS = 4
"""Most tries of one log-in."""
_SECRET = re.compile(r"(?i)token|jwt|session|secret|pass(?:w|ph)|cookie|api_?key")
FORMS = ("form", "multipart")
WAITS = re.compile(
    r"\{(?:id(?:-\d{1,2})?|listed(?:(?:-2)?:[^{}]{1,200})?|refresh|(?:one|other)\.[\w-]{1,60})\}"
)
"""What stands for a thing that may not have been made, or seen."""
CLOSED_PORT = 47_107
"""Of the platform's own machine: nothing listens there."""
PART = 10
"""Letters of a mark by which a search finds it, and whose echo is not the mark."""
HEADER = "header "
"""Before the name of a field that is sent as a header."""


class ApiStart(Protocol):
    """How accounts are made: the arguments of `qa_account`."""

    @property
    def url(self) -> str: ...
    @property
    def fields(self) -> dict[str, Any]: ...
    @property
    def more(self) -> dict[str, Any]: ...
    @property
    def login(self) -> str: ...
    @property
    def login_fields(self) -> dict[str, Any]: ...
    @property
    def bodies(self) -> dict[str, str]: ...
    @property
    def carried(self) -> str: ...
    @property
    def ident(self) -> str: ...
    @property
    def removes(self) -> dict[str, str]: ...
    @property
    def invited(self) -> dict[str, str]: ...
    @property
    def documents(self) -> dict[str, str]: ...


@dataclass(slots=True)
class Entrance:
    """A request by which an account or a session begins; `kind` is how its body is sent."""

    what: str
    path: str
    fields: dict[str, Any]
    kind: str


class Made(NamedTuple):
    """What a POST made: in words, by whose session, at which path, and its id."""

    what: str
    held: AccountSession
    path: str
    ident: str


class StepRequest(NamedTuple):
    """A step as it is sent: `path` as it was written, `placed` with the values of its words; `label` is the
    account whose words it has."""

    who: str
    method: str
    path: str
    placed: str
    held: AccountSession
    fields: dict[str, Any]
    label: str


class ApiPlay:
    """The two accounts while they last."""

    def __init__(self, args: ApiStart, accounts: Mapping[str, Mapping[str, str]], deadline: Deadline) -> None:
        self.args, self._deadline = args, deadline
        self._ids: list[str | int] = []
        """Of what the two made, by each POST of theirs; "" where one made nothing."""
        self._made: list[Made] = []
        self._origin = "{0.scheme}://{0.netloc}".format(urlsplit(args.url))
        self._listed = ""
        """The id of the first entry of the list that was read last."""
        self._firsts: dict[str, str | int] = {}
        """The same of each list, by word."""
        self._record: Mapping[str, Any] = {}
        """The record that was read last."""
        self._own: dict[str, str | int] = {}
        """The ids that answers to an account named first, by word: of itself, and of what is its own; that of
        an object in it is called after the object, `team_id`."""
        self._words = {label: words(accounts.get(label)) for label in ACCOUNTS}
        self._words |= {"stranger": words(), "new": words()}
        self._operators = bool(accounts)
        """Whether they are an operator's: wrong passphrases may lock them, and no one is signed up."""
        self._bodies = dict(args.bodies)
        path = args.url[len(self._origin) :] or "/"
        kinds = (self._bodies.get(at, "json") for at in (path, args.login))
        self._join = Entrance("sign-up", path, copy.deepcopy(args.fields), next(kinds))
        self._enter = Entrance("log-in", args.login, copy.deepcopy(args.login_fields), next(kinds))
        if SECRET in str(args.fields):
            self._join.what = "log-in"
        self.held: dict[str, AccountSession] = {}
        self._entered: dict[str, str | int] = {}
        """The ids of `_own` that the accounts were told as they were made."""

    def resume(self, args: ApiStart, deadline: Deadline) -> None:
        """Ask other things as the same accounts: with other marks, and knowing no thing of before."""
        self.args, self._deadline = args, deadline
        self._bodies = dict(args.bodies) | {one.path: one.kind for one in (self._join, self._enter)}
        self._ids, self._made, self._listed, self._firsts, self._record = [], [], "", {}, {}
        self._own = dict(self._entered)
        self.held.pop("new", None)
        fresh = words()
        self._words |= {"stranger": fresh, "new": fresh}
        for label in ACCOUNTS:
            self._words[label] |= new_marks()

    @property
    def start(self) -> dict[str, Any]:
        """What led to the accounts, where it is not what was given."""
        found = {"fields": self._join.fields, "login_fields": self._enter.fields, "bodies": self._bodies}
        return {name: value for name, value in found.items() if value != getattr(self.args, name)}

    def enter(self, label: str) -> str:
        """Sign up and log in; what was refused, or ""."""
        refused = self._begin(label)
        self._adopt(label)
        self._entered = dict(self._own)
        return refused

    def remove(self) -> tuple[str, ...]:
        """Remove what was made, the last first, where `removes` says how; in words, what stays."""
        stays = []
        for one in reversed(self._made):
            item, status = self.args.removes.get(one.path, ""), 0
            if item and ("{id}" not in item or one.ident):
                with suppress(Failure):  # no time is left, or no answer
                    status = self._send(
                        "DELETE", item.replace("{id}", quote(one.ident, safe="")), one.held, {}
                    ).status
            if not (200 <= status < 300 or status in (404, 410)):
                stays.append(clean(one.what, 200))
        return tuple(stays)

    def _begin(self, label: str) -> str:
        session = self.held[label] = AccountSession()
        carried, join = self.args.carried, self._join
        if label != ACCOUNTS[0] and self.args.invited:
            join = Entrance(join.what, join.path, copy.deepcopy(join.fields), join.kind)
            for name, path in self.args.invited.items():
                if not (code := self._told(path, name)):
                    return f"GET {path} shows {ACCOUNTS[0]} no {name}"
                innermost(join.fields)[name] = code
        if self.args.fields:
            more = dict(self.args.more) if label == ACCOUNTS[0] else {}
            if refused := self._begun(
                join,
                label,
                Adaptation(join.fields, more, urlsplit(self._origin).hostname or ""),
                SIGN_UPS,
            ):
                return refused
            if self._join.what == "sign-up":
                self._adopt(label)
                what = f"account {self._words[label]['{handle}']}"
                self._made.append(
                    Made(what, session, self._join.path, id_of(self._last, "", self._join.path))
                )
        if self.args.login:
            renamed(innermost(self._enter.fields), innermost(self._join.fields))
            if refused := self._begun(self._enter, label, Adaptation(self._enter.fields, {}), LOG_INS):
                # a sign-up may have begun a session itself
                return "" if session.token else refused
        if carried == "basic":
            renamed(innermost(self._enter.fields), innermost(self._join.fields))
            user, phrase = (*(str(one) for one in self._filled(self._enter.fields, label).values()), "", "")[
                :2
            ]
            self.held[label] = sessions.basic(user, phrase)
        elif not self.args.fields and not self.args.login:
            session.carry(self._words[label].get(SECRET, ""), carried)
        elif not session.token:
            return f"the log-in answers without a token{self._quoted(label)}"
        return ""

    def _told(self, path: str, name: str) -> str:
        """The text of a field, at any depth, in what `one` reads."""
        reply = self._send("GET", self._placed(path), self.held[ACCOUNTS[0]], {})
        read = sessions.document(reply) if 200 <= reply.status < 300 else None
        found = _plain(read[0] if isinstance(read, list) and read else read, FACT_DEPTH)
        texts = (value for known, value in found if snake(known.rpartition(".")[2]) == snake(name))
        return next((one for one in texts if isinstance(one, str) and one), "")

    def _begun(self, what: Entrance, label: str, adapted: Adaptation, tries: int) -> str:
        """Make one of the requests until it is not refused; what was refused, or ""."""
        session, first, renewed = self.held[label], True, False
        for left in reversed(range(tries)):
            self._last = reply = self._post(what, label)
            if 200 <= reply.status < 400:
                session.learn(reply, self.args.carried, what.path)
                self._know(reply, label)
                return ""
            if left == 0 or not 400 <= reply.status < 500 or reply.status in (404, 429):
                break
            if reply.status == 419 or "csrf" in decode(reply.body)[:2000].lower():
                if not first:
                    break
                first = False
                looked = self._send("GET", what.path, session, {})
                session.learn(looked, "cookie x", what.path)
                continue
            if reply.status == 409 and what.what == "sign-up" and not renewed:  # the name is taken
                self._words[label], renewed = words(), True
                continue
            learned = adapted.learn(reply)
            if reply.status == 415 or adapted.form_unread:
                what.kind = self._bodies[what.path] = "json" if what.kind in FORMS else "form"
            elif learned:
                what.fields = copy.deepcopy(adapted.whole)
            elif what is self._enter and "{handle" in str(what.fields) and "{email" in str(self._join.fields):
                sent = adapted.fields
                sent |= {name: "{email}" for name, one in sent.items() if str(one).startswith("{handle")}
                renamed(sent, innermost(self._join.fields))
                what.fields = copy.deepcopy(adapted.whole)
            else:
                break
        return f"the {what.what} answers {reply.status}{self._quoted(label)}"

    def _post(self, what: Entrance, label: str) -> http.HttpReply:
        return self._send(
            "POST", what.path, self.held[label], self._filled(what.fields, label), kind=what.kind
        )

    def _quoted(self, label: str) -> str:
        return quoted(self._last, self._texts(label))

    def _texts(self, label: str) -> dict[str, str]:
        """Every text of ours that an account used, by its word."""
        known = {word: text for word, text in self._words[label].items() if text}
        for what in (self._join, self._enter):
            texts = [one for one in innermost(what.fields).values() if isinstance(one, str)]
            known |= {one: str(replaced(one, known)) for one in texts if SHAPED.fullmatch(one)}
        return known

    def step(self, one: Any, at: int) -> AccountAnswer:  # noqa: ANN401  any JSON
        asked = self._asked(one, at)
        return AccountAnswer() if asked is None else self._answered(asked, self._sent(asked))

    def together(self, steps: Sequence[Any], at: int) -> list[AccountAnswer]:
        """Steps that are sent at the same moment; their answers in order."""
        asked = [self._asked(one, at + place) for place, one in enumerate(steps)]
        replies = dict[int, http.HttpReply | BaseException]()

        def send(place: int, request: StepRequest) -> None:
            try:
                replies[place] = self._sent(request)
            except BaseException as error:
                replies[place] = error

        threads = [Thread(target=send, args=one) for one in enumerate(asked) if one[1] is not None]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failed := next((one for one in replies.values() if isinstance(one, BaseException)), None):
            raise failed
        return [
            AccountAnswer() if one is None else self._answered(one, cast(http.HttpReply, replies[place]))
            for place, one in enumerate(asked)
        ]

    def _asked(self, one: Any, at: int) -> StepRequest | None:  # noqa: ANN401  any JSON
        """The request of a step; None where it names what is not there."""
        if (
            not isinstance(one, list | tuple)
            or len(one) != 4
            or one[0] not in WHO
            or not isinstance(one[3], dict)
        ):
            raise Mistake(f"/args/steps/{at}: expected who, method, path, fields")
        who, method, path, given = one
        if who == "new" and path == self._join.path:
            self._words["new"], self.held["new"] = words(), AccountSession()
        held = self._session(who)
        named = f"{path} {given}"
        label, known = who if who in self._words else ACCOUNTS[0], as_was(given, self._record)
        if (
            held is None
            or known is None
            or (WAITS.search(named) and "{" in self._placed(WAITS.findall(named)))
        ):
            self._ids += [""] * (method == "POST" and who in ACCOUNTS)
            return None
        fields = self._filled(known, label, wrong=who == "wrong")
        return StepRequest(who, str(method), str(path), self._placed(str(path), label), held, fields, label)

    def _sent(self, asked: StepRequest) -> http.HttpReply:
        kind = self._bodies.get(asked.path, "json")
        return self._send(asked.method, asked.placed, asked.held, asked.fields, kind=kind)

    def _answered(self, asked: StepRequest, reply: http.HttpReply) -> AccountAnswer:
        """Keep what later steps may name of an answer; what leaves the jail of it."""
        who, method, path, held = asked.who, asked.method, asked.path, asked.held
        good = method == "POST" and 200 <= reply.status < 300
        if good and path != self._enter.path and "#" not in path:
            joined = who == "new" and path == self._join.path
            what = f"account {self._words['new']['{handle}']}" if joined else f"POST {path}"
            self._made.append(Made(what, held, path, id_of(reply, self.args.ident, path)))
        if good and who == "new" and path in (self._join.path, self._enter.path):
            held.learn(reply, self.args.carried, path)
            self._adopt(who)
        if method == "POST" and who in ACCOUNTS:
            made = id_of(reply, self.args.ident, path) if 200 <= reply.status < 300 else ""
            number = made.isdecimal() and f'"{made}"' not in decode(reply.body)
            self._ids.append(int(made) if number else made)
        if method == "GET" and 200 <= reply.status < 300:
            self._look(reply, path)
            self._know(reply, who)
        read = self._read(reply, asked.label)
        # the answer to a log-in holds a token, by whatever name
        return replace(read, facts={}) if path == self._enter.path else read

    def _look(self, reply: http.HttpReply, path: str) -> None:
        """Keep what later steps may name of an answer: the first thing of a list, or the record."""
        read = sessions.document(reply)
        if isinstance(read, dict):
            lists = [one for one in read.values() if isinstance(one, list)]
            whole = next(iter(read.values())) if len(read) == 1 else read
            read = lists[0] if len(lists) == 1 and lists[0] and isinstance(lists[0][0], dict) else whole
        if isinstance(read, list):
            first = read[0] if read and isinstance(read[0], dict) else {}
            names = (self.args.ident, *IDENTS, *own_ident(first, path))
            self._listed = named_in(first, names)
            number = any(type(first.get(name)) is int for name in names)
            for word, one in zip(("listed", "listed-2"), read, strict=False):
                if isinstance(one, dict) and (ident := named_in(one, names)):
                    self._firsts[f"{{{word}:{path}}}"] = int(ident) if number else ident
        elif isinstance(read, dict):
            self._record = read

    def _know(self, reply: http.HttpReply, who: str) -> None:
        """Keep the ids in an answer to an account that is about one thing."""
        plain = _plain(sessions.document(reply), FACT_DEPTH) if who in ACCOUNTS else ()
        for name, value in sorted(plain, key=lambda one: one[0].count(".")):
            above, _, last = name.rpartition(".")
            if IDENT.search(last) and type(value) in (str, int) and len(str(value)) <= MAX_FACT:
                inner = f"{above.rpartition('.')[2]}_{last}" if above and last in IDENTS else last
                for called in {last, snake(inner)}:
                    self._own.setdefault(f"{{{who}.{called}}}", value)

    def _adopt(self, label: str) -> None:
        """Know an account by the name that it signed up with in the end."""
        shaped = [one for one in innermost(self._join.fields).values() if str(one).startswith("{handle:")]
        if shaped:
            self._words[label]["{handle}"] = str(replaced(shaped[0], self._words[label]))

    def _session(self, who: str) -> AccountSession | None:
        if who in ("wrong", "new") and self._operators:
            return None
        if who in ("anonymous", "wrong", "stranger"):
            return AccountSession()
        if who == "new":
            return self.held.get("new") or AccountSession()
        return self.held[who] if who in ACCOUNTS else self.held[ACCOUNTS[0]].forged(who)

    def _known(self, label: str) -> dict[str, str]:
        """Every word of a step as this account says it; ids only of what was made."""
        ids = {f"{{id-{number}}}": str(ident) for number, ident in enumerate(self._ids, 1) if ident != ""}
        last = {"{id}": list(ids.values())[-1]} if ids else {}
        last |= {"{listed}": self._listed} if self._listed else {}
        last |= {word: str(ident) for word, ident in (self._own | self._firsts).items()}
        last |= {"{loopback}": f"http://127.0.0.1:{urlsplit(http.absolute(self._origin)).port or 80}/"}
        last |= {"{closed}": f"http://127.0.0.1:{CLOSED_PORT}/"}
        if label in self.held and self.held[label].refresh:
            last |= {"{refresh}": self.held[label].refresh}
        one, other = (self._words[one] for one in ACCOUNTS)
        both = {"{one}": one["{handle}"], "{other}": other["{handle}"], "{one-tag}": one["{tag}"]}
        both |= {"{one-mail}": one["{email}"], "{one-part}": one["{mark}"][:PART]}
        return self._words[label] | both | last | ids

    def _placed(self, path: object, label: str = ACCOUNTS[0]) -> str:
        """The path with its words, each quoted."""
        known = {word: quote(text, safe="") for word, text in self._known(label).items()}
        return str(replaced(str(path), known))

    def _send(
        self, method: str, path: str, held: AccountSession, fields: Mapping[str, Any], *, kind: str = "json"
    ) -> http.HttpReply:
        if not path.startswith("/"):
            raise Mistake("/args/steps: expected a path")
        graphql = "#" in path
        if graphql:
            path, fields = graphql_request(path, fields, self.args.documents)
            method, kind = "POST", "json"
        url = f"{self._origin}{path}"
        if held.query:
            url += ("&" if "?" in url else "?") + urlencode(held.query)
        headers = {name[7:]: str(one) for name, one in fields.items() if name.startswith(HEADER)}
        fields = {name: one for name, one in fields.items() if not name.startswith(HEADER)}
        body, body_type = "", ""
        if method in UNSAFE and fields:
            if kind not in FORMS:
                body, body_type = json.dumps(fields), "application/json" if kind == "json" else kind
            else:
                entries = [(name, _as_text(one, file=kind == "multipart")) for name, one in fields.items()]
                raw, body_type = encoded(entries, multipart=kind == "multipart")
                body = raw.decode()
        headers |= held.sent(urlsplit(url).path, acts=method in UNSAFE)
        page = page_request(
            method, http.absolute(url), headers=headers, fields={}, body=body, body_type=body_type
        )
        reply = http.send(page, self._deadline)
        if reply.by_broker:
            raise denial(reply)
        return graphql_answer(reply) if graphql else reply

    def _filled(self, given: Mapping[str, Any], label: str, *, wrong: bool = False) -> dict[str, Any]:
        known = self._known(label)
        known |= {one: known[one] + "x" for one in ("{phrase}", "{secret}") if wrong and one in known}
        numbers = {f"{{id-{at}}}": one for at, one in enumerate(self._ids, 1) if isinstance(one, int)}
        known_ids = self._own | self._firsts
        numbers |= {word: one for word, one in known_ids.items() if isinstance(one, int)}
        return {name: _numbered(value, numbers, known) for name, value in given.items()}

    def _read(self, reply: http.HttpReply, label: str) -> AccountAnswer:
        text, read = decode(reply.body), sessions.document(reply)
        page = reply.content_type.startswith("text/html")
        if read is None and text and not page and not reply.content_type.startswith(MEDIA):
            read = text[:MAX_READ]
        ours = self._texts(label)
        hidden = {word: said for word, said in ours.items() if word.startswith(("{phrase", "{secret"))}
        hidden |= {f"{{token-{who}}}": one.token for who, one in self.held.items() if one.token}
        hidden |= {f"{{refresh-{who}}}": one.refresh for who, one in self.held.items() if one.refresh}
        facts = {
            clean(name, 60): clean(mask(_without(json.dumps(value), hidden))[0], MAX_FACT)
            for name, value in _plain(read, FACT_DEPTH)
            if not _SECRET.search(name)
        }
        names = [said for word, said in ours.items() if word.startswith(("{handle", "{email", "{user"))]
        lists = [
            one for one in (read, *(read.values() if isinstance(read, dict) else ())) if isinstance(one, list)
        ]
        given = frozenset((*ours.values(), *(one.token for one in self.held.values())))
        return AccountAnswer(
            status=reply.status,
            one=self._words["one"]["{mark}"] in text,
            other=self._words["other"]["{mark}"] in text,
            named=any(one in text for one in names),
            said=quoted(reply, ours) if reply.status >= 400 else "",
            many=max(map(len, lists), default=0),
            private=private_fields(read, given),
            shared=kept_by_caches(reply),
            markup=page and isinstance(read, dict | list),
            handler=read is None and runs_handler(text, self._words["one"]["{mark}"], reply),
            facts=dict(list(facts.items())[:MAX_FACTS]),
            holds=tuple(sorted(set(_holding(read, DEEPEST))))[:MAX_FACTS],
        )


def _numbered(value: Any, numbers: Mapping[str, int], known: Mapping[str, str]) -> Any:  # noqa: ANN401  any JSON
    """A value with its words filled in; the word of a number is a number, in lists and tables too."""
    if isinstance(value, list | tuple):
        return [_numbered(one, numbers, known) for one in value]
    if isinstance(value, dict):
        return {name: _numbered(one, numbers, known) for name, one in value.items()}
    return numbers.get(str(value), replaced(value, known))


def _plain(value: Any, left: int, above: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401  any JSON
    """The plain values of an object, those of objects in it by `outer.inner`."""
    if left == FACT_DEPTH and (isinstance(value, str | int | float)):
        yield "value", value
    for name, inner in value.items() if isinstance(value, dict) and left else ():
        if isinstance(inner, dict):
            yield from _plain(inner, left - 1, f"{above}{name}.")
        elif inner is None or isinstance(inner, str | int | float | bool) or _is_short_list(inner):
            yield f"{above}{name}", inner


def _holding(value: Any, left: int) -> Iterator[str]:  # noqa: ANN401  any JSON
    """The names of the plain values in JSON that are there, those in lists too."""
    for one in value[:MAX_LISTED] if isinstance(value, list) and left else ():
        yield from _holding(one, left - 1)
    for name, inner in value.items() if isinstance(value, dict) and left else ():
        if isinstance(inner, dict | list):
            yield from _holding(inner, left - 1)
        elif inner not in (None, ""):
            yield clean(name, 60)


def _is_short_list(value: object) -> bool:
    """Whether a value is a few texts, such as roles."""
    return isinstance(value, list) and len(value) <= MAX_LIST and all(isinstance(one, str) for one in value)


def _as_text(value: Any, *, file: bool) -> Any:  # noqa: ANN401  any JSON
    """A value as a form has it; a list is a file's name, type and text."""
    return value if isinstance(value, str) or (file and isinstance(value, list)) else json.dumps(value)


def _without(text: str, known: Mapping[str, str]) -> str:
    for word, said in known.items():
        text = text.replace(said, word)
    return text
