"""Public faces: the pages that a name's visitors see (platform-facts 1.4, 1.9)."""

from __future__ import annotations

import anyio
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fleet.devnet.platform.agent import DEFAULT_PERSONA
from fleet.devnet.platform.chain import APP_WASM, PERSONA, PUBLIC_FACE, PUBLIC_HTML
from fleet.devnet.platform.names import is_name
from fleet.devnet.platform.site import TEMPLATES, Site, site_of

FACES = ("directory", "app", "html")


async def agent_id(site: Site, name: str) -> int:
    """Id of a registered name; 404 for every other text."""
    found = await site.chain.id_of_name(name) if is_name(name) else 0
    if found == 0:
        raise HTTPException(404, "no such name")
    return found


async def text_of(site: Site, owner_id: int, key: bytes) -> str:
    return (await site.chain.metadata(owner_id, key)).decode("utf-8", "replace")


async def chosen_face(site: Site, owner_id: int) -> str:
    """The face that the name's metadata asks for; anything unknown, and unset, is the directory."""
    kind = await text_of(site, owner_id, PUBLIC_FACE)
    return kind if kind in FACES else "directory"


async def face(request: Request) -> Response:
    """`GET /face/{name}/`."""
    site = site_of(request)
    name = request.path_params["name"]
    found = await agent_id(site, name)
    site.face_hits[name] += 1
    if "latency-regression" in site.defects and name == "docs" and site.face_hits[name] % 5 == 0:
        await anyio.sleep(0.8)
    kind = await chosen_face(site, found)
    context = {"name": name, "agent_id": found, "kind": kind, "query": _shown_query(site, request)}
    if kind == "html":
        context["page"] = await text_of(site, found, PUBLIC_HTML)
    elif kind == "directory":
        context["persona"] = (await text_of(site, found, PERSONA) or DEFAULT_PERSONA)[:500]
    return TEMPLATES.TemplateResponse(request, "face.html", context)


def _shown_query(site: Site, request: Request) -> str:
    """The visitor's search text as the page shows it again; templates escape every plain string."""
    query = request.query_params.get("q", "")[:200]
    return Markup(query) if "script-in-face" in site.defects else query


async def app_wasm(request: Request) -> Response:
    """`GET /face/{name}/app.wasm`: the published module, byte for byte."""
    site = site_of(request)
    module = await site.chain.metadata(await agent_id(site, request.path_params["name"]), APP_WASM)
    if not module and "os-error-leak" in site.defects:
        raise HTTPException(500, "cannot open app.wasm: No such file or directory (os error 2)")
    if not module:
        raise HTTPException(404, "this name has published no app")
    return Response(module, media_type="application/wasm")


async def greeting(request: Request) -> Response:
    """`GET /face/{name}/greeting?of=<address>`: what this agent will say to that caller."""
    site = site_of(request)
    name, of = request.path_params["name"], request.query_params.get("of", "").lower()
    await agent_id(site, name)
    context = {"name": name, "of": of[:42], "greeting": site.greetings.get(name, of)}
    return TEMPLATES.TemplateResponse(request, "greeting.html", context)
