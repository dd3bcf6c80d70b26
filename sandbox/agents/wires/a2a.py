"""Calls of A2A over JSON-RPC, 1.0 and 0.3: a message is answered by a message, or by a task with a state.

The two versions differ in the names of methods and states, in how parts and results are wrapped, and in lists
of tasks, which only 1.0 has here.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, ClassVar
from urllib.parse import urlsplit

from sandbox import http, strict_json
from sandbox.agents.wires.port import (
    CHARGES,
    CONVERSATIONS,
    LISTS,
    OWNER,
    SIGNATURES,
    TOOLS,
    TURNS,
    Json,
    KeyedWire,
    ReplyParts,
    Spoken,
    objects,
    word,
)
from sandbox.spec import Context

CARD = "/.well-known/agent-card.json"
TERMINAL = ("completed", "failed", "canceled", "rejected")
ENDED = (*TERMINAL, "input-required", "auth-required")
"""States after which nothing more comes by itself."""
FAILED = ("failed", "rejected")
NOWHERE = "https://qa-nothing.example/push"
"""Where pushes would go: a name that resolves nowhere (RFC 2606)."""
UNKNOWN_TASK = "00000000-0000-4000-8000-00000000dead"
MAX_DECLARED, MAX_EXAMPLES = 32, 8


@dataclass(frozen=True, slots=True)
class _Methods:
    send: str
    stream: str
    get: str
    cancel: str
    push: str
    extended: str
    list: str = ""


_V1 = _Methods(
    *("SendMessage", "SendStreamingMessage", "GetTask", "CancelTask"),
    *("CreateTaskPushNotificationConfig", "GetExtendedAgentCard", "ListTasks"),
)
_V03 = _Methods(
    *("message/send", "message/stream", "tasks/get", "tasks/cancel", "tasks/pushNotificationConfig/set"),
    "agent/getAuthenticatedExtendedCard",
)
_LACKS: Mapping[str, str] = {
    CHARGES: "this wire states no balance of a caller",
    TOOLS: "this wire does not say which tools ran",
    TURNS: "this wire does not say how many turns an answer took",
    OWNER: "an agent of this wire has no owner that is known",
    SIGNATURES: "a secret has no age and no signature",
    CONVERSATIONS: "each message begins a context of its own here",
}


class A2aWire(KeyedWire):
    """`agent` has its `url`. Version 1.0."""

    LACKS: ClassVar[Mapping[str, str]] = _LACKS
    VERSION: ClassVar[str] = "1.0"
    METHODS: ClassVar[_Methods] = _V1

    def __init__(self, agent: Mapping[str, str], ctx: Context) -> None:
        super().__init__(agent, ctx)
        self._run, self._count = ctx.run, 0

    def request(self, spoken: Spoken) -> http.HttpRequest:
        claims = dict.fromkeys(spoken.claim_fields, spoken.claimed) if spoken.claimed else {}
        message = self._message(spoken.message) | ({"metadata": claims} if claims else {})
        message |= {"referenceTaskIds": [spoken.refers]} if spoken.refers else {}
        waits = {"returnImmediately": spoken.running} if self._new else {"blocking": not spoken.running}
        params: Json = {"message": message, "configuration": {"acceptedOutputModes": ["text/plain"], **waits}}
        if spoken.push_to and not spoken.running:
            field = "taskPushNotificationConfig" if self._new else "pushNotificationConfig"
            params["configuration"][field] = {"url": spoken.push_to}
        params |= {"metadata": claims} if claims else {}
        method = self.METHODS.stream if spoken.stream else self.METHODS.send
        return self._asked(method, params, spoken)

    def read(self, documents: Sequence[object]) -> ReplyParts:
        fold = _Fold()
        for document in documents:
            if not isinstance(document, dict):
                continue
            error = document.get("error")
            if isinstance(error, dict):
                code = error.get("code")
                fold.said.refused = word(error.get("message")) or "an error"
                fold.said.code = code if type(code) is int else -1
            elif isinstance(result := document.get("result"), dict):
                fold.take(result)
        return fold.parts()

    def follow(self, said: ReplyParts, spoken: Spoken) -> http.HttpRequest | None:
        if not said.task or said.state in ENDED or spoken.running or spoken.stream:
            return None
        return self.about("get", said.task, spoken)

    def about(self, what: str, task: str, spoken: Spoken) -> http.HttpRequest:
        """A request about a task: `get`, `cancel`, `list` or `push`; or for the `extended` card."""
        method = getattr(self.METHODS, what)
        params: Json = {"id": task}
        where = {"url": spoken.push_to or NOWHERE}
        if what in ("list", "extended"):
            params = {"pageSize": 50} if what == "list" else {}
        elif what == "push" and self._new:
            params = {"taskId": task, **where}
        elif what == "push":
            params = {"taskId": task, "pushNotificationConfig": where}
        return self._asked(method, params, replace(spoken, raw=""))

    def card(self) -> http.HttpRequest:
        """The request for the agent's card, which has a fixed place on its host."""
        parts = urlsplit(self._agent["url"])
        return http.HttpRequest("GET", f"{parts.scheme}://{parts.netloc}{CARD}")

    @property
    def _new(self) -> bool:
        return self.METHODS is _V1

    def _message(self, text: str) -> Json:
        self._count += 1
        ident = f"qa-{self._run}-{self._count}"
        if self._new:
            return {"messageId": ident, "role": "ROLE_USER", "parts": [{"text": text}]}
        return {
            "kind": "message",
            "messageId": ident,
            "role": "user",
            "parts": [{"kind": "text", "text": text}],
        }

    def _asked(self, method: str, params: Json, spoken: Spoken) -> http.HttpRequest:
        self._count += 1
        asked = {"jsonrpc": "2.0", "id": f"qa-{self._count}", "method": method, "params": params}
        sent = spoken.raw.encode() or json.dumps(asked).encode()
        headers = {**self.headers(spoken), "a2a-version": spoken.version or self.VERSION}
        headers["accept"] = "text/event-stream" if spoken.stream else "application/json"
        url = http.absolute(self._agent["url"], "/ctx/agents")
        return http.HttpRequest("POST", url, headers, sent, encodings="identity")


class A2aWire03(A2aWire):
    """Version 0.3."""

    LACKS: ClassVar[Mapping[str, str]] = {**_LACKS, LISTS: "version 0.3 has no list of tasks over JSON-RPC"}
    VERSION: ClassVar[str] = "0.3"
    METHODS: ClassVar[_Methods] = _V03


class _Fold:
    """What the results so far say together: artifacts by their id, and the last state."""

    def __init__(self) -> None:
        self.said = ReplyParts()
        self._artifacts: dict[str, str] = {}
        self._words = ""

    def take(self, result: Json) -> None:
        """One result: of a call, of a stream, or a task itself."""
        for key, kind in (
            ("task", "task"),
            ("message", "message"),
            ("statusUpdate", "status-update"),
            ("artifactUpdate", "artifact-update"),
        ):
            inner = result.get(key)
            if isinstance(inner, dict) and "kind" not in result and "status" not in result:
                self._kind(kind, inner)
                return
        kind = word(result.get("kind")) or ("task" if "status" in result and "id" in result else "")
        self._kind(kind, result)

    def parts(self) -> ReplyParts:
        self.said.text = "\n".join(filter(None, self._artifacts.values())) or self._words
        return self.said

    def _kind(self, kind: str, one: Json) -> None:
        if kind == "message":
            self.said.shaped, self.said.finish = True, self.said.finish or "stop"
            self._words += self._text(one)
        elif kind == "task":
            self.said.shaped, self.said.task = True, word(one.get("id"))[:200]
            for artifact in objects(one.get("artifacts")):
                self._artifacts[word(artifact.get("artifactId"))] = self._text(artifact)
            self._status(one.get("status"))
        elif kind == "status-update":
            self.said.shaped = True
            self.said.task = self.said.task or word(one.get("taskId"))[:200]
            self._status(one.get("status"))
        elif kind == "artifact-update" and isinstance(piece := one.get("artifact"), dict):
            self.said.shaped, name = True, word(piece.get("artifactId"))
            before = self._artifacts.get(name, "") if one.get("append") is True else ""
            self._artifacts[name] = before + self._text(piece)

    def _status(self, status: object) -> None:
        state = word(status.get("state")) if isinstance(status, dict) else ""
        self.said.state = state.removeprefix("TASK_STATE_").lower().replace("_", "-")[:40]
        if self.said.state not in ENDED or not isinstance(status, dict):
            return
        self.said.finish = self.said.state
        if isinstance(message := status.get("message"), dict):
            self._words = self._text(message)
        if self.said.state in FAILED:
            self.said.refused = f"the task is {self.said.state}: {self._words[:200]}".rstrip(": ")

    def _text(self, one: Json) -> str:
        parts = objects(one.get("parts"))
        self.said.more = self.said.more or any("text" not in part for part in parts)
        return "".join(word(part.get("text")) for part in parts)


def keys_at(card: Any, place: str) -> str:  # noqa: ANN401  any JSON
    """Where on a card's own host the keys of its signatures are (RFC 7515, `jku`); "" for nowhere."""
    for one in objects(card.get("signatures") if isinstance(card, dict) else None):
        with suppress(ValueError):
            header = strict_json.loads(urlsafe_b64decode(word(one.get("protected")) + "=="))
            url = word(header.get("jku")) if isinstance(header, dict) else ""
            if url and urlsplit(url)[:2] == urlsplit(place)[:2]:
                return url
    return ""


def is_card(document: object) -> bool:
    """Whether the reply to a request for a card holds one."""
    card = document.get("result") if isinstance(document, dict) else None
    return isinstance(card, dict) and bool(word(card.get("name"))) and isinstance(card.get("skills"), list)


def examples(card: object) -> tuple[str, ...]:
    """Messages that a card gives as examples of its skills, one of each before the second of any."""
    skills = objects(card.get("skills")) if isinstance(card, dict) else []
    each = [
        [one for one in given if isinstance(one, str)] for skill in skills if (given := skill.get("examples"))
    ]
    rows = zip_longest(*each)
    return tuple(one[:400] for row in rows for one in row if one)[:MAX_EXAMPLES]


def declared(card: Any) -> tuple[str, ...]:  # noqa: ANN401  any JSON
    """The capabilities that a card states."""
    stated = card.get("capabilities") if isinstance(card, dict) else None
    told = dict(stated) if isinstance(stated, dict) else {}
    if isinstance(card, dict) and card.get("supportsAuthenticatedExtendedCard") is True:  # of 0.3
        told["extendedAgentCard"] = True
    return tuple(sorted(str(name)[:40] for name, value in told.items() if value is True))[:MAX_DECLARED]


def listed(documents: Sequence[object]) -> list[str]:
    """The ids of a list of tasks."""
    results = [one.get("result") for one in documents if isinstance(one, dict)]
    tasks = [one.get("tasks") for one in results if isinstance(one, dict)]
    return [word(task.get("id")) for each in tasks for task in objects(each)]
