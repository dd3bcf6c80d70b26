"""A person decides about items on the command line, takes it back, and publishes it on a real chain."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import anyio
import pytest
import sniffio
from typer.testing import CliRunner

from fleet.chain.keys import create_key
from fleet.chain.log.feedback import FeedbackLog
from fleet.chain.node.codec import Entry
from fleet.chain.node.rpc import Rpc
from fleet.cli import app
from fleet.config import GasSection
from fleet.devnet.anvil import Anvil
from fleet.devnet.deploy import deploy
from fleet.devnet.node import fund
from fleet.errors import FleetError
from fleet.findings.reader import read
from fleet.findings.records import read_record
from fleet.runs.call.decision_file import NAME
from fleet.store.journal import Journal
from fleet.store.rows import QUEUED, DecisionRow, ItemRow
from tests.crash.course import FULL
from tests.e2e.conftest import Said, command
from tests.e2e.test_log_list import PROFILE

Value = TypeVar("Value")
pytestmark = pytest.mark.devnet
A, B, C = "aaaa00000000", "aaaa11111111", "cccc00000000"
WHY = ("--reason", "it is as designed")
STEPS = 8
"""Durable steps of one published decision: the journal is opened twice, the decision added, the journal
opened for the worklist and to publish, the transaction intended and resolved, the entry noted."""


def item(name: str, *names: str) -> ItemRow:
    return ItemRow(
        fingerprint=name,
        state="confirmed",
        severity="high",
        surface="ux",
        title=f"it is wrong: {name}",
        persona="qa-ux",
        repro="",
        names=(name, *names),
    )


@dataclass(frozen=True)
class Desk:
    """A state directory with items, over a chain; `fleet` is the command line there, in this process."""

    state: Path
    url: str
    diamond: str
    identity: str

    def fleet(self, *words: str) -> Said:
        environment = {"STATE_DIRECTORY": str(self.state), "QA_FLEET_PLATFORM": "liar"}
        done = CliRunner().invoke(app, ["items", *words], env=environment)
        if done.exception is None or isinstance(done.exception, SystemExit):
            return Said(done.exit_code, done.stdout, done.stderr)
        assert isinstance(done.exception, FleetError), done.exception
        return Said(done.exception.exit_code, done.stdout, f"{done.stderr}{done.exception}")

    def journal(self, ask: Callable[[Journal], Awaitable[Value]]) -> Value:
        async def main() -> Value:
            async with await Journal.open(self.state / "fleet.db") as journal:
                return await ask(journal)

        return anyio.run(main)

    def decisions(self) -> list[DecisionRow]:
        return self.journal(lambda journal: journal.decisions("liar"))

    def entries(self) -> list[Entry]:
        async def main() -> list[Entry]:
            async with Rpc(self.url) as rpc:
                return await FeedbackLog(rpc, self.diamond, GasSection()).range(0, 1_000)

        return anyio.run(main)


@pytest.fixture(scope="module")
async def desk(anyio_backend: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    folder = tmp_path_factory.mktemp("desk")
    state = folder / "state"
    (state / "devnet").mkdir(parents=True, mode=0o700)
    (state / "keys").mkdir(mode=0o700)
    identity = create_key(state / "keys" / "identity")
    async with Anvil(folder / "chain.json") as anvil, Rpc(anvil.url) as rpc:
        at = await deploy(rpc)
        await fund(rpc, identity, 10**20)
        text = PROFILE.format(url=anvil.url).replace("id = 7", f"id = {at.chain_id}")
        (state / "devnet" / "liar.toml").write_text(text.replace("0x" + "0" * 39 + "1", at.diamond))
        async with await Journal.open(state / "fleet.db") as journal:
            names = [f"{n:012x}" for n in range(1, STEPS + 3)]
            await journal.put_items("liar", [item(A, C), item(B), *map(item, names)])
        yield Desk(state, anvil.url, at.diamond, identity)


@pytest.fixture(autouse=True)
def _no_loop() -> Iterator[None]:
    """The tests themselves are not async: each command runs a loop of its own."""
    token = sniffio.current_async_library_cvar.set(None)
    yield
    sniffio.current_async_library_cvar.reset(token)


def test_decided_undone_and_listed(desk: Desk) -> None:
    said = desk.fleet("dismiss", A[:5], *WHY, "--for", "30d", "--json")
    assert said.code == 0, said.err
    assert (said.data["item"], said.data["kind"], said.data["entry"]) == (A, "dismiss", -1)
    name = said.data["name"]
    record = (desk.state / NAME).read_text()
    assert f"item {A}: dismiss" in record
    assert "Why:      it is as designed" in record
    assert f"Reversal: fleet items undo {A} --decision {name} --reason ..." in record
    undone = desk.fleet("undo", C, "--reason", "it is not", "--json")
    assert (undone.data["item"], undone.data["undoes"]) == (A, name)
    nothing = desk.fleet("undo", A, *WHY)
    assert (nothing.code, f"no decision about {A} stands" in nothing.err) == (2, True)
    again = desk.fleet("undo", A, *WHY, "--decision", undone.data["name"][:7].upper(), "--json")
    assert again.data["undoes"] == undone.data["name"]
    listed = desk.fleet("decisions", A, "--json").data
    assert [(one["kind"], one["stands"], one["reason"]) for one in listed] == [
        ("dismiss", True, "it is as designed"),
        ("undo", False, "it is not"),
        ("undo", True, "it is as designed"),
    ]
    assert listed[0]["at"] < listed[1]["at"] < listed[2]["at"]
    assert "@" in listed[0]["who"]
    assert not desk.entries()


def test_the_term_of_a_dismissal_is_said_and_an_undo_says_what_is_left(desk: Desk) -> None:
    name = f"{STEPS + 2:012x}"
    said = desk.fleet("dismiss", name, *WHY)
    assert f"item {name}: dismiss (until it is undone) is recorded" in said.out
    assert "the item is now dismissed" in said.out
    first = desk.decisions()[-1]
    assert first.until == ""
    again = desk.fleet("dismiss", name, "--reason", "for a while", "--until", "2999-01-31")
    assert "dismiss (until 2999-01-31 00:00 UTC) is recorded" in again.out
    undone = desk.fleet("undo", name, "--reason", "no")
    assert "it takes back: dismiss by " in undone.out
    assert "the item is still dismissed until it is undone, by " in undone.out
    assert f"fleet items undo {name} --decision {first.name}" in undone.out
    other = desk.fleet("merge", name, A, *WHY, "--json")
    assert other.data["hidden_by"] == first.name
    latest = desk.fleet("undo", name, "--reason", "no")  # the merge, which was decided last
    assert f"it takes back: merge {A} by " in latest.out
    assert "the item is still dismissed until it is undone" in latest.out
    last = desk.fleet("undo", name, "--reason", "no")
    assert "the item is on the list again" in last.out
    assert "still" not in last.out
    assert desk.fleet("dismiss", name, *WHY, "--for", "30d", "--json").data["until"] < "2999"
    assert desk.fleet("reopen", name, *WHY, "--json").data["hidden_by"] == ""


def test_what_is_asked_for_wrongly_is_said_and_nothing_recorded(desk: Desk) -> None:
    before = desk.decisions()
    for words, said in {
        ("fixed", "aaaa", *WHY): f"'aaaa' begins several: {A}, {B}",
        ("fixed", "ffff", *WHY): "no item or finding 'ffff'",
        ("fixed", A, "--reason", " "): "a decision needs a reason",
        ("snooze", A, *WHY, "--for", "ever"): "a snooze ends",
        ("snooze", A, *WHY): "a snooze ends",
        ("dismiss", A, *WHY, "--for", "0d"): "'0d' is not a duration",
        ("dismiss", A, *WHY, "--until", "2020-01-01"): "--until: 2020-01-01T00:00:00Z is over",
        ("dismiss", A, *WHY, "--until", "soon"): "--until: 'soon' is not a time",
        ("dismiss", A, *WHY, "--until", "7d"): "is over",
        ("dismiss", A, *WHY, "--until", "2999-01-01", "--for", "7d"): "--for and --until: choose one",
        ("severity", A, "meta", *WHY): "'meta' is not a severity",
        ("merge", A, C, *WHY): f"{A} is the item itself",
        ("link", A, "like", B, *WHY): "'like' is not a link",
        ("undo", A, *WHY, "--decision", "zzz"): f"no decision 'zzz' about {A} stands",
    }.items():
        found = desk.fleet(*words)
        assert (found.code, said in found.err) == (2, True), found.err
    assert desk.fleet("fixed", A).code == 2
    assert "would be recorded" in desk.fleet("merge", A, B, *WHY, "--publish", "--dry-run").out
    assert desk.decisions() == before


def test_published_once_read_back_and_known_without_the_journal(desk: Desk) -> None:
    said = desk.fleet("severity", B, "low", *WHY, "--publish", "--json")
    assert said.code == 0, said.err
    (row,) = [one for one in desk.decisions() if one.kind == "severity"]
    entries = desk.entries()
    entry = entries[row.entry]
    record = read_record(read(entry.text))
    assert record is not None
    assert (entry.sender, record.name, record.severity) == (desk.identity, row.name, "low")
    assert read(entry.text).title == f"severity: it is wrong: {B}"
    assert desk.fleet("publish", B, "--json").data == []

    async def mirrors(journal: Journal) -> None:
        await journal.add_decision(replace(row, entry=QUEUED))
        assert (await journal.decisions("liar"))[-1].entry == row.entry  # what is published stays so
        stranger = Entry("0x" + "11" * 20, 1, entry.text.replace("low", "info"))
        ours = [Entry(one.sender, one.timestamp, one.text) for one in entries]
        await journal.mirror(0, 0, [*ours, stranger])

    desk.journal(mirrors)
    listed = desk.fleet("decisions", B, "--json").data
    assert [(one["name"], one["entry"]) for one in listed] == [(row.name, row.entry)]
    assert desk.entries() == entries


def test_stop_refuses_the_post_and_the_decision_stays_and_is_posted_later(desk: Desk) -> None:
    count = len(desk.entries())
    (desk.state / "STOP").touch(mode=0o600)
    said = desk.fleet("link", A, "same-cause", B, *WHY, "--publish")
    assert (said.code, "not on the log yet" in said.err) == (5, True), said.err
    assert len(desk.entries()) == count
    assert (desk.decisions())[-1].entry == QUEUED
    (desk.state / "STOP").unlink()
    same = desk.fleet("link", A, "same-cause", B, *WHY, "--publish", "--json")
    assert (same.data["new"], same.data["entry"]) == (False, count)
    assert [one.kind for one in desk.decisions()].count("link") == 1
    assert (desk.state / NAME).read_text().count(f": link same-cause {B} ") == 1


@pytest.mark.crash
@pytest.mark.parametrize("step", range(3, STEPS + 2) if FULL else (5, 7))
def test_killed_at_any_step_ends_in_one_record(desk: Desk, step: int) -> None:
    name = f"{step:012x}"
    words = ("fixed", name, *WHY, "--publish", "--json")
    count = desk.state / f"steps-{step}"
    process = command(desk.state, QA_FLEET_PLATFORM="liar", QA_CRASH_AT=str(step), QA_CRASH_COUNT=str(count))
    died = process("items", *words)
    assert died.code == (-signal.SIGKILL if step <= STEPS else 0), died.err
    if step <= STEPS:  # after the last step nothing is left to do: the same words are a new decision then
        assert desk.fleet(*(words if step < STEPS else ("publish",))).code == 0
    own = [one for one in desk.decisions() if one.item == name]
    texts = [one.text for one in desk.entries() if f"fp={name}" in one.text]
    assert (len(own), len(texts)) == (1, 1), count.read_text()
    assert (desk.entries())[own[0].entry].text == texts[0]
    assert (desk.state / NAME).read_text().count(f"decision {own[0].name}: ") == 1
    assert int(count.read_text().split()[0]) == min(step, STEPS)
