"""A shared kitchen's recipes and orders as GraphQL: `python -m tests.practice.kitchen PORT DEFECTS`.

Defects are names of DEFECTS, with commas; none of them is the clean twin.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import sqlite3
import subprocess
import sys
import traceback
import urllib.request
from typing import Any

import jinja2
from graphql import GraphQLError, build_schema, execute, parse, validate
from graphql.language import (
    DocumentNode,
    FieldNode,
    FragmentDefinitionNode,
    OperationDefinitionNode,
    SelectionSetNode,
)
from graphql.validation import NoSchemaIntrospectionCustomRule, specified_rules
from jinja2.sandbox import SandboxedEnvironment
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from tests.practice import tokens
from tests.practice.marina import serve

DEFECTS = {
    "bola-query": "order(id) shows another's order",
    "bola-nested": "user(name) { orders } shows another's orders",
    "bola-input": "receipt(input) shows the receipt of another's order",
    "bola-sent-id": "note(slug) shows another's note, by an id that its author chose",
    "bola-update": "updateNote changes another's note",
    "bola-delete": "deleteOrder deletes another's order",
    "bola-password": "setPassword changes another's password",
    "bola-filter": "orders(owner) lists another's orders",
    "mass-signup": "register takes role",
    "mass-update": "updateMe takes isAdmin",
    "mass-nested": "updateSettings takes verified in data",
    "mass-price": "createOrder takes price",
    "excess-hash": "User.passwordHash is shown to anybody logged in",
    "excess-email": "User.email of another is shown without a token",
    "bfla-list": "allUsers answers a member",
    "bfla-mutation": "publishMenu works for a member",
    "bfla-anonymous": "salesReport answers without a token",
    "enum-login": "login says whether the name or the password is wrong",
    "reset-code": "requestReset answers with the code",
    "jwt-none": "tokens with alg none are accepted",
    "jwt-weak": "tokens are signed with the word secret",
    "jwt-no-expiry": "tokens do not expire",
    "logout-reuse": "a token works after logout",
    "depth": "a query may nest without a bound",
    "aliases": "a query may have any number of aliases",
    "batch": "any number of queries in one request",
    "page-size": "recipes(first) has no bound",
    "slow": "similar(text) takes a time that grows with the square of its length",
    "sql": "search(text) puts it into a statement",
    "template": "previewCard(text) renders it as a template",
    "command": "unitConvert(expression) puts it into a command line",
    "traversal": "photo(path) reads any file",
    "ssrf": "importRecipe(url) fetches any URL",
    "get-mutation": "a mutation works by GET",
    "negative": "createOrder takes a negative quantity",
    "coupon-twice": "redeemCoupon works twice",
    "config": "serverConfig shows secrets without a token",
    "trace": "errors carry a stack trace",
    "introspection": "introspection is open to anybody",
}

SCHEMA = """
scalar Settings
"A person who cooks here."
type User {
  id: ID! name: String! role: String! isAdmin: Boolean! verified: Boolean! %(user)s orders: [Order!]!
}
"An order of ingredients; shown to the person who placed it."
type Order { id: ID! item: String! quantity: Int! total: Int! memo: String owner: User! }
"A private note of yours."
type Note { id: ID! slug: String! text: String! }
type Recipe { id: ID! title: String! author: User! related: [Recipe!]! }
type Receipt { orderId: ID! amount: Int! memo: String }
type Session { token: String! user: User! }
type Report { income: Int! orders: Int! }
type Result { ok: Boolean! message: String }
input RegisterInput { name: String! email: String! password: String! %(signup)s }
input ProfileInput { email: String %(profile)s }
input OrderInput { item: String! quantity: Int! memo: String %(order)s }
input ReceiptInput { orderId: ID! }
type Query {
  "Who is logged in."
  me: User
  user(name: String!): User
  recipes(first: Int = 10): [Recipe!]!
  search(text: String!): [Recipe!]!
  similar(text: String!): Int!
  "Your order."
  order(id: ID!): Order
  "Your orders."
  orders(owner: String): [Order!]!
  receipt(input: ReceiptInput!): Receipt
  note(slug: String!): Note
  "Your notes."
  notes: [Note!]!
  previewCard(text: String!): String!
  unitConvert(expression: String!): String!
  photo(path: String!): String
  "For admins."
  allUsers: [User!]!
  "For the staff of the kitchen."
  salesReport: Report!
  %(query)s
}
type Mutation {
  register(input: RegisterInput!): User!
  login(name: String!, password: String!): Session!
  logout: Result!
  "Sends a code by e-mail."
  requestReset(name: String!): Result!
  setPassword(name: String!, password: String!): Result!
  updateMe(input: ProfileInput!): User!
  updateSettings(data: Settings!): User!
  createOrder(input: OrderInput!): Order!
  deleteOrder(id: ID!): Result!
  createNote(slug: String!, text: String!): Note!
  updateNote(id: ID!, text: String!): Note!
  "Each coupon once per person."
  redeemCoupon(code: String! = "SOUP5"): Result!
  "For the staff of the kitchen."
  publishMenu(title: String!): Result!
  importRecipe(url: String!): Result!
}
"""
GUIDE = """# Kitchen

Recipes and orders for people who share a kitchen. There is one endpoint, `POST /graphql`.
Register with the mutation `register`, log in with `login`; send the token as `Authorization: Bearer TOKEN`.
Orders and notes belong to the person who made them, and nobody else sees or changes them.
A total is price times quantity; quantities are from 1 to 100. A coupon works once per person.
After `logout` a token is no longer valid.
"""
FRONT = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Kitchen</title></head>
<body><h1>Kitchen</h1><p>Recipes for everyone. Read the <a href="/guide.md">guide</a>.</p></body></html>"""
PRICES = {"rice": 3, "beans": 4, "oil": 9}
PHOTOS = {"soup.txt": "a photo of soup"}
DEEPEST, MOST_FIELDS, MOST_QUERIES, MOST_RECIPES = 8, 60, 5, 50


def hashed(password: str) -> str:
    return hashlib.sha256(f"kitchen:{password}".encode()).hexdigest()


class Kitchen:
    """All state, in memory; the methods of Query and Mutation are the resolvers."""

    def __init__(self, bad: frozenset[str]) -> None:
        self.bad = bad
        self.users: dict[str, dict[str, Any]] = {}
        self.orders: dict[str, dict[str, Any]] = {}
        self.notes: dict[str, dict[str, Any]] = {}
        self.revoked: set[str] = set()
        self.redeemed: set[str] = set()
        self.next_id = 500
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.execute("create table recipes (id integer, title text)")
        self.db.executemany(
            "insert into recipes values (?, ?)", [(1, "Lentil soup"), (2, "Flat bread"), (3, "Plum jam")]
        )
        for name, role in (("petra", "admin"), ("ivo", "staff"), ("lena", "cook")):
            self.sign_up(name, f"Copper-pan-{name}-77", f"{name}@kitchen.example", role)
        flags = {
            "user": ("passwordHash: String " if "excess-hash" in bad else "") + "email: String",
            "signup": "role: String" if "mass-signup" in bad else "",
            "profile": "isAdmin: Boolean" if "mass-update" in bad else "",
            "order": "price: Int" if "mass-price" in bad else "",
            "query": "serverConfig: Settings" if "config" in bad else "",
        }
        self.schema = build_schema(SCHEMA % flags)

    def new_id(self) -> str:
        self.next_id += 1
        return str(self.next_id)

    def sign_up(self, name: str, password: str, email: str, role: str) -> dict[str, Any]:
        self.users[name] = {
            "id": self.new_id(),
            "name": name,
            "role": role,
            "isAdmin": role == "admin",
            "verified": False,
            "_email": email,
            "_hash": hashed(password),
        }
        return self.person(self.users[name])

    def person(self, user: dict[str, Any]) -> dict[str, Any]:
        """As the resolvers of its fields see it."""
        shown = dict(user)

        def orders(info: Any) -> Any:
            if "bola-nested" not in self.bad and self.name(info) != user["name"]:
                raise GraphQLError("Not allowed")
            return [self.order_row(one) for one in self.orders.values() if one["_owner"] == user["name"]][:50]

        def email(info: Any) -> Any:
            mine = (info.context["user"] or {}).get("name") == user["name"]
            return user["_email"] if mine or "excess-email" in self.bad else None

        def password_hash(info: Any) -> Any:
            self.name(info)
            return user["_hash"]

        return {**shown, "orders": orders, "email": email, "passwordHash": password_hash}

    def order_row(self, row: dict[str, Any]) -> dict[str, Any]:
        return {**row, "owner": lambda info: self.person(self.users[row["_owner"]])}

    def name(self, info: Any) -> str:
        """Of the caller; raises GraphQLError."""
        user = info.context["user"]
        if user is None:
            raise GraphQLError("Not authenticated")
        return str(user["name"])

    def only(self, info: Any, defect: str, *roles: str) -> None:
        if defect not in self.bad and info.context["user"] is None:
            raise GraphQLError("Not authenticated")
        if (
            defect not in self.bad
            and info.context["user"]["role"] not in roles
            and not info.context["user"]["isAdmin"]
        ):
            raise GraphQLError("Not allowed")

    def own(self, info: Any, rows: dict[str, dict[str, Any]], key: str, defect: str) -> dict[str, Any]:
        row = rows.get(key)
        if row is None or (row["_owner"] != self.name(info) and defect not in self.bad):
            raise GraphQLError("Not found")
        return row

    def recipe(self, number: int, title: str) -> dict[str, Any]:
        return {
            "id": str(number),
            "title": title,
            "author": lambda info: self.person(self.users["lena"]),
            "related": lambda info: [
                self.recipe(one, name) for one, name in self.all_recipes() if one != number
            ],
        }

    def all_recipes(self) -> list[tuple[int, str]]:
        return self.db.execute("select id, title from recipes").fetchall()

    # queries

    def me(self, info: Any) -> Any:
        return self.person(info.context["user"]) if info.context["user"] else None

    def user(self, info: Any, name: str) -> Any:
        if "excess-email" not in self.bad:
            self.name(info)
        return self.person(self.users[name]) if name in self.users else None

    def recipes(self, info: Any, first: int) -> Any:
        if "page-size" not in self.bad and not 0 <= first <= MOST_RECIPES:
            raise GraphQLError(f"first must be from 0 to {MOST_RECIPES}")
        rows = self.all_recipes()
        many = max(0, min(first, 20_000 if "page-size" in self.bad else len(rows)))
        return [self.recipe(*rows[n % len(rows)]) for n in range(many)]

    def search(self, info: Any, text: str) -> Any:
        if "sql" in self.bad:
            try:
                rows = self.db.execute(
                    f"select id, title from recipes where title like '%{text}%'"
                ).fetchall()
            except sqlite3.Error as error:
                raise GraphQLError(f"sqlite3.OperationalError: {error}") from None
        else:
            rows = self.db.execute("select id, title from recipes where instr(title, ?)", (text,)).fetchall()
        return [self.recipe(number, str(title)) for number, title in rows]

    def similar(self, info: Any, text: str) -> Any:
        if "slow" not in self.bad:
            return len(set(text[:500]))
        return sum(1 for left in text[:20_000] for right in text[:20_000] if left == right) % 1_000_000

    def order(self, info: Any, id: str) -> Any:
        return self.order_row(self.own(info, self.orders, id, "bola-query"))

    def orders_of(self, info: Any, owner: str | None = None) -> Any:
        who = owner if owner and "bola-filter" in self.bad else self.name(info)
        return [self.order_row(row) for row in self.orders.values() if row["_owner"] == who][:50]

    def receipt(self, info: Any, input: dict[str, Any]) -> Any:
        row = self.own(info, self.orders, input["orderId"], "bola-input")
        return {"orderId": row["id"], "amount": row["total"], "memo": row["memo"]}

    def note(self, info: Any, slug: str) -> Any:
        for row in self.notes.values():
            if row["slug"] == slug and (row["_owner"] == self.name(info) or "bola-sent-id" in self.bad):
                return row
        raise GraphQLError("Not found")

    def notes_of(self, info: Any) -> Any:
        return [row for row in self.notes.values() if row["_owner"] == self.name(info)][:50]

    def preview_card(self, info: Any, text: str) -> Any:
        if "template" not in self.bad:
            return f"* {text} *"
        try:
            return str(SandboxedEnvironment().from_string(f"* {text} *").render())[:2000]
        except jinja2.TemplateError:
            raise GraphQLError("Bad card") from None

    def unit_convert(self, info: Any, expression: str) -> Any:
        if "command" not in self.bad:
            if not expression.replace(" ", "").isalnum():
                raise GraphQLError("Only letters and digits")
            return expression
        try:
            got = subprocess.run(
                ["/bin/sh", "-c", f"echo {expression}"],
                env={"PATH": "/nowhere"},
                capture_output=True,
                timeout=3,
                check=False,
            )
        except (subprocess.TimeoutExpired, ValueError):
            raise GraphQLError("Bad expression") from None
        return got.stdout.decode("utf-8", "replace")[:2000]

    def photo(self, info: Any, path: str) -> Any:
        if "traversal" in self.bad and path not in PHOTOS:
            try:
                with open(
                    path if path.startswith("/") else f"/usr/share/kitchen/../../../{path}",
                    encoding="utf-8",
                    errors="replace",
                ) as file:
                    return file.read(4096)
            except (OSError, ValueError):
                return None
        return PHOTOS.get(path)

    def all_users(self, info: Any) -> Any:
        self.only(info, "bfla-list", "admin")
        self.name(info)
        return [self.person(one) for one in list(self.users.values())[:50]]

    def sales_report(self, info: Any) -> Any:
        self.only(info, "bfla-anonymous", "staff", "admin")
        return {"income": sum(abs(row["total"]) for row in self.orders.values()), "orders": len(self.orders)}

    def server_config(self, info: Any) -> Any:
        return {
            "DATABASE_URL": "postgres://kitchen:Ladle3up@db.internal/kitchen",
            "JWT_SECRET": tokens.secret(self.bad),
            "debug": False,
        }

    # mutations

    def register(self, info: Any, input: dict[str, Any]) -> Any:
        if input["name"] in self.users:
            raise GraphQLError("This name is taken")
        if len(input["password"]) < 10 or not 3 <= len(input["name"]) <= 40 or "@" not in input["email"]:
            raise GraphQLError(
                "A name has 3 to 40 characters, a password at least 10, an e-mail address an @"
            )
        return self.sign_up(input["name"], input["password"], input["email"], input.get("role", "cook"))

    def login(self, info: Any, name: str, password: str) -> Any:
        user = self.users.get(name)
        if user is None and "enum-login" in self.bad:
            raise GraphQLError("No such user")
        if user is None or user["_hash"] != hashed(password):
            raise GraphQLError("Wrong password" if "enum-login" in self.bad else "Wrong name or password")
        info.context["user"] = user
        return {
            "token": tokens.issue(self.bad, {"sub": name, "jti": secrets.token_hex(4)}),
            "user": self.person(user),
        }

    def logout(self, info: Any) -> Any:
        self.name(info)
        if "logout-reuse" not in self.bad:
            self.revoked.add(info.context["token"])
        return {"ok": True}

    def request_reset(self, info: Any, name: str) -> Any:
        code = f"{secrets.randbelow(900_000) + 100_000}"
        return {
            "ok": True,
            "message": f"Your code is {code}" if "reset-code" in self.bad else "A code was sent by e-mail",
        }

    def set_password(self, info: Any, name: str, password: str) -> Any:
        mine = self.name(info)
        if name not in self.users or (name != mine and "bola-password" not in self.bad) or len(password) < 10:
            raise GraphQLError("Not allowed")
        self.users[name]["_hash"] = hashed(password)
        return {"ok": True}

    def update_me(self, info: Any, input: dict[str, Any]) -> Any:
        user = self.users[self.name(info)]
        user["_email"] = input.get("email") or user["_email"]
        user["isAdmin"] = bool(input.get("isAdmin", user["isAdmin"]))
        return self.person(user)

    def update_settings(self, info: Any, data: Any) -> Any:
        user = self.users[self.name(info)]
        if "mass-nested" in self.bad and isinstance(data, dict) and isinstance(data.get("verified"), bool):
            user["verified"] = data["verified"]
        return self.person(user)

    def create_order(self, info: Any, input: dict[str, Any]) -> Any:
        quantity, mine = input["quantity"], self.name(info)
        if "negative" not in self.bad and not 1 <= quantity <= 100:
            raise GraphQLError("quantity must be from 1 to 100")
        total = quantity * input.get("price", PRICES.get(input["item"], 5))
        key = self.new_id()
        self.orders[key] = {
            "id": key,
            "item": input["item"],
            "quantity": quantity,
            "total": total,
            "memo": input.get("memo"),
            "_owner": mine,
        }
        return self.order_row(self.orders[key])

    def delete_order(self, info: Any, id: str) -> Any:
        self.own(info, self.orders, id, "bola-delete")
        del self.orders[id]
        return {"ok": True}

    def create_note(self, info: Any, slug: str, text: str) -> Any:
        mine = self.name(info)
        if any(row["slug"] == slug for row in self.notes.values()):
            raise GraphQLError("This slug is taken")
        key = self.new_id()
        self.notes[key] = {"id": key, "slug": slug, "text": text, "_owner": mine}
        return self.notes[key]

    def update_note(self, info: Any, id: str, text: str) -> Any:
        row = self.own(info, self.notes, id, "bola-update")
        row["text"] = text
        return row

    def redeem_coupon(self, info: Any, code: str) -> Any:
        mine = self.name(info)
        if code != "SOUP5" or (mine in self.redeemed and "coupon-twice" not in self.bad):
            raise GraphQLError("This coupon is not valid, or was redeemed before")
        self.redeemed.add(mine)
        return {"ok": True, "message": "5 off your next order"}

    def publish_menu(self, info: Any, title: str) -> Any:
        self.only(info, "bfla-mutation", "staff", "admin")
        self.name(info)
        return {"ok": True, "message": f"{title} is on the board"}

    def import_recipe(self, info: Any, url: str) -> Any:
        self.name(info)
        if "ssrf" not in self.bad or not url.startswith(("http://", "https://")):
            raise GraphQLError("Recipes are imported from recipes.kitchen.example only")
        try:
            with urllib.request.urlopen(url, timeout=2) as got:
                return {"ok": True, "message": f"{len(got.read(65_536))} bytes"}
        except (OSError, ValueError) as error:
            raise GraphQLError(f"Could not fetch: {type(error).__name__}") from None


NAMES = {
    "orders": "orders_of",
    "notes": "notes_of",
    "previewCard": "preview_card",
    "unitConvert": "unit_convert",
    "allUsers": "all_users",
    "salesReport": "sales_report",
    "serverConfig": "server_config",
    "requestReset": "request_reset",
    "setPassword": "set_password",
    "updateMe": "update_me",
    "updateSettings": "update_settings",
    "createOrder": "create_order",
    "deleteOrder": "delete_order",
    "createNote": "create_note",
    "updateNote": "update_note",
    "redeemCoupon": "redeem_coupon",
    "publishMenu": "publish_menu",
    "importRecipe": "import_recipe",
}


def size(document: DocumentNode) -> tuple[int, int]:
    """Of the operations: the deepest field, and how many fields, with fragments put in."""
    fragments = {
        one.name.value: one for one in document.definitions if isinstance(one, FragmentDefinitionNode)
    }

    def walk(node: SelectionSetNode | None, depth: int, inside: tuple[str, ...]) -> tuple[int, int]:
        deepest, many = depth, 0
        for one in node.selections if node else ():
            if isinstance(one, FieldNode):
                below = walk(one.selection_set, depth + 1, inside)
                many += 1
            elif name := getattr(getattr(one, "name", None), "value", ""):
                if name in inside or name not in fragments:
                    continue
                below = walk(fragments[name].selection_set, depth, (*inside, name))
            else:
                below = walk(getattr(one, "selection_set", None), depth, inside)
            deepest, many = max(deepest, below[0]), many + below[1]
            if deepest > 200 or many > 5_000:
                break
        return deepest, many

    sizes = [
        walk(one.selection_set, 0, ())
        for one in document.definitions
        if isinstance(one, OperationDefinitionNode)
    ]
    return max((deep for deep, _ in sizes), default=0), sum(many for _, many in sizes)


class Endpoint:
    """`/graphql`."""

    def __init__(self, at: Kitchen) -> None:
        self.at = at
        hidden = () if "introspection" in at.bad else (NoSchemaIntrospectionCustomRule,)
        self.rules = [*specified_rules, *hidden]

    def answer(self, asked: Any, context: dict[str, Any], *, by_get: bool) -> tuple[int, dict[str, Any]]:
        bad = self.at.bad
        if not isinstance(asked, dict) or not isinstance(asked.get("query"), str):
            return 400, {"errors": [{"message": "Must provide query string."}]}
        try:
            document = parse(asked["query"], max_tokens=20_000)
        except (GraphQLError, RecursionError) as error:
            return 400, {"errors": [{"message": str(error)[:300]}]}
        deep, many = size(document)
        if "introspection" in bad and "__schema" in asked["query"]:
            deep = many = 0  # who lets clients ask for the schema lets them ask for all of it
        if (
            (deep > DEEPEST and "depth" not in bad)
            or (many > MOST_FIELDS and "aliases" not in bad)
            or deep > 200
            or many > 5_000
        ):
            return 400, {"errors": [{"message": "Query is too complex"}]}
        if errors := validate(self.at.schema, document, self.rules):
            return 400, {"errors": [self.shown(error) for error in errors[:5]]}
        kinds = {
            one.operation.value for one in document.definitions if isinstance(one, OperationDefinitionNode)
        }
        if by_get and kinds != {"query"} and "get-mutation" not in bad:
            return 405, {
                "errors": [{"message": "Can only perform a mutation operation from a POST request."}]
            }
        variables = asked.get("variables")
        got = execute(
            self.at.schema,
            document,
            self,
            context,
            variables if isinstance(variables, dict) else None,
            asked.get("operationName"),
            field_resolver=self.resolve,
        )
        made: dict[str, Any] = {"data": getattr(got, "data", None)}
        if failed := getattr(got, "errors", None):
            made["errors"] = [self.shown(error) for error in failed[:5]]
        return 200, made

    def resolve(self, source: Any, info: Any, **arguments: Any) -> Any:
        if source is self:
            return getattr(self.at, NAMES.get(info.field_name, info.field_name))(info, **arguments)
        value = source.get(info.field_name)
        return value(info) if callable(value) else value

    def shown(self, error: GraphQLError) -> dict[str, Any]:
        said: dict[str, Any] = dict(error.formatted)
        cause = error.original_error
        if "trace" in self.at.bad:
            lines = traceback.format_exception(cause or error)
            said["extensions"] = {"exception": {"stacktrace": [line.rstrip() for line in lines][-6:]}}
        elif cause is not None and not isinstance(cause, GraphQLError):
            said["message"] = "Internal error"
        return said

    async def __call__(self, request: Request) -> Response:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        claims = (
            tokens.read(self.at.bad, token)
            if kind.lower() == "bearer" and token not in self.at.revoked
            else None
        )
        context = {"user": self.at.users.get(str(claims["sub"])) if claims else None, "token": token}
        if request.method == "GET":
            try:
                asked: Any = {
                    **request.query_params,
                    "variables": json.loads(request.query_params.get("variables", "{}")),
                }
            except ValueError:
                asked = None
        else:
            try:
                asked = json.loads(await request.body())
            except (ValueError, RecursionError):
                return JSONResponse({"errors": [{"message": "POST body sent invalid JSON."}]}, 400)
        if not isinstance(asked, list):
            status, made = self.answer(asked, context, by_get=request.method == "GET")
            return JSONResponse(made, status)
        if len(asked) > (500 if "batch" in self.at.bad else MOST_QUERIES):
            return JSONResponse({"errors": [{"message": "Too many queries"}]}, 400)
        return JSONResponse([self.answer(one, dict(context), by_get=False)[1] for one in asked])


def create_app(bad: frozenset[str]) -> Starlette:
    assert bad <= set(DEFECTS), bad - set(DEFECTS)
    endpoint = Endpoint(Kitchen(bad))

    def dressed(answer: Response) -> Response:
        answer.headers["x-content-type-options"] = "nosniff"
        answer.headers["content-security-policy"] = "default-src 'self'; frame-ancestors 'none'"
        answer.headers["referrer-policy"] = "no-referrer"
        answer.headers["cache-control"] = "no-store"
        return answer

    async def graphql(request: Request) -> Response:
        return dressed(await endpoint(request))

    async def front(request: Request) -> Response:
        return dressed(HTMLResponse(FRONT))

    async def guide(request: Request) -> Response:
        return dressed(PlainTextResponse(GUIDE, media_type="text/markdown"))

    async def missing(request: Request, error: Exception) -> Response:
        return dressed(JSONResponse({"error": "Not found"}, getattr(error, "status_code", 404)))

    routes = [
        Route("/graphql", graphql, methods=["GET", "POST"]),
        Route("/", front),
        Route("/guide.md", guide),
    ]
    return Starlette(routes=routes, exception_handlers={404: missing, 405: missing})


if __name__ == "__main__":
    chosen = DEFECTS if sys.argv[2:] == ["all"] else [one for one in "".join(sys.argv[2:]).split(",") if one]
    serve(create_app(frozenset(chosen)), int(sys.argv[1]))
