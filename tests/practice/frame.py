"""Routes with declared parameters and bodies, which become an OpenAPI document, as FastAPI does it."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

Schema = dict[str, Any]
Handler = Callable[["Asked"], Awaitable[Any]]
KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


class Refused(Exception):
    def __init__(self, status: int, detail: Any, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, headers


@dataclass(slots=True)
class Asked:
    """One checked request."""

    request: Request
    path: dict[str, Any]
    query: dict[str, Any]
    headers: dict[str, Any]
    body: dict[str, Any]


def text(**more: Any) -> Schema:
    return {"type": "string", "maxLength": 200, **more}


def whole(**more: Any) -> Schema:
    return {"type": "integer", "minimum": 1, "maximum": 1_000_000_000, **more}


def record(properties: Mapping[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(required or properties)}


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def wrong(value: Any, schema: Schema, loc: list[Any]) -> list[dict[str, Any]]:
    """What does not fit, in FastAPI's words."""

    def one(message: str, kind: str) -> list[dict[str, Any]]:
        return [{"loc": loc, "msg": message, "type": kind}]

    if schema.get("x-loose"):
        return []
    name, value = schema["type"], cast(Any, value)
    fits: bool = isinstance(value, KINDS[name])
    if not fits or (isinstance(value, bool) and name != "boolean"):
        return one(f"Input should be a valid {name}", f"{name}_type")
    if name == "string" and not schema.get("minLength", 0) <= len(value) <= schema["maxLength"]:
        return one(f"String should have at most {schema['maxLength']} characters", "string_length")
    if name == "string" and ("\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value)):
        return one("Input should be a valid string", "string_unicode")
    if name == "string" and "pattern" in schema and not re.search(schema["pattern"], value):
        return one(f"String should match pattern '{schema['pattern']}'", "string_pattern_mismatch")
    if "enum" in schema and value not in schema["enum"]:
        return one(f"Input should be {' or '.join(map(repr, schema['enum']))}", "enum")
    if name in ("integer", "number") and not schema["minimum"] <= value <= schema["maximum"]:
        return one(f"Input should be between {schema['minimum']} and {schema['maximum']}", "range")
    found: list[dict[str, Any]] = []
    if name == "object":
        properties: dict[str, Schema] = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                found.append({"loc": [*loc, key], "msg": "Field required", "type": "missing"})
        for key, part in properties.items():
            found += wrong(value[key], part, [*loc, key]) if key in value else []
    return found


def read_number(raw: str, schema: Schema) -> Any:
    if schema["type"] == "integer" and re.fullmatch(r"-?[0-9]{1,18}", raw):
        return int(raw)
    return raw


@dataclass(slots=True)
class Operation:
    method: str
    path: str
    handler: Handler
    summary: str
    answer: Schema
    query: dict[str, Schema] = field(default_factory=dict)
    headers: dict[str, Schema] = field(default_factory=dict)
    places: dict[str, Schema] = field(default_factory=dict)
    body: Schema | None = None
    form: bool = False
    secured: bool = True
    status: int = 200
    hidden: bool = False

    def parameters(self) -> list[Schema]:
        rows = [(name, "path", part) for name, part in self.places.items()]
        rows += [(name, "query", part) for name, part in self.query.items()]
        rows += [(name, "header", part) for name, part in self.headers.items()]
        return [
            {"name": name, "in": where, "required": where == "path", "schema": part}
            for name, where, part in rows
        ]

    def described(self) -> Schema:
        answers = {str(self.status): {"description": "Successful Response"}}
        if self.status != 204:
            answers[str(self.status)]["content"] = {"application/json": {"schema": self.answer}}  # type: ignore[assignment]  # a JSON document
        for code, words in (("404", "Not found"), ("422", "Validation Error"), ("400", "Bad request")):
            answers[code] = {"description": words}
        if self.secured:
            answers["401"], answers["403"] = {"description": "Not logged in"}, {"description": "Not allowed"}
        made: Schema = {
            "summary": self.summary,
            "operationId": f"{self.method.lower()}_{re.sub('[^a-z]+', '_', self.path.lower()).strip('_')}",
            "parameters": self.parameters(),
            "responses": answers,
        }
        if self.body is not None:
            kind = "application/x-www-form-urlencoded" if self.form else "application/json"
            made["requestBody"] = {"required": True, "content": {kind: {"schema": self.body}}}
        if self.secured:
            made["security"] = [{"OAuth2PasswordBearer": []}]
        return made

    async def checked(self, request: Request) -> Asked:
        """Raises Refused."""
        found: list[dict[str, Any]] = []
        read: dict[str, dict[str, Any]] = {}
        for where, schemas, given in (
            ("path", self.places, request.path_params),
            ("query", self.query, request.query_params),
            ("header", self.headers, request.headers),
        ):
            read[where] = {}
            for name, part in schemas.items():
                if name in given:
                    value = read[where][name] = read_number(given[name], part)
                    found += wrong(value, part, [where, name])
                elif "default" in part:
                    read[where][name] = part["default"]
                elif where != "header":
                    found.append({"loc": [where, name], "msg": "Field required", "type": "missing"})
        body: Any = {}
        if self.body is not None:
            body = await self._body(request)
            found += wrong(body, self.body, ["body"])
        if found:
            raise Refused(422, found)
        return Asked(request, read["path"], read["query"], read["header"], body)

    async def _body(self, request: Request) -> Any:
        raw = await request.body()
        try:
            if self.form:
                return dict(parse_qsl(raw.decode()))
            return json.loads(raw)
        except (ValueError, RecursionError):
            raise Refused(
                422, [{"loc": ["body"], "msg": "JSON decode error", "type": "json_invalid"}]
            ) from None


class Api:
    """Operations, and the application that serves them."""

    def __init__(self, title: str, description: str, token_url: str) -> None:
        self.title, self.description, self.token_url = title, description, token_url
        self.operations: list[Operation] = []

    def add(
        self, method: str, path: str, summary: str, answer: Schema, **more: Any
    ) -> Callable[[Handler], Handler]:
        def put(handler: Handler) -> Handler:
            self.operations.append(Operation(method, path, handler, summary, answer, **more))
            return handler

        return put

    def document(self) -> Schema:
        paths: dict[str, Any] = {}
        for one in self.operations:
            if not one.hidden:
                paths.setdefault(one.path, {})[one.method.lower()] = one.described()
        flow = {"password": {"tokenUrl": self.token_url, "scopes": {}}}
        return {
            "openapi": "3.1.0",
            "info": {"title": self.title, "version": "2.4.0", "description": self.description},
            "paths": paths,
            "components": {"securitySchemes": {"OAuth2PasswordBearer": {"type": "oauth2", "flows": flow}}},
        }

    def routes(
        self, secure: Callable[[Request], None], dress: Callable[[Request, Response], None]
    ) -> list[Route]:
        """`secure` raises Refused where nobody is logged in; `dress` sets the headers of each answer."""

        def endpoint(one: Operation) -> Callable[[Request], Awaitable[Response]]:
            async def answer(request: Request) -> Response:
                try:
                    if one.secured:
                        secure(request)
                    got = await one.handler(await one.checked(request))
                except Refused as refusal:
                    got = JSONResponse({"detail": refusal.detail}, refusal.status, refusal.headers)
                if not isinstance(got, Response):
                    got = JSONResponse(got, one.status) if one.status != 204 else Response(status_code=204)
                dress(request, got)
                return got

            return answer

        return [Route(one.path, endpoint(one), methods=[one.method]) for one in self.operations]


def application(
    api: Api,
    secure: Callable[[Request], None],
    dress: Callable[[Request, Response], None],
    front: str,
) -> Starlette:
    """The API, its document, its documentation page and a front page. Methods of one path share a route."""

    async def described(request: Request) -> Response:
        answer = JSONResponse(api.document())
        dress(request, answer)
        return answer

    async def page(request: Request) -> Response:
        answer = HTMLResponse(front)
        dress(request, answer)
        return answer

    by_path: dict[str, dict[str, Route]] = {}
    for route in api.routes(secure, dress):
        assert route.methods is not None
        for method in route.methods - {"HEAD"}:
            by_path.setdefault(route.path, {})[method] = route

    def merged(methods: dict[str, Route]) -> Callable[[Request], Awaitable[Response]]:
        async def answer(request: Request) -> Response:
            route = methods["GET" if request.method == "HEAD" else request.method]
            got: Response = await route.endpoint(request)
            return got

        return answer

    def failed(status: int, words: str) -> Callable[[Request, Exception], Awaitable[Response]]:
        async def answer(request: Request, error: Exception) -> Response:
            headers = getattr(error, "headers", None)
            got = JSONResponse({"detail": words}, status, headers)
            dress(request, got)
            return got

        return answer

    routes = [Route(path, merged(methods), methods=list(methods)) for path, methods in by_path.items()]
    routes += [Route("/openapi.json", described), Route("/", page)]
    return Starlette(
        routes=routes,
        exception_handlers={
            404: failed(404, "Not Found"),
            405: failed(405, "Method Not Allowed"),
            500: failed(500, "Internal Server Error"),
        },
    )
