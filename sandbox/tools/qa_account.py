"""Two accounts that sign up at the platform's own API or by its forms, and a row of requests in their names.

Handles, passphrases, tokens and cookies are made in the jail and stay there: what leaves it is each answer's
status, and whether what one of them wrote stands in it; of a page also where it links, and its forms.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from sandbox import http
from sandbox.chain.rpc import denial
from sandbox.errors import Deadline
from sandbox.pages.page_request import page_request
from sandbox.sites import sessions
from sandbox.sites.accounts import ACCOUNTS, AccountAnswer, quoted, replaced, words
from sandbox.sites.form_play import FormPlay
from sandbox.spec import UNSAFE, Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_STEPS = 40
MAX_FACTS = 40
MAX_FACT = 80
WHO = (*ACCOUNTS, "anonymous", "wrong", *sessions.FORGED)
"""`wrong` logs in as `one` with another passphrase; the forged ones are the token of `one`."""
_SECRET = re.compile(r"(?i)token|jwt|session|secret|pass(?:w|ph)|cookie|api_?key")


@dataclass(frozen=True, slots=True)
class Args:
    """In texts of `fields`, `login_fields` and steps: {handle}, {email}, {phrase} and {mark} are words of the
    account that asks, {id} is what the answer to the last thing made names, {canary} a function of this call.

    With `page`, everything is sent as forms send it: a step has the page of its form as a fifth member, or
    "". Its hidden fields and what else it needs are carried, cookies are kept. Whom steps can name then:
    `one`, `other`, `anonymous`; with the cookies of `one`: `scripted` (those that a script can read), `plain`
    (those that go over http), `before` (from before the log-in), `kept` (from before its last step),
    `foreign` (as a page of another site would send it, in the words of `other`); `again` logs in anew. The
    method VIEW opens a page in a browser."""

    url: str
    """Where an account is made, by POST."""
    fields: dict[str, Any] = field(default_factory=dict)
    """What is sent there."""
    login: str = ""
    """Path on that host where a session begins, by POST; "": signing up begins one."""
    login_fields: dict[str, Any] = field(default_factory=dict)
    """What is sent there."""
    steps: tuple[Any, ...] = ()
    """Requests in order: who, method, path on that host, fields."""
    page: str = ""
    """Path of the page with the form that signs up; "": an API, which is sent JSON."""
    login_page: str = ""
    """Path of the page with the form that logs in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means that both accounts have a session."""

    answers: tuple[AccountAnswer, ...] = ()
    """By step."""
    brief: bool = False
    """Whether the token of `one` says itself that it ends within a day."""


def run(args: Args, ctx: Context) -> Result:
    if not 1 <= len(args.steps) <= MAX_STEPS:
        raise Mistake(f"/args/steps: expected 1 to {MAX_STEPS}")
    deadline = Deadline(ctx.deadline_s * 0.9)
    played = FormPlay(args, deadline) if args.page else _ApiPlay(args, deadline)
    for label in ACCOUNTS:
        if refused := played.enter(label):
            return Result(ok=False, error=clean(refused), error_class="http")
    brief = isinstance(played, _ApiPlay) and sessions.brief(played.held[ACCOUNTS[0]])
    answers = tuple(played.step(one, at) for at, one in enumerate(args.steps))
    return Result(ok=True, answers=answers, brief=brief)


class _ApiPlay:
    """The two accounts while they last."""

    def __init__(self, args: Args, deadline: Deadline) -> None:
        self.args, self._deadline, self._id = args, deadline, ""
        self._words = {label: words() for label in ACCOUNTS}
        self.held: dict[str, dict[str, str]] = {}

    def enter(self, label: str) -> str:
        """Sign up and log in; what was refused, or ""."""
        asked = [("sign-up", self.args.url, self.args.fields)]
        asked += [("log-in", self._at(self.args.login), self.args.login_fields)] if self.args.login else []
        for what, url, given in asked:
            reply = self._send("POST", url, {}, self._filled(given, label))
            if not 200 <= reply.status < 400:
                return f"the {what} answers {reply.status}{quoted(reply, self._words[label])}"
        self.held[label] = sessions.held(reply)
        without = f"the log-in answers without a token{quoted(reply, self._words[label])}"
        return "" if self.held[label] else without

    def step(self, one: Any, at: int) -> AccountAnswer:  # noqa: ANN401  any JSON
        if (
            not isinstance(one, list | tuple)
            or len(one) != 4
            or one[0] not in WHO
            or not isinstance(one[3], dict)
        ):
            raise Mistake(f"/args/steps/{at}: expected who, method, path, fields")
        who, method, path, given = one
        held = self._headers(who)
        if held is None or ("{id}" in str(path) and not self._id):
            return AccountAnswer()
        label = who if who in ACCOUNTS else ACCOUNTS[0]
        fields = self._filled(given, label, wrong=who == "wrong")
        reply = self._send(str(method), self._at(str(path)), held, fields)
        if who in ACCOUNTS and method == "POST" and 200 <= reply.status < 300:
            self._id = _id_of(reply) or self._id
        return self._read(reply, label)

    def _headers(self, who: str) -> dict[str, str] | None:
        if who in ("anonymous", "wrong"):
            return {}
        return self.held[who] if who in ACCOUNTS else sessions.forged(self.held[ACCOUNTS[0]], who)

    def _send(self, method: str, url: str, held: dict[str, str], fields: dict[str, Any]) -> http.HttpReply:
        sent = fields if method in UNSAFE else {}
        page = page_request(method, url, headers=held, fields=sent, body="", body_type="")
        reply = http.send(page, self._deadline)
        if reply.by_broker:
            raise denial(reply)
        return reply

    def _at(self, path: str) -> str:
        if not path.startswith("/"):
            raise Mistake("/args/steps: expected a path")
        parts = urlsplit(self.args.url)
        return http.absolute(
            f"{parts.scheme}://{parts.netloc}{path.replace('{id}', quote(self._id, safe=''))}"
        )

    def _filled(self, given: dict[str, Any], label: str, *, wrong: bool = False) -> dict[str, Any]:
        known = self._words[label] | {"{id}": self._id}
        known |= {"{phrase}": known["{phrase}"] + "x"} if wrong else {}
        return {name: replaced(value, known) for name, value in given.items()}

    def _read(self, reply: http.HttpReply, label: str) -> AccountAnswer:
        text, read = decode(reply.body), sessions.document(reply)
        plain = read if isinstance(read, dict) else {}
        facts = {
            clean(name, 60): clean(mask(json.dumps(value))[0], MAX_FACT)
            for name, value in plain.items()
            if (value is None or isinstance(value, str | int | float | bool)) and not _SECRET.search(name)
        }
        return AccountAnswer(
            status=reply.status,
            one=self._words["one"]["{mark}"] in text,
            other=self._words["other"]["{mark}"] in text,
            named=self._words[label]["{handle}"] in text,
            facts=dict(list(facts.items())[:MAX_FACTS]),
        )


def _id_of(reply: http.HttpReply) -> str:
    """What an answer calls the thing that it made: its `id`, else the end of its Location, else the `id` of
    the one object in it that has one; "" if it names nothing, or several things."""
    made = sessions.document(reply)
    table = made if isinstance(made, dict) else {}
    inner = [found for one in table.values() if isinstance(one, dict) and (found := _named(one))]
    placed = urlsplit(reply.headers.get("location", "")).path.rstrip("/").rpartition("/")[2]
    return _named(table) or placed or (inner[0] if len(inner) == 1 else "")


def _named(table: dict[str, Any]) -> str:
    for name in ("id", "uuid", "_id", "key", "slug"):
        if isinstance(table.get(name), str | int) and not isinstance(table.get(name), bool):
            return str(table[name])
    return ""


SPEC = ToolSpec(
    "qa_account",
    Args,
    Result,
    Effect.ACT,
    Cost(calls=1),
    "make two accounts through the platform's API or forms, and send requests in their names",
    run,
    group="web",
    acts_on="",
    acts_at="url",
    points_at={"url": Points.PAGE},
    asks=("two accounts of {url}",),
    judged_as=("account",),
    resources="browser",
    wall_s=75.0,
    example={
        "url": "{site}/api/accounts",
        "fields": {"name": "{handle}", "password": "{phrase}"},
        "login": "/api/sessions",
        "login_fields": {"name": "{handle}", "password": "{phrase}"},
        "steps": [["anonymous", "GET", "/api/me", {}]],
    },
    expects="!result.ok || result.answers[0].status == 401",
    public=PUBLIC
    | {"url", "fields", "login", "login_fields", "steps", "page", "login_page", "answers", "brief"},
    volatile=VOLATILE,
)
