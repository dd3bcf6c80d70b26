"""What the commands say on one of several hosts that share a journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun
from fleet.store.sql.migrations import SCHEMA_VERSION
from tests.e2e.conftest import Fleet, command
from tests.store.cluster import Cluster, running


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running() as cluster:
        yield cluster


@pytest.fixture
def place(cluster: Cluster, state: Path) -> str:
    """A journal that is named in a private file, with a password that is nobody's business."""
    place = cluster.place()
    (state / "url").write_text(place.replace("qa@", "qa:hunter2@"))
    (state / "url").chmod(0o600)
    (state / "fleet.toml").write_text('[store]\nurl_file = "url"\n')
    return place


@pytest.fixture
def host(state: Path) -> Fleet:
    """The command line where the state directory holds the configuration, too."""
    return command(state, CONFIGURATION_DIRECTORY=str(state))


async def _found_elsewhere(place: str) -> None:
    async with await Journal.open(place) as journal:
        await journal.trigger(
            NewRun(run_id="r1", persona="p", key="r1", platform="d", trigger="t", rung="observe", budget={})
        )
        await journal.claim("r1", pid=1, pid_start=1, daemon="other-host-1f")
        await journal.add_finding(
            FindingRow(
                run_id="r1", fingerprint="0123456789ab", state="posted", title="a title", evidence="ab" * 32
            )
        )


def test_doctor_shows_the_store_and_not_its_password(host: Fleet, place: str, cluster: Cluster) -> None:
    said = host("check", "machine", "--json")
    (store,) = [row for row in said.data["checks"] if row["check"] == "store"]
    assert store["ok"]
    assert store["seen"] == f"PostgreSQL, postgresql://{cluster.folder}/postgres: schema {SCHEMA_VERSION}"
    assert "hunter2" not in said.out + said.err
    cluster.stop()
    try:
        said = host("check", "machine", "--json")
    finally:
        cluster.start()
    (store,) = [row for row in said.data["checks"] if row["check"] == "store"]
    assert not store["ok"]
    assert "the database does not answer" in store["seen"]
    assert "hunter2" not in said.out + said.err


def test_doctor_shows_a_journal_that_is_a_file(fleet: Fleet, state: Path) -> None:
    (store,) = [row for row in fleet("check", "machine", "--json").data["checks"] if row["check"] == "store"]
    assert store["seen"] == f"SQLite, {state}/fleet.db: not created yet"
    assert not (state / "fleet.db").exists()


def test_a_finding_of_another_host_is_shown_without_its_evidence(
    host: Fleet, place: str, state: Path
) -> None:
    anyio.run(_found_elsewhere, place)
    said = host("items", "show", "0123")
    assert said.code == 0, said.err
    assert "a title" in said.out
    shown = " ".join(said.out.split())
    assert f"Evidence sha256:{'ab' * 32} is on the host of the daemon other-host-1f" in shown
    data = host("items", "show", "0123", "--json").data
    assert (data["evidence_bundle"], data["evidence_on"]) == (None, "other-host-1f")
    (state / "runs" / "r1").mkdir(parents=True)  # here it should be
    said = host("items", "show", "0123")
    assert said.code != 0
    assert "evidence" in said.err
