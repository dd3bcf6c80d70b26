"""A stand for pages in a real browser: a platform of pages on loopback, a broker for it, one jail a look."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest

from fleet.broker.broker import Broker, EgressRecord
from fleet.files import ROOT
from fleet.jail.bwrap.jail import BwrapJail
from fleet.jail.docker.engine_choice import EngineChoice
from fleet.jail.docker.jail import DockerJail
from fleet.jail.locate import BROWSER, browser_rules
from fleet.jail.model import Image, Jail, Outcome
from sandbox.browser.devtools import installed
from sandbox.spec import PROTOCOL, Context
from tests.sandbox.doubles import Got, Server, http_answer, policy_for

needs_browser = pytest.mark.skipif(not installed(), reason=f"no browser here: {BROWSER}")
CANARY = "qacanary7f3a"
WHOLE = "<!doctype html><html lang=en><head><title>a page</title></head><body>{}</body></html>"
HTML = "content-type: text/html; charset=utf-8"


@dataclass
class Stand:
    """`pages` by path: markup, or a whole answer; a `{q}` in markup is the query's value, unescaped."""

    server: Server
    jail: Jail
    pages: dict[str, str | bytes] = field(default_factory=dict)
    records: list[EgressRecord] = field(default_factory=list)

    def answer(self, got: Got) -> bytes:
        parts = urlsplit(got.path)
        page = self.pages.get(parts.path)
        if page is None:
            return http_answer(404, WHOLE.format("no such page").encode(), HTML)
        if isinstance(page, bytes):
            return page
        value = unquote(parts.query.partition("=")[2])
        return http_answer(200, page.replace("{q}", value).encode(), HTML)

    async def call(self, path: str, deadline_s: float = 45.0, **args: Any) -> Outcome:
        """The bare outcome of one look, in a jail of its own."""
        ctx = asdict(Context(run="run7", prefix="qa-run7-", deadline_s=deadline_s))
        asked = {"url": path if "://" in path else self.server.url + path, **args}
        line = json.dumps({"v": PROTOCOL, "tool": "qa_browse", "args": asked, "ctx": ctx}).encode() + b"\n"
        broker = Broker(policy_for(self.server.url))
        try:
            return await self.jail.call(
                line, deadline_s=deadline_s + 15, egress=broker.egress, resources="browser"
            )
        finally:
            self.records += broker.records

    async def look(self, path: str, **args: Any) -> dict[str, Any]:
        outcome = await self.call(path, **args)
        assert outcome.code == 0, (outcome.end, outcome.stderr[-500:])
        result: dict[str, Any] = json.loads(outcome.stdout)["result"]
        return result

    def query(self, path: str, value: str) -> str:
        return f"{path}?q={quote(value, safe='')}"


@asynccontextmanager
async def standing(
    spool: Path, pages: Mapping[str, str | bytes], engine: EngineChoice | None = None
) -> AsyncIterator[Stand]:
    """Looks by bubblewrap's jails, or by those of an engine."""
    image = Image(mounts=browser_rules(ROOT))
    jail: Jail = (
        DockerJail(image, pool=0, spool=spool, engine=engine)
        if engine
        else BwrapJail(image, pool=0, spool=spool)
    )
    try:
        async with Server() as server:
            stand = Stand(server, jail, dict(pages))
            server.answer = stand.answer
            yield stand
    finally:
        await jail.aclose()
