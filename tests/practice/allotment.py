"""Plots of a garden as GraphQL, which takes POST alone, with a REST side that names no sign-up, to be asked
as its accounts: `create_app` of names of DEFECTS; none of them is the clean twin.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import secrets
import sqlite3
import threading
import time
from contextlib import nullcontext
from html import escape
from typing import Any

from graphql import GraphQLError, build_schema, graphql_sync
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

DEFECTS = {
    "task": "task(id) shows a task of another's plot; to make one takes a time",
    "kept": "notices { author { phone } } shows visitors what is kept for members",
    "role": "setRole works for anybody",
    "sql": "findMembers(term) puts its text into a statement, and tells no error",
    "negative": "createReceipt takes a negative quantity in one of its lines",
    "receipt": "GET /api/receipts/{id} shows another's receipt, which GraphQL made",
    "loan": "GET /api/loans/{id} shows another's loan, in which no text stands; to make one takes a tool",
    "in-name": "POST /api/loans takes another member's id",
    "typed": "GET /api/messages is sent as a page",
    "computed": "GET /api/price computes what stands in place of a weight",
    "unlocked": "GET /api/sales.csv is answered without a token",
    "stored": "a message stands as it was sent on the board, a page for everybody",
    "erased": "DELETE /api/messages/{id} removes another's message",
    "lost": "POST /api/tools/{id}/wear loses minutes that are added at the same moment",
    "overlap": "POST /api/tools/{id}/holds, once for each member, takes several at the same moment",
    "sum": "POST /api/orders counts the first of several lines once",
    "repeat": "POST /api/orders ignores its Idempotency-Key",
    "fails": "POST /api/orders fails at a coupon that is no text",
    "member": "removeTask works for members whom another one invited",
    "promoted": "updateMember lets a member set its own role",
    "status": "POST /api/tools/{id}/holds answers 200, and 201 is described",
}
SCHEMA = build_schema(
    """
    enum Role { MEMBER COMMITTEE ADMIN }
    type Member { id: ID! name: String! role: Role! "Visible to members." phone: String plot: Plot! }
    type Plot { id: ID! label: String! tasks: [Task!]! inviteCode: String }
    input MemberInput { name: String role: Role }
    type Task { id: ID! startsAt: String! note: String! }
    type Notice { id: ID! text: String! author: Member! }
    type Receipt { id: ID! note: String! totalCents: Int! }
    type Session { token: String! }
    input Line { item: String! quantity: Int! }
    input ReceiptInput { lines: [Line!]! note: String }
    type Query {
      me: Member!
      plot: Plot!
      "A task of your plot."
      task(id: ID!): Task
      "Members of your plot by name."
      findMembers(term: String!): [Member!]!
      "For everybody."
      notices: [Notice!]!
    }
    type Mutation {
      signUp(name: String!, password: String!, inviteCode: String): Session!
      "Admins only."
      removeTask(id: ID!): Boolean!
      updateMember(id: ID!, input: MemberInput!): Member!
      createTask(startsAt: String!, note: String!): Task!
      "The committee alone."
      setRole(userId: ID!, role: Role!): Member!
      createReceipt(input: ReceiptInput!): Receipt!
    }
    """
)
_TEXT, _NUMBER = {"type": "string"}, {"type": "integer"}


def _says(summary: str, *, open_: bool = False, **more: Any) -> dict[str, Any]:
    lock: dict[str, Any] = {} if open_ else {"security": [{"bearer": []}]}
    return {"summary": summary, "responses": {"200": {"description": "ok"}}, **lock, **more}


def _takes(**fields: Any) -> dict[str, Any]:
    needed = [name for name in fields if name not in ("member_id", "coupon")]
    schema = {"type": "object", "properties": fields, "required": needed}
    return {"requestBody": {"content": {"application/json": {"schema": schema}}}}


_PLAIN = {"type": "string", "pattern": r"^(?=[\s\S]*\S)[^\u0000-\u001f]*$"}
_LINES = {"type": "array", "items": {"properties": {"tool_id": _NUMBER, "quantity": _NUMBER}}}
_KEY = {"name": "Idempotency-Key", "in": "header", "schema": _TEXT}
_WEIGHT = {"name": "weight", "in": "query", "required": True, "schema": {"type": "number"}}
_KEPT: dict[str, Any] = {"responses": {"200": {"description": "ok"}, "401": {"description": "no token"}}}
_ME = {"properties": {"id": _NUMBER, "name": _TEXT}}
DESCRIPTION = {
    "openapi": "3.1.0",
    "info": {"title": "Allotment", "version": "1"},
    "components": {"securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}}},
    "paths": {
        "/api/me": {
            "get": _says("Your account")
            | {"responses": {"200": {"content": {"application/json": {"schema": _ME}}}}}
        },
        "/api/receipts": {"get": _says("Your receipts")},
        "/api/receipts/{id}": {"get": _says("One of your receipts")},
        "/api/tools": {"get": _says("What can be lent", open_=True)},
        "/api/loans": {
            "get": _says("Your loans"),
            "post": _says("Borrow a tool", **_takes(tool_id=_NUMBER, member_id=_NUMBER)),
        },
        "/api/price": {"get": _says("What a sack costs", parameters=[_WEIGHT])},
        "/api/sales.csv": {"get": _says("All sales", **_KEPT)},
        "/api/purchases.csv": {"get": _says("All purchases", **_KEPT)},
        "/api/loans/{id}": {"get": _says("One of your loans")},
        "/api/messages": {
            "get": _says("Messages of your plot"),
            "post": _says("Write to your plot", **_takes(text=_PLAIN)),
        },
        "/api/messages/{id}": {"delete": _says("Remove a message (its author)")},
        "/api/tools/{id}/wear": {
            "post": _says("Add minutes; they all count", **_takes(minutes=_NUMBER))
            | {"responses": {"201": {}}}
        },
        "/api/tools/{id}/holds": {
            "post": _says("Hold a tool, once") | {"responses": {"201": {}, "409": {}}},
        },
        "/api/orders": {
            "post": _says("Order tools", parameters=[_KEY], **_takes(lines=_LINES, note=_TEXT, coupon=_TEXT))
        },
    },
}


class Allotment:
    """The fields of both roots, and the routes; `me` is who asks, by its token."""

    def __init__(self, bad: frozenset[str]) -> None:
        self.bad, self._ids = bad, itertools.count(40)
        self.members: dict[str, dict[str, Any]] = {}
        self.things: dict[str, list[dict[str, Any]]] = {"task": [], "receipt": [], "loan": [], "message": []}
        self.minutes, self.holds, self.orders = {"7": 0, "8": 0}, set[tuple[str, str]](), dict[str, Any]()
        self._lock = threading.Lock()
        self.names = sqlite3.connect(":memory:", check_same_thread=False)
        self.names.execute("CREATE TABLE members(id TEXT, name TEXT, plot TEXT)")
        self._member("Wren", "first")

    def _member(self, name: str, token: str) -> dict[str, Any]:
        ident = str(next(self._ids))
        one = {"id": ident, "name": name, "role": "MEMBER", "phone": "0151 1", "plot": ident}
        self.members[token] = one
        self.names.execute("INSERT INTO members VALUES(?, ?, ?)", (ident, name, ident))
        return one

    def _make(self, kind: str, me: dict[str, Any], **fields: Any) -> dict[str, Any]:
        self.things[kind].append({"id": next(self._ids), "of": me["id"], **fields})
        return self.things[kind][-1]

    def _of(self, kind: str, me: dict[str, Any]) -> list[dict[str, Any]]:
        return [one for one in self.things[kind] if one["of"] == me["id"]]

    def _seen(self, one: dict[str, Any], asks: dict[str, Any] | None) -> dict[str, Any]:
        plot = {"id": one["plot"], "label": f"Plot {one['plot']}", "tasks": self._of("task", one)}
        plot["inviteCode"] = f"code-{one['plot']}"
        return {**one, "phone": one["phone"] if asks or "kept" in self.bad else None, "plot": plot}

    def field(self, name: str, me: dict[str, Any] | None, given: dict[str, Any]) -> Any:
        if name == "signUp":
            token = secrets.token_hex(8)
            made = self._member(given["name"], token)
            made["joined"] = bool(given.get("inviteCode"))
            made["plot"] = (given.get("inviteCode") or made["plot"]).removeprefix("code-")
            return {"token": token}
        if name == "notices":
            wren = self.members["first"]
            return [{"id": "1", "text": "Water is off", "author": self._seen(wren, me)}]
        if me is None:
            raise GraphQLError("Please log in")
        if name == "removeTask" and me["joined"] and "member" in self.bad:
            return True
        if name == "updateMember" and me["id"] == given["id"] and "promoted" in self.bad:
            me.update(given["input"])
            return self._seen(me, me)
        if name in ("removeTask", "updateMember"):
            raise GraphQLError("Not permitted")
        if name in ("me", "plot"):
            return self._seen(me, me) if name == "me" else self._seen(me, me)["plot"]
        if name == "task":
            mine = self.things["task"] if "task" in self.bad else self._of("task", me)
            return next((one for one in mine if str(one["id"]) == given["id"]), None)
        if name == "findMembers":
            return self._find(me, given["term"])
        if name == "createTask":
            if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", given["startsAt"]):
                raise GraphQLError("startsAt is no time")
            return self._make("task", me, **given)
        if name == "setRole":
            if "role" not in self.bad:
                raise GraphQLError("Not permitted")
            one = next(each for each in self.members.values() if each["id"] == given["userId"])
            one["role"] = given["role"]
            return self._seen(one, me)
        lines = given["input"]["lines"]
        if "negative" not in self.bad and any(one["quantity"] < 1 for one in lines):
            raise GraphQLError("A quantity is 1 at least")
        total = sum(250 * one["quantity"] for one in lines)
        return self._make("receipt", me, note=given["input"].get("note") or "", totalCents=total)

    def _find(self, me: dict[str, Any], term: str) -> list[dict[str, Any]]:
        known, values = "SELECT id FROM members WHERE plot = ? AND name LIKE ", (me["plot"],)
        try:
            if "sql" in self.bad:
                rows = self.names.execute(f"{known}'%{term}%'", values).fetchall()
            else:
                rows = self.names.execute(f"{known}?", (*values, f"%{term}%")).fetchall()
        except sqlite3.Error:
            return []
        found = {ident for (ident,) in rows}
        return [self._seen(one, me) for one in self.members.values() if one["id"] in found]

    def route(self, method: str, path: str, me: dict[str, Any] | None, given: dict[str, Any]) -> Any:
        """The answer to a route of the description; an int for a status alone."""
        if path == "tools":
            return [{"id": 7, "name": "Spade"}, {"id": 8, "name": "Rake"}]
        if me is None and not (path == "sales.csv" and "unlocked" in self.bad):
            return 401
        if path.endswith(".csv"):
            return {"rows": 1, "sold": "a spade"}
        assert me is not None
        if path == "price":
            product = re.fullmatch(r"(\d+)\*(\d+)", given["weight"])
            if product and "computed" in self.bad:
                made = int(product[1]) * int(product[2])
                return {"cents": 3 * made} if made <= 30 else 422
            return {"cents": 3 * int(given["weight"])} if given["weight"].isdecimal() else 422
        if path == "me":
            return {"id": int(me["id"]), "name": me["name"], "role": me["role"].lower()}
        kind, _, ident = path.partition("/")
        if kind == "tools" and ident:
            ident, _, what = ident.partition("/")
            return self._tool(me, ident, what, given)
        if kind == "orders":
            return self._order(me, given)
        kind = kind.removesuffix("s")
        if method == "DELETE":
            mine = [one for one in self.things[kind] if str(one["id"]) == ident]
            mine = [one for one in mine if one["of"] == me["id"] or "erased" in self.bad]
            self.things[kind] = [one for one in self.things[kind] if one not in mine]
            return {"removed": len(mine)} if mine else 404
        shown = self.things[kind] if kind in self.bad and ident else self._of(kind, me)
        if method == "GET" and not ident:
            return [self._shown(one) for one in shown]
        if method == "GET":
            return next((self._shown(one) for one in shown if str(one["id"]) == ident), 404)
        if kind == "message":
            return self._shown(self._make(kind, me, text=str(given.get("text"))))
        if given.get("tool_id") not in (7, 8):
            return 422
        member = given.get("member_id", int(me["id"]))
        if member != int(me["id"]) and "in-name" not in self.bad:
            return 403
        return self._shown(self._make(kind, me, tool_id=given["tool_id"], member_id=member))

    def _tool(self, me: dict[str, Any], ident: str, what: str, given: dict[str, Any]) -> Any:
        with self._lock if not {"lost", "overlap"} & self.bad else nullcontext():
            if ident not in self.minutes or (what == "wear" and type(given.get("minutes")) is not int):
                return 422
            if what == "wear":
                now = self.minutes[ident] + given["minutes"]
                time.sleep(0.03)
                self.minutes[ident] = now
                return {"id": int(ident), "minutes": now}
            if (me["id"], ident) in self.holds:
                return 409
            time.sleep(0.03)
            self.holds.add((me["id"], ident))
            return {"tool_id": int(ident), "held": True}

    def _order(self, me: dict[str, Any], given: dict[str, Any]) -> Any:
        lines, coupon, key = given.get("lines") or [{}], given.get("coupon", ""), given.get("key", "")
        if type(given.get("note")) is not str or any(
            one.get("tool_id") not in (7, 8) or one.get("quantity", 0) < 1 for one in lines
        ):
            return 422
        if not isinstance(coupon, str) or coupon:
            return 500 if "fails" in self.bad and not isinstance(coupon, str) else 422
        if key in self.orders and "repeat" not in self.bad:
            return self.orders[key]
        many = [one["quantity"] for one in lines]
        subtotal = 250 * (sum(many) if "sum" not in self.bad or len(many) < 2 else sum(many[1:], 1))
        made = {"id": next(self._ids), "of": me["id"], "shipping": 490, "subtotal": 250 * sum(many)}
        self.orders[key or str(made["id"])] = made | {"total": subtotal + 490}
        return self.orders[key or str(made["id"])]

    def _shown(self, one: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in one.items() if name != "of"}


def create_app(bad: frozenset[str]) -> Starlette:
    assert bad <= set(DEFECTS), bad - set(DEFECTS)
    at = Allotment(bad)

    def who(request: Request) -> dict[str, Any] | None:
        return at.members.get(request.headers.get("authorization", "").removeprefix("Bearer "))

    async def graphql(request: Request) -> Response:
        try:
            asked = json.loads(await request.body())
            query, variables = asked["query"], asked.get("variables")
        except (ValueError, TypeError, KeyError):
            return JSONResponse({"errors": [{"message": "Must provide query string."}]}, 400)
        me = who(request)

        def resolve(source: Any, info: Any, **given: Any) -> Any:
            return at.field(info.field_name, me, given) if source is at else source.get(info.field_name)

        got = graphql_sync(SCHEMA, query, at, variable_values=variables, field_resolver=resolve)
        made: dict[str, Any] = {"data": got.data}
        if got.errors:
            made["errors"] = [{"message": one.message} for one in got.errors[:5]]
        return JSONResponse(made, 200 if got.data is not None else 400)

    async def rest(request: Request) -> Response:
        path = request.path_params["path"]
        try:
            given = json.loads(await request.body() or b"{}")
        except ValueError:
            given = {}
        given = dict(request.query_params) | (given if isinstance(given, dict) else {})
        given |= {"key": request.headers["idempotency-key"]} if "idempotency-key" in request.headers else {}
        made = await asyncio.to_thread(at.route, request.method, path, who(request), given)
        if isinstance(made, int):
            return JSONResponse({"error": "no"}, made)
        if path == "messages" and request.method == "GET" and "typed" in bad:
            return HTMLResponse(json.dumps(made))
        return JSONResponse(
            made, 201 if path.endswith("/wear") or (path.endswith("/holds") and "status" not in bad) else 200
        )

    async def page(request: Request) -> Response:
        said = [one["text"] for one in at.things["message"]] if request.url.path == "/board" else []
        shown = "".join(f"<p>{one if 'stored' in bad else escape(one)}</p>" for one in said)
        text = f'<!doctype html><html lang=en><title>Plots</title><a href="/board">Board</a>{shown}'
        return HTMLResponse(text)

    async def description(request: Request) -> Response:
        return JSONResponse(DESCRIPTION)

    routes = [
        Route("/graphql", graphql, methods=["POST"]),
        Route("/", page),
        Route("/board", page),
        Route("/api/openapi.json", description),
        Route("/api/{path:path}", rest, methods=["GET", "POST", "DELETE"]),
    ]
    return Starlette(routes=routes)
