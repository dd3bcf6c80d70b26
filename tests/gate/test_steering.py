"""A person steers runs in flight: what is left out, what comes first, how fast, from the next decision on."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner

from fleet.broker.egress_policy import parse_target
from fleet.broker.rpc_policy import Denied
from fleet.cli.run import steer
from fleet.errors import Refused, UsageError
from fleet.gate.budget import Budget, Ledger
from fleet.gate.gate import Gate
from fleet.gate.model import Action
from fleet.gate.scope import Scope, origin_of
from fleet.gate.steering import STEERING, left_out, order_now, steered_share
from fleet.runs.call.halt import DIALS
from fleet.store.journal import Journal
from sandbox.spec import Effect
from sandbox.tools import TOOLS
from tests.doubles.journal import new_run
from tests.gate.conftest import HandClock
from tests.sandbox.doubles import policy_for

SITE = "https://shop.example"
PROFILE = f'''name = "shop"
[web]
site = "{SITE}"
[escalation.approvers.lead]
people = ["nobody-here"]
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "shop.toml").write_text(PROFILE)
    (tmp_path / "fleet.toml").write_text('platform = "shop"\n')
    for name in ("STATE_DIRECTORY", "CONFIGURATION_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path))
    return tmp_path


def said(*words: str) -> str:
    result = CliRunner().invoke(steer.app, words)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def fetch(path: str) -> Action:
    args = {"url": f"{SITE}{path}"}
    return Action(run="r1", persona="qa-x", tool="qa_fetch", effect=Effect.LOOK, args=args)


@pytest.mark.anyio
async def test_what_a_person_leaves_out_is_refused_at_the_next_decision_of_gate_and_broker(
    state: Path, clock: HandClock
) -> None:
    origin = origin_of(SITE)
    assert origin is not None
    policy = policy_for(SITE, left_out=lambda: left_out(state))
    async with await Journal.open(state / "fleet.db") as journal:
        await journal.trigger(new_run("r1", "qa-x", key="k"))
        budget = Budget(calls=20, writes=0, reports=0, wall_s=60.0, acts=False)
        gate = Gate(
            state=state,
            run="r1",
            grant=TOOLS,
            tools=TOOLS,
            scope=Scope(origins=frozenset({origin})),
            clock=clock,
            ledger=Ledger(journal, "r1", budget),
            deadline=clock.monotonic() + 60,
        )

        async def rules(path: str) -> tuple[str, str]:
            """Which rule of the gate and of the broker refuses; "" where none does."""
            verdict, broker = await gate.decide(fetch(path)), ""
            try:
                policy.check("GET", parse_target(f"{SITE}{path}"))
            except Denied as denied:
                broker = denied.rule
            return "" if verdict.permit else verdict.rule, broker

        assert await rules("/old/a") == ("", "")
        (state / STEERING).write_text(json.dumps({"leave": [f"{SITE}/old"], "share": 0.5}))
        assert await rules("/old/a") == ("steering", "steering")
        assert await rules("/./%6fld/a") == ("steering", "steering")  # in any spelling
        assert await rules("/new") == ("", "")
        assert steered_share(state, lambda _host, _impact: 0.5, "h", "low") == 0.25
        for bad in ("{", '{"leave": "x"}', '{"share": 2}', '{"more": 1}'):
            (state / STEERING).write_text(bad)
            assert await rules("/new") == ("steering", "steering")
        (state / STEERING).chmod(0o666)
        assert await rules("/new") == ("steering", "steering")
        (state / STEERING).unlink()
        assert await rules("/old/a") == ("", "")


def test_what_comes_first_is_an_order_of_places(tmp_path: Path) -> None:
    assert order_now(tmp_path) is None
    (tmp_path / STEERING).write_text(json.dumps({"first": [f"{SITE}/b", f"{SITE}/a"]}))
    place = order_now(tmp_path)
    assert place is not None
    assert [place([f"{SITE}/{one}"]) for one in "abc"] == [1, 0, 2]
    assert (place([]), place(["x", f"{SITE}/b/c"])) == (2, 0)


async def moves(folder: Path) -> list[dict[str, str]]:
    async with await Journal.open(folder / "fleet.db") as journal:
        return [json.loads(one) for one in (await journal.facts(DIALS)).values()]


def test_a_change_is_on_record_with_who_and_why_and_only_less_needs_no_authority(folder: Path) -> None:
    assert anyio.run(moves, folder) == []
    with pytest.raises(UsageError, match="needs a reason"):
        said("--leave", "{site}/old")
    with pytest.raises(UsageError, match="no place"):
        said("--leave", "%%%", "--reason", "x")
    assert "would be" not in said("--leave", "{site}/old", "--reason", "x", "--dry-run")
    assert not (folder / STEERING).exists()
    told = said("--leave", "{site}/old", "--first", "{site}/a", "--share", "0.5", "--reason", "it is slow")
    assert told == f"left out: {SITE}/old; first: {SITE}/a; rate: 50% of the profile's\n"
    assert left_out(folder).match(f"{SITE}/old/x")
    for more in (("--back", "{site}/old"), ("--share", "1.0")):
        with pytest.raises(Refused, match="may not let the tests go on"):
            said(*more, "--reason", "it is fast again")
    assert left_out(folder).match(f"{SITE}/old/x")
    decisions = (folder / "DECISIONS.md").read_text()
    assert decisions.count("steers the runs") == 1
    assert "it is slow" in decisions
    [kept] = anyio.run(moves, folder)
    assert (kept["act"], kept["why"]) == (f"steer: {told.strip()}", "it is slow")
    (folder / "platforms" / "shop.toml").write_text(PROFILE.partition("[escalation")[0])
    assert "left out: nothing" in said("--back", "{site}/old", "--reason", "mended")
    assert left_out(folder).match(f"{SITE}/old/x") == ""
