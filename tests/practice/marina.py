"""A marina's booking service, as an API with a token log-in: `python -m tests.practice.marina PORT DEFECTS`.

Defects are names of DEFECTS, with commas; none of them is the clean twin.
"""

from __future__ import annotations

import hashlib
import html
import secrets
import socket
import sqlite3
import subprocess
import sys
import traceback
import urllib.request
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import jinja2
import uvicorn
from jinja2.sandbox import SandboxedEnvironment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from tests.practice import tokens
from tests.practice.frame import Api, Asked, Refused, application, listed, record, text, whole

DEFECTS = {
    "bola-path": "GET /bookings/{booking_id} shows another's booking",
    "bola-nested": "GET /boats/{boat_id}/documents/{document_id} shows another's document",
    "bola-body": "POST /receipts shows the receipt of another's booking",
    "bola-header": "GET /account/summary shows the account in x-account-id",
    "bola-sent-id": "GET /boats/{registration}/logbook shows another's, by an id that its owner chose",
    "bola-update": "PATCH /bookings/{booking_id} changes another's booking",
    "bola-delete": "DELETE /boats/{boat_id} deletes another's boat",
    "bola-password": "PUT /users/{username}/password changes another's password",
    "bola-filter": "GET /invoices?user_id= lists another's invoices",
    "mass-signup": "POST /auth/register takes role",
    "mass-update": "PATCH /users/me takes is_admin",
    "mass-nested": "PUT /users/me/preferences takes verified in data",
    "mass-price": "POST /bookings takes price",
    "excess-fields": "GET /users/{username} shows password_hash and email",
    "bfla-list": "GET /admin/users answers a member",
    "bfla-method": "PATCH /berths/{berth_id} works for a member where PUT is refused",
    "bfla-undocumented": "DELETE /reviews/{review_id}, which no document names, works without a token",
    "bfla-anonymous": "GET /staff/report answers without a token",
    "enum-login": "POST /auth/token says whether the name or the password is wrong",
    "reset-code": "POST /auth/forgot answers with the code that it should have sent by e-mail",
    "jwt-none": "tokens with alg none are accepted",
    "jwt-weak": "tokens are signed with the word secret",
    "jwt-no-expiry": "tokens do not expire",
    "logout-reuse": "a token works after POST /auth/logout",
    "page-size": "GET /berths has no bound of limit",
    "slow-search": "GET /search takes a time that grows with the square of the length of q",
    "ssrf": "POST /boats/{boat_id}/photo fetches any URL",
    "sql": "GET /search puts q into a statement",
    "nosql": "POST /crew/find takes an operator as the name",
    "template": "POST /labels/preview renders text as a template",
    "command": "GET /tools/ping puts host into a command line",
    "traversal": "GET /charts/file reads any file",
    "redirect": "GET /leave goes anywhere",
    "script": "GET /find shows q as markup",
    "negative": "POST /orders takes a negative quantity",
    "voucher-twice": "POST /vouchers/redeem works twice",
    "debug-config": "GET /debug/config shows the environment",
    "anonymous-users": "GET /users lists e-mail addresses and passwords without a token",
    "trace": "GET /tides shows a traceback",
    "cors": "any origin is allowed with credentials",
}

GUIDE = """Marina bookings. Register, then log in at /auth/token with your username and password as a form.
Members see only their own boats, bookings, documents and invoices. Staff look after berths; only
staff may change one. Reports are for staff, the list of accounts is for admins. A booking
costs 40 per night, set by the marina.
Each voucher can be redeemed once per account. The total of an order is its price times its
quantity, and is never negative.
After logging out a token is no longer valid. Lists have at most 100 entries."""
FRONT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Marina</title></head>
<body><h1>Marina</h1><p>Book a berth. The API is described at <a href="/openapi.json">openapi.json</a>.</p>
<p><a href="/find?q=buoy">Find a chart</a>, or <a href="/charts/file?name=harbour.txt">see the harbour</a>.
<a href="/leave?to=/">Back</a>.</p></body></html>"""
CHARTS = {"harbour.txt": "Depth 3.2 m at low water.\n", "bay.txt": "Sandbank to the north.\n"}
NIGHT = 40
IDS = whole()
USER = record(
    {"username": text(), "role": text(), "verified": {"type": "boolean"}, "is_admin": {"type": "boolean"}}
)
BOOKING = record({"id": IDS, "berth_id": IDS, "nights": IDS, "price": IDS, "note": text()})
BOAT = record({"id": IDS, "name": text(), "registration": text()})
DOCUMENT = record({"id": IDS, "boat_id": IDS, "title": text(), "content": text()})
BERTH = record({"id": IDS, "length_m": IDS, "state": text()})
DONE = record({"done": {"type": "boolean"}})
NAME = text(minLength=3, maxLength=30, pattern="^[A-Za-z0-9_.-]+$")
PASSWORD = text(minLength=10, maxLength=64)


def hashed(password: str) -> str:
    return hashlib.sha256(f"marina:{password}".encode()).hexdigest()


class Marina:
    """All state, in memory."""

    def __init__(self, bad: frozenset[str]) -> None:
        self.bad = bad
        self.users: dict[str, dict[str, Any]] = {}
        self.rows: dict[str, dict[int, dict[str, Any]]] = {
            kind: {} for kind in ("booking", "boat", "document", "invoice", "review", "order")
        }
        self.berths = {n: {"id": n, "length_m": 6 + n % 9, "state": "free"} for n in range(1, 241)}
        self.revoked: set[str] = set()
        self.redeemed: set[str] = set()
        self.next_id = 1000
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("create table charts (name text, area text)")
        self.db.executemany("insert into charts values (?, ?)", [("harbour", "north"), ("bay", "south")])
        for name, role in (("nora", "admin"), ("sten", "staff"), ("mika", "member")):
            self.sign_up(name, f"Tarred-rope-{name}-41", f"{name}@marina.example", role)
        self.put("review", "mika", {"stars": 5, "words": "Calm water"})

    def sign_up(self, name: str, password: str, email: str, role: str) -> dict[str, Any]:
        self.users[name] = user = {
            "username": name,
            "email": email,
            "role": role,
            "verified": False,
            "is_admin": role == "admin",
            "password": password if "anonymous-users" in self.bad else "",
            "password_hash": hashed(password),
            "preferences": {"data": {}},
            "reset": "",
        }
        return user

    def put(self, kind: str, owner: str, row: dict[str, Any]) -> dict[str, Any]:
        self.next_id += 1
        self.rows[kind][self.next_id] = made = {"id": self.next_id, **row, "owner": owner}
        return made

    def own(self, kind: str, number: int, caller: str, defect: str) -> dict[str, Any]:
        """Raises Refused where it is not the caller's."""
        row = self.rows[kind].get(number)
        if row is None or (row["owner"] != caller and defect not in self.bad):
            raise Refused(404, f"{kind.capitalize()} not found")
        return row

    def caller(self, request: Request) -> dict[str, Any]:
        """Raises Refused."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        claims = tokens.read(self.bad, token) if kind.lower() == "bearer" else None
        user = self.users.get(str(claims["sub"])) if claims and token not in self.revoked else None
        if user is None:
            raise Refused(401, "Not authenticated", {"www-authenticate": "Bearer"})
        return user

    def secure(self, request: Request) -> None:
        self.caller(request)


def shown(row: dict[str, Any], *more: str) -> dict[str, Any]:
    return {key: value for key, value in row.items() if key != "owner" or "owner" in more}


def public(user: dict[str, Any]) -> dict[str, Any]:
    return {key: user[key] for key in ("username", "role", "verified", "is_admin")}


def only(user: dict[str, Any], *roles: str) -> None:
    if user["role"] not in roles and not user["is_admin"]:
        raise Refused(403, "Not enough permissions")


def accounts(api: Api, at: Marina) -> None:
    bad = at.bad

    @api.add(
        "POST",
        "/auth/register",
        "Register a member",
        USER,
        status=201,
        secured=False,
        body=record(
            {"username": NAME, "email": text(format="email", pattern="^[^@ ]+@[^@ ]+$"), "password": PASSWORD}
        ),
    )
    async def register(asked: Asked) -> Any:
        body = asked.body
        if body["username"] in at.users:
            raise Refused(400, "Username already registered")
        role = body.get("role", "member") if "mass-signup" in bad else "member"
        return public(at.sign_up(body["username"], body["password"], body["email"], role))

    @api.add(
        "POST",
        "/auth/token",
        "Log in for an access token",
        record({"access_token": text(maxLength=900), "token_type": text()}),
        secured=False,
        form=True,
        body=record({"username": text(), "password": text(), "scope": text()}, "username", "password"),
    )
    async def token(asked: Asked) -> Any:
        user = at.users.get(asked.body["username"])
        if user is None and "enum-login" in bad:
            raise Refused(404, "User does not exist")
        if user is None or user["password_hash"] != hashed(asked.body["password"]):
            raise Refused(401, "Wrong password" if "enum-login" in bad else "Incorrect username or password")
        claims = {"sub": user["username"], "jti": secrets.token_hex(4)}
        return {"access_token": tokens.issue(bad, claims), "token_type": "bearer"}

    @api.add("POST", "/auth/logout", "End the session", DONE)
    async def logout(asked: Asked) -> Any:
        if "logout-reuse" not in bad:
            at.revoked.add(asked.request.headers["authorization"].partition(" ")[2])
        return {"done": True}

    @api.add(
        "POST",
        "/auth/forgot",
        "Ask for a reset code by e-mail",
        record({"message": text()}),
        secured=False,
        body=record({"username": text()}),
    )
    async def forgot(asked: Asked) -> Any:
        code = f"{secrets.randbelow(900_000) + 100_000}"
        if user := at.users.get(asked.body["username"]):
            user["reset"] = code
        said = {"message": "If the account exists, a code was sent by e-mail"}
        return {**said, "reset_code": code} if "reset-code" in bad else said

    @api.add("GET", "/users/me", "Your profile", USER)
    async def me(asked: Asked) -> Any:
        return public(at.caller(asked.request))

    @api.add(
        "PATCH",
        "/users/me",
        "Change your profile",
        USER,
        body=record({"email": text(format="email", pattern="^[^@ ]+@[^@ ]+$")}),
    )
    async def change_me(asked: Asked) -> Any:
        user = at.caller(asked.request)
        user["email"] = asked.body["email"]
        if "mass-update" in bad and isinstance(asked.body.get("is_admin"), bool):
            user["is_admin"] = asked.body["is_admin"]
        return public(user)

    @api.add(
        "PUT",
        "/users/me/preferences",
        "Change your preferences",
        record({"data": {"type": "object"}}),
        body=record({"data": record({"units": text(enum=["metric", "imperial"])})}),
    )
    async def preferences(asked: Asked) -> Any:
        user, data = at.caller(asked.request), asked.body["data"]
        user["preferences"]["data"]["units"] = data["units"]
        if "mass-nested" in bad and isinstance(data.get("verified"), bool):
            user["verified"] = user["preferences"]["data"]["verified"] = data["verified"]
        return user["preferences"]

    @api.add("GET", "/users/{username}", "Public profile of a member", USER, places={"username": text()})
    async def profile(asked: Asked) -> Any:
        user = at.users.get(asked.path["username"])
        if user is None:
            raise Refused(404, "User not found")
        return (
            {**public(user), "email": user["email"], "password_hash": user["password_hash"]}
            if "excess-fields" in bad
            else public(user)
        )

    @api.add(
        "PUT",
        "/users/{username}/password",
        "Change your password",
        DONE,
        places={"username": text()},
        body=record({"password": PASSWORD}),
    )
    async def password(asked: Asked) -> Any:
        caller, name = at.caller(asked.request), asked.path["username"]
        if name not in at.users or (name != caller["username"] and "bola-password" not in bad):
            raise Refused(403, "You can only change your own password")
        at.users[name]["password_hash"] = hashed(asked.body["password"])
        return {"done": True}

    @api.add(
        "GET", "/users", "List of members", listed(USER), secured=False, hidden="anonymous-users" not in bad
    )
    async def members(asked: Asked) -> Any:
        if "anonymous-users" not in bad:
            raise Refused(404, "Not Found")
        return [
            {**public(one), "email": one["email"], "password": one["password"]} for one in at.users.values()
        ]

    @api.add("GET", "/admin/users", "All accounts, for admins", listed(USER))
    async def all_users(asked: Asked) -> Any:
        if "bfla-list" not in bad:
            only(at.caller(asked.request), "admin")
        return [public(one) for one in list(at.users.values())[:100]]

    @api.add(
        "GET",
        "/account/summary",
        "Your account in figures",
        record({"username": text(), "boats": whole(minimum=0), "bookings": whole(minimum=0)}),
        headers={"x-account-id": text()},
    )
    async def summary(asked: Asked) -> Any:
        name = at.caller(asked.request)["username"]
        sent = asked.headers.get("x-account-id", name)
        if sent != name and ("bola-header" not in bad or sent not in at.users):
            raise Refused(403, "Not your account")
        counts = {
            f"{kind}s": sum(row["owner"] == sent for row in at.rows[kind].values())
            for kind in ("boat", "booking")
        }
        return {
            "username": sent,
            **counts,
            **({"email": at.users[sent]["email"]} if "bola-header" in bad else {}),
        }


def things(api: Api, at: Marina) -> None:
    bad = at.bad

    def name(asked: Asked) -> str:
        return str(at.caller(asked.request)["username"])

    @api.add("GET", "/boats", "Your boats", listed(BOAT))
    async def boats(asked: Asked) -> Any:
        return [shown(row) for row in at.rows["boat"].values() if row["owner"] == name(asked)]

    @api.add(
        "POST",
        "/boats",
        "Add a boat",
        BOAT,
        status=201,
        body=record(
            {"name": text(), "registration": text(minLength=1, maxLength=40), "logbook": text()},
            "name",
            "registration",
        ),
    )
    async def add_boat(asked: Asked) -> Any:
        if any(row["registration"] == asked.body["registration"] for row in at.rows["boat"].values()):
            raise Refused(400, "Registration already taken")
        row = {"name": asked.body["name"], "registration": asked.body["registration"]}
        boat = at.put("boat", name(asked), row)
        at.rows["boat"][boat["id"]]["_logbook"] = asked.body.get("logbook", "")
        return {key: boat[key] for key in ("id", "name", "registration")}

    @api.add(
        "GET",
        "/boats/{registration}/logbook",
        "The private logbook of your boat",
        record({"registration": text(), "logbook": text()}),
        places={"registration": text()},
    )
    async def logbook(asked: Asked) -> Any:
        for row in at.rows["boat"].values():
            if row["registration"] == asked.path["registration"] and (
                row["owner"] == name(asked) or "bola-sent-id" in bad
            ):
                return {"registration": row["registration"], "logbook": row["_logbook"]}
        raise Refused(404, "Boat not found")

    @api.add("DELETE", "/boats/{boat_id}", "Remove your boat", DONE, places={"boat_id": IDS})
    async def drop_boat(asked: Asked) -> Any:
        at.own("boat", asked.path["boat_id"], name(asked), "bola-delete")
        del at.rows["boat"][asked.path["boat_id"]]
        return {"done": True}

    @api.add(
        "POST",
        "/boats/{boat_id}/documents",
        "Add a document to your boat",
        DOCUMENT,
        status=201,
        places={"boat_id": IDS},
        body=record({"title": text(), "content": text()}),
    )
    async def add_document(asked: Asked) -> Any:
        boat = at.own("boat", asked.path["boat_id"], name(asked), "")
        row = {"boat_id": boat["id"], "title": asked.body["title"], "content": asked.body["content"]}
        return shown(at.put("document", name(asked), row))

    @api.add(
        "GET",
        "/boats/{boat_id}/documents/{document_id}",
        "A document of your boat",
        DOCUMENT,
        places={"boat_id": IDS, "document_id": IDS},
    )
    async def document(asked: Asked) -> Any:
        row = at.own("document", asked.path["document_id"], name(asked), "bola-nested")
        if row["boat_id"] != asked.path["boat_id"]:
            raise Refused(404, "Document not found")
        return shown(row)

    @api.add(
        "POST",
        "/boats/{boat_id}/photo",
        "Import a photo from an address",
        record({"size": whole(minimum=0)}),
        places={"boat_id": IDS},
        body=record({"url": text(format="uri")}),
    )
    async def photo(asked: Asked) -> Any:
        at.own("boat", asked.path["boat_id"], name(asked), "")
        if "ssrf" not in bad:
            raise Refused(400, "Photos come from photos.marina.example only")
        try:
            if urlsplit(asked.body["url"]).scheme not in ("http", "https"):
                raise Refused(400, "Not an address")
            with urllib.request.urlopen(asked.body["url"], timeout=2) as got:  # noqa: ASYNC210 - one caller at a time
                return {"size": len(got.read(65_536))}
        except (OSError, ValueError) as error:
            raise Refused(400, f"Could not fetch: {type(error).__name__}") from None

    @api.add("GET", "/bookings", "Your bookings", listed(BOOKING))
    async def bookings(asked: Asked) -> Any:
        return [shown(row) for row in at.rows["booking"].values() if row["owner"] == name(asked)]

    @api.add(
        "POST",
        "/bookings",
        "Book a berth",
        BOOKING,
        status=201,
        body=record(
            {"berth_id": whole(maximum=240), "nights": whole(maximum=30), "note": text()},
            "berth_id",
            "nights",
        ),
    )
    async def book(asked: Asked) -> Any:
        body = asked.body
        price = body["nights"] * NIGHT
        if "mass-price" in bad and isinstance(body.get("price"), int):
            price = body["price"]
        row = {
            "berth_id": body["berth_id"],
            "nights": body["nights"],
            "price": price,
            "note": body.get("note", ""),
        }
        booking = at.put("booking", name(asked), row)
        at.put("invoice", name(asked), {"booking_id": booking["id"], "amount": price, "memo": row["note"]})
        return shown(booking)

    @api.add("GET", "/bookings/{booking_id}", "A booking of yours", BOOKING, places={"booking_id": IDS})
    async def booking(asked: Asked) -> Any:
        return shown(at.own("booking", asked.path["booking_id"], name(asked), "bola-path"))

    @api.add(
        "PATCH",
        "/bookings/{booking_id}",
        "Change the note of your booking",
        BOOKING,
        places={"booking_id": IDS},
        body=record({"note": text()}),
    )
    async def change_booking(asked: Asked) -> Any:
        row = at.own("booking", asked.path["booking_id"], name(asked), "bola-update")
        row["note"] = asked.body["note"]
        return shown(row)

    @api.add(
        "POST",
        "/receipts",
        "The receipt of a booking of yours",
        record({"booking_id": IDS, "amount": IDS, "note": text()}),
        body=record({"booking_id": IDS}),
    )
    async def receipt(asked: Asked) -> Any:
        row = at.own("booking", asked.body["booking_id"], name(asked), "bola-body")
        return {"booking_id": row["id"], "amount": row["price"], "note": row["note"]}

    @api.add(
        "GET",
        "/invoices",
        "Your invoices",
        listed(record({"id": IDS, "booking_id": IDS, "amount": IDS, "memo": text()})),
        query={"user_id": text(default="")},
    )
    async def invoices(asked: Asked) -> Any:
        who = asked.query["user_id"] if asked.query["user_id"] and "bola-filter" in bad else name(asked)
        return [shown(row) for row in at.rows["invoice"].values() if row["owner"] == who]

    @api.add(
        "POST",
        "/orders",
        "Order supplies",
        record({"id": IDS, "quantity": IDS, "total": whole(minimum=0)}),
        status=201,
        body=record(
            {
                "item": text(enum=["rope", "fender", "lamp"]),
                "quantity": whole(minimum=-1000 if "negative" in bad else 1, maximum=1000),
            }
        ),
    )
    async def order(asked: Asked) -> Any:
        made = at.put(
            "order", name(asked), {"quantity": asked.body["quantity"], "total": asked.body["quantity"] * 12}
        )
        return shown(made)

    @api.add(
        "POST",
        "/vouchers/redeem",
        "Redeem a voucher; each can be redeemed once",
        record({"credit": whole(minimum=0)}),
        body=record({"code": text(example="SPRING10", default="SPRING10")}),
    )
    async def redeem(asked: Asked) -> Any:
        if asked.body["code"] != "SPRING10":
            raise Refused(404, "No such voucher")
        if name(asked) in at.redeemed and "voucher-twice" not in bad:
            raise Refused(409, "Already redeemed")
        at.redeemed.add(name(asked))
        return {"credit": 10}


def staff(api: Api, at: Marina) -> None:
    bad = at.bad

    @api.add(
        "GET",
        "/berths",
        "Berths of the marina",
        listed(BERTH),
        secured=False,
        query={"limit": whole(maximum=1_000_000_000 if "page-size" in bad else 100, default=20)},
    )
    async def berths(asked: Asked) -> Any:
        many = asked.query["limit"]
        if "page-size" in bad:
            return [at.berths[1 + n % 240] for n in range(min(many, 200_000))]
        return list(at.berths.values())[:many]

    @api.add(
        "PUT",
        "/berths/{berth_id}",
        "Change a berth, for staff",
        BERTH,
        places={"berth_id": IDS},
        body=record({"state": text(enum=["free", "closed"])}),
    )
    async def change_berth(asked: Asked) -> Any:
        if not (asked.request.method == "PATCH" and "bfla-method" in bad):
            only(at.caller(asked.request), "staff", "admin")
        berth = at.berths.get(asked.path["berth_id"])
        if berth is None:
            raise Refused(404, "Berth not found")
        return {**berth, "state": asked.body["state"]}

    if "bfla-method" in bad:
        api.add(
            "PATCH",
            "/berths/{berth_id}",
            "",
            BERTH,
            places={"berth_id": IDS},
            body=record({"state": text(enum=["free", "closed"])}),
            hidden=True,
        )(change_berth)

    @api.add("GET", "/berths/{berth_id}", "A berth", BERTH, secured=False, places={"berth_id": IDS})
    async def berth(asked: Asked) -> Any:
        if asked.path["berth_id"] not in at.berths:
            raise Refused(404, "Berth not found")
        return at.berths[asked.path["berth_id"]]

    @api.add(
        "GET",
        "/staff/report",
        "Income of the month, for staff",
        record({"income": whole(minimum=0), "bookings": whole(minimum=0)}),
        secured="bfla-anonymous" not in bad,
    )
    async def report(asked: Asked) -> Any:
        if "bfla-anonymous" not in bad:
            only(at.caller(asked.request), "staff", "admin")
        rows = at.rows["booking"].values()
        return {"income": sum(abs(row["price"]) for row in rows), "bookings": len(rows)}

    review = record({"id": IDS, "stars": whole(maximum=5), "words": text()})

    @api.add("GET", "/reviews", "Reviews by members", listed(review), secured=False)
    async def reviews(asked: Asked) -> Any:
        return [shown(row) for row in list(at.rows["review"].values())[-100:]]

    @api.add(
        "POST",
        "/reviews",
        "Write a review",
        review,
        status=201,
        body=record({"stars": whole(maximum=5), "words": text()}),
    )
    async def write(asked: Asked) -> Any:
        row = {"stars": asked.body["stars"], "words": asked.body["words"]}
        return shown(at.put("review", at.caller(asked.request)["username"], row))

    @api.add("GET", "/reviews/{review_id}", "A review", review, secured=False, places={"review_id": IDS})
    async def one_review(asked: Asked) -> Any:
        row = at.rows["review"].get(asked.path["review_id"])
        if row is None:
            raise Refused(404, "Review not found")
        return shown(row)

    if "bfla-undocumented" in bad:

        @api.add(
            "DELETE", "/reviews/{review_id}", "", DONE, secured=False, places={"review_id": IDS}, hidden=True
        )
        async def drop_review(asked: Asked) -> Any:
            if at.rows["review"].pop(asked.path["review_id"], None) is None:
                raise Refused(404, "Review not found")
            return {"done": True}


def tools(api: Api, at: Marina) -> None:
    bad = at.bad

    @api.add(
        "GET",
        "/search",
        "Search charts",
        listed(record({"name": text(), "area": text()})),
        secured=False,
        query={"q": text(maxLength=20_000 if "slow-search" in bad else 200)},
    )
    async def search(asked: Asked) -> Any:
        q = asked.query["q"]
        if "slow-search" in bad:
            sum(1 for left in q for right in q if left == right)
        if "sql" in bad:
            rows = at.db.execute(f"select name, area from charts where name like '%{q}%'").fetchall()
        else:
            rows = at.db.execute("select name, area from charts where instr(name, ?)", (q,)).fetchall()
        return [{"name": name, "area": area} for name, area in rows]

    loose = {"x-loose": True} if "nosql" in bad else {}

    @api.add(
        "POST",
        "/crew/find",
        "Find a member of the crew by name",
        listed(record({"name": text(), "watch": text()})),
        body=record({"name": text(**loose)}),
    )
    async def crew(asked: Asked) -> Any:
        people = [
            {"name": "Ebba", "watch": "dawn"},
            {"name": "Olle", "watch": "noon"},
            {"name": "Runa", "watch": "night"},
        ]
        name = asked.body["name"]
        if isinstance(name, dict):
            tests: dict[str, Callable[[Any, Any], bool]] = {
                "$ne": lambda a, b: a != b,
                "$gt": lambda a, b: isinstance(b, str) and a > b,
                "$regex": lambda a, b: True,
                "$exists": lambda a, b: bool(b),
            }
            if set(name) - set(tests):
                raise Refused(400, "unknown operator")
            return [
                one for one in people if all(tests[key](one["name"], value) for key, value in name.items())
            ]
        return [one for one in people if one["name"] == name]

    @api.add(
        "POST",
        "/labels/preview",
        "Preview a label for a boat",
        record({"label": text(maxLength=900)}),
        body=record({"text": text()}),
    )
    async def label(asked: Asked) -> Any:
        if "template" not in bad:
            return {"label": f"~ {asked.body['text']} ~"}
        try:
            return {"label": SandboxedEnvironment().from_string(f"~ {asked.body['text']} ~").render()[:900]}
        except jinja2.TemplateError:
            raise Refused(400, "Bad label") from None

    @api.add(
        "GET",
        "/tools/ping",
        "Whether a buoy answers",
        record({"output": text(maxLength=900)}),
        query={"host": text(**({} if "command" in bad else {"pattern": "^[a-z0-9.-]+$"}))},
    )
    async def ping(asked: Asked) -> Any:
        host = asked.query["host"]
        if "command" not in bad:
            return {"output": f"asking {host}"}
        try:
            got = subprocess.run(  # noqa: ASYNC221 - one caller at a time
                ["/bin/sh", "-c", f"echo asking {host}"],
                env={"PATH": "/nowhere"},
                capture_output=True,
                timeout=3,
                check=False,
            )
        except (subprocess.TimeoutExpired, ValueError):
            raise Refused(400, "no answer") from None
        return {"output": got.stdout.decode("utf-8", "replace")[:900]}

    @api.add(
        "GET",
        "/tides",
        "Tide at an hour",
        record({"hour": whole(minimum=0, maximum=23), "height_cm": whole(minimum=0)}),
        secured=False,
        query={"hour": text() if "trace" in bad else whole(minimum=0, maximum=23)},
    )
    async def tides(asked: Asked) -> Any:
        try:
            hour = int(asked.query["hour"])
        except ValueError:
            return Response(traceback.format_exc(), 500, media_type="text/plain")
        return {"hour": hour % 24, "height_cm": 120 + 10 * (hour % 12)}

    @api.add("GET", "/charts/file", "A chart as text", text(), secured=False, query={"name": text()})
    async def chart(asked: Asked) -> Any:
        name = asked.query["name"]
        if "traversal" in bad and name not in CHARTS:
            try:
                with open(  # noqa: ASYNC230 - one caller at a time
                    f"/usr/share/marina-charts/../../../{name}" if not name.startswith("/") else name,
                    encoding="utf-8",
                    errors="replace",
                ) as file:
                    return Response(file.read(4096), media_type="text/plain")
            except (OSError, ValueError):
                raise Refused(404, "No such chart") from None
        if name not in CHARTS:
            raise Refused(404, "No such chart")
        return Response(CHARTS[name], media_type="text/plain")

    @api.add("GET", "/leave", "Back to a page", text(), secured=False, hidden=True, query={"to": text()})
    async def leave(asked: Asked) -> Any:
        to = asked.query["to"]
        return RedirectResponse(to if "redirect" in bad else "/", 302)

    @api.add("GET", "/find", "Find a chart", text(), secured=False, hidden=True, query={"q": text()})
    async def find(asked: Asked) -> Any:
        q = asked.query["q"] if "script" in bad else html.escape(asked.query["q"])
        return HTMLResponse(
            '<!doctype html><html lang="en"><head><title>Find</title></head><body><h1>Find</h1>'
            f"<p>Nothing for {q}.</p></body></html>"
        )

    if "debug-config" in bad:

        @api.add("GET", "/debug/config", "", {"type": "object"}, secured=False, hidden=True)
        async def config(asked: Asked) -> Any:
            return {
                "env_vars": {
                    "HOME": "/home/marina",
                    "DATABASE_URL": "postgres://marina:Hawser9pl@db.internal/marina",
                    "SECRET_KEY": tokens.secret(bad),
                },
                "debug": True,
            }


def create_app(bad: frozenset[str]) -> Starlette:
    assert bad <= set(DEFECTS), bad - set(DEFECTS)
    at, api = Marina(bad), Api("Marina bookings", GUIDE, "/auth/token")
    for part in (accounts, things, staff, tools):
        part(api, at)

    def dress(request: Request, answer: Response) -> None:
        answer.headers["x-content-type-options"] = "nosniff"
        answer.headers["content-security-policy"] = "default-src 'self'; frame-ancestors 'none'"
        answer.headers["referrer-policy"] = "no-referrer"
        answer.headers["cache-control"] = "no-store"
        if "cors" in bad and (origin := request.headers.get("origin")):
            answer.headers["access-control-allow-origin"] = origin
            answer.headers["access-control-allow-credentials"] = "true"

    return application(api, at.secure, dress, FRONT)


def serve(app: Starlette, port: int) -> None:
    listener = socket.create_server(("127.0.0.1", port))
    config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    chosen = DEFECTS if sys.argv[2:] == ["all"] else [one for one in "".join(sys.argv[2:]).split(",") if one]
    serve(create_app(frozenset(chosen)), int(sys.argv[1]))
