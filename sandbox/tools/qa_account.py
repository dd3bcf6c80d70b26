"""Two accounts that sign up at the platform's own API, and a row of requests in their names.

Handles, passphrases and tokens are made in the jail and stay there: what leaves it is each answer's status,
and whether what one of them wrote stands in it.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from sandbox import http, sessions
from sandbox.errors import Deadline, Failure
from sandbox.page_request import page_request
from sandbox.spec import UNSAFE, Context, Cost, Effect, Mistake, Points, ToolSpec
from sandbox.text import clean, decode, mask
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_STEPS = 40
MAX_FACTS = 40
MAX_FACT = 80
ACCOUNTS = ("one", "other")
WHO = (*ACCOUNTS, "anonymous", "wrong", *sessions.FORGED)
"""`wrong` logs in as `one` with another passphrase; the forged ones are the token of `one`."""


@dataclass(frozen=True, slots=True)
class Args:
    """In texts of `fields`, `login_fields` and steps: {handle}, {email}, {phrase} and {mark} are words of the
    account that asks, {id} is what the answer to the last thing made names."""

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


@dataclass(frozen=True, slots=True)
class AccountAnswer:
    """`status` 0: the step was not made, because this token has no such forged form."""

    status: int = 0
    """HTTP status."""
    one: bool = False
    """Whether the mark of `one` stands in it."""
    other: bool = False
    """Whether the mark of `other` stands in it."""
    facts: dict[str, str] = field(default_factory=dict)
    """The plain values of its JSON object, as JSON, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means that both accounts have a session."""

    answers: tuple[AccountAnswer, ...] = ()
    """By step."""


def run(args: Args, ctx: Context) -> Result:
    if not 1 <= len(args.steps) <= MAX_STEPS:
        raise Mistake(f"/args/steps: expected 1 to {MAX_STEPS}")
    deadline = Deadline(ctx.deadline_s * 0.9)
    played = _Play(args, deadline)
    for label in ACCOUNTS:
        if refused := played.enter(label):
            return Result(ok=False, error=clean(refused), error_class="http")
    return Result(ok=True, answers=tuple(played.step(one, at) for at, one in enumerate(args.steps)))


class _Play:
    """The two accounts while they last."""

    def __init__(self, args: Args, deadline: Deadline) -> None:
        self.args, self._deadline, self._id = args, deadline, ""
        self._words = {label: _words() for label in ACCOUNTS}
        self._held: dict[str, dict[str, str]] = {}

    def enter(self, label: str) -> str:
        """Sign up and log in; what was refused, or ""."""
        asked = [("sign-up", self.args.url, self.args.fields)]
        asked += [("log-in", self._at(self.args.login), self.args.login_fields)] if self.args.login else []
        for what, url, given in asked:
            reply = self._send("POST", url, {}, self._filled(given, label))
            if not 200 <= reply.status < 400:
                return f"the {what} answers {reply.status}"
        self._held[label] = sessions.held(reply)
        return "" if self._held[label] else "the log-in answers without a token"

    def step(self, one: Any, at: int) -> AccountAnswer:
        if (
            not isinstance(one, list | tuple)
            or len(one) != 4
            or one[0] not in WHO
            or not isinstance(one[3], dict)
        ):
            raise Mistake(f"/args/steps/{at}: expected who, method, path, fields")
        who, method, path, given = one
        held = self._headers(who)
        if held is None:
            return AccountAnswer()
        label = who if who in ACCOUNTS else ACCOUNTS[0]
        fields = self._filled(given, label, wrong=who == "wrong")
        reply = self._send(str(method), self._at(str(path)), held, fields)
        if who in ACCOUNTS and method == "POST" and 200 <= reply.status < 300:
            self._id = _id_of(reply) or self._id
        return self._read(reply)

    def _headers(self, who: str) -> dict[str, str] | None:
        if who in ("anonymous", "wrong"):
            return {}
        return self._held[who] if who in ACCOUNTS else sessions.forged(self._held[ACCOUNTS[0]], who)

    def _send(self, method: str, url: str, held: dict[str, str], fields: dict[str, Any]) -> http.HttpReply:
        sent = fields if method in UNSAFE else {}
        page = page_request(method, url, headers=held, fields=sent, body="", body_type="")
        reply = http.send(page, self._deadline)
        if reply.by_broker:
            raise Failure("denied", f"not permitted: {method} {url}")
        return reply

    def _at(self, path: str) -> str:
        if not path.startswith("/"):
            raise Mistake("/args/steps: expected a path")
        parts = urlsplit(self.args.url)
        return http.absolute(
            f"{parts.scheme}://{parts.netloc}{path.replace('{id}', quote(self._id, safe=''))}"
        )

    def _filled(self, given: dict[str, Any], label: str, *, wrong: bool = False) -> dict[str, Any]:
        words = self._words[label] | {"{id}": self._id}
        words |= {"{phrase}": words["{phrase}"] + "x"} if wrong else {}
        return {name: _replaced(value, words) for name, value in given.items()}

    def _read(self, reply: http.HttpReply) -> AccountAnswer:
        text, read = decode(reply.body), sessions.document(reply)
        plain = read if isinstance(read, dict) else {}
        facts = {
            clean(name, 60): clean(mask(json.dumps(value))[0], MAX_FACT)
            for name, value in plain.items()
            if value is None or isinstance(value, str | int | float | bool)
        }
        return AccountAnswer(
            status=reply.status,
            one=self._words["one"]["{mark}"] in text,
            other=self._words["other"]["{mark}"] in text,
            facts=dict(list(facts.items())[:MAX_FACTS]),
        )


def _words() -> dict[str, str]:
    """What one account is called, and what it writes."""
    handle = "qa" + os.urandom(5).hex()
    return {
        "{handle}": handle,
        "{email}": f"{handle}@example.com",
        "{phrase}": f"Qa1!{os.urandom(8).hex()}",
        "{mark}": "qam" + os.urandom(6).hex(),
    }


def _replaced(value: Any, words: dict[str, str]) -> Any:
    for word, text in words.items() if isinstance(value, str) else ():
        value = value.replace(word, text)
    return value


def _id_of(reply: http.HttpReply) -> str:
    """What an answer calls the thing that it made: its `id`, else the end of its Location."""
    made = sessions.document(reply)
    inner = [one for one in made.values() if isinstance(one, dict)] if isinstance(made, dict) else []
    for table in [made, *inner] if isinstance(made, dict) else []:
        for name in ("id", "uuid", "_id", "key", "slug"):
            if isinstance(table.get(name), str | int) and not isinstance(table.get(name), bool):
                return str(table[name])
    return urlsplit(reply.headers.get("location", "")).path.rstrip("/").rpartition("/")[2]


SPEC = ToolSpec(
    "qa_account",
    Args,
    Result,
    Effect.ACT,
    Cost(calls=1),
    "make two accounts through the platform's API, and send requests in their names",
    run,
    group="web",
    acts_on="",
    acts_at="url",
    points_at={"url": Points.PAGE},
    asks=("two accounts of {url}",),
    judged_as=("account",),
    in_build="service",
    example={
        "url": "{site}/api/accounts",
        "fields": {"name": "{handle}", "password": "{phrase}"},
        "login": "/api/sessions",
        "login_fields": {"name": "{handle}", "password": "{phrase}"},
        "steps": [["anonymous", "GET", "/api/me", {}]],
    },
    expects="!result.ok || result.answers[0].status == 401",
    public=PUBLIC | {"url", "fields", "login", "login_fields", "steps", "answers"},
    volatile=VOLATILE,
)
