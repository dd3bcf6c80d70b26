"""A stand-in for GitHub on loopback: the slice of its REST API that the fleet uses, state in memory.

Every request is held against GitHub's published description, and so is every answer: what does not fit is
kept in `wrong`, and what is outside of the slice in `outside`; `served` fails the test for either. Branches
are those of a bare repository on disk, if there is one. How GitHub behaves beyond its description it cannot
show.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fix.github_contract import Described, Json, operations

REPOSITORY = "acme/widget"
TOKEN = "github_pat_canary7Qx0000000000000000000000000000"
_WORD = re.compile(r"[a-z0-9]{3,}")


@dataclass
class GitHubServer:
    """The server's state; `pulls` and `issues` are as GitHub shows them, by number."""

    bare: Path | None = None
    token: str = TOKEN
    url: str = ""
    pulls: dict[int, Json] = field(default_factory=dict)
    issues: dict[int, Json] = field(default_factory=dict)
    comments: dict[int, list[str]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)
    bodies: list[tuple[str, Json]] = field(default_factory=list)
    faults: dict[str, list[Response]] = field(default_factory=dict)
    """Answers given instead, by the operation's id, before anything is done."""
    meanwhile: Callable[[str, Request], Awaitable[bool]] | None = None
    """Called with each request's id before anything is done; False: its client is gone, nothing is done."""
    lost: dict[str, list[Response]] = field(default_factory=dict)
    """Answers given instead after it was done."""
    wrong: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)
    heads: dict[str, str] = field(default_factory=dict)
    """Branches by name, where there is no repository on disk."""

    def head(self, branch: str) -> str:
        """The commit of a branch, "" without one."""
        if self.bare is None:
            return self.heads.get(branch, "")
        argv = ["git", "-C", str(self.bare), "rev-parse", "--verify", "-q", f"refs/heads/{branch}"]
        return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip()

    def add_pull(self, branch: str, **changes: Any) -> Json:
        """One more pull request from a branch of this repository; `changes` as GitHub shows them."""
        number = 1 + max((*self.pulls, *self.issues), default=0)
        pull: Json = _OPERATIONS["pulls/create"].example()
        here = {"ref": branch, "sha": self.head(branch) or "0" * 40, "label": f"acme:{branch}"}
        pull |= {"number": number, "html_url": f"{self.url}/{REPOSITORY}/pull/{number}", "state": "open"}
        pull |= {"draft": False, "merged": False, "merged_at": None, "closed_at": None, "labels": []}
        pull |= {"requested_reviewers": [], "requested_teams": [], "body": None, "title": "by a person"}
        pull["head"] |= here
        pull["head"]["repo"] |= {"full_name": REPOSITORY}
        self.pulls[number] = pull | changes
        return self.pulls[number]

    def add_issue(self, **changes: Any) -> Json:
        """One more issue, as a search shows it."""
        number = 1 + max((*self.pulls, *self.issues), default=0)
        issue: Json = _OPERATIONS["search/issues-and-pull-requests"].example()["items"][0]
        issue |= {"number": number, "html_url": f"{self.url}/{REPOSITORY}/issues/{number}", "state": "open"}
        issue.pop("pull_request", None)
        self.issues[number] = issue | changes
        return self.issues[number]

    async def answer(self, request: Request) -> Response:
        said = f"{request.method} {request.url.path}"
        for one in _OPERATIONS.values():
            if (names := one.matches(request.method, request.url.path)) is not None:
                break
        else:
            self.outside.append(said)
            return _refusal(404, "Not Found")
        self.asked[one.name] += 1
        if request.headers.get("authorization") != f"Bearer {self.token}":
            return _refusal(401, "Bad credentials")
        raw = await request.body()
        body = json.loads(raw) if raw else None
        query = dict(request.query_params)
        if wrong := one.wrong_query(query) + one.wrong_body(body):
            self.wrong += [f"{said}: {what}" for what in wrong]
            return _refusal(422, "Validation Failed")
        self.bodies.append((one.name, body or {}))
        if self.meanwhile is not None and not await self.meanwhile(one.name, request):
            return Response()
        if self.faults.get(one.name):
            return self.faults[one.name].pop(0)
        owner = f"{names.get('owner', '')}/{names.get('repo', '')}"
        if "owner" in names and owner != REPOSITORY:
            return _refusal(404, "Not Found")
        number = int(names.get("pull_number") or names.get("issue_number") or 0)
        if number and number not in self.pulls:
            return _refusal(404, "Not Found")
        status, made = _ANSWERS[one.name](self, number, query, body)
        if isinstance(made, Response):
            return made
        self.wrong += [f"our answer to {said}: {what}" for what in one.wrong_answer(status, made)]
        if self.lost.get(one.name):
            return self.lost[one.name].pop(0)
        return JSONResponse(made, status)

    def list_pulls(self, _number: int, query: dict[str, str], _body: Json) -> tuple[int, Any]:
        found = [
            _simple(pull)
            for number, pull in sorted(self.pulls.items(), reverse=True)
            if pull["head"]["label"] == query.get("head", pull["head"]["label"])
            and query.get("state", "open") in (pull["state"], "all")
        ]
        return 200, found[: int(query.get("per_page", "30"))]

    def create(self, _number: int, _query: dict[str, str], body: Json) -> tuple[int, Any]:
        if not self.head(body["head"]):
            return 422, _refusal(
                422, "Validation Failed", {"resource": "PullRequest", "field": "head", "code": "invalid"}
            )
        if any(one["head"]["ref"] == body["head"] and one["state"] == "open" for one in self.pulls.values()):
            text = f"A pull request already exists for acme:{body['head']}."
            return 422, _refusal(
                422, "Validation Failed", {"resource": "PullRequest", "code": "custom", "message": text}
            )
        if len(body["body"]) > 65_536:
            return 422, _refusal(422, "Validation Failed", {"field": "body", "code": "too long"})
        pull = self.add_pull(body["head"], title=body["title"], body=body["body"], draft=body["draft"])
        pull["base"] |= {"ref": body["base"]}
        return 201, pull

    def update(self, number: int, _query: dict[str, str], body: Json) -> tuple[int, Any]:
        self.pulls[number] |= body
        return 200, self.pulls[number]

    def add_labels(self, number: int, _query: dict[str, str], body: Json) -> tuple[int, Any]:
        example = _OPERATIONS["issues/add-labels"].example()[0]
        self.pulls[number]["labels"] += [example | {"name": name} for name in body["labels"]]
        return 200, self.pulls[number]["labels"]

    def ask(self, number: int, _query: dict[str, str], body: Json) -> tuple[int, Any]:
        user = self.pulls[number]["user"]
        self.pulls[number]["requested_reviewers"] += [user | {"login": one} for one in body["reviewers"]]
        return 201, _simple(self.pulls[number])

    def comment(self, number: int, _query: dict[str, str], body: Json) -> tuple[int, Any]:
        self.comments.setdefault(number, []).append(body["body"])
        return 201, _OPERATIONS["issues/create-comment"].example() | {"body": body["body"]}

    def list_comments(self, number: int, query: dict[str, str], _body: Json) -> tuple[int, Any]:
        example = _OPERATIONS["issues/create-comment"].example()
        size = int(query.get("per_page", "30"))
        begin = (int(query.get("page", "1")) - 1) * size
        return 200, [example | {"body": text} for text in self.comments.get(number, [])[begin : begin + size]]

    def search(self, _number: int, query: dict[str, str], _body: Json) -> tuple[int, Any]:
        """Roughly GitHub's: a quoted text in the body, or any of the words in the title."""
        text = query["q"]
        phrase = re.search(r'"([^"]*)"', text)
        words = set(_WORD.findall(text.partition("(")[2].lower())) - {"or"}
        example = _OPERATIONS["search/issues-and-pull-requests"].example()["items"][0]
        listed = [
            example
            | {name: pull[name] for name in ("number", "html_url", "title", "state", "body")}
            | {"pull_request": example["pull_request"] | {"merged_at": pull["merged_at"]}}
            for pull in self.pulls.values()
        ]
        listed = listed if "is:pull-request" in text else list(self.issues.values())
        found = [
            one
            for one in listed
            if (phrase and phrase[1] in (one["body"] or ""))
            or words & set(_WORD.findall(one["title"].lower()))
        ]
        whole = _OPERATIONS["search/issues-and-pull-requests"].example()
        return 200, whole | {"total_count": len(found), "items": found[: int(query["per_page"])]}


_OPERATIONS: dict[str, Described] = {one.name: one for one in operations()}
_ANSWERS: dict[str, Callable[[GitHubServer, int, dict[str, str], Any], tuple[int, Any]]] = {
    "pulls/list": GitHubServer.list_pulls,
    "pulls/create": GitHubServer.create,
    "pulls/update": GitHubServer.update,
    "pulls/request-reviewers": GitHubServer.ask,
    "issues/add-labels": GitHubServer.add_labels,
    "issues/create-comment": GitHubServer.comment,
    "issues/list-comments": GitHubServer.list_comments,
    "search/issues-and-pull-requests": GitHubServer.search,
}


def _simple(pull: Json) -> Json:
    """A pull request as lists show it: fewer fields."""
    known = _OPERATIONS["pulls/list"].example()[0]
    return deepcopy({name: value for name, value in pull.items() if name in known})


def _refusal(status: int, message: str, *errors: Json) -> JSONResponse:
    more = {"errors": list(errors)} if errors else {}
    said = {"message": message, "documentation_url": "https://docs.github.com/rest", "status": str(status)}
    return JSONResponse(said | more, status)


@contextlib.asynccontextmanager
async def served(server: GitHubServer) -> AsyncIterator[GitHubServer]:
    """The server while it listens; AssertionError at the end for anything outside of the description."""
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]
    app = Starlette(routes=[Route("/{path:path}", server.answer, methods=methods)])
    line = socket.create_server(("127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{line.getsockname()[1]}"

    class Quiet(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    runner = Quiet(uvicorn.Config(app, log_config=None, lifespan="off"))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(runner.serve, [line])
        try:
            yield server
        finally:
            runner.should_exit = True
    line.close()
    assert (server.wrong, server.outside) == ([], [])
