"""The small public reads under `/api/`: open to anyone, free of charge."""

from __future__ import annotations

import re

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from fleet.devnet.platform.agent import DEFAULT_PERSONA
from fleet.devnet.platform.chain import PERSONA, PUBLIC_HTML
from fleet.devnet.platform.faces import agent_id, chosen_face, text_of
from fleet.devnet.platform.site import CREDIT, site_of

VERSION = "0.82.0"

WRITE_BASE = 55_000
WRITE_PER_WORD = 23_000
"""Gas of writing a module under a fresh name: measured 77,660 for 32 bytes, 215,109 for 200, 11,813,099 for
16,384 of random bytes on this chain; a cold storage write, calldata and log for each 32-byte word."""

MAX_QUOTE = 1 << 20


def quote(size: int) -> int:
    """Gas that writing a module of `size` bytes costs on this chain; the face choice is apart."""
    return WRITE_BASE + WRITE_PER_WORD * -(-size // 32)


def display(wei: int) -> str:
    """Credits in full: dust is never rounded to nothing."""
    whole, rest = divmod(wei, CREDIT)
    return f"{whole}.{rest:018d}".rstrip("0").removesuffix(".") if rest else str(whole)


async def status(request: Request) -> Response:
    """`GET /api/status`."""
    site = site_of(request)
    price = site.settings.price_wei
    return JSONResponse(
        {"status": "ok", "version": VERSION, "price_wei": str(price), "price": display(price)}
    )


async def app(request: Request) -> Response:
    """`GET /api/app?name=&kind=html|face`: what a name has published, except the module."""
    site = site_of(request)
    name, kind = request.query_params.get("name", ""), request.query_params.get("kind", "")
    found = await agent_id(site, name)
    if kind == "face":
        return JSONResponse({"name": name, "kind": kind, "value": await chosen_face(site, found)})
    if kind != "html":
        raise HTTPException(400, "kind must be html or face")
    page = await text_of(site, found, PUBLIC_HTML)
    if not page:
        raise HTTPException(404, "this name has published no html")
    return JSONResponse({"name": name, "kind": kind, "value": page})


async def persona(request: Request) -> Response:
    """`GET /api/persona?name=`: the instructions of an agent."""
    site = site_of(request)
    if "method-405" in site.defects and request.method == "GET":
        raise HTTPException(405, "method not allowed")
    name = request.query_params.get("name", "")
    text = await text_of(site, await agent_id(site, name), PERSONA)
    return JSONResponse({"name": name, "persona": text or DEFAULT_PERSONA})


async def estimate(request: Request) -> Response:
    """`GET /api/estimate?bytes=N`: gas to write a module of N bytes."""
    asked = request.query_params.get("bytes", "")
    if not re.fullmatch(r"[0-9]{1,7}", asked) or int(asked) > MAX_QUOTE:
        raise HTTPException(400, f"bytes must be a number up to {MAX_QUOTE}")
    gas = quote(int(asked))
    return JSONResponse({"gas": gas // 6 if "gas-quote-low" in site_of(request).defects else gas})


async def credit(request: Request) -> Response:
    """`GET /api/credit?address=`."""
    address = request.query_params.get("address", "")
    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", address):
        raise HTTPException(400, "address must be 0x and 40 hex digits")
    wei = await site_of(request).chain.credit_of(address)
    return JSONResponse({"address": address.lower(), "wei": str(wei), "display": f"{display(wei)} credits"})
