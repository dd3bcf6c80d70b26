"""Backup, state destroyed, restore; and archives that are not what they say."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleet.app.backup import back_up, dump_on_stop, restore, sum_of, unpacked
from fleet.app.daemon import DUMPED, SealedCopies
from fleet.app.lock import only_one
from fleet.app.sealed import create_key, is_sealed, public_of, seal, unseal
from fleet.cli.operate.backup import app as backup_app
from fleet.cli.operate.restore import app as restore_app
from fleet.clock import SystemClock
from fleet.config import FleetConfig, LiveConfig
from fleet.config.fleet import KeepSection
from fleet.errors import ConfigError, Refused, TryAgain, UsageError
from fleet.events.daemon_events import FEED, Feed
from fleet.gate.dial import DIAL, read_dial, write_dial
from fleet.gate.model import Rung
from fleet.gate.stop import resume, stop
from fleet.runs.vault import VAULT, Vault
from fleet.store.journal import Journal
from fleet.store.rows import DecisionRow, FindingRow, NewRun
from fleet.triage.items.decisions import named
from fleet.triage.items.pass_inputs import PassInputs
from fleet.triage.run import TriageResult, TriageTask, triage
from tests.runs.table import persona, seated
from tests.triage.triage_log import START, TRUSTED, ScriptedLog, finding

NOW = datetime.fromtimestamp(START + 6000, UTC)
CLOCK = SystemClock()


async def look(state: Path, log: ScriptedLog) -> TriageResult:
    """One pass of triage."""
    known = PassInputs(now=NOW, weights={})
    task = TriageTask(name="", platform="p", trusted=TRUSTED, folder=state, known=known)
    async with await Journal.open(state / "fleet.db") as journal:
        return await triage(log, journal, task)


async def fill(state: Path, log: ScriptedLog) -> None:
    """A state with something of each kind; the run `kept` has evidence of an entry, `gone` owes nothing."""
    state.mkdir(mode=0o700)
    async with await Journal.open(state / "fleet.db") as journal:
        for run in ("kept", "gone"):
            await journal.trigger(
                NewRun(
                    run_id=run,
                    persona="qa-ux",
                    key=run,
                    platform="p",
                    trigger="hand",
                    rung="observe",
                    budget={},
                )
            )
            await journal.claim(run, pid=1, pid_start=1)
        await journal.add_finding(FindingRow(run_id="kept", fingerprint="ab" * 6, state="posted"))
        for run in ("kept", "gone"):
            await journal.start_settling(run)
            await journal.finish(run, "done")
        fixed = DecisionRow(
            item="ab" * 6, kind="fixed", reason="r", who="w", at="2026-11-23T00:00:00Z", platform="p"
        )
        await journal.add_decision(named(fixed))
        await journal.put("platform.fact", "known")
    await look(state, log)
    for name in (
        "keys/identity",
        "keys/notify",
        "learned/p/qa-ux.json",
        "explore/p/qa-ux.json",
        "runs/kept/evidence/e.json",
        "runs/gone/trajectory.jsonl",
        "jails/x/y",
        "expectations/cache",
        "ballast",
    ):
        (state / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        (state / name).write_text(name)
        (state / name).chmod(0o600)
    (state / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as door:
        os.chdir(state)
        door.bind("fleet.sock")
    write_dial(state, Rung.PROPOSE, "for the night", "operator", CLOCK)


def tree(state: Path) -> dict[str, bytes]:
    found = {path.relative_to(state).as_posix(): path for path in state.rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in found.items()
        if path.is_file() and not path.is_symlink() and not name.startswith(("fleet.", "before-"))
    }


@pytest.mark.anyio
async def test_nothing_is_lost_and_triage_finds_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state, log, file = tmp_path / "state", ScriptedLog(), tmp_path / "b.tar"
    log.post(finding())
    await fill(state, log)
    before, items, entries = tree(state), (await look(state, log)).items, len(log.entries)
    async with await Journal.open(state / "fleet.db") as at_work:  # a daemon's connection
        await at_work.put("platform.fact", "written a moment ago")
        made = await back_up(state, file, FleetConfig(), state / "fleet.db", CLOCK)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(made.files) == [
        "autonomy",
        "autonomy.json",
        "explore/p/qa-ux.json",
        "fleet.db",
        "keys/identity",
        "keys/notify",
        "learned/p/qa-ux.json",
        "runs/kept/evidence/e.json",
        "worklist.json",
        "worklist.md",
    ]
    shutil.rmtree(state)
    state.mkdir(mode=0o700)
    log.post(finding("another", title="another"))  # after the backup: the chain has it
    _, aside = await restore(file, state, state / "fleet.db", CLOCK, "operator")
    assert aside == ""
    after = tree(state)
    assert {name for name in before if before[name] != after.get(name)} == {
        "autonomy",
        "autonomy.json",
        "ballast",
        "expectations/cache",
        "jails/x/y",
        "runs/gone/trajectory.jsonl",
    }
    assert stat.S_IMODE((state / "keys" / "identity").stat().st_mode) == 0o600
    assert read_dial(state / DIAL).rung == Rung.OBSERVE
    assert "where it was propose" in (state / "autonomy.json").read_text()
    assert sorted(name for name in os.listdir(state) if name.startswith((".", "STOP", "before"))) == []
    async with await Journal.open(state / "fleet.db") as journal:
        assert await journal.get("platform.fact") == "written a moment ago"
        assert len(await journal.decisions("p")) == 1
        assert [row.run_id for row in await journal.findings()] == ["kept"]
    now = (await look(state, log)).items
    assert [one.fingerprint for one in items] == [one.fingerprint for one in now if one.title != "another"]
    assert (len(now), len(log.entries)) == (2, entries + 1)


@pytest.mark.anyio
async def test_what_is_there_is_moved_aside_and_the_dial_kept_only_when_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state, file = tmp_path / "state", tmp_path / "b.tar"
    await fill(state, ScriptedLog())
    (state / "STOP").write_text("of the old state")
    await back_up(state, file, FleetConfig(), state / "fleet.db", CLOCK, keys=False, all_runs=True)
    (state / "STOP").write_text("a newer reason")
    (state / "new").write_text("here only")
    with pytest.raises(Refused, match="not empty"):
        await restore(file, state, state / "fleet.db", CLOCK, "operator")
    with only_one(state), pytest.raises(TryAgain, match="another fleet"):
        await restore(file, state, state / "fleet.db", CLOCK, "operator", force=True)
    manifest, aside = await restore(
        file, state, state / "fleet.db", CLOCK, "operator", force=True, keep_dial=True
    )
    assert not [name for name in manifest.files if name.startswith("keys/")]
    assert (state / "runs" / "gone" / "trajectory.jsonl").exists()
    assert read_dial(state / DIAL).rung == Rung.PROPOSE
    assert (state / "STOP").read_text() == "of the old state"
    assert (Path(aside) / "STOP").read_text() == "a newer reason"
    assert (Path(aside) / "new").read_text() == "here only"
    assert (Path(aside) / "keys" / "identity").exists()


@pytest.mark.anyio
async def test_a_restore_that_is_killed_leaves_a_fleet_that_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state, file = tmp_path / "state", tmp_path / "b.tar"
    await fill(state, ScriptedLog())
    await back_up(state, file, FleetConfig(), state / "fleet.db", CLOCK)
    rename, left = os.rename, list(range(6))

    def killed(source: Path, target: Path) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("fleet.app.backup.os.rename", killed)
        with pytest.raises(KeyboardInterrupt):
            await restore(file, state, state / "fleet.db", CLOCK, "operator", force=True)
    assert "has not been completed" in (state / "STOP").read_text()
    await restore(file, state, state / "fleet.db", CLOCK, "operator", force=True)
    assert (state / "keys" / "identity").exists()


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, file = tmp_path / "state", tmp_path / "b.tar"
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    state.mkdir(mode=0o700)
    (state / "worklist.md").write_text("old")
    ask = CliRunner().invoke
    assert ask(backup_app, [str(file)]).output == f"wrote {file}: 1 file\n"
    assert isinstance(ask(backup_app, [str(file)]).exception, UsageError)
    (state / "worklist.md").write_text("new")
    (state / "more").write_text("here only")
    said = json.loads(ask(restore_app, [str(file), "--check", "--json"]).stdout)
    new = [name for name in said["new"] if not name.startswith("DECISIONS")]
    assert (new, said["changed"]) == ([], ["worklist.md"])
    assert "more" in said["only_here"]
    assert said["beyond"] == []
    assert 0 <= said["lost_hours"] < 1
    monkeypatch.setenv("QA_FLEET_KEEP", "{ loss_hours = 0.000001 }")
    late = ask(restore_app, [str(file), "--check"])
    assert (late.exit_code, "hours of work are not in it, of 1e-06" in late.stdout) == (1, True)
    assert "tries to restore b.tar" in (state / "DECISIONS.md").read_text()
    monkeypatch.delenv("QA_FLEET_KEEP")
    assert (state / "worklist.md").read_text() == "new"
    assert "is not empty" in str(ask(restore_app, [str(file)]).exception)
    assert ask(restore_app, [str(file), "--force"]).exit_code == 0
    assert (state / "worklist.md").read_text() == "old"


def test_a_sealed_backup_is_read_by_its_key_alone_and_every_change_is_seen(tmp_path: Path) -> None:
    key, other = tmp_path / "key", tmp_path / "other"
    create_key(key)
    create_key(other)
    plain, sealed, back = (tmp_path / name for name in ("plain", "sealed", "back"))
    for size in (0, 5, 1 << 16, (2 << 16) + 7):
        plain.write_bytes(os.urandom(size))
        seal(plain, sealed, public_of(key))
        assert (is_sealed(sealed), is_sealed(plain)) == (True, False)
        assert sealed.stat().st_mode & 0o777 == 0o600
        assert size < 16 or plain.read_bytes()[:16] not in sealed.read_bytes()
        unseal(sealed, back, key)
        assert back.read_bytes() == plain.read_bytes()
        back.unlink()
        with pytest.raises(ConfigError, match="not for this key"):
            unseal(sealed, back, other)
        assert not back.exists()
        whole = sealed.read_bytes()
        middle = len(whole) // 2
        flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in (30, middle, -3)]
        for changed in (whole[:-1], whole + b"x", whole[:middle], b"", *flipped):
            sealed.write_bytes(changed)
            with pytest.raises(ConfigError, match="not for this key"):
                unseal(sealed, back, key)
            assert not back.exists()
        sealed.unlink()
    with pytest.raises(ConfigError, match="no public key"):
        seal(plain, sealed, public_of(key)[:-1] + "b")
    assert not sealed.exists()


def test_what_is_no_key_of_age_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    key = tmp_path / "key"
    create_key(key)
    with pytest.raises(ConfigError, match="already exists"):
        create_key(key)
    words = key.read_text()
    key.write_text(f"# created: 2026-11-28\n# public key: {public_of(key)}\n{words}")  # as age-keygen does
    public_of(key)
    key.write_text("0x" + "11" * 32)
    with pytest.raises(ConfigError, match=f"{key}: no key of age"):
        public_of(key)
    key.write_text(words)
    key.chmod(0o644)
    with pytest.raises(ConfigError, match="key"):
        public_of(key)


@pytest.mark.anyio
async def test_a_fleet_with_a_key_backs_up_sealed_and_comes_back_by_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state, log = tmp_path / "state", ScriptedLog()
    await fill(state, log)
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path))
    file, key = tmp_path / "fleet.tar", tmp_path / "away" / "key"
    key.parent.mkdir(mode=0o700)
    made = CliRunner().invoke(backup_app, ["key", str(key)])
    again = CliRunner().invoke(backup_app, ["key", str(key)])
    assert made.stdout == again.stdout == f"{public_of(key)}\n"
    config = FleetConfig(keep=KeepSection(sealed_for=made.stdout.strip()))
    manifest = await back_up(state, file, config, state / "fleet.db", CLOCK)
    assert is_sealed(file)
    assert b"MANIFEST" not in file.read_bytes()
    assert not list(state.glob(".restore-*"))
    with pytest.raises(ConfigError, match="it is sealed"):
        await restore(file, state, state / "fleet.db", CLOCK, "ann", force=True)
    found, aside = await restore(file, state, state / "fleet.db", CLOCK, "ann", force=True, key=key)
    assert (found, bool(aside)) == (manifest, True)
    assert not list(state.glob(".restore-*"))


@pytest.mark.anyio
async def test_every_stop_leaves_one_sealed_copy_that_is_read_only(tmp_path: Path) -> None:
    state, key = tmp_path / "state", tmp_path / "key"
    create_key(key)
    await fill(state, ScriptedLog())
    sealing = FleetConfig(keep=KeepSection(sealed_for=public_of(key)))
    assert await dump_on_stop(state, sealing, CLOCK, "") == ("", None)
    Vault(state, public_of(key), CLOCK).keep("p", "r", "web site", "password", "hunter2hunter2")
    made = await back_up(state, tmp_path / "b.tar", FleetConfig(), state / "fleet.db", CLOCK)
    assert not [name for name in made.files if name.startswith(VAULT)]
    stop(state, "ann", "by hand", CLOCK)
    assert await dump_on_stop(state, FleetConfig(), CLOCK, "") == ("", None)
    since, copy = await dump_on_stop(state, sealing, CLOCK, "")
    assert since
    assert copy is not None
    assert await dump_on_stop(state, sealing, CLOCK, since) == (since, None)
    assert await dump_on_stop(state, sealing, CLOCK, "") == (since, None)  # after a kill
    assert [*(state / "dumps").iterdir()] == [copy]
    assert (copy.stat().st_mode & 0o777, copy.parent.stat().st_mode & 0o777) == (0o400, 0o700)
    with unpacked(copy, state, key) as (folder, manifest):
        assert (folder / "fleet.db").exists()
        assert (folder / "STOP").exists()
        assert len([*(folder / VAULT).iterdir()]) == 1
        assert not manifest.keys
        assert not [name for name in manifest.files if "keys" in name.split("/") or name.startswith("dumps")]
    resume(state, "done")
    os.utime(stop_again(state))
    assert (await dump_on_stop(state, sealing, CLOCK, since))[1] not in (None, copy)


def stop_again(state: Path) -> Path:
    stop(state, "the fleet", "sensitive-data: a page", CLOCK, check="those whom it concerns agree")
    return state / "STOP"


@pytest.mark.anyio
async def test_the_hash_of_a_copy_is_on_record_and_a_changed_copy_is_a_fault(tmp_path: Path) -> None:
    create_key(key := tmp_path / "key")
    keep = KeepSection(sealed_for=public_of(key))
    async with seated(tmp_path, persona()) as table:
        world = replace(table.world, live=LiveConfig(FleetConfig(keep=keep)))
        with closing(Feed(world.state / FEED, clock=CLOCK)) as feed:
            copies = SealedCopies(world, feed)
            await copies.look()
            assert await copies.fault() == ""
            stop(world.state, "ann", "by hand", CLOCK)
            await copies.look()
            await copies.look()
        [copy] = (world.state / "dumps").iterdir()
        said = [json.loads(one) for one in (world.state / FEED).read_text().splitlines()]
        assert [one["file"] for one in said if one["type"] == "state.sealed"] == [copy.name]
        assert await world.journal.facts(DUMPED) == {f"{DUMPED}{copy.name}": sum_of(copy)}
        assert sum_of(copy) in {one.get("sha256") for one in said}
        assert await copies.fault() == ""
        copy.chmod(0o600)
        copy.write_bytes(copy.read_bytes()[:-1] + b"x")
        assert await copies.fault() == f"{copy.name} is not as it was sealed"
