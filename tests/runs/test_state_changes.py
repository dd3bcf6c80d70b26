"""What a GET request changes is changed once: no crawling, attack or measurement asks for it again."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleet.drivers.desk import RUN_PROBE, Question
from fleet.personas.model import Step
from tests.runs.table import look, persona, seated, well
from tests.runs.test_desk import ANY

pytestmark = pytest.mark.anyio
LONG = "moss and fern and peat " * 40
CHANGING = ("/reset", "/go", "/flip", "/away", "/novel")


class Site:
    """Pages with a state: `/go` says what it does, `/flip`, `/away` and `/novel` only do it, `/reset` has its
    name."""

    def __init__(self) -> None:
        self.asked, self.level = Counter[str](), "low"

    async def __call__(self, tool: str, args: dict[str, Any]) -> dict[str, Any]:
        path = str(args["url"]).removeprefix("http://site").partition("?")[0]
        self.asked[path] += int(args.get("repeat", 1))
        said: dict[str, Any] = {"text": LONG, "p50_ms": 4.0, "p95_ms": 5.0, "max_ms": 6.0}
        if path in CHANGING:
            self.level = "high" if self.level == "low" else "low"
            said["text"] = {"/go": "Database has been created.", "/novel": LONG}.get(path, "ok")
            said |= {"status": 302, "text": "", "location": "/"} if path == "/away" else {}
        return (
            await well(tool, args)
            | ({"text": f"level {self.level}"} if path == "/" else {})
            | said_of(path, said)
        )


def said_of(path: str, said: dict[str, Any]) -> dict[str, Any]:
    return {name: text for name, text in said.items() if not (path == "/" and name == "text")}


def fetch(path: str, **more: Any) -> Question:
    return Question((Step(tool="qa_fetch", args={"url": "{site}" + path, **more}),))


def attacks(path: str) -> list[Question]:
    """As explorers ask a page that they know: parameters, origins, an attack beside its control."""
    steps = tuple(one.steps[0] for one in (fetch(f"{path}?q=moss"), fetch(f"{path}?q=%27")))
    return [fetch(f"{path}?q=1&id=2"), fetch(path, origin="https://x.test"), Question(steps), fetch(path)]


@pytest.mark.parametrize("path", CHANGING)
async def test_a_path_that_changes_the_state_is_crawled_once_and_not_attacked(
    tmp_path: Path, path: str
) -> None:
    site = Site()
    async with seated(tmp_path, persona(), hand=ANY, answer=site) as table:
        for questions in (
            [fetch("/")],
            [fetch("/moss"), fetch(path)],
            attacks(path),
            [fetch(path, repeat=20)],
        ):
            async with table.desk.turn() as turn:
                await turn.pose(questions)
    assert site.asked[path] == 1
    assert site.asked["/moss"] == 1


@pytest.mark.parametrize("path", CHANGING)
async def test_a_path_that_changes_the_state_is_not_measured(tmp_path: Path, path: str) -> None:
    site = Site()
    async with seated(tmp_path, persona(), hand=ANY, answer=site) as table:
        pages = [fetch(one, repeat=20) for one in ("/moss", path, "/fern")]
        for questions in (pages, [fetch(path, control="{site}/moss", rate=10.0, repeat=50)]):
            async with table.desk.turn() as turn:
                found = await turn.pose(questions)
        assert [len(one or ()) for one in found] == [0]
    assert site.asked[path] <= 1
    assert (site.asked["/moss"], site.asked["/fern"]) == (21, 21)


@pytest.mark.parametrize("path", ["/reset", "/go", "/flip", "/away"])
async def test_of_two_probes_one_asks_and_an_explorer_no_more(tmp_path: Path, path: str) -> None:
    site, url = Site(), "{site}" + path
    probes = [look("twice", url=url), look("again", url=url)]
    async with seated(tmp_path, persona(*probes), hand=ANY, answer=site) as table:
        async with table.desk.turn() as turn:
            await turn.pose([fetch("/"), fetch(path), fetch("/")])
        for probe in probes:
            async with table.desk.turn() as turn:
                await turn.ask(probe.id, RUN_PROBE, {"probe": probe.id})
    assert site.asked[path] == 1


async def test_a_later_run_knows_it(tmp_path: Path) -> None:
    site = Site()
    for at in range(2):
        root = tmp_path / str(at)
        root.mkdir()
        if at:
            notes = root / "state" / "explore"
            notes.parent.mkdir(mode=0o700)
            (tmp_path / "0" / "state" / "explore").rename(notes)
        async with seated(root, persona(), hand=ANY, answer=site) as table:
            async with table.desk.turn() as turn:
                await turn.pose([fetch("/flip", repeat=20)])
            (denied,) = table.said("gate.denied")
            assert (denied.rule, "not measured" in denied.reason) == ("changes-state", True)
    assert site.asked["/flip"] == 1
