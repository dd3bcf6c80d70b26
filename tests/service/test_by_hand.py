"""A daemon at work, and a person beside it: `fleet run --queue`, `fleet service hook`."""

from __future__ import annotations

import json
import re
import socket
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import typer
from typer.testing import CliRunner, Result

from fleet.cli.check import config
from fleet.cli.daemon_client import ask
from fleet.cli.operate import hook
from fleet.cli.run import run as run_command
from fleet.errors import ConfigError, FleetError, Refused, TryAgain, UsageError
from tests.service.conftest import CREATE, FETCH, Up, persona, whole

NEVER = 'cron = "0 0 29 2 *"'
FINDS = persona("qa-finds", FETCH, trigger=NEVER).replace('result.ok || result.error != "0"', "!result.ok")


def say(app: typer.Typer, *words: str) -> Result:
    return CliRunner().invoke(app, [*words, "--json"])


def data(app: typer.Typer, *words: str) -> Any:
    said = say(app, *words)
    assert said.exit_code == 0, said.output or said.exception
    return json.loads(said.stdout)


def refusal(app: typer.Typer, *words: str) -> FleetError:
    error = say(app, *words).exception
    assert isinstance(error, FleetError), error
    return error


def at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands of this process work there."""
    monkeypatch.setenv("STATE_DIRECTORY", str(folder / "state"))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(folder / "config"))
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)


def listens(up: Up) -> bool:
    """Whether the daemon takes new work."""
    try:
        return ask(up.state, "/hooks/none", b"").status == 404
    except TryAgain:
        return False


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory without a daemon, with one webhook configured."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "fleet.toml").write_text('platform = "example"\n[hooks.deploy]\n')
    at(tmp_path, monkeypatch)
    return tmp_path / "state"


class TestWithoutADaemon:
    def test_the_configuration_is_wrong_until_the_webhook_has_its_secret(self, alone: Path) -> None:
        assert "keys/hook.deploy" in str(refusal(config.app))
        assert data(hook.app, "list")[0]["secret"].startswith("bad: ")
        planned = data(hook.app, "new", "deploy", "--dry-run")
        path = alone / "keys" / "hook.deploy"
        assert (planned["secret_file"], planned["written"], path.exists()) == (str(path), False, False)
        made = data(hook.app, "new", "deploy")
        assert (made["written"], path.stat().st_mode & 0o777) == (True, 0o600)
        assert len(path.read_text().strip()) == 64
        assert isinstance(refusal(hook.app, "new", "deploy"), ConfigError)
        assert data(config.app)["ok"] is True
        assert data(hook.app, "list") == [{"hook": "deploy", "secret": "valid, 1", "personas": []}]

    def test_a_name_that_is_not_configured_is_told_what_to_write(self, alone: Path) -> None:
        said = say(hook.app, "new", "other")
        assert "add to fleet.toml: [hooks.other]" in said.stderr
        assert isinstance(refusal(hook.app, "new", "../x"), ConfigError)
        assert isinstance(refusal(hook.app, "send", "other"), UsageError)

    def test_there_is_nobody_to_ask(self, alone: Path) -> None:
        data(hook.app, "new", "deploy")
        for app, words in ((run_command.app, ("qa-smoke", "--queue")), (hook.app, ("send", "deploy"))):
            error = refusal(app, *words)
            assert isinstance(error, TryAgain)
            assert error.remedy.startswith("fleet up")

    def test_a_plan_is_the_same_with_queue(self, alone: Path) -> None:
        plan = data(run_command.app, "qa-smoke", "--dry-run")
        assert plan == data(run_command.app, "qa-smoke", "--queue", "--dry-run")
        assert plan[0]["probe"]

    def test_paused_is_paused(self, alone: Path) -> None:
        (alone / "STOP").write_text("hold it")
        assert isinstance(refusal(run_command.app, "qa-smoke", "--queue"), Refused)

    def test_a_body_is_read_and_a_dry_run_shows_what_a_sender_sends(
        self, alone: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        data(hook.app, "new", "deploy")
        (tmp_path / "body").write_bytes(b"12345")
        shown = data(hook.app, "send", "deploy", "--file", str(tmp_path / "body"), "--dry-run")
        assert (shown["path"], shown["bytes"]) == ("/hooks/deploy", 5)
        assert sorted(shown["headers"]) == ["x-qa-delivery", "x-qa-signature", "x-qa-timestamp"]
        assert isinstance(refusal(hook.app, "send", "deploy", "--file", "/missing"), UsageError)
        piped = CliRunner().invoke(
            hook.app, ["send", "deploy", "--file", "-", "--dry-run", "--json"], input=b"x" * 7
        )
        assert json.loads(piped.stdout)["bytes"] == 7


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.jail
async def test_a_person_and_a_webhook_put_runs_into_a_daemons_queue(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at(tmp_path, monkeypatch)
    (tmp_path / "config" / "fleet.toml").write_text("[hooks.deploy]\n")
    secret = Path(data(hook.app, "new", "deploy")["secret_file"])
    up.drop("qa-finds", FINDS)
    up.drop("qa-hook", persona("qa-hook", FETCH, trigger='on = "hook:deploy"'))
    up.drop("qa-deaf", persona("qa-deaf", FETCH, trigger='on = "hook:gone"'))
    process = up.start()
    await up.until(lambda: listens(up))
    (deaf,) = await up.until(lambda: up.told("trigger.skipped"))
    assert (deaf.persona, "no [hooks.gone]" in deaf.reason) == ("qa-deaf", True)

    beside = refusal(run_command.app, "qa-smoke")
    assert (beside.exit_code, str(beside)) == (75, f"the daemon (pid {process.pid}) is running here")
    assert beside.remedy == "fleet run qa-smoke --queue"
    assert await up.runs() == []

    waited = up.fleet("run", "qa-finds", "--queue", "--wait", "--json")
    assert waited.returncode == 1, waited.stderr
    got = json.loads(waited.stdout)
    (row,) = await up.runs()
    (end,) = up.footers(row.run_id)
    assert (got["run"], got["outcome"], got["calls"]) == (row.run_id, "done", end["calls"])
    assert [finding["state"] for finding in got["findings"]] == ["posted"]
    assert "saw: Never seen: qa-finds 0: GET /llms.txt?n=0: 200" in waited.stderr
    assert f"posted {got['findings'][0]['fingerprint']}" in waited.stderr

    typo = refusal(run_command.app, "qa-typo", "--queue")
    assert (typo.exit_code, "known: qa-deaf, qa-finds, qa-hook" in str(typo)) == (2, True)
    other = refusal(run_command.app, "qa-hook", "--queue", "--platform", "other")
    assert (other.exit_code, "runs against devnet" in str(other)) == (2, True)

    words = ("send", "deploy", "--delivery", "delivery-1")
    first, again = data(hook.app, *words), data(hook.app, *words)
    assert (first["status"], again["status"], again["runs"]) == (202, 200, first["runs"])
    (run,) = first["runs"]
    assert run["key"] == "qa-hook@hook:deploy:delivery-1"
    secret.write_text("another secret of some length")
    await up.until(lambda: up.footers(run["run"]) if (up.state / "runs" / run["run"]).exists() else ())
    assert data(hook.app, "send", "deploy")["status"] == 202
    assert await up.end(process) == 0
    assert len(await up.runs()) == 3


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.jail
async def test_what_a_person_queued_outlives_the_daemon_that_took_it(
    up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unlike a run of `fleet run`, whose process was its owner."""
    at(tmp_path, monkeypatch)
    up.drop("qa-busy", persona("qa-busy", CREATE, *[FETCH] * 15, trigger=NEVER, times=3))
    process = up.start("--grace", "0")
    await up.until(lambda: listens(up))
    runs = [data(run_command.app, "qa-busy", "--queue")["run"] for _ in range(2)]  # of one persona: in turn
    await up.minted()
    assert await up.end(process) == 0
    assert {row.run_id: row.state for row in await up.runs()} == {runs[0]: "ended", runs[1]: "queued"}
    up.drop("qa-busy", persona("qa-busy", FETCH, trigger=NEVER))
    again = up.start()
    written = up.state / "runs" / runs[1] / "trajectory.jsonl"
    (end,) = await up.until(lambda: written.exists() and up.footers(runs[1]))
    assert end["outcome"] == "done"
    assert await up.end(again) == 0


def forms(text: str) -> dict[str, dict[str, str]]:
    """The hidden fields of each form of a page, by its action."""
    found = {}
    for one in text.split('<form method="post" action="')[1:]:
        fields = re.findall(
            r'<input type="hidden" name="(\w+)" value="([^"]*)">', one.partition("</form>")[0]
        )
        found[one.partition('"')[0]] = dict(fields)
    return found


@pytest.mark.anyio
@pytest.mark.devnet
@pytest.mark.jail
async def test_a_probe_is_tried_and_a_run_is_replayed_by_the_page_and_by_command(up: Up) -> None:
    up.drop("qa-looks", persona("qa-looks", FETCH, trigger=NEVER, times=2))
    with socket.create_server(("127.0.0.1", 0)) as line:
        port = line.getsockname()[1]
    process = up.start("--port", str(port))
    await up.until(lambda: listens(up))
    url = f"http://127.0.0.1:{port}"
    async with httpx.AsyncClient(base_url=url, headers={"origin": url}, timeout=20) as client:

        async def send(page: str, action: str, **more: str) -> str:
            form = forms((await client.get(page)).text)[action] | more
            first, again = [await client.post(action, data=form) for _ in range(2)]  # sent twice, made once
            assert (first.status_code, again.headers.get("location")) == (303, first.headers["location"])
            run = str(first.headers["location"]).removeprefix("/runs/")
            await up.until(lambda: (up.state / "runs" / run).exists() and up.footers(run))
            return run

        assert "/personas/qa-looks/start" not in (await client.get("/personas")).text
        await client.get("/unlock")
        await client.post("/unlock", data={"token": (up.state / "page.token").read_text()})
        first = await send("/personas", "/personas/qa-looks/start")
        tried = await send("/personas", "/personas/qa-looks/start", probe="look-1")
        again = await send(f"/runs/{first}", f"/runs/{first}/replay")
        page = ""
        with anyio.fail_after(30):
            while "to compare" not in page:  # the row ends after its footer
                page = (await client.get(f"/runs/{again}")).text
        assert f'Compared with run <a href="/runs/{first}">' in page
        assert "<b>0 different</b>, 0 not to compare" in page
        told = up.fleet("runs", "replay", first, "--json")
    assert told.returncode == 0, told.stderr
    data = json.loads(told.stdout)
    assert (data["replayed"], data["different"], data["unseen"]) == (first, 0, 0)
    rows = {row.run_id: row for row in await up.runs()}
    assert {first, tried, again, data["run"]} <= set(rows)
    assert [row.outcome for row in rows.values()] == ["done"] * 4
    assert (rows[tried].trigger, rows[again].trigger) == ("trial", f"replay:{first}")
    asked = [one["probe"] for one in map(json.loads, whole(up.state / "runs" / tried / "trajectory.jsonl"))
             if one["type"] == "tool.requested"]  # fmt: skip
    assert set(asked) == {"look-1"}
    assert await up.end(process) == 0
