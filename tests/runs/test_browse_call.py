"""A call of the browser, as a run makes it: its own limits, its picture beside the evidence, its needs."""

from __future__ import annotations

import base64
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fleet.jail import locate
from fleet.personas.load import LoadedPersona
from fleet.runs.call import session as session_module
from fleet.runs.call.guest_protocol import MAX_FILE_BYTES, attached
from fleet.runs.call.targets import Capabilities
from sandbox.tools import TOOLS
from tests.runs.table import PaperJail, look, persona, seated

pytestmark = pytest.mark.anyio

SPEC = TOOLS["qa_browse"]
PNG = b"\x89PNG\r\n\x1a\n" + b"picture"
BROWSED = {"ok": True, "status": 200, "content_type": "text/html", "final_url": "http://site/"}


def shot(data: bytes, **more: Any) -> dict[str, Any]:
    text = base64.b64encode(data).decode()
    return {"ok": True, "screenshot": text, "sha256": hashlib.sha256(data).hexdigest()} | more


def test_a_picture_is_kept_by_its_hash_and_taken_out_of_the_answer(tmp_path: Path) -> None:
    result = shot(PNG)
    assert attached(SPEC, result, tmp_path / "evidence") == result | {"screenshot": ""}
    assert (tmp_path / "evidence" / f"{result['sha256']}.png").read_bytes() == PNG
    assert attached(SPEC, result, tmp_path / "evidence")["screenshot"] == ""  # again: nothing changes


@pytest.mark.parametrize(
    "result",
    [
        shot(b"<html>"),
        shot(PNG + b"x" * MAX_FILE_BYTES),
        shot(PNG, sha256="../../" + "0" * 58),
        shot(PNG, screenshot="not base64!"),
        shot(PNG, screenshot=""),
        {"ok": False},
    ],
)
def test_what_is_not_a_bounded_picture_under_its_hash_is_not_kept(tmp_path: Path, result: Any) -> None:
    assert attached(SPEC, result, tmp_path / "evidence").get("screenshot", "") == ""
    assert not list(tmp_path.rglob("*.png"))


def test_a_disk_without_room_costs_the_picture_only(tmp_path: Path) -> None:
    (tmp_path / "evidence").write_text("in the way")
    assert attached(SPEC, shot(PNG), tmp_path / "evidence")["ok"] is True


async def test_a_run_keeps_the_picture_and_its_records_do_not(tmp_path: Path) -> None:
    limits: list[str] = []

    class Noting(PaperJail):
        async def call(self, request: bytes, *, resources: str = "", **more: Any) -> Any:
            limits.append(resources)
            return await super().call(request, resources=resources, **more)

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return BROWSED | shot(PNG)

    async with seated(tmp_path, persona(tools=("qa_browse",)), real=Noting(answer)) as table:
        session = table.drive.runner.session
        told = await session.call("qa_browse", {"url": "http://site/"})
        [picture] = (table.folder / "evidence").iterdir()
        [record] = table.said("tool.responded")
    assert told.result["screenshot"] == ""
    assert picture.read_bytes() == PNG
    assert record.result["sha256"] == picture.stem
    assert record.result["screenshot"] == "[redacted:not-public]"
    assert limits == ["browser"]


def exploring() -> LoadedPersona:
    one = persona(look("home"), tools=("qa_fetch", "qa_browse"))
    return LoadedPersona(
        persona=one.persona.model_copy(update={"explore": ("pages",)}),
        body=one.body,
        sha256=one.sha256,
        path=one.path,
    )


@pytest.mark.parametrize("there", [True, False])
async def test_pages_are_explored_only_where_a_browser_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return BROWSED if tool == "qa_browse" else {"ok": True, "status": 200}

    program = "/usr/bin/browser" if there else ""
    monkeypatch.setattr(session_module, "Capabilities", partial(Capabilities, browser=program))
    async with seated(tmp_path, exploring(), answer=answer) as table:
        await table.drive()
        skipped = [(event.probe, event.reason) for event in table.said("probe.skipped")]
        browsed = [args["url"] for tool, args in table.jail.calls if tool == "qa_browse"]
    reason = f"no browser is installed here: {locate.BROWSER}"
    assert skipped == ([] if there else [("qa_browse", reason)])
    assert browsed[:2] == (["http://site/", "http://claude.face/"] if there else [])
