"""What a generated platform says of itself: llms.txt, a guide, a handbook, robots, sitemap, OpenAPI."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from bench.findings.classes.functions import functions
from bench.findings.site.house import VERSION, GeneratedSite
from bench.findings.site.pages import house_of, page
from bench.findings.site.routes import JSON, Documented, documented


async def llms(request: Request) -> Response:
    return PlainTextResponse(_whole(house_of(request), "llms"))


async def guide(request: Request) -> Response:
    return Response(_whole(house_of(request), "guide"), media_type="text/markdown; charset=utf-8")


def _whole(house: GeneratedSite, source: str) -> str:
    """The same document in both places, but for what the switch makes differ."""
    parts = [_head(house, source), _talk(house, source), _reads(house), _chain(house, source)]
    if secret := house.on("secret", source):
        parts.append(f"<!-- {secret.data['text']} -->\n")
    if dead := house.on("dead-link", source):
        parts.append(f"More: [change log]({dead.data['path']})\n")
    return "\n".join(parts)


def _head(house: GeneratedSite, source: str) -> str:  # noqa: ARG001  the framework's own signature
    return (
        f"# {house.blueprint.product}\n\nAgents with names on a chain, notices, and talk with the agents.\n"
        f"All paths are below {house.url}. Pages are HTML, everything below an API path is JSON.\n"
    )


def _talk(house: GeneratedSite, source: str) -> str:
    plan, fact = house.blueprint, house.fact
    body = {
        "agent": plan.agents[0],
        "contents": [{"role": "user", "parts": [{"text": plan.commands["help"]}]}],
    }
    signed = f"{plan.scope}:<address in lower case>:<unix time>" + (f":{plan.route}" if plan.route else "")
    commands = "\n".join(f"- `{one}`" for one in command_forms(house))
    return (
        f"## Agents\n\nPOST {house.url}{plan.call_path()}\nPOST {house.url}{plan.call_path(stream=True)} "
        f"(the same, as a stream of events)\n\n    {json.dumps(body)}\n\n"
        f"Header `{plan.header}: <address>:<unix time>:<signature>`; the signature is\n"
        f"a personal_sign (EIP-191) of `{signed}`.\nA token is good for {fact(source, 'lifetime')} "
        f"seconds either side of its time. The caller is the address that signed, "
        f"whatever a body or a header says.\n\n"
        f"A message costs {fact(source, 'price')} credits and has at most {fact(source, 'longest')} "
        f"characters. A call that is refused (status 400 and above) is free.\n\n"
        f"An agent understands:\n{commands}\n\n"
        f"Tools: {', '.join(f'`{one}`' for one in plan.harmless)} for all; "
        f"{', '.join(f'`{one}`' for one in plan.destructive)} for the owner of the agent only.\n"
    )


def command_forms(house: GeneratedSite) -> list[str]:
    """The commands as documents and help write them."""
    said = house.blueprint.commands
    return [
        said["help"],
        said["whoami"],
        f"{said['keep']} TEXT",
        said["recall"],
        f"{said['count']} NUMBER",
        said["tools"],
        said["price"],
        f"{said['use']} TOOL NAME",
    ]


def _reads(house: GeneratedSite) -> str:
    style = house.blueprint.seed % 3
    lines = [_line(style, one) for one in documented(house.blueprint)]
    head = "| request | what it is |\n|---|---|\n" if style == 1 else ""
    return (
        f"## Reads\n\n{head}"
        + "\n".join(lines)
        + (f"\n\nA listing has at most {house.fact('guide', 'top')} entries.\n" if style else "\n")
    )


def _line(style: int, one: Documented) -> str:
    if style == 0:
        return f"- `GET {one.example}` {one.about} ({one.kind})"
    path = one.path + (
        "?" + "&".join(f"{name}=<{takes}>" for name, takes, _ in one.query) if one.query else ""
    )
    if style == 1:
        return f"| `GET {path}` | {one.about}, {one.kind} |"
    return f"GET {path} {one.about}, e.g. {one.example}"


def _chain(house: GeneratedSite, source: str) -> str:
    lines = "\n".join(f"- `{one.signature}` {one.about}" for one in functions(house.blueprint))
    return (
        f"## Chain\n\nChain id {house.fact(source, 'chain')}, diamond `{house.fact(source, 'diamond')}` "
        f"(EIP-2535). Beside names and credit it offers:\n\n{lines}\n"
    )


async def handbook(request: Request) -> Response:
    house = house_of(request)
    fact = house.fact
    body = (
        f"<p>A message to an agent costs {fact('handbook', 'price')} credits. "
        f"A token is good for {fact('handbook', 'lifetime')} seconds.</p>"
        f"<p>A listing has at most {fact('handbook', 'top')} entries.</p>"
        f"<p>We are on chain id {fact('handbook', 'chain')}, at diamond "
        f"<code>{fact('handbook', 'diamond')}</code>.</p>"
    )
    return page(house, "handbook", "How it works", body)


async def robots(request: Request) -> Response:
    return PlainTextResponse(f"User-agent: *\nAllow: /\nSitemap: {house_of(request).url}/sitemap.xml\n")


async def sitemap(request: Request) -> Response:
    house = house_of(request)
    rows = "".join(
        f"<url><loc>{house.url}{one.path}</loc></url>"
        for one in documented(house.blueprint)
        if one.role in ("search", "prefs", "gallery", "about", "handbook", "session", "face")
    )
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{rows}'
    return Response(text + "</urlset>\n", media_type="application/xml")


async def script(request: Request) -> Response:
    house = house_of(request)
    text = f'"use strict";\nconst TALK = "{house.blueprint.call_path()}";\nwindow.site = {{ talk: TALK }};\n'
    if secret := house.on("secret", "script"):
        text += f"// {secret.data['text']}\n"
    return Response(
        text + f"//# sourceMappingURL={house.blueprint.paths['map']}\n",
        media_type="text/javascript; charset=utf-8",
    )


async def source_map(request: Request) -> Response:
    house = house_of(request)
    secret = house.on("secret", "map")
    source = "export const talk = true;\n" + (f"// {secret.data['text']}\n" if secret else "")
    return JSONResponse(
        {"version": 3, "sources": ["talk.ts"], "sourcesContent": [source], "names": [], "mappings": ""}
    )


async def openapi(request: Request) -> Response:
    return JSONResponse(described(house_of(request)))


def described(house: GeneratedSite) -> dict[str, Any]:
    """The OpenAPI description of the JSON routes."""
    paths = {
        one.path: {"get": _operation(house, one)} for one in documented(house.blueprint) if one.kind == JSON
    }
    info = {"title": house.blueprint.product, "version": VERSION}
    return {"openapi": "3.0.3", "info": info, "servers": [{"url": house.url}], "paths": paths}


def _operation(house: GeneratedSite, one: Documented) -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1}
    given = []
    for name, takes, example in one.query:
        schema: dict[str, Any] = dict(number) if takes == "a number" else {"type": "string"}
        if one.role == "entries" and takes == "a number":
            schema["maximum"] = int(house.fact("openapi", "top"))
        given.append({"name": name, "in": "query", "required": False, "schema": schema, "example": example})
    if "{id}" in one.path:
        given.append({"name": "id", "in": "path", "required": True, "schema": number, "example": 1})
    answers = {
        "200": {
            "description": "The answer.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        "400": {
            "description": "The request is wrong.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
        "404": {
            "description": "There is none.",
            "content": {"application/json": {"schema": {"type": "object"}}},
        },
    }
    return {"summary": one.about, "operationId": one.role, "parameters": given, "responses": answers}
