"""The explorers of accounts on a platform, by the real tools and a real broker, in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from random import Random
from typing import Any

import anyio.to_thread

from fleet.config import Platform
from fleet.drivers.desk import Question
from fleet.drivers.explore.account.sessions import SessionExplorer
from fleet.drivers.explore.documents.api import ApiExplorer
from fleet.drivers.explore.port import Explorer, ExplorerContext, Reporter
from fleet.oracles.model import Exchange, Facts
from fleet.oracles.table import judge
from sandbox.errors import Failure
from sandbox.spec import Context
from sandbox.tools import TOOLS
from tests.accounts.base import Shape
from tests.sandbox.doubles import Bench, bench

CHAIN = {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20}
GRANTED = frozenset({"qa_fetch", "qa_account"})
MOST = 300
"""Questions of one explorer."""


Secrets = dict[str, dict[str, str]]


@dataclass(slots=True)
class Played:
    """What became of the accounts of one platform: `refusals` by the tool's words, what the oracles say, and
    every result as text."""

    made: int = 0
    refusals: list[str] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    asked: list[Question] = field(default_factory=list)
    text: str = ""
    titles: set[str] = field(default_factory=set)
    left: list[str] = field(default_factory=list)
    """What the explorers say that they could not look at."""


async def play(
    shape: Shape,
    *,
    cases: bool = False,
    notes: dict[str, Any] | None = None,
    tools: frozenset[str] = GRANTED,
) -> Played:
    """Ask what both explorers ask of accounts, and judge it; with `cases` each operation as well. `notes` are
    what they knew of it, by class, and what they know in the end."""
    played, notes = Played(), {} if notes is None else notes
    async with bench(shape, acts="/") as it:
        before, os.environ["QA_BROKER"] = os.environ.get("QA_BROKER", ""), it.address
        try:
            web = {"site": it.site.url, "act_paths": ["{site}/"]}
            platform = Platform.model_validate({"name": "p", "chain": CHAIN, "web": web, **shape.profile})
            context = ExplorerContext(platform=platform, tools=tools, acts=True)
            makers: tuple[type[ApiExplorer | SessionExplorer], ...] = (ApiExplorer, SessionExplorer)
            for make in makers:
                explorer = make(context, Random(1), notes.get(make.__name__, {}))
                await _explored(it, explorer, dict(shape.accounts), played, cases)
                notes[make.__name__] = json.loads(json.dumps(explorer.state()))
        finally:
            os.environ["QA_BROKER"] = before
    return played


async def _explored(it: Bench, explorer: Explorer, accounts: Secrets, played: Played, cases: bool) -> None:
    if isinstance(explorer, ApiExplorer) and not cases:
        explorer._left = 0  # making cases of operations takes seconds, and none of them is asked
    for _ in range(MOST):
        if not (questions := explorer.ask(48)):
            played.left += [one.reason for one in explorer.left()] if isinstance(explorer, Reporter) else []
            return
        for question in questions:
            used = {step.tool for step in question.steps}
            if len(question.steps) > 1 and "qa_account" not in used and not cases:
                continue
            seen = [
                Exchange(step.tool, step.args, await _called(it, step.tool, dict(step.args), accounts))
                for step in question.steps
            ]
            if "qa_account" in used:
                last = seen[-1].result
                played.asked.append(question)
                played.made += bool(last["ok"])
                played.refusals += [] if last["ok"] else [last["error"]]
                played.text += json.dumps(last)
            said = judge(seen, Facts())
            played.found |= {one.oracle for one in said}
            played.titles |= {one.sighting.title for one in said}
            explorer.learn(question, [one.result for one in seen])


async def _called(it: Bench, tool: str, args: dict[str, Any], accounts: Secrets) -> Mapping[str, Any]:
    spec = TOOLS[tool]
    assert spec.run
    given = json.loads(json.dumps(args).replace("{site}", it.site.url))
    try:
        result = await anyio.to_thread.run_sync(
            spec.run,
            spec.args(**given),
            Context(run="run7", prefix="qa-run7-", deadline_s=60.0, accounts=accounts),
        )
    except Failure as failure:
        result = spec.result(ok=False, error=str(failure), error_class=failure.error_class)
    return json.loads(json.dumps(asdict(result)))  # type: ignore[no-any-return]
