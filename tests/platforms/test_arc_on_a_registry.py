"""The arc of one item whose log is an ERC-8004 Reputation registry, as the standard's own reader sees it.

Findings are feedback, what is fixed is an answer to it, what a person dismisses is withdrawn; between the
steps strangers write what they like. A decision killed at any step ends in one record and one withdrawal.
"""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pytest

from fleet.chain.keys import address_of, load_key
from fleet.chain.log.choice import log_of
from fleet.chain.node import codec, reputation
from fleet.chain.node.codec import Entry
from fleet.chain.node.hexes import as_bytes, as_int
from fleet.config import Platform, parse
from fleet.devnet.deploy import Registries, deploy_registries
from fleet.findings.envelope import Envelope, write
from fleet.findings.records import ItemRecord, write_record
from fleet.severity import Severity
from fleet.store.journal import Journal
from tests.cli_process import run_fleet
from tests.crash.course import FULL
from tests.e2e.test_decisions_by_hand import item
from tests.platforms.bare import bare
from tests.platforms.firing import Home, home
from tests.platforms.stand import Stand
from tests.platforms.test_arc import LOG, OTHER, STEPS, Arc
from tests.registry import STRANGER, answer, give, log_to

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail, pytest.mark.timeout(900)]

FLOOD = 40
NAMES = {
    reputation.GIVEN: "giveFeedback",
    reputation.RESPONDED: "appendResponse",
    reputation.REVOKED: "revokeFeedback",
}


@dataclass(frozen=True, slots=True)
class Registered(Stand):
    """A platform whose log is a registry; `me` is the fleet's identity."""

    at: Registries
    me: str

    async def entries(self) -> list[Entry]:
        profile = parse(Platform, self.profile.read_text(), file=self.profile.name)
        log = log_of(profile, self.profile.parent / "reader", self.rpc)
        return await log.range(0, await log.count())

    async def events(self) -> list[dict[str, Any]]:
        """What the registry's own events say of the fleet's feedback, in the order of the chain."""
        client = "0x" + self.me[2:].rjust(64, "0")
        asked = {"address": self.at.reputation, "fromBlock": "0x0", "topics": [list(NAMES), None, client]}
        told: list[dict[str, Any]] = await self.rpc.call("eth_getLogs", [asked])
        return told

    async def acts(self) -> list[tuple[Any, ...]]:
        """The function of each event by the fleet, the feedback's index and its first tag."""
        found: list[tuple[Any, ...]] = []
        for event in await self.events():
            name, data = NAMES[event["topics"][0]], as_bytes(event["data"])
            if name == "giveFeedback":
                index, _, _, tag, *_ = codec.decode(list(reputation.GIVEN_DATA), data)
                found.append((name, index, tag))
            elif name == "revokeFeedback":
                found.append((name, as_int(event["topics"][3])))
            elif event["topics"][3].endswith(self.me[2:]):
                found.append((name, codec.decode(list(reputation.RESPONDED_DATA), data)[0]))
        return found

    async def gas(self) -> dict[str, list[int]]:
        """Gas of the fleet's transactions, by function, in the order of the chain."""
        used: dict[str, list[int]] = {}
        for event in await self.events():
            receipt = await self.rpc.call("eth_getTransactionReceipt", [event["transactionHash"]])
            if receipt["from"] == self.me:
                used.setdefault(NAMES[event["topics"][0]], []).append(as_int(receipt["gasUsed"]))
        return used


@asynccontextmanager
async def registered(folder: Path) -> AsyncIterator[tuple[Registered, Home]]:
    async with bare(folder / "bare", more=OTHER) as stand:
        at, place = await deploy_registries(stand.rpc), await home(folder / "fleet", stand)
        me = address_of(load_key(place.state / "keys" / "identity"))
        log_to(stand.profile, at, me)
        place.adopt(stand)
        yield Registered(**{one.name: getattr(stand, one.name) for one in fields(stand)}, at=at, me=me), place


async def flood(stand: Registered, fp: str) -> None:
    """Strangers report it, say that it is fixed, dismiss it, and answer the fleet's own feedback so."""
    mine = Envelope(
        source="qa-security", sev=Severity.CRITICAL, surface="trust", fp=fp, title="mine", body=""
    )
    say = [write(mine)]
    for kind, more in (("verified-fixed", {"runs": 3}), ("dismiss", {"reason": "as designed"})):
        record = ItemRecord(kind=kind, item=fp, at="2026-11-28T10:00:00Z", who="x", **more)  # type: ignore[arg-type]
        say.append(write_record(record, surface="trust", title="mine"))
    for number in range(FLOOD):
        await give(stand.rpc, stand.at, STRANGER, say[number % 3], fp)
    for text in say:
        await answer(stand.rpc, stand.at, STRANGER, stand.me, 1, text)


@pytest.mark.skipif("ARC_FULL" not in os.environ, reason="a second arc, on another kind of log: make arc")
async def test_the_arc_of_one_item_among_strangers(tmp_path: Path) -> None:
    async with registered(tmp_path) as (stand, place):
        one = Arc(stand, place, tmp_path / "bare" / "site")
        for step in STEPS:
            await getattr(one, step)()
            if step in ("ranked", "dismissed", "fixed", "regressed"):
                before = one.listed(), [entry.title for entry in await one.log()]
                await flood(stand, one.item)
                assert (await one.fires("qa-triage"))[1] == []
                assert (one.listed(), [entry.title for entry in await one.log()]) == before
        assert [f"{entry.severity} {entry.title}" for entry in await one.log()] == [*LOG]
        assert await stand.acts() == [
            ("giveFeedback", 1, "qaFinding"),
            ("giveFeedback", 2, "qaFinding"),
            ("giveFeedback", 3, "qaRecord"),
            ("giveFeedback", 4, "qaRecord"),
            ("revokeFeedback", 2),
            ("giveFeedback", 5, "qaRecord"),
            ("appendResponse", 1),
            ("giveFeedback", 6, "qaRecord"),
            ("giveFeedback", 7, "qaFinding"),
            ("giveFeedback", 8, "qaRecord"),
        ]
        assert "log entry 7" in one.says("items", "show", one.item)
        listed = json.loads(one.says("items", "log", "list", "--json"))
        assert [row["sender"] for row in listed] == [stand.me] * len(LOG)
        gas = await stand.gas()
        print("\n" + "\n".join(f"{name}: {used}" for name, used in gas.items()))
        counted = {name: len(used) for name, used in gas.items()}
        assert counted == Counter(act[0] for act in await stand.acts())


@pytest.mark.sampled(2)
@pytest.mark.crash
@pytest.mark.parametrize("decision", ["dismiss", "fixed"])
async def test_a_decision_killed_at_any_step_is_one_record_and_one_withdrawal(
    tmp_path: Path, decision: str
) -> None:
    async with registered(tmp_path) as (stand, place):
        names = [f"{n:012x}" for n in range(1, 30)]
        async with await Journal.open(place.state / "fleet.db") as journal:
            await journal.put_items(stand.name, [item(name) for name in names])
        await stand.rpc.call("anvil_impersonateAccount", [stand.me])

        async def decided(name: str, *words: str, **crash: str) -> tuple[int, int]:
            """The exit code of a command that posts a decision, and the journal steps that it took."""
            count = tmp_path / "steps"
            environment = place.environment() | crash | {"QA_CRASH_COUNT": str(count)}
            done = run_fleet("items", *words, "--json", env=environment)
            return done.returncode, int(count.read_text().split()[0])

        async def ours(name: str) -> None:
            """A finding of the fleet's, which an earlier run posted."""
            finding = Envelope(source="qa-ux", sev=Severity.LOW, surface="ux", fp=name, title="it", body="")
            await give(stand.rpc, stand.at, stand.me, write(finding), name)

        await ours(names[0])
        words = (decision, names[0], "--reason", "it is so", "--publish")
        code, last = await decided(names[0], *words)
        assert code == 0
        moments = [(how, n) for how in ("QA_CRASH_AT", "QA_CRASH_BEFORE") for n in range(3, last + 1)]
        tried = moments if FULL else moments[-4:]
        for name, (how, at) in zip(names[1:], tried, strict=False):
            await ours(name)
            words = (decision, name, "--reason", "it is so", "--publish")
            code, _ = await decided(name, *words, **{how: str(at)})
            assert code == -signal.SIGKILL, (how, at)
            after = ("publish",) if (how, at) == ("QA_CRASH_AT", last) else words
            assert (await decided(name, *after))[0] == 0, (how, at)
        acts, dismissed = Counter(await stand.acts()), decision == "dismiss"
        findings = [index for _, index, *tag in acts if tag == ["qaFinding"]]
        end = "revokeFeedback" if dismissed else "appendResponse"
        assert len(findings) == 1 + len(tried)
        assert {act: n for act, n in acts.items() if act[0] == end} == {(end, one): 1 for one in findings}
        records = sum(n for act, n in acts.items() if act[-1] == "qaRecord")
        assert records == (len(findings) if dismissed else 0)
