"""Which switches the explorers' questions show to the oracles: no jails, no proofs, a minute or two a seed.

    python -m bench.findings.quick --seeds 2-5 [--explorers web,agent,chain] [--calls 2000] [--clean]

A miss here was never asked, or was judged healthy. What is seen here still has to be proven and posted: the
evaluation itself is `python -m bench.findings`. The browser, samples of time and the personas' own probes are
left out. Exit status 1 when something is seen on a clean twin.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import tempfile
import time
from collections.abc import Collection
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import anyio.to_thread

from bench.findings.__main__ import numbers
from bench.findings.blueprint import Blueprint
from bench.findings.peers.chance import SignedKeys
from bench.findings.rules import EvidenceCall, Posted
from bench.findings.stand import generated
from bench.findings.switches import Switch, drawn, grouped
from fleet.broker.broker import Broker
from fleet.broker.egress_policy import EgressPolicy
from fleet.chain.node.facets import offered
from fleet.config import Platform, parse
from fleet.drivers.desk import Question
from fleet.drivers.explore.port import Explorer, ExplorerContext
from fleet.drivers.explore.table import chosen
from fleet.oracles.model import Exchange, Facts
from fleet.runs.proof.candidates import answered
from sandbox.tools import TOOLS
from tests.devnet.probing import ProbingSession, _guest
from tests.platforms.stand import Stand

GRANTED = frozenset({"qa_call", "qa_chain", "qa_fetch"})
BATCH = 48
RENEWED = 5
"""Questions to agents after which other identities ask, with credit of their own."""


@dataclass(slots=True)
class QuickLook:
    """One platform looked at. `items` by oracle and signature, each with the first that was seen."""

    session: ProbingSession
    keys: SignedKeys
    facts: Facts
    items: dict[tuple[str, str], Posted] = field(default_factory=dict)
    asked: int = 0

    async def explore(self, explorer: Explorer, calls: int) -> None:
        """Ask until it has nothing new, or this many calls are made."""
        while calls > 0 and (questions := explorer.ask(min(BATCH, calls))):
            for question in questions:
                calls -= len(question.steps)
                explorer.learn(question, await self._answers(question))

    async def _answers(self, question: Question) -> list[dict[str, Any]]:
        self.asked += 1
        renews = self.asked % RENEWED == 0 and question.steps[0].tool == "qa_call"
        for label in ("caller", "other"):
            if renews or label not in self.keys.secrets:
                await self.keys.add(label)
        bindings, results = self.session.bindings(fresh_name=False), list[dict[str, Any]]()
        for step in question.steps:
            args = dict(bindings.resolve(dict(step.args)))
            made = await anyio.to_thread.run_sync(_guest, TOOLS[step.tool], args, self.session._context())
            results.append(json.loads(json.dumps(asdict(made))))
        exchanges = [
            Exchange(step.tool, bindings.resolve(dict(step.args)), result)
            for step, result in zip(question.steps, results, strict=True)
        ]
        for one in answered(question.steps, results, self.facts):
            kept = {repr((call.tool, dict(call.args))) for call in one.calls}
            calls = tuple(
                EvidenceCall(each.tool, each.args, each.result)
                for step, each in zip(question.steps, exchanges, strict=True)
                if repr((step.tool, dict(step.args))) in kept
            )
            key = (one.oracle, one.sighting.signature)
            self.items.setdefault(key, Posted(title=one.sighting.title, calls=calls))
        return results


async def look(stand: Stand, explorers: Collection[str], calls: int) -> QuickLook:
    """What these explorers see of a running platform."""
    platform = parse(Platform, stand.profile.read_text("utf-8"), file=str(stand.profile))
    keys = SignedKeys(stand.rpc)
    keys.scope = platform.web.auth_scope
    await stand.rpc.call("anvil_autoImpersonateAccount", [True])
    seen = QuickLook(ProbingSession(platform, keys, ()), keys, Facts.of(platform))
    offers = await offered(stand.rpc, platform.chain.diamond)
    context = ExplorerContext(platform=platform, tools=GRANTED, acts=True, offered=offers or frozenset())
    policy = replace(EgressPolicy.of(platform), pace=None).for_calls(100_000)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        os.environ["QA_BROKER"] = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with Broker(policy, keys).egress(listener):
            for name, make in chosen(explorers, GRANTED).items():
                await seen.explore(make(context, Random(f"quick/{name}"), {}), calls)
    return seen


async def report(seed: int, group: Collection[Switch], options: argparse.Namespace) -> int:
    """Look at one platform and print what was missed; the number of false items."""
    started, on = time.monotonic(), frozenset(one.klass for one in group)
    with tempfile.TemporaryDirectory() as folder:
        async with generated(Path(folder), seed, on) as stand:
            seen = await look(stand, options.explorers.split(","), options.calls)
    items = list(seen.items.values())
    shown = [one for one in group if any(one.rule.shows(item) for item in items)]
    false = [item for item in items if not any(one.rule.shows(item) for one in group)]
    took = f"{seen.asked} questions, {time.monotonic() - started:.0f} s"
    print(f"seed {seed}: {len(shown)} of {len(group)} seen, {len(items)} items, {len(false)} false, {took}")
    for one in group:
        if one not in shown:
            print(f"  missed {one.klass} at {one.place} {one.kind}: {one.tell}")
    for item in false:
        print(f"  false: {item.title}")
    return len(false)


async def main(options: argparse.Namespace) -> int:
    false = 0
    for seed in options.seeds:
        groups = [()] if options.clean else grouped(drawn(Blueprint.drawn(seed)), 1, seed)
        for group in groups:
            false += await report(seed, group, options)
    return 1 if options.clean and false else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.findings.quick", description=__doc__)
    parser.add_argument("--seeds", type=numbers, default=[1])
    parser.add_argument("--explorers", default="web,agent,chain")
    parser.add_argument("--calls", type=int, default=2_000, help="of each explorer at most")
    parser.add_argument("--clean", action="store_true", help="the twins without any switch")
    sys.exit(anyio.run(main, parser.parse_args()))
