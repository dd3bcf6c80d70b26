"""An MCP server as the fleet sees it, without jails: the guest's tool through a real broker."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import anyio

from fleet.broker.broker import Broker, EgressPolicy
from fleet.broker.listener import Listener, listening
from fleet.clock import SystemClock
from fleet.config import Platform
from fleet.drivers.explore.agent.mcp import make
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import Explorer, ExplorerContext
from fleet.oracles.model import Exchange, Facts, Violation
from fleet.oracles.table import judge
from fleet.runs.call.guest_protocol import json_safe
from sandbox.errors import Failure
from sandbox.spec import Context, Mistake, as_record
from sandbox.tools import qa_mcp
from sandbox.validate import build
from tests.sandbox.doubles import Signer, listener

CLOCK = SystemClock()
SECRETS = {"one": "harbour-one-4f9c2b7d8e", "other": "harbour-other-7a1e5c3b9d"}


def profile(site: str, path: str = "/mcp", *, accounts: bool = False) -> Platform:
    mcp = {"endpoints": [f"{{site}}{path}"]}
    web = {"site": site, "act_paths": [f"{{site}}{path}"]}
    two = {label: {"user": label, "secret_env": f"QA_{label}"} for label in SECRETS}
    return Platform.model_validate(
        {"name": "stand", "web": web, "mcp": mcp} | ({"accounts": two} if accounts else {})
    )


@contextmanager
def way_out(platform: Platform, rung: str = "exercise") -> Iterator[None]:
    """A broker of this platform in a thread of its own; QA_BROKER leads to it."""
    ready, done = threading.Event(), threading.Event()
    policy = EgressPolicy.of(platform)  # with room for a visit, which is many calls
    policy = replace(policy, rung=lambda: rung, pace=None, max_requests=20_000, max_total=1 << 30)
    sock = listener()

    async def serve() -> None:
        async with Broker(policy, Signer()).egress(sock):
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(serve,), daemon=True)
    thread.start()
    assert ready.wait(10)
    before = os.environ.get("QA_BROKER")
    os.environ["QA_BROKER"] = "http://{}:{}".format(*sock.getsockname())
    try:
        yield
    finally:
        os.environ.pop("QA_BROKER") if before is None else os.environ.update(QA_BROKER=before)
        done.set()
        thread.join(10)


@contextmanager
def listened(platform: Platform) -> Iterator[Listener]:
    """The fleet's own listener, in a thread of its own."""
    found, ready, done = list[Listener](), threading.Event(), threading.Event()

    async def serve() -> None:
        async with listening(platform, CLOCK) as listener:
            found.append(listener)
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(serve,), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield found[0]
    finally:
        done.set()
        thread.join(10)


def asked(
    args: Mapping[str, Any], *, accounts: bool = False, hears: Listener | None = None
) -> dict[str, Any]:
    """One call of the tool, as its guest answers it, and what a listener heard meanwhile."""
    since = CLOCK.monotonic()
    if hears:
        args = json.loads(json.dumps(args).replace("{listener}", hears.url))
    known = {label: {"user": label, "secret": secret} for label, secret in SECRETS.items()}
    context = Context(run="t0", prefix="qa-t0-", deadline_s=20.0, accounts=known if accounts else {})
    try:
        result = qa_mcp.run(build(qa_mcp.Args, dict(args), "/args"), context)
    except Mistake as mistake:
        result = qa_mcp.Result(ok=False, error=str(mistake), error_class="bad_request")
    except Failure as failure:
        result = qa_mcp.Result(ok=False, error=str(failure), error_class=failure.error_class)
    heard = {"heard": hears.heard(args, since)} if hears else {}
    return dict(json_safe(as_record(result))) | heard


def visited(
    platform: Platform,
    *,
    acts: bool = True,
    calls: int = 1_000,
    seed: int = 1,
    hears: Listener | None = None,
) -> tuple[list[Violation], Explorer, int]:
    """What the oracles say while an explorer asks; the explorer; how many calls it made."""
    ground = ExplorerContext(platform=platform, tools=frozenset({"qa_mcp"}), acts=acts)
    explorer, urls, facts = make(ground, Random(seed), {}), OwnUrls(platform), Facts.of(platform)
    found, count = list[Violation](), 0
    while count < calls and (questions := explorer.ask(48)):
        for question in questions:
            results = list[Mapping[str, Any]]()
            for step in question.steps:
                args = dict(step.args) | {"url": urls.actual(str(step.args["url"]))}
                results.append(asked(args, accounts=platform.accounts is not None, hears=hears))
                count += 1
                exchanges = [
                    Exchange(one.tool, one.args, result)
                    for one, result in zip(question.steps, results, strict=False)
                ]
                found += judge(exchanges, facts)
                if results[-1].get("error_class") in ("busy", "unreachable", "timeout"):
                    break
            explorer.learn(question, results)
    return found, explorer, count
