"""The pages' addresses: which room answers, who may ask, and what an error looks like.

Reading needs the port alone, and a Host that is ours: a page of another site that reaches us by DNS rebinding
has another one. Changing something needs a session besides (session.py).
"""

from __future__ import annotations

import json
import re
import resource
import secrets
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import SystemRandom
from typing import Any
from urllib.parse import parse_qs, urlencode

import anyio
from anyio import to_thread
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from fleet.app.journal import SharedJournal
from fleet.clock import iso
from fleet.errors import FleetError, Refused, UsageError
from fleet.events.daemon_events import DaemonEvent
from fleet.events.model import Event
from fleet.gate.stop import stopped
from fleet.personas.load import LoadedPersona
from fleet.runs.activity import to_csv
from fleet.service.follow import CHANGES, EventStream
from fleet.service.http_server import LOCAL, host_of, listen
from fleet.service.ingress import AskForRun
from fleet.text import line
from fleet.web import actions, rooms, session
from fleet.web.access import AccessLog
from fleet.web.live import Follower, LiveState
from fleet.web.render import HEADERS, asset, page
from fleet.web.sources import Sources

STAY_S = 600.0
"""Most seconds that a follower stays before it comes again; coming costs the server more than 40 messages."""
CROWD = 1_000
"""Most followers at a time; fewer where a quarter of the files that this process may open is fewer."""
AGAIN_MS = 1_000
FORM = 8_192
"""Most bytes of a form."""
FORM_S = 10.0
"""Seconds from a form's head to its end."""
STATUS: tuple[tuple[type[FleetError], int], ...] = ((UsageError, 400), (Refused, 403))
"""Of an error; any other is ours, 503."""
NAV = (
    ("now", "/", "Now"),
    ("worklist", "/worklist", "Worklist"),
    ("runs", "/runs", "Runs"),
    ("activity", "/activity", "Activity"),
    ("personas", "/personas", "Personas"),
    ("platform", "/platform", "Platform"),
    ("log", "/log", "Log"),
)
DONE = {
    "dismiss": "is dismissed",
    "snooze": "is snoozed",
    "reopen": "is reopened",
    "undo": "has a decision less: it was undone",
    "release": "is released: it is posted at the end of the next run",
    "severity": "has the severity that you gave it",
    "merge": "is part of the other item",
    "split": "is an item of its own",
}
"""What is said of an item after a decision."""
_HERE = re.compile(
    r"/(?:worklist(?:\?[\w=&%+.:-]{0,500})?|items/[0-9a-f]{4,64}|runs/[a-z0-9-]{4,64}|log|notices|activity(?:\?[\w=&%+.:-]{0,500})?)?",
    re.ASCII,
)
_NAME = re.compile(r"[0-9a-f]{4,64}", re.ASCII)

Gather = Callable[[Request], Awaitable[dict[str, Any]]]


class WebPages:
    """The pages of one state directory: it reads what happens, and makes their addresses.

    `hosts` are permitted names besides those of this machine, `waits` is what a daemon waits for before it
    can start.
    """

    def __init__(self, state: Path, hosts: Collection[str] = (), waits: str = "") -> None:
        self._state, self._hosts, self._waits, self._live = state, frozenset(hosts), waits, LiveState()
        self._journal = SharedJournal()

    @property
    def followed(self) -> int:
        """How many follow what happens."""
        return len(self._live.followers)

    def run(self, event: Event) -> None:
        self._live.run(event)

    def daemon(self, event: DaemonEvent) -> None:
        self._live.daemon(event)

    def routes(
        self,
        facts: Callable[[], Awaitable[Mapping[str, Any]]],
        personas: Mapping[str, LoadedPersona],
        ask: AskForRun | None = None,
    ) -> list[Route]:
        """Every address of the pages; `facts` is what /readyz says, `ask` queues a run."""
        sources = Sources(self._state, self._live, self._journal, facts, personas, ask, self._waits)
        return _Site(sources, self._hosts).routes()

    async def aclose(self) -> None:
        """Once nothing answers any more."""
        with anyio.CancelScope(shield=True):
            await self._journal.aclose()


@asynccontextmanager
async def shown(
    pages: WebPages, personas: Mapping[str, LoadedPersona], line: socket.socket
) -> AsyncIterator[None]:
    """Answer on a port with pages that no daemon stands behind, until the end of the block."""

    async def nothing() -> Mapping[str, Any]:
        return {}

    async with aclosing(pages), anyio.create_task_group() as tasks:
        tasks.start_soon(listen, Starlette(routes=pages.routes(nothing, personas)), [line])
        try:
            yield
        finally:
            tasks.cancel_scope.cancel()


class _Site:
    """What answers at each address."""

    def __init__(self, sources: Sources, hosts: frozenset[str]) -> None:
        self._sources, self._hosts = sources, hosts
        self._access = AccessLog(sources.state, hosts)

    def routes(self) -> list[Route]:
        source = self._sources
        told: Sequence[tuple[str, str, Gather]] = (
            ("/", "now", lambda _: rooms.now_page(source)),
            ("/worklist", "worklist", lambda one: rooms.worklist_page(source, _query(one))),
            (
                "/items/{item}",
                "item",
                lambda one: rooms.item_page(source, one.path_params["item"]),
            ),
            ("/runs", "runs", lambda _: rooms.runs_page(source)),
            (
                "/runs/{run}",
                "run",
                lambda one: rooms.run_page(source, one.path_params["run"], one.query_params.get("from", "")),
            ),
            ("/activity", "activity", lambda one: rooms.activity_page(source, _query(one))),
            ("/notices", "notices", lambda _: rooms.notices_page(source)),
            ("/personas", "personas", lambda _: rooms.personas_page(source)),
            ("/platform", "platform", lambda _: rooms.platform_page(source)),
            ("/log", "log", lambda _: rooms.log_page(source)),
            ("/unlock", "unlock", self._entrance),
        )
        return [
            *(
                Route(path, self._noted(partial(self._room, name, gather)), methods=["GET"])
                for path, name, gather in told
            ),
            Route("/activity.{form}", self._noted(self._export), methods=["GET"]),
            Route("/static/{name}", self._static, methods=["GET"]),
            Route(CHANGES, self._changes, methods=["GET"]),
            *(
                Route(path, self._noted(partial(self._form, act)), methods=["POST"])
                for path, act in (
                    ("/unlock", self._unlock),
                    ("/lock", self._lock),
                    ("/stop", self._stop),
                    ("/resume", self._resume),
                    ("/items/{item}/{kind}", self._decide),
                    ("/log/verify", self._verify),
                    ("/notices/{notice}/dismiss", self._dismiss),
                    ("/runs/{run}/cancel", self._cancel),
                    ("/runs/{run}/pause", self._pause),
                    ("/questions/{question}/{verdict}", self._answer),
                    ("/runs/{run}/replay", self._replay),
                    ("/personas/{persona}/start", self._start),
                )
            ),
        ]

    def _noted(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """The same answer, on record."""

        async def noted(request: Request) -> Response:
            began = datetime.now(UTC)
            said = await answer(request)
            self._access.note(request, said.status_code, began)
            return said

        return noted

    def _stranger(self, request: Request) -> Response | None:
        if host_of(request) in LOCAL or host_of(request) in self._hosts:
            return None
        return PlainTextResponse("unknown host\n", status_code=421, headers=dict(HEADERS))

    async def _entrance(self, request: Request) -> dict[str, Any]:
        session.token(self._sources.state)  # it is there when a person looks for it
        back = request.query_params.get("back", "")
        return {"back": back if _HERE.fullmatch(back) else "/"}

    async def _static(self, request: Request) -> Response:
        return self._stranger(request) or asset(request.path_params["name"])

    async def _export(self, request: Request) -> Response:
        """The acts that the address wants, all of them."""
        if refusal := self._stranger(request):
            return refusal
        try:
            async with self._sources.journal.reading():
                acts = await rooms.acts(self._sources, _query(request), None)
        except FleetError as error:
            return self._failed(request, error)
        form = request.path_params["form"]
        if form == "csv":
            body, kind = await to_thread.run_sync(to_csv, acts), "text/csv"
        elif form == "json":
            body, kind = json.dumps([asdict(one) for one in acts]).encode(), "application/json"
        else:
            return Response(status_code=404, headers=dict(HEADERS))
        told = {"content-disposition": f"attachment; filename=activity.{form}", "content-type": kind}
        return Response(body, headers=dict(HEADERS) | told)

    async def _room(self, name: str, gather: Gather, request: Request) -> Response:
        if refusal := self._stranger(request):
            return refusal
        try:
            async with self._sources.journal.reading():
                notices = await rooms.open_notices(self._sources)
                context = self._around(name, request) | {"notices": notices} | await gather(request)
            return await to_thread.run_sync(page, f"room_{name}.jinja", context)
        except FleetError as error:
            return self._failed(request, error)

    def _around(self, name: str, request: Request) -> dict[str, Any]:
        """What every page has: the way to the others, brakes, notices, and what was just done."""
        state, query = self._sources.state, request.query_params
        signed_in = session.session_of(state, request)
        pause = stopped(state)
        done, item, decision = (query.get(word, "") for word in ("done", "item", "decision"))
        return {
            "room": {"item": "worklist", "run": "runs"}.get(name, name),
            "nav": NAV,
            "csrf": session.csrf(state, signed_in),
            "ident": secrets.token_hex(8),
            "can_run": self._sources.ask is not None,
            "stop": pause,
            "notices": [],
            "here": request.url.path,
            "done": DONE.get(done, ""),
            "done_item": item if _NAME.fullmatch(item) else "",
            "done_decision": decision if _NAME.fullmatch(decision) else "",
            "late": query.get("late") == "1",
            "token_file": state / session.TOKEN,
        }

    def _failed(self, request: Request, error: FleetError) -> Response:
        status = next((code for kind, code in STATUS if isinstance(error, kind)), 503)
        try:
            context = self._around("error", request)
        except FleetError:  # the token's file: then no page can be a form
            return PlainTextResponse(f"{line(str(error))}\n", status_code=status, headers=dict(HEADERS))
        return page("room_error.jinja", context | {"error": error, "status": status}, status=status)

    async def _form(
        self, act: Callable[[Request, dict[str, str]], Awaitable[Response]], request: Request
    ) -> Response:
        if refusal := self._stranger(request):
            return refusal
        try:
            with anyio.fail_after(FORM_S):
                body = await _body(request)
            form = {name: values[-1] for name, values in parse_qs(body, keep_blank_values=True).items()}
            if act == self._unlock:
                session.check_origin(request)
            else:
                session.check_form(self._sources.state, request, form.get("csrf", ""))
            answer = await act(request, form)
            self._sources.forget()
            return answer
        except FleetError as error:
            return self._failed(request, error)
        except (TimeoutError, ClientDisconnect):
            return self._failed(
                request, UsageError("the form did not arrive in time", remedy="send it again")
            )

    async def _unlock(self, _: Request, form: dict[str, str]) -> Response:
        answer = _go(form.get("back", ""))
        value = session.opened(self._sources.state, form.get("token", ""))
        answer.set_cookie(session.COOKIE, value, max_age=session.LIFE_S, httponly=True, samesite="strict")
        return answer

    async def _lock(self, _: Request, form: dict[str, str]) -> Response:
        answer = _go(form.get("back", ""))
        answer.delete_cookie(session.COOKIE, httponly=True, samesite="strict")
        return answer

    async def _stop(self, _: Request, form: dict[str, str]) -> Response:
        await actions.stop_all(self._sources.state, form)
        return _go(form.get("back", ""))

    async def _resume(self, _: Request, form: dict[str, str]) -> Response:
        await actions.let_go_on(self._sources.state, form)
        return _go(form.get("back", ""))

    async def _decide(self, request: Request, form: dict[str, str]) -> Response:
        path = request.path_params
        made, listed = await actions.decide(self._sources.state, path["kind"], path["item"], form)
        words = {"done": made.kind, "item": made.item, "decision": made.name}
        return _go(form.get("back", ""), **words, late="" if listed else "1")

    async def _verify(self, _: Request, __: dict[str, str]) -> Response:
        self._sources.verified = (iso(datetime.now(UTC)), await actions.verify(self._sources.state))
        return _go("/log")

    async def _dismiss(self, request: Request, form: dict[str, str]) -> Response:
        await actions.dismiss_notice(self._sources.state, request.path_params["notice"])
        return _go(form.get("back", ""))

    async def _cancel(self, request: Request, form: dict[str, str]) -> Response:
        await actions.cancel(self._sources.state, request.path_params["run"], form)
        return _go(form.get("back", ""))

    async def _pause(self, request: Request, form: dict[str, str]) -> Response:
        await actions.pause(self._sources.state, request.path_params["run"], form)
        return _go(form.get("back", ""))

    async def _answer(self, request: Request, form: dict[str, str]) -> Response:
        path = request.path_params
        await actions.answer_question(self._sources.state, path["question"], path["verdict"], form)
        return _go(form.get("back", ""))

    async def _replay(self, request: Request, form: dict[str, str]) -> Response:
        run = await actions.start(self._sources.ask, form, replay=request.path_params["run"])
        return _go(f"/runs/{run}")

    async def _start(self, request: Request, form: dict[str, str]) -> Response:
        wish = {"persona": request.path_params["persona"], "probe": form.get("probe", "")}
        return _go(f"/runs/{await actions.start(self._sources.ask, form, **wish)}")

    async def _changes(self, request: Request) -> Response:
        """`GET /changes`: server-sent events, one message for all that happened in a moment."""
        if refusal := self._stranger(request):
            return refusal
        followers = self._sources.live.followers
        if len(followers) >= _places():
            return PlainTextResponse("too many followers already\n", status_code=429, headers=dict(HEADERS))
        follower = self._sources.live.follow()
        began = datetime.now(UTC)

        def left() -> None:
            followers.discard(follower)
            self._access.note(request, 200, began)

        return EventStream(_messages(follower), left, HEADERS)


def _places() -> int:
    """How many may follow: they must not use up what the runs need."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CROWD if files == resource.RLIM_INFINITY else min(CROWD, files // 4)


async def _messages(follower: Follower) -> AsyncGenerator[str, None]:
    yield f"retry: {AGAIN_MS}\n\n"
    stay = STAY_S * SystemRandom().uniform(0.5, 1)  # those that came together do not come back together
    async with aclosing(follower.messages(stay)) as messages:
        async for text in messages:
            yield f"event: change\ndata: {text}\n\n"


def _query(request: Request) -> dict[str, list[str]]:
    return parse_qs(request.url.query, keep_blank_values=True)


async def _body(request: Request) -> str:
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM:
            raise UsageError(f"a form of more than {FORM} bytes")
    return body.decode("utf-8", "replace")


def _go(back: str, **words: str) -> RedirectResponse:
    """To a page of ours, with what was done."""
    to = back if _HERE.fullmatch(back) else "/"
    query = urlencode({name: word for name, word in words.items() if word})
    joined = f"{to}{'&' if '?' in to else '?'}{query}" if query else to
    return RedirectResponse(joined, status_code=303, headers=dict(HEADERS))
