"""A backup beside a journal on a real PostgreSQL: its own tools copy it, by the lines that are printed."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from typer.testing import CliRunner, Result

from fleet.cli.operate.backup import app as backup_app
from fleet.cli.operate.restore import app as restore_app
from fleet.errors import FleetError, Refused
from fleet.store.journal import Journal
from fleet.store.location import without_password
from tests.store.cluster import Cluster, running

pytestmark = pytest.mark.skipif(
    shutil.which("pg_dump") is None, reason="pg_dump is not installed (Debian: apt install postgresql-client)"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


def configure(folder: Path, url: str) -> None:
    (folder / "config").mkdir(exist_ok=True)
    (folder / "config" / "fleet.toml").write_text(f'[store]\nurl = "{url}"\n' if url else "")


def ask(app: object, *words: str) -> Result:
    return CliRunner().invoke(app, list(words))  # type: ignore[arg-type]


def remember(url: str, fact: str = "") -> str:
    """Write a fact into the journal of this place, or read it."""

    async def work() -> str:
        async with await Journal.open(url) as journal:
            if fact:
                await journal.put("platform.fact", fact)
            return await journal.get("platform.fact") or ""

    return anyio.run(work)


def test_state_and_journal_are_lost_and_come_back(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        cluster.do(f"CREATE DATABASE {name}")
    old, new = cluster.url("one"), cluster.url("two")
    state, file = tmp_path / "state", tmp_path / "b.tar"
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path / "config"))
    state.mkdir(mode=0o700)
    (state / "worklist.md").write_text("the list")
    configure(tmp_path, old)
    remember(old, "known")

    made = ask(backup_app, str(file))
    assert made.exit_code == 0, made.output
    head, dump = made.stderr.splitlines()
    assert head.endswith("and not in it: dump it before each backup")
    subprocess.run(shlex.split(dump), check=True)

    shutil.rmtree(state)
    cluster.do("DROP DATABASE one")
    configure(tmp_path, new)
    state.mkdir(mode=0o700)
    for words in ((str(file), "--check"), (str(file),)):
        refused = ask(restore_app, *words).exception
        assert isinstance(refused, Refused)
        assert "has no journal yet" in str(refused)
        line = refused.remedy.removeprefix("first: ")
    assert [one.name for one in state.iterdir()] == ["fleet.lock"]

    subprocess.run(shlex.split(line), check=True)
    assert ask(restore_app, str(file), "--check").exit_code == 0
    done = ask(restore_app, str(file))
    assert done.exit_code == 0, done.output
    assert "that it is as old as the backup is not checked" in done.stdout
    assert (state / "worklist.md").read_text() == "the list"
    assert remember(new) == "known"


@pytest.mark.parametrize("inside", [True, False], ids=["file to server", "server to file"])
def test_a_backup_is_not_restored_beside_another_kind_of_journal(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: bool
) -> None:
    state, file, server = tmp_path / "state", tmp_path / "b.tar", cluster.place()
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path / "config"))
    state.mkdir(mode=0o700)
    configure(tmp_path, "" if inside else server)
    assert ask(backup_app, str(file)).exit_code == 0
    configure(tmp_path, server if inside else "")
    refused = ask(restore_app, str(file), "--force").exception
    assert isinstance(refused, Refused)
    assert "[store]" in refused.remedy


def test_a_server_that_is_away_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state, file = tmp_path / "state", tmp_path / "b.tar"
    monkeypatch.setenv("STATE_DIRECTORY", str(state))
    monkeypatch.setenv("CONFIGURATION_DIRECTORY", str(tmp_path / "config"))
    state.mkdir(mode=0o700)
    url = f"postgresql://qa@/x?host={tmp_path}"
    configure(tmp_path, url)
    assert ask(backup_app, str(file), "--all-runs").exit_code == 0
    away = ask(restore_app, str(file)).exception
    assert isinstance(away, FleetError)
    assert away.remedy


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://u:secret@h:5/d?sslmode=require", "postgresql://u@h:5/d?sslmode=require"),
        ("postgres://h/d?password=secret&host=/run", "postgresql://h/d?host=/run"),
        ("postgresql://h/d?sslkey=/k&sslpassword=secret", "postgresql://h/d?sslkey=/k"),
        ("postgresql://h/d?pass%77ord=secret&host=/run", "postgresql://h/d?host=/run"),
        ("postgresql:///d", "postgresql:///d"),
    ],
)
def test_no_password_is_in_a_printed_line(url: str, said: str) -> None:
    assert without_password(url) == said
