"""Two accounts that sign up at the platform's own API or by its forms, and a row of requests in their names.

Passphrases, tokens and cookies are made in the jail and stay there: what leaves it is each answer's status,
and whether what one of them wrote stands in it; of a page also where it links, its forms, and what it says
more when it is asked by a query; and the handles of accounts that stay on the platform, so that its owner
finds them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from sandbox.errors import Deadline
from sandbox.sites.accounts import ACCOUNTS, AccountAnswer
from sandbox.sites.api_play import ApiPlay
from sandbox.sites.form_play import FormPlay
from sandbox.spec import Context, Cost, Effect, Impact, Mistake, Points, ToolSpec
from sandbox.text import clean
from sandbox.tools.base import PUBLIC, VOLATILE, ToolAnswer

MAX_STEPS = 40
_SENT = re.compile(r"form|multipart|json|application/[a-z.+-]{0,60}json")
_CARRIED = re.compile(r"(?:basic|(?:header|query|cookie) [\w!#$%&'*+.^`|~-]{1,64}(?: \w{1,20})?)?")


@dataclass(frozen=True, slots=True)
class Args:
    """In texts of `fields`, `login_fields` and steps: {handle}, {email}, {phrase} and {mark} are words of the
    account that asks, {id} is what the answer to the last thing made names, {canary} a function of this call.
    {listed} is the first thing of the list read last, {listed:PATH} that of the list at a path, {was} the
    value of a field of this name in the record read last, {refresh} the token that begins the session again,
    {one-mail} the address of that account,
    {one.NAME} and {other.NAME} the id that answers to that account called NAME, {loopback} and {closed} an
    open and a closed port of the platform's own machine.
    `{handle:PATTERN}`, for the first three, is one that fits a regular expression. {user} and {secret} are
    those of an account that the platform's profile names: then nothing is signed up, `url` is the log-in.

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
    more: dict[str, Any] = field(default_factory=dict)
    """What is sent besides when a sign-up is refused that does not say what it lacks."""
    bodies: dict[str, str] = field(default_factory=dict)
    """How bodies are sent, by path as in steps: `form`, `multipart`, `json`, or another type of JSON."""
    carried: str = ""
    """How a session is shown: `basic` (by the values of `login_fields`, name and passphrase), `header NAME`,
    `query NAME`, `cookie NAME`, with a word before the token as a third; "": a bearer token, or cookies."""
    ident: str = ""
    """What an answer calls the id of a thing that was made; "": as is usual."""
    removes: dict[str, str] = field(default_factory=dict)
    """Path that removes, by DELETE, what was made by a POST to a path, {id} in it: asked last."""
    invited: dict[str, str] = field(default_factory=dict)
    """Fields of the sign-up of `other` that have what an answer to `one` calls so, such as the code of an
    invitation: path by field."""
    together: tuple[int, ...] = ()
    """Steps of an API that are sent at the same moment: the position of the first, from 0, and that after the
    last."""
    shared: bool = False
    """Whether accounts of an earlier call of the same batch may ask, where they cannot be removed: nothing of
    this changes an account itself."""
    documents: dict[str, str] = field(default_factory=dict)
    """GraphQL operations of one field by `ENDPOINT#FIELD`. A step or login with the path
    `ENDPOINT#FIELD/VALUE` sends that one, with VALUE as its first variable and its fields as the others; its
    answer is the field's value, with the status that an error's words stand for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result(ToolAnswer):
    """`ok` means that the accounts which its steps name have a session."""

    answers: tuple[AccountAnswer, ...] = ()
    """By step."""
    brief: bool = False
    """Whether the token of `one` says itself that it ends within a day."""
    endless: bool = False
    """Whether it is a signed token that states no end."""
    heard: tuple[str, ...] = ()
    """Words of `{listener}` in the steps that the platform asked for meanwhile."""
    remains: tuple[str, ...] = ()
    """What was made and is still there, accounts by their handles."""
    start: dict[str, Any] = field(default_factory=dict)
    """Arguments by which accounts were made in the end, where refusals led to others than were given."""


def run(args: Args, ctx: Context) -> Result:
    if not 1 <= len(args.steps) <= MAX_STEPS:
        raise Mistake(f"/args/steps: expected 1 to {MAX_STEPS}")
    if not _CARRIED.fullmatch(args.carried) or not all(map(_SENT.fullmatch, args.bodies.values())):
        raise Mistake("/args: expected `carried` and `bodies` as documented")
    if args.together and not (
        len(args.together) == 2 and 0 <= args.together[0] < args.together[1] <= len(args.steps)
    ):
        raise Mistake("/args/together: expected the positions of the first step and of that after the last")
    deadline = Deadline(ctx.deadline_s * 0.9)
    pool = _accounts(args)
    played: ApiPlay | FormPlay | None = ctx.kept.pop(pool, None) if pool else None
    if played is None:
        played = (FormPlay if args.page else ApiPlay)(args, ctx.accounts, deadline)
    else:
        played.resume(args, deadline)
    # each sign-up costs the platform: an API is asked for a second account by a row that speaks of it
    for label in ACCOUNTS if args.page or ACCOUNTS[1] in str(args.steps) else ACCOUNTS[:1]:
        if label not in played.held and (refused := played.enter(label)):
            return Result(ok=False, error=clean(refused), error_class="http", remains=played.remove())
    first = played.held[ACCOUNTS[0]] if isinstance(played, ApiPlay) else None
    begin, end = args.together or (len(args.steps),) * 2
    answers = [played.step(one, at) for at, one in enumerate(args.steps[:begin])]
    if isinstance(played, ApiPlay):
        answers += played.together(args.steps[begin:end], begin)
    answers += [played.step(one, at) for at, one in enumerate(args.steps[len(answers) :], len(answers))]
    brief, endless = (first.brief, first.endless) if first else (False, False)
    remains = played.remove()
    asked = [answer for step, answer in zip(args.steps, answers, strict=True) if step[0] in ACCOUNTS]
    if pool and not any(_is_out(answer, args.login_page) for answer in asked):
        ctx.kept[pool] = played
    return Result(
        ok=True, answers=tuple(answers), brief=brief, endless=endless, start=played.start, remains=remains
    )


def _accounts(args: Args) -> str:
    """What accounts later calls of a batch may share with this one; "" if none: they are removed after it, or
    belong together."""
    path = urlsplit(args.url).path
    if not args.shared or args.invited or path in args.removes:
        return ""
    kinds = [args.bodies.get(one, "json") for one in (path, args.login)]
    made = [args.url, args.fields, args.more, args.login, args.login_fields, args.carried, kinds]
    return json.dumps([*made, args.page, args.login_page], sort_keys=True)


def _is_out(answer: AccountAnswer, login_page: str) -> bool:
    """Whether an account's session ended, or it is locked."""
    return answer.status == 401 or (bool(login_page) and answer.leads.partition("?")[0] == login_page)


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
    impacts={
        "": Impact(
            4,
            5,
            7,
            "accounts are made, and one asks for what is another's",
            "accounts remove what they made, and themselves where they can",
        ),
    },
    points_at={"url": Points.PAGE},
    signs_in=True,
    batches=True,
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
    | {"url", "fields", "login", "login_fields", "steps", "page", "login_page", "answers", "brief", "endless"}
    | {
        "more",
        "bodies",
        "carried",
        "ident",
        "start",
        "documents",
        "removes",
        "remains",
        "heard",
        "together",
        "invited",
        "shared",
    },
    volatile=VOLATILE | {"remains"},
)
