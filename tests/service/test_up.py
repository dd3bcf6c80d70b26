"""`fleet up`: real processes, real signals, a real chain."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from fleet.chain.node.abi import FUNCTIONS
from fleet.chain.node.rpc import Rpc
from fleet.clock import SystemClock, iso, minute
from fleet.config import Platform, parse
from fleet.devnet.devnet import Devnet
from fleet.devnet.node import fund
from fleet.gate.stop import resume, stop
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow
from tests.runs.test_retention import taken
from tests.service.conftest import CREATE, FETCH, LONG, Up, persona, processes_of, whole
from tests.service.test_retention import long_ago

pytestmark = [pytest.mark.anyio, pytest.mark.devnet, pytest.mark.jail]


def second(at: str) -> str:
    """The time of a record, whose milliseconds no key and no row has."""
    return f"{at[:19]}Z"


async def test_a_persona_file_runs_changes_and_goes_without_a_restart(up: Up) -> None:
    process = up.start()
    await up.until(lambda: up.told("daemon.started"))
    up.drop("qa-new", persona("qa-new", FETCH))
    await up.until(lambda: up.told("persona.added"))
    await up.until(lambda: up.told("trigger.fired"))
    up.drop("qa-new", persona("qa-new", FETCH).replace('every = "1s"', 'every = "never"'))
    (refused,) = await up.until(lambda: up.told("persona.refused"))
    assert (refused.file, refused.kept) == ("qa-new.md", True)
    assert "qa-new.md:5: triggers[0].every" in refused.reason
    fired = len(up.told("trigger.fired"))
    await up.until(lambda: len(up.told("trigger.fired")) > fired)  # the last good version goes on
    up.drop("qa-new", persona("qa-new", FETCH, trigger='cron = "0 0 29 2 *"'))
    (changed,) = await up.until(lambda: up.told("persona.changed"))
    await up.until(lambda: datetime.now(UTC) > datetime.fromisoformat(changed.at) + timedelta(seconds=3))
    (up.personas / "qa-new.md").unlink()
    await up.until(lambda: up.told("persona.removed"))
    assert [one.key for one in up.told("trigger.fired") if one.key > f"qa-new@{second(changed.at)}"] == []
    assert await up.end(process) == 0
    kinds = [event.type for event in up.events() if event.type.startswith("persona.")]
    assert kinds == ["persona.added", "persona.refused", "persona.changed", "persona.removed"]
    assert {row.outcome for row in await up.runs()} == {"done"}


async def test_sigterm_in_mid_run_settles_writes_the_footer_and_exits_0(up: Up) -> None:
    up.drop("qa-long", LONG)
    process = up.start("--grace", "0")
    run = await up.minted()
    assert any(await up.held(run))
    started = time.monotonic()
    assert await up.end(process) == 0
    assert time.monotonic() - started < 10
    assert [(end["outcome"], end["detail"]) for end in up.footers(run)] == [
        ("cancelled", "the daemon was asked to stop")
    ]
    assert not any(await up.held(run))
    (row,) = [row for row in await up.runs() if row.run_id == run]
    assert (row.state, row.outcome) == ("ended", "cancelled")
    assert [event.type for event in up.events()][-2:] == ["daemon.draining", "daemon.stopped"]
    assert not (up.state / "runs" / run / "keys").exists()
    assert processes_of(up.state) == []


async def test_a_second_sigterm_ends_at_once_and_the_next_start_settles(up: Up) -> None:
    up.drop("qa-long", LONG)
    process = up.start("--grace", "60")
    run = await up.minted()
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)  # the echo of the first: shells and `timeout` send it twice
    await up.until(lambda: up.told("daemon.draining"))
    await anyio.sleep(1.1)
    assert process.poll() is None
    assert await up.end(process) == 128 + signal.SIGTERM
    assert up.told("daemon.stopped")[-1].reason == "SIGTERM again"
    await up.until(lambda: processes_of(up.state) == [])
    (up.personas / "qa-long.md").unlink()
    again = up.start()
    (settled,) = await up.until(lambda: up.told("run.settled"))
    assert settled.run == run
    assert up.told("daemon.lost") == []
    assert not any(await up.held(run))
    assert await up.end(again) == 0


async def test_a_side_task_that_dies_stops_the_daemon_loudly_with_runs_settled(up: Up) -> None:
    up.drop("qa-long", LONG)
    process = up.spawn(str(Path(__file__).with_name("dying.py")), str(up.personas), PYTHONPATH=os.getcwd())
    run = await up.minted()
    (up.state / "die").touch()
    assert await anyio.to_thread.run_sync(process.wait, 20) == 1
    assert "the task of the test died: ZeroDivisionError: of the test" in up.log()
    assert [end["outcome"] for end in up.footers(run)] == ["cancelled"]
    assert not any(await up.held(run))
    assert up.told("daemon.stopped")[0].reason == "a side task died"
    assert processes_of(up.state) == []


async def test_a_file_is_tried_beside_the_daemon_which_knows_nothing_of_it(up: Up, tmp_path: Path) -> None:
    process = up.start()
    await up.until(lambda: up.told("daemon.started"))
    looks, acts = tmp_path / "qa-looks.md", tmp_path / "qa-acts.md"
    looks.write_text(persona("qa-looks", FETCH))
    acts.write_text(persona("qa-acts", CREATE))
    tried = up.fleet("personas", "try", str(looks), "--json")
    assert tried.returncode == 0, tried.stderr
    data = json.loads(tried.stdout)
    assert (data["outcome"], data["probes"][0]["calls"][0]["tool"]) == ("done", "qa_fetch")
    assert data["run"] not in {row.run_id for row in await up.runs()}
    shown = up.fleet("--state", str(up.state / "looks" / "trial"), "runs", "show", data["run"], "--json")
    assert (shown.returncode, '"trial"' in shown.stdout) == (0, True)
    refused = up.fleet("personas", "try", str(acts))
    assert (refused.returncode, "beside a daemon a trial only looks" in refused.stderr) == (5, True)
    assert await up.end(process) == 0


async def test_a_second_instance_is_refused(up: Up) -> None:
    process = up.start()
    await up.until(lambda: up.told("daemon.started"))
    second = up.start()
    assert await anyio.to_thread.run_sync(second.wait, 20) == 75
    assert f"another fleet (pid {process.pid}) is using" in up.log()
    said = up.fleet("status")
    assert f"daemon    pid {process.pid}" in said.stdout, said.stderr
    assert await up.end(process) == 0
    assert "daemon    not running" in up.fleet("status").stdout


async def test_kill_9_in_mid_run_is_settled_by_the_next_start_and_no_key_runs_twice(up: Up) -> None:
    up.drop("qa-long", LONG)
    process = up.start()
    run = await up.minted()
    await up.end(process, signal.SIGKILL)
    killed = iso(datetime.now(UTC))
    assert any(await up.held(run))
    last = json.loads(whole(up.state / "runs" / run / "trajectory.jsonl")[-1])["at"]
    (lost,) = json.loads(up.fleet("status", "--json").stdout)["lost"]
    assert (lost["at"], lost["last_seen"], lost["runs"]) == ("", last, [run])
    await up.until(lambda: iso(datetime.now(UTC)) > killed)
    up.drop("qa-long", LONG.replace('continuous = "1s"', 'continuous = "24h"'))
    again = up.start("--grace", "0")
    (settled,) = await up.until(lambda: up.told("run.settled"))
    assert (settled.run, settled.outcome) == (run, "crashed")
    (told,) = up.told("daemon.lost")
    assert (told.last_seen, told.runs) == (last, (run,))
    assert told.at > killed
    (row,) = [row for row in await up.runs() if row.run_id == run]
    assert row.ended == second(last) <= killed
    assert row.detail == f"its process ended while it was running; its last record is of {last}"
    why = f"it died at {minute(last)} UTC with 1 run in flight ({run}); back since {minute(told.at)} UTC"
    assert f"daemon lost: {why}" in json.loads(up.fleet("status", "--json").stdout)["wrong"]
    assert not any(await up.held(run))
    assert len(up.footers(run)) == 1
    assert await up.end(again) == 0
    rows = await up.runs()
    assert len({row.key for row in rows}) == len(rows)
    assert [row.state for row in rows] == ["ended"] * len(rows)


async def test_stop_in_mid_run_pauses_and_resume_settles(up: Up) -> None:
    up.drop("qa-long", LONG)
    process = up.start("--grace", "0")
    run = await up.minted()
    stop(up.state, "test", "hold it", SystemClock())
    await up.until(lambda: up.told("queue.paused"))
    calls = await quiet(up, run)
    assert any(await up.held(run))
    assert resume(up.state)
    await up.until(lambda: up.told("run.settled"))
    assert [end["outcome"] for end in up.footers(run)] == ["stopped"]
    assert calls == trajectory(up, run).count('"tool.requested"')
    assert not any(await up.held(run))
    assert await up.end(process) == 0


def trajectory(up: Up, run: str) -> str:
    return (up.state / "runs" / run / "trajectory.jsonl").read_text()


async def quiet(up: Up, run: str) -> int:
    """Waits until a run asks for nothing more; how many calls it made."""
    before = -1
    while (now := trajectory(up, run).count('"tool.requested"')) != before:
        before = now
        await anyio.sleep(1.5)
    return now


async def test_a_run_is_cancelled_from_another_terminal(up: Up) -> None:
    up.drop("qa-long", LONG)
    process = up.start("--grace", "0")
    run = await up.minted()
    said = up.fleet("runs", "cancel", run, "--reason", "enough of it")
    assert said.returncode == 0, said.stderr
    (end,) = await up.until(lambda: up.footers(run))
    assert end["outcome"] == "cancelled"
    assert end["detail"].endswith(": enough of it")
    await up.until(lambda: up.fleet("runs", "cancel", run).returncode == 2)
    assert not any(await up.held(run))
    assert await up.end(process) == 0


async def test_a_journal_that_is_deleted_under_a_daemon_stops_it_and_the_next_one_finds_the_keys(
    up: Up,
) -> None:
    up.drop("qa-long", LONG)
    process = up.start("--grace", "0")
    run = await up.minted()
    for path in up.state.glob("fleet.db*"):
        path.unlink()
    assert await anyio.to_thread.run_sync(process.wait, 60) == 3
    assert f"fleet: {up.state / 'fleet.db'}: removed or replaced under this process" in up.log()
    said = json.loads(up.fleet("check", "machine", "--json").stdout)["checks"]
    (store,) = [row for row in said if row["check"] == "store"]
    assert (store["ok"], f"keys of {run} exist: was it lost?" in store["seen"]) == (False, True)
    (up.personas / "qa-long.md").unlink()
    process = up.start()
    await up.until(lambda: any(event.run == run for event in up.told("run.settled")))
    assert any(event.run == run and "was it lost" in event.reason for event in up.told("run.unsettled"))
    assert await up.held(run) == [""]
    assert not (up.state / "runs" / run / "keys").exists()
    assert await up.end(process) == 0
    said = json.loads(up.fleet("check", "machine", "--json").stdout)["checks"]
    assert {row["check"]: row["ok"] for row in said if row["check"] in ("store", "keys without runs")} == {
        "store": True,
        "keys without runs": True,
    }


async def test_a_bad_configuration_is_refused_and_a_good_one_takes_effect(up: Up) -> None:
    config = Path(up.state.parent / "config" / "fleet.toml")
    process = up.start()
    await up.until(lambda: up.told("daemon.started"))
    config.write_text("concurrency = 0\n")
    process.send_signal(signal.SIGHUP)
    (refused,) = await up.until(lambda: up.told("config.refused"))
    assert "concurrency" in refused.reason
    config.write_text('concurrency = 5\nidentity = "elsewhere"\n')
    process.send_signal(signal.SIGHUP)
    (reloaded,) = await up.until(lambda: up.told("config.reloaded"))
    assert (reloaded.changed, reloaded.waiting) == (("concurrency",), ("identity",))
    assert await up.end(process) == 0


async def test_a_changed_profile_is_taken_in_the_same_process(up: Up) -> None:
    profile = up.state / "devnet" / "devnet.toml"
    before = profile.read_text()
    fetch = FETCH.replace("{site}/llms.txt", "{target:late}")
    up.drop("qa-late", persona("qa-late", fetch, trigger='continuous = "1s"'))
    process = up.start()
    await up.until(lambda: up.told("daemon.started"))
    profile.write_text(before.replace(up.devnet.chain.url, "http://127.0.0.1:1"))
    process.send_signal(signal.SIGHUP)
    await up.until(lambda: up.told("config.refused"))  # a chain that does not answer is not taken
    profile.write_text(before.replace("[targets]", '[targets]\nlate = "{site}/llms.txt"'))
    process.send_signal(signal.SIGHUP)
    started = await up.until(lambda: (found := up.told("daemon.started"))[1:] and found, 40)
    assert [one.pid for one in started] == [process.pid, process.pid]
    assert [one.changed for one in up.told("config.reloaded")] == [("profile",)]

    def looked() -> list[Any]:
        folders = (up.state / "runs").glob("*")
        return [end for run in folders for end in up.footers(run.name) if end["calls"]]

    await up.until(looked)
    assert await up.end(process) == 0


async def test_a_never_selector_of_a_reload_acts_on_the_run_in_flight(up: Up) -> None:
    config = Path(up.state.parent / "config" / "fleet.toml")
    up.drop("qa-long", LONG)
    process = up.start()
    run = await up.minted()
    config.write_text(f'never = ["0x{FUNCTIONS["register"].selector.hex()}"]\n')
    process.send_signal(signal.SIGHUP)
    (reloaded,) = await up.until(lambda: up.told("config.reloaded"))
    assert (reloaded.changed, reloaded.waiting) == (("never",), ())
    trajectory = up.state / "runs" / run / "trajectory.jsonl"

    def refused() -> list[Any]:
        lines = [json.loads(line) for line in whole(trajectory)]
        made = [line["result"] for line in lines if line.get("tool") == "qa_create" and "result" in line]
        return [result for result in made if not result["ok"]]

    assert "never" in (await up.until(refused))[0]["error"]
    assert await up.end(process) == 0
    assert await up.held(run) == [""] * len(await up.held(run))


async def test_a_dial_at_observe_still_runs_what_only_looks(up: Up) -> None:
    (up.state / "autonomy").unlink()
    mint = f'[[probe]]\nid = "mint"\nseverity = "low"\nsteps = [{CREATE}]\nexpect = "result.ok"\n'
    mint += 'finding = "never seen at all"\n+++\nA test'
    up.drop("qa-both", persona("qa-both", FETCH).replace("+++\nA test", mint))
    process = up.start()

    def ended() -> str:
        for path in (up.state / "runs").glob("*/trajectory.jsonl"):
            if "footer" in path.read_text():
                return path.parent.name
        return ""

    run = await up.until(ended)
    assert [end["outcome"] for end in up.footers(run)] == ["done"]
    assert '"rule":"dial"' in trajectory(up, run)
    assert '"tool":"qa_fetch","is_error":false' in trajectory(up, run)
    assert up.fleet("dial", "exercise", "--reason", "go").returncode == 0
    (turned,) = await up.until(lambda: up.told("dial.turned"))
    assert (turned.rung, turned.why) == ("exercise", "go")
    (up.state / "autonomy").write_text("exercize\n")
    (_, wrong) = await up.until(lambda: len(up.told("dial.turned")) == 2 and up.told("dial.turned"))
    assert wrong.why == "by hand: autonomy: not one of observe, exercise, propose: 'exercize'"
    assert os.path.exists(up.state / "autonomy")
    assert await up.end(process) == 0


async def test_the_janitor_releases_what_an_ended_run_left_and_only_that(up: Up) -> None:
    """As a reorganisation leaves it: the run has ended, and its name is there again."""
    up.drop("qa-long", LONG)
    process = up.start("--grace", "0")
    run = await up.minted()
    await up.end(process, signal.SIGKILL)
    async with await Journal.open(up.state / "fleet.db") as journal:
        await journal.finish(run, "done")
    (up.personas / "qa-long.md").unlink()
    again = up.start()
    (released,) = await up.until(lambda: up.told("name.released"))
    assert (released.run, released.name) == (run, f"qa-{run}-1")
    assert not any(await up.held(run))
    await up.until(lambda: not (up.state / "runs" / run / "keys").exists())
    assert [row.outcome for row in await up.runs()] == ["done"]
    assert await up.end(again) == 0


@pytest.mark.parametrize("stipend", ["there", "gone"])
async def test_a_release_that_a_reorg_undid_is_made_again_though_its_key_is_destroyed(
    up: Up, stipend: str
) -> None:
    up.drop("qa-short", persona("qa-short", CREATE, *[FETCH] * 10, trigger='continuous = "1s"'))
    process = up.start()
    run = await up.minted()
    (up.personas / "qa-short.md").unlink()
    await up.until(lambda: up.footers(run))
    assert await up.end(process) == 0
    profile = parse(Platform, up.devnet.profile.read_text(), file="devnet.toml")
    async with await Journal.open(up.state / "fleet.db") as journal, Rpc(profile.chain.rpc) as rpc:
        sent = await journal.effects(run, ["tx"], ["done"])
        (block,) = [tx.data["block"] for tx in sent if tx.data["purpose"].startswith("release")]
        head = int(await rpc.call("eth_blockNumber"), 16)
        await rpc.call("anvil_reorg", [head - block + 1, []])
        if stipend == "gone":
            (name,) = await journal.effects(run, ["name"])
            await fund(rpc, name.data["owner"], 0)
    assert any(await up.held(run))
    assert not (up.state / "runs" / run / "keys").exists()
    again = up.start()
    (released,) = await up.until(lambda: up.told("name.released"))
    assert (released.run, released.name) == (run, f"qa-{run}-1")
    assert not any(await up.held(run))
    assert await up.end(again) == 0
    assert len(await up.runs()) == 1


@asynccontextmanager
async def line_to(devnet: Devnet) -> AsyncIterator[tuple[str, Callable[[bool], None]]]:
    """An address that leads to the node, and the switch that cuts it; it is cut at first."""
    host, _, port = devnet.chain.url.removeprefix("http://").rpartition(":")
    on = False
    ends: set[asyncio.StreamWriter] = set()

    async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
        sink.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not on:
            writer.transport.abort()
            return
        far_reader, far = await asyncio.open_connection(host, int(port))
        ends.update((writer, far))
        await asyncio.gather(pump(reader, far), pump(far_reader, writer))

    def switch(wanted: bool) -> None:
        nonlocal on
        on = wanted
        for end in () if wanted else list(ends):
            end.transport.abort()
        ends.clear()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", switch
    switch(False)
    server.close()


async def test_runs_of_long_ago_make_room_and_the_evidence_of_what_is_on_the_log_stays(up: Up) -> None:
    async with long_ago(up.state, "over", "found") as journal:
        await journal.add_finding(FindingRow(run_id="found", fingerprint="0123456789ab", state="posted"))
    size = taken(up.state / "runs" / "over")
    process = up.start()
    (told,) = await up.until(lambda: up.told("runs.removed"), 30)
    assert (told.runs, told.bytes) == (1, size)
    assert sorted(path.name for path in (up.state / "runs").iterdir()) == ["found"]
    assert await up.end(process) == 0


async def test_a_chain_that_is_away_is_waited_for_at_the_start_and_in_mid_run(up: Up) -> None:
    profile = up.state / "devnet" / "devnet.toml"
    async with line_to(up.devnet) as (url, switch):
        profile.write_text(profile.read_text().replace(up.devnet.chain.url, url))
        up.drop("qa-long", LONG)
        process = up.start("--grace", "0")
        await up.until(lambda: "waiting for the chain" in up.log())
        process.send_signal(signal.SIGHUP)  # it reads its configuration at each attempt anyway
        switch(True)
        run = await up.minted()
        switch(False)
        (left,) = await up.until(lambda: [one for one in up.told("run.unsettled") if one.run == run], 90)
        assert up.footers(run) == []
        switch(True)
        (settled,) = await up.until(lambda: up.told("run.settled"), 30)
        assert (left.run, settled.run, len(up.footers(run))) == (run, run, 1)
        assert not any(await up.held(run))
        assert await up.end(process) == 0
