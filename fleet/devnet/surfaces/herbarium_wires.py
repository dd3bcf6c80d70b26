"""The herbarium's agent by the wires of `[agents]`: chat, A2A 1.0 and 0.3, with defects to switch on.

Callers show a secret; without defects it is the clean twin, which must produce no finding.

python -m fleet.devnet.surfaces.herbarium_wires [--port N] [--wire chat|a2a-1.0|a2a-0.3] [--anyone] [DEFECT…]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import threading
import time
import urllib.request
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import rfc8785
from Crypto.Hash import SHA256
from Crypto.PublicKey import ECC
from Crypto.Signature import DSS

from fleet.devnet.surfaces.harbour import TOKENS
from fleet.devnet.surfaces.herbarium import ADDRESS, DEFECTS, FERN, PAGES, Dialect, Herbarium
from sandbox.agents.wires import KEYED

TASKS = (
    *("task-read", "task-open", "task-listed", "task-cancelled", "task-revealed", "task-reopened"),
    *("stream-undone", "push-undone", "push-undeclared", "version-ignored"),
    *("push-inward", "extended-open", "card-forged"),
)
"""Defects of A2A alone."""
SECRETS = dict(zip(TOKENS, ("caller", "other"), strict=True))
USERS = {"caller": "fern-one@example.org", "other": "fern-two@example.org"}
TERMINAL = ("completed", "canceled")
WORKS_S = 1.5
"""Seconds for which a task runs whose caller does not wait."""
Json = dict[str, Any]


class CallRefused(Exception):
    """An error of JSON-RPC, or of HTTP where it has a status."""

    def __init__(self, code: int, message: str, status: int = 200) -> None:
        super().__init__(message)
        self.code, self.status = code, status


class Task:
    """One task: its maker, what was asked and is answered, and when it is done."""

    def __init__(self, maker: str, asked: str, text: str, done_at: float) -> None:
        self.ident, self.maker, self.asked = f"t-{id(self)}-{time.monotonic_ns()}", maker, asked
        self.text = text
        self._done_at, self.canceled = done_at, False

    @property
    def state(self) -> str:
        return (
            "canceled" if self.canceled else "completed" if time.monotonic() >= self._done_at else "working"
        )


class WiredAgent:
    """The agent behind one wire. `anyone`: it needs no token, and tells nobody apart."""

    def __init__(
        self,
        wire: str,
        *defects: str,
        words: Dialect = FERN,
        chatty: bool = False,
        anyone: bool = False,
        pushing: bool = False,
        opens: str = "",
        brief: bool = False,
    ) -> None:
        self.pushing, self.brief = pushing, brief
        assert set(defects) <= {*DEFECTS, *PAGES, *TASKS}, defects
        self.wire, self.defects, self.anyone = wire, frozenset(defects), anyone
        own = [one for one in defects if one not in TASKS]
        self.agent = Herbarium(own[0] if own else "", words, chatty, opens=opens)
        self.tasks: dict[str, Task] = {}
        self.url, self.lock = "", threading.Lock()
        self.key = ECC.generate(curve="P-256")
        self.pushes: dict[str, str] = {}
        """Where the changes of a task are sent."""

    def caller(self, headers: Any) -> tuple[str, str]:
        """Who asks, and how good the token is."""
        if self.anyone:
            return "caller", "good"
        shown = headers.get("authorization", "").removeprefix("Bearer ").strip()
        for secret, who in SECRETS.items():
            if shown == secret:
                return who, "good"
            if shown and secret.startswith(shown):
                return who, "truncated"
        return "caller", "garbage" if shown else "none"

    def answer(self, headers: Any, message: str, given: str, *, stream: bool) -> tuple[str, Json]:
        """Who asked, and what the herbarium says; CallRefused for what it does not."""
        who, token = self.caller(headers)
        claim = next((label for label, user in USERS.items() if user in headers.values()), "")
        names = [name.lower() for name, value in headers.items() if value in USERS.values()]
        args: Json = {"message": message, "given": given, "caller": who, "token": token, "stream": stream}
        args |= {"claim_from": claim, "claim_headers": names} if claim else {}
        with self.lock:
            said = self.agent.answer(args)
        if said["status"] != 200:
            raise CallRefused(-32602, said["error"].partition(": ")[2], said["status"])
        for label, address in ADDRESS.items():
            said["reply"] = said["reply"].replace(address, USERS[label])
        return who, said

    # chat ------------------------------------------------------------------------------------------

    def chat(self, headers: Any, asked: Json) -> list[Json]:
        """The answer, or its pieces."""
        messages, stream = asked.get("messages"), bool(asked.get("stream"))
        listed = messages if isinstance(messages, list) else []
        user, given = (
            [one.get("content") for one in listed if one.get("role") == role] for role in ("user", "tool")
        )
        if not user or not all(isinstance(one, str) for one in (*user, *given)):
            raise CallRefused(0, "messages: expected a list with texts", 400)
        _, said = self.answer(headers, user[-1], "\n".join(given), stream=stream)
        tools = [
            {"index": at, "id": f"c{at}", "type": "function", "function": {"name": name, "arguments": "{}"}}
            for at, name in enumerate(said.get("tool_calls", ()))
        ]
        called = {"tool_calls": tools} if tools else {}
        if not stream:
            message = {"role": "assistant", "content": said["reply"], **called}
            choices: list[Json] = [{"index": 0, "message": message, "finish_reason": "stop"}]
            return [{"object": "chat.completion", "choices": choices}]
        deltas = [{"role": "assistant", "content": "", **called}]
        deltas += [{"content": piece} for piece in pieces(said["reply"])]
        events = [{"choices": [{"index": 0, "delta": one, "finish_reason": None}]} for one in deltas]
        return [*events, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}]

    # A2A -------------------------------------------------------------------------------------------

    @property
    def new(self) -> bool:
        return self.wire == "a2a-1.0"

    def card(self) -> Json:
        pushing = bool({"push-undone", "push-inward"} & self.defects) or self.pushing
        can = {"streaming": True, "pushNotifications": pushing, "extendedAgentCard": True}
        shared: Json = {"name": "fern", "description": "Looks after the herbarium.", "version": "1"}
        shared |= {"capabilities": can, "skills": [self.skill]}
        if self.new:
            way = {"url": f"{self.url}/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            return self._signed(shared | {"supportedInterfaces": [way]})
        place = {"url": f"{self.url}/a2a", "preferredTransport": "JSONRPC", "protocolVersion": "0.3.0"}
        return self._signed(shared | place | {"supportsAuthenticatedExtendedCard": True})

    @property
    def skill(self) -> Json:
        examples = [self.agent.words.count.replace("#", "2")]
        return {"id": "herbarium", "name": "Herbarium", "tags": [], "examples": examples}

    def keys(self) -> Json:
        """The keys that the card's signature names."""
        point = self.key.pointQ
        x, y = (encoded(int(one).to_bytes(32, "big")) for one in (point.x, point.y))
        return {"keys": [{"kty": "EC", "crv": "P-256", "kid": "fern-1", "x": x, "y": y}]}

    def _signed(self, card: Json) -> Json:
        header = {"alg": "ES256", "kid": "fern-1", "jku": f"{self.url}/keys.json"}
        protected = encoded(json.dumps(header).encode())
        whole = f"{protected}.{encoded(rfc8785.dumps(card))}".encode()
        signature = encoded(DSS.new(self.key, "fips-186-3").sign(SHA256.new(whole)))
        if "card-forged" in self.defects:
            card = card | {"description": "Looks after everything."}
        return card | {"signatures": [{"protected": protected, "signature": signature}]}

    def a2a(self, headers: Any, asked: Json) -> list[Json]:
        """The result, or those of a stream."""
        method, params = str(asked.get("method")), asked.get("params")
        params = params if isinstance(params, dict) else {}
        if self.new and headers.get("a2a-version") != "1.0" and "version-ignored" not in self.defects:
            raise CallRefused(-32009, "supported versions: 1.0")
        who, token = self.caller(headers)
        if method in ("SendMessage", "message/send", "SendStreamingMessage", "message/stream"):
            return self._sent(headers, params, stream="tream" in method)
        extended = method in ("GetExtendedAgentCard", "agent/getAuthenticatedExtendedCard")
        if token != "good" and not {"extended-open" if extended else "task-open"} & self.defects:
            raise CallRefused(0, "a token is needed", 401)
        if extended:
            return [self.card() | {"description": "Looks after the herbarium, and its visitors."}]
        if method in ("GetTask", "tasks/get"):
            task = self._task(params.get("id"), who, token, "task-read")
            return [self._shown(task)]
        if method in ("CancelTask", "tasks/cancel"):
            return [self._cancelled(params.get("id"), who, token)]
        if method == "ListTasks" and self.new:
            every = "task-listed" in self.defects
            mine = [one for one in self.tasks.values() if every or one.maker == who]
            return [{"tasks": [self._shown(one) for one in mine[-50:]], "nextPageToken": ""}]
        if "PushNotificationConfig" in method or "pushNotificationConfig" in method:
            return [self._pushed(str(params.get("taskId")), params.get("pushNotificationConfig", params))]
        raise CallRefused(-32601, "no such method")

    def _sent(self, headers: Any, params: Json, *, stream: bool) -> list[Json]:
        message = params.get("message")
        parts = message.get("parts") if isinstance(message, dict) else None
        if not isinstance(parts, list) or not all(isinstance(one, dict) for one in parts):
            raise CallRefused(-32602, "message.parts: expected parts")
        if stream and "stream-undone" in self.defects:
            raise CallRefused(-32004, "no streams")
        text = "".join(str(one.get("text", "")) for one in parts)
        who = self.caller(headers)[0]
        refers = params["message"].get("referenceTaskIds") or ()
        earlier = [self.tasks.get(str(one)) for one in refers]
        given = "\n".join(one.asked for one in earlier if one is not None and one.maker == who)
        _, said = self.answer(headers, text, given, stream=stream)
        way = params.get("configuration") or {}
        waits = not way.get("returnImmediately") and way.get("blocking") is not False
        wait = 0 if waits or stream else WORKS_S
        task = Task(who, text, said["reply"], time.monotonic() + wait)
        self.tasks[task.ident] = task
        config = way.get("taskPushNotificationConfig") or way.get("pushNotificationConfig")
        if config and "push-undeclared" not in self.defects:
            self._pushed(task.ident, config)
        if self.brief and not stream and text not in self.skill["examples"]:
            said = {"messageId": task.ident, "parts": self._parts(task.text)}
            return [{"message": said | {"role": "ROLE_AGENT"}} if self.new else said | {"kind": "message"}]
        if not stream:
            shown = self._shown(task)
            return [{"task": shown} if self.new else shown]
        return list(self._events(task))

    def _pushed(self, ident: str, config: Json) -> Json:
        if "push-undeclared" in self.defects:
            return config
        if "push-undone" in self.defects or not ("push-inward" in self.defects or self.pushing):
            raise CallRefused(-32003, "push notifications are not supported")
        host = urlsplit(str(config.get("url"))).hostname or ""
        if "push-inward" not in self.defects and (host == "localhost" or host.startswith("127.")):
            raise CallRefused(-32602, "url: not an address for pushes")
        self.pushes[ident] = str(config["url"])
        threading.Thread(target=self._push, args=(ident,), daemon=True).start()
        return config

    def _push(self, ident: str) -> None:
        """Tell of the end of a task."""
        while (task := self.tasks[ident]).state not in TERMINAL:
            time.sleep(0.05)
        with contextlib.suppress(OSError):
            body = json.dumps(self._shown(task)).encode()
            urllib.request.urlopen(urllib.request.Request(self.pushes[ident], body), timeout=2).close()

    def _task(self, ident: object, who: str, token: str, defect: str) -> Task:
        task = self.tasks.get(str(ident))
        if task is None or (task.maker != who and defect not in self.defects):
            code = -32602 if task is not None and "task-revealed" in self.defects else -32001
            raise CallRefused(code, "Task not found")
        assert token == "good" or "task-open" in self.defects
        return task

    def _cancelled(self, ident: object, who: str, token: str) -> Json:
        task = self._task(ident, who, token, "task-cancelled")
        if task.state in TERMINAL and "task-reopened" not in self.defects:
            raise CallRefused(-32002, "Task cannot be canceled")
        task.canceled = True
        return self._shown(task)

    def _state(self, state: str) -> str:
        return f"TASK_STATE_{state.upper()}" if self.new else state

    def _parts(self, text: str) -> list[Json]:
        if not text:
            return []
        return [{"text": text}] if self.new else [{"kind": "text", "text": text}]

    def _shown(self, task: Task) -> Json:
        said: Json = {"id": task.ident, "contextId": "c1", "status": {"state": self._state(task.state)}}
        if task.state == "completed" and task.text:
            said["artifacts"] = [{"artifactId": "a1", "parts": self._parts(task.text)}]
        return said if self.new else said | {"kind": "task"}

    def _events(self, task: Task) -> Iterator[Json]:
        about = {"taskId": task.ident, "contextId": "c1"}
        begun = {"id": task.ident, "contextId": "c1", "status": {"state": self._state("working")}}
        yield {"task": begun} if self.new else begun | {"kind": "task"}
        for at, piece in enumerate(pieces(task.text)):
            update: Json = about | {"artifact": {"artifactId": "a1", "parts": self._parts(piece)}}
            update |= {"append": at > 0}
            yield {"artifactUpdate": update} if self.new else update | {"kind": "artifact-update"}
        ended: Json = about | {"status": {"state": self._state("completed")}}
        yield {"statusUpdate": ended} if self.new else ended | {"kind": "status-update", "final": True}


def encoded(data: bytes) -> str:
    """Base64 as JSON web signatures have it."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


def pieces(text: str) -> list[str]:
    """A text as a stream sends it."""
    return [text[at : at + 7] for at in range(0, len(text), 7)]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    office: WiredAgent

    def log_message(self, *_: Any) -> None: ...

    def do_GET(self) -> None:
        path, office = urlsplit(self.path).path, self.office
        if path == "/.well-known/agent-card.json" and office.wire != "chat":
            self._send(200, office.card())
        elif path == "/keys.json":
            self._send(200, office.keys())
        elif path == "/v1/models" and office.wire == "chat":
            self._send(200, {"object": "list", "data": [{"id": "fern", "object": "model", "owned_by": "us"}]})
        else:
            self._send(404, {"error": "not found"})

    def do_POST(self) -> None:
        body, office = self.rfile.read(int(self.headers.get("content-length", 0))), self.office
        chat = office.wire == "chat"
        if urlsplit(self.path).path != ("/v1/chat/completions" if chat else "/a2a"):
            self._send(404, {"error": "not found"})
            return
        asked: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            asked = json.loads(body)
        try:
            if not isinstance(asked, dict):
                raise CallRefused(-32700, "not a JSON object", 400)
            results = (office.chat if chat else office.a2a)(self.headers, asked)
        except CallRefused as refused:
            status = refused.status if chat or refused.status in (401, 403) else 200
            said: Json = {"message": str(refused)} | ({} if chat else {"code": refused.code})
            envelope = {} if chat else {"jsonrpc": "2.0", "id": None}
            self._send(status, envelope | {"error": said})
            return
        answers = [{"jsonrpc": "2.0", "id": asked.get("id"), "result": one} for one in results]
        wrapped = results if chat else answers
        if asked.get("stream") or "tream" in str(asked.get("method")):
            self._stream(wrapped)
        else:
            self._send(200, wrapped[0])

    def _stream(self, events: list[Json]) -> None:
        lines = [f"data: {json.dumps(one, ensure_ascii=False)}\n\n".encode() for one in events]
        body = b"".join([*lines, *([b"data: [DONE]\n\n"] if self.office.wire == "chat" else [])])
        high = next((at for at, byte in enumerate(body) if byte > 0x7F), 0)
        if high and "stream-broken" in self.office.defects:
            body = body[: high + 1] + body[high + 2 :]
        self._send_bytes(200, "text/event-stream", body)

    def _send(self, status: int, value: object) -> None:
        self._send_bytes(status, "application/json", json.dumps(value).encode())

    def _send_bytes(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def open_herbarium(
    wire: str,
    *defects: str,
    port: int = 0,
    words: Dialect = FERN,
    chatty: bool = False,
    anyone: bool = False,
    pushing: bool = False,
    opens: str = "",
    brief: bool = False,
) -> Iterator[WiredAgent]:
    """The agent on a port of its own. `brief`: only the card's examples make tasks of messages."""
    office = WiredAgent(
        wire, *defects, words=words, chatty=chatty, anyone=anyone, pushing=pushing, opens=opens, brief=brief
    )
    handler = type("Handler", (_Handler,), {"office": office})
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        office.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield office
        finally:
            server.shutdown()
            thread.join()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--wire", choices=sorted(KEYED), default="a2a-1.0")
    parser.add_argument("--anyone", action="store_true")
    parser.add_argument("defects", nargs="*", choices=[*DEFECTS, *PAGES, *TASKS])
    asked = parser.parse_args()
    with open_herbarium(asked.wire, *asked.defects, port=asked.port, anyone=asked.anyone) as office:
        print(office.url, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
