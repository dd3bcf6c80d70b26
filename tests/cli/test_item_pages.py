"""The pages of a list's items: evidence and pictures of the runs that saw them, and what may not be read."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from fleet.app import item_pages
from fleet.app.item_pages import pages_of
from fleet.cli.items import items
from fleet.findings.evidence import Bundle, EvidenceStep, save, seal
from fleet.findings.redact import Redactor
from fleet.findings.repro import ReproCall, write_repro
from fleet.store.journal import Journal
from fleet.store.rows import FindingRow, NewRun
from fleet.triage.outputs.files import save as save_list
from tests.cli.test_worklist_command import AT, HEADER, own

PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
SHOT = hashlib.sha256(PNG).hexdigest()
REPRO = write_repro([ReproCall("qa_browse", {"url": "{site}/a"})])
ITEM = own(1, "Script injection: GET /a runs as script", fingerprint="ab" * 6, repro=REPRO)


def sealed(state: Path, **result: Any) -> str:
    """The evidence of one look in a browser, in its run's folder; its hash."""
    step = EvidenceStep(tool="qa_browse", args={"url": "http://site.test/a"}, result={"status": 200} | result)
    bundle = Bundle(
        fingerprint=ITEM.fingerprint,
        run="run0",
        persona="qa-x",
        persona_sha256="0" * 64,
        probe="p",
        expectation="oracle x",
        surface="ux",
        severity="low",
        title=ITEM.title,
        repro=REPRO,
        steps=(step,),
        confirmed=3,
        tries=3,
        platform="devnet",
        chain_id=1,
        load="load 1.0 on 2 cores",
    )
    made = seal(bundle, Redactor())
    save(state / "runs/run0/evidence", made)
    return made.sha256


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "state"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("STATE_DIRECTORY", str(path))
    (path / "runs/run0/plots").mkdir(parents=True)
    (path / "runs/run0/evidence").mkdir()
    (path / f"runs/run0/evidence/{SHOT}.png").write_bytes(PNG)
    (path / f"runs/run0/plots/{ITEM.fingerprint}.svg").write_bytes(b"<svg/>")
    save_list(path, [ITEM], HEADER)
    return path


async def kept(state: Path, evidence: str) -> None:
    async with await Journal.open(state / "fleet.db") as journal:
        run = NewRun(
            run_id="run0", persona="qa-x", key="k", platform="devnet", trigger="t", rung="observe", budget={}
        )
        await journal.trigger(run)
        row = FindingRow(
            run_id="run0",
            fingerprint=ITEM.fingerprint,
            title=ITEM.title,
            evidence=evidence,
            confirmed=3,
            tries=3,
            data={"fields": ["canary_ran"], "oracle": "", "seen": "GET /a runs as script"},
            at=AT,
        )
        await journal.add_finding(row)


def page(state: Path) -> Any:
    return anyio.run(pages_of, state, [ITEM])[ITEM.fingerprint]


def test_a_page_has_the_evidence_and_the_pictures_of_its_run(state: Path) -> None:
    anyio.run(kept, state, sealed(state, canary_ran=True, sha256=SHOT))
    made = page(state)
    assert [(one.name, one.observed) for one in made.fields] == [("canary ran", "yes")]
    assert [(one.type, base64.b64decode(one.data)) for one in made.pictures] == [
        ("image/png", PNG),
        ("image/svg+xml", b"<svg/>"),
    ]
    assert "The machine then: load 1.0 on 2 cores." in made.proof
    shown = CliRunner().invoke(items.app, ["--offline", "--html"]).stdout
    assert f'<img src="data:image/png;base64,{base64.b64encode(PNG).decode()}"' in shown
    sarif = json.loads(CliRunner().invoke(items.app, ["--offline", "--sarif"]).stdout)
    assert sarif["runs"][0]["results"][0]["properties"]["page"]["observed"] == "GET /a runs as script"


@pytest.mark.parametrize("name", ["../../fleet", "x" * 64, "", SHOT.upper()])
def test_a_name_in_the_evidence_opens_no_other_file(state: Path, name: str) -> None:
    anyio.run(kept, state, sealed(state, sha256=name))
    assert [one.type for one in page(state).pictures] == ["image/svg+xml"]


def test_evidence_that_was_changed_is_not_shown(state: Path) -> None:
    digest = sealed(state, canary_ran=True)
    (state / f"runs/run0/evidence/{digest}.json").write_bytes(b"{}")
    anyio.run(kept, state, digest)
    assert (page(state).fields, page(state).where) == ((), ("GET {site}/a",))


def test_pictures_are_bounded_in_number_and_in_size(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    anyio.run(kept, state, sealed(state, canary_ran=True, sha256=SHOT))
    monkeypatch.setattr(item_pages, "ALL_PICTURES", 10)
    assert (page(state).pictures, page(state).fields != ()) == ((), True)
    monkeypatch.setattr(item_pages, "MOST", 0)
    assert page(state).fields == ()


def test_a_strangers_item_has_no_evidence_of_ours(state: Path) -> None:
    anyio.run(kept, state, sealed(state, canary_ran=True, sha256=SHOT))
    theirs = replace(ITEM, trusted=False, repro="")
    made = anyio.run(pages_of, state, [theirs])[ITEM.fingerprint]
    assert (made.kind, made.fields, made.script, made.pictures) == ("", (), "", ())
