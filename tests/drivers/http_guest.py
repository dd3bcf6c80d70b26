"""An explorer on a real server, without jails: the guest's tool, a real broker, the oracles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from random import Random
from typing import Any

from fleet.config import Platform
from fleet.drivers.explore.own_urls import OwnUrls
from fleet.drivers.explore.port import Explorer, ExplorerContext, MakeExplorer
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from fleet.runs.call.guest_protocol import json_safe
from sandbox.errors import Failure
from sandbox.spec import Context
from sandbox.tools import qa_fetch


def explored(make: MakeExplorer, site: str, calls: int = 600) -> tuple[list[str], set[str], Explorer]:
    """The URLs that an explorer asks (QA_BROKER is the way out), the signatures of what the oracles say, and
    the explorer at its end."""
    chain = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
    platform = Platform.model_validate({"name": "stand", "chain": chain, "web": {"site": site}})
    ground = ExplorerContext(platform=platform, tools=frozenset({"qa_fetch"}), acts=False)
    explorer, urls, facts = make(ground, Random(1), {}), OwnUrls(platform), Facts.of(platform)
    asked, found = list[str](), set[str]()
    while len(asked) < calls and (questions := explorer.ask(48)):
        for question in questions:
            results = list[Mapping[str, Any]]()
            for step in question.steps:
                args = dict(step.args) | {"url": urls.actual(str(step.args["url"]))}
                results.append(_fetched(args))
                asked.append(str(step.args["url"]))
                seen = [
                    Exchange(one.tool, one.args, result)
                    for one, result in zip(question.steps, results, strict=False)
                ]
                found |= {one.sighting.signature for one in judge(seen, facts)}
            explorer.learn(question, results)
    return asked, found, explorer


def _fetched(args: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        result = qa_fetch.run(qa_fetch.Args(**args), Context(run="t0", prefix="qa-t0-"))
    except Failure as failure:
        result = qa_fetch.Result(ok=False, error=str(failure), error_class=failure.error_class)
    return json_safe(asdict(result))  # type: ignore[no-any-return]
