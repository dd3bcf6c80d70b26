"""The JSON reads of a generated platform."""

from __future__ import annotations

import re
import sqlite3

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from bench.findings.site.house import VERSION
from bench.findings.site.pages import house_of
from fleet.devnet.platform.api import quote
from fleet.devnet.platform.names import is_name

MAX_QUOTE = 1 << 20


async def status(request: Request) -> Response:
    house = house_of(request)
    facts = {
        "ok": True,
        "version": VERSION,
        "price_wei": house.fact("status", "price_wei"),
        "price": house.fact("status", "price"),
        "chain_id": int(house.fact("status", "chain")),
        "diamond": house.fact("status", "diamond"),
    }
    if secret := house.on("secret", "status"):
        facts["debug"] = secret.data["text"]
    return JSONResponse(facts)


async def terms(request: Request) -> Response:
    house = house_of(request)
    return JSONResponse(
        {
            "price": f"{house.fact('terms', 'price')} credits",
            "token_lifetime_seconds": int(house.fact("terms", "lifetime")),
            "entries_at_most": int(house.fact("terms", "top")),
            "message_characters_at_most": int(house.fact("terms", "longest")),
            "chain_id": int(house.fact("terms", "chain")),
        }
    )


async def entries(request: Request) -> Response:
    """Notices by words, at most `top`."""
    house = house_of(request)
    plan = house.blueprint
    raw = request.query_params.get(plan.params["limit"], "10")
    most = int(house.fact("refused-limit", "top"))
    if not re.fullmatch(r"[0-9]{1,6}", raw) or not 1 <= int(raw) <= plan.top:
        raise HTTPException(400, f"{plan.params['limit']} must be a number from 1 to {most}")
    term = request.query_params.get(plan.params["term"], "")
    try:
        rows = house.select("entries", term, int(raw))
    except sqlite3.Error:
        raise HTTPException(500, "the notices could not be read") from None
    return JSONResponse({"entries": rows})


async def entry(request: Request) -> Response:
    house = house_of(request)
    raw = request.path_params["id"]
    rows = house.select("entry", "", 20) if re.fullmatch(r"[0-9]{1,6}", raw) else []
    for one in rows:
        if one["id"] == int(raw):
            return JSONResponse(one)
    raise HTTPException(404, "there is no such notice")


async def convert(request: Request) -> Response:
    house = house_of(request)
    raw = request.query_params.get(house.blueprint.params["amount"], "1")
    if not re.fullmatch(r"[0-9]{1,9}", raw):
        raise HTTPException(400, "expected a whole number of credits, at most nine digits")
    return JSONResponse({"credits": int(raw), "wei": str(int(raw) * 10**18)})


async def render(request: Request) -> Response:
    house = house_of(request)
    line = house.computed("render", request.query_params.get(house.blueprint.params["line"], ""))
    return JSONResponse({"heading": line.upper() if line.isascii() else line, "characters": len(line)})


async def profile(request: Request) -> Response:
    house = house_of(request)
    name = request.query_params.get(house.blueprint.params["name"], house.blueprint.agents[0])
    if not is_name(name) or await house.chain.id_of_name(name) == 0:
        raise HTTPException(404, "no agent has this name")
    return JSONResponse({"name": name, "about": f"{name} answers questions on {house.blueprint.product}."})


async def credit(request: Request) -> Response:
    house = house_of(request)
    address = request.query_params.get(house.blueprint.params["address"], "0x" + "0" * 40)
    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", address):
        raise HTTPException(400, "expected 0x and 40 hex digits")
    return JSONResponse({"address": address.lower(), "wei": str(await house.chain.credit_of(address))})


async def estimate(request: Request) -> Response:
    """Gas to write a module of a size."""
    raw = request.query_params.get("bytes", "200")
    if not re.fullmatch(r"[0-9]{1,7}", raw) or int(raw) > MAX_QUOTE:
        raise HTTPException(400, f"bytes must be a number up to {MAX_QUOTE}")
    wrong = house_of(request).on("gas-quote")
    return JSONResponse({"gas": int(quote(int(raw)) * (wrong.data["factor"] if wrong else 1))})
