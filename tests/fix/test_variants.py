"""Neighbours of a repro on a page: what is no fix of the defect is held, and what is one is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from fleet.findings.repro import ReproCall
from fleet.fix.gate import steps
from fleet.fix.gate.steps import GateBench, StepHeld
from fleet.fix.gate.variants import make_variants, others
from fleet.fix.model import FixTask, StepResult
from tests.doubles.fix import MemoryTree, MemoryTreeJails
from tests.fix import sample
from tests.fix.gate_world import judge_of, named, task_of

pytestmark = pytest.mark.anyio
Page = Callable[[str, dict[str, str]], tuple[int, str]]
"""A handler: path and parameters in, status and text out."""
ERROR = (500, "Internal Server Error")


def result(status: int, text: str) -> Mapping[str, Any]:
    good = status < 400
    shown = {"text": text, "content_type": "text/plain", "headers": {"content-type": "text/plain"}}
    why = {"error": "" if good else f"HTTP {status}", "error_class": "" if good else "http", "hint": ""}
    return {"ok": good, "status": status, "latency_ms": 1.0, "redirects": [], **shown, **why}


@dataclass
class PageJails(MemoryTreeJails):
    """A build whose pages are functions; `outside` is how the patched one behaves at other places."""

    base: Page = lambda path, args: (200, "")
    patched: Page = lambda path, args: (200, "")
    outside: Page | None = None

    def __post_init__(self) -> None:
        self.commands = []

    async def ask(
        self, tree: Path, task: FixTask, calls: Sequence[ReproCall], *, elsewhere: bool = False
    ) -> Sequence[Mapping[str, Any]]:
        page = self.base if tree.name == "base" else (elsewhere and self.outside) or self.patched
        found = []
        for call in calls:
            parts = urlsplit(str(call.args["url"]).replace("{site}", "http://s"))
            given = parse_qs(parts.query, keep_blank_values=True)
            found.append(result(*page(unquote(parts.path), {name: one[-1] for name, one in given.items()})))
        return found


async def varied(repro: str, oracle: str, jails: PageJails, tmp_path: Path) -> StepResult:
    """The step `variants` of this item."""
    defect = sample.SampleDefect("pages", "", "", "", "ux", oracle, repro)
    task = task_of(sample.Sample(tmp_path, (), {}), defect)
    base, patched = MemoryTree(tmp_path / "base"), MemoryTree(tmp_path / "patched")
    task = task_of(
        sample.Sample(tmp_path, (), {}),
        defect,
        name=named(defect, await jails.ask(base.path, task, task.calls)),
    )
    bench = GateBench(task, jails, judge_of(task))
    _, _, shown = await steps.reproduce(bench, base)
    bench.judge.own.update(shown.seen)
    return await steps.vary(bench, base, patched, make_variants(task, sample.PROFILE))


PER = 'qa_fetch(url="{site}/list?per=0")'


def pages_of(refuses: Callable[[str], bool]) -> Page:
    """A list in pages of `per`, which refuses some values and divides by the others."""

    def page(path: str, args: dict[str, str]) -> tuple[int, str]:
        per = args.get("per", "10")
        if path != "/list":
            return 200, "home"
        if refuses(per):
            return 400, "per is not a number of rows"
        try:
            return 200, f"{100 // int(float(per))} pages"
        except ZeroDivisionError:
            return ERROR
        except ValueError:
            return 400, "per is not a number"

    return page


def zero(per: str) -> bool:
    try:
        return int(float(per)) == 0
    except ValueError:
        return True


BROKEN = pages_of(lambda per: False)
CHEATS: dict[str, Callable[[str], bool]] = {
    "the text": lambda per: per == "0",
    "without blanks": lambda per: per.strip() == "0",
    "some spellings": lambda per: per in ("0", "00", "+0", "-0"),
    "a number that is written as it is": lambda per: per.isdigit() and int(per) == 0,
}


@pytest.mark.parametrize("cheat", CHEATS)
async def test_a_fix_of_one_value_is_held(tmp_path: Path, cheat: str) -> None:
    jails = PageJails(base=BROKEN, patched=pages_of(CHEATS[cheat]))
    with pytest.raises(StepHeld, match="neighbours of the repro are not clean"):
        await varied(PER, "server-error", jails, tmp_path)


async def test_a_fix_of_every_value_passes_and_says_how_many_were_shown(tmp_path: Path) -> None:
    step = await varied(PER, "server-error", PageJails(base=BROKEN, patched=pages_of(zero)), tmp_path)
    assert "other values of its input fail on the base" in step.words
    same = [row for row in step.evidence["neighbours"] if row["base"] == "shown" and not row["counts"]]
    assert len(same) == 5, "another parameter, header or place shows it, and counts for nothing"


async def test_where_no_other_value_shows_it_the_step_says_so(tmp_path: Path) -> None:
    """Only the very value breaks the base: a fix of that value cannot be told from a fix of the defect."""

    def one(path: str, args: dict[str, str]) -> tuple[int, str]:
        return ERROR if path == "/list" and args.get("per") == "0" else (200, "home")

    def refused(path: str, args: dict[str, str]) -> tuple[int, str]:
        return (400, "no") if path == "/list" and args.get("per") == "0" else (200, "home")

    step = await varied(PER, "server-error", PageJails(base=one, patched=refused), tmp_path)
    assert "not shown that it is more than a fix of one value: " in step.words


async def test_a_fix_that_knows_the_jail_is_held(tmp_path: Path) -> None:
    jails = PageJails(base=BROKEN, patched=pages_of(zero), outside=BROKEN)
    with pytest.raises(StepHeld, match="shows with the patch outside of the jail's layout"):
        await varied(PER, "server-error", jails, tmp_path)


LEAK = 'qa_fetch(url="{site}/recipes/none")'
KNOWN = {"/recipes/bread", "/", "/about"}


def recipes(unknown: tuple[int, str]) -> Page:
    return lambda path, args: (200, "bread") if path in KNOWN else unknown


LEAKING = recipes((404, "[Errno 2] No such file or directory: '/box/data/none.json'"))
HALVES = {
    "other words": (404, "no recipe at /box/data/none.json"),
    "a page": (200, "looked in /box/data/none.json"),
    "only the words": (404, "[Errno 2] No such file or directory"),
}


@pytest.mark.parametrize("half", HALVES)
async def test_a_leak_in_other_words_is_the_same_leak(tmp_path: Path, half: str) -> None:
    jails = PageJails(base=LEAKING, patched=recipes(HALVES[half]))
    with pytest.raises(StepHeld, match="the repro still shows"):
        await varied(LEAK, "trace", jails, tmp_path)


NOT_THERE = recipes((404, "there is no such recipe"))


@pytest.mark.parametrize(
    ("repro", "base"),
    [
        (LEAK, LEAKING),
        ('qa_fetch(url="{site}/recipes?name=none")', LEAKING),
        (LEAK, recipes((200, "[Errno 2] No such file or directory: '/box/data/none.json'"))),
    ],
    ids=["a segment", "a parameter", "answered 200 before"],
)
async def test_a_right_404_is_no_breakage(tmp_path: Path, repro: str, base: Page) -> None:
    """Another unknown thing in the place of the repro's is not a benign control."""
    step = await varied(repro, "trace", PageJails(base=base, patched=NOT_THERE), tmp_path)
    assert step.passed


async def test_a_page_that_breaks_is_still_breakage(tmp_path: Path) -> None:
    """The control: the start page, which has nothing to do with the repro, is gone."""
    with pytest.raises(StepHeld, match="a benign control does not work any more"):
        await varied(LEAK, "trace", PageJails(base=LEAKING, patched=lambda path, args: (404, "no")), tmp_path)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("0", {"00", "+0", "-0", "0.0", " 0", "0 ", "0x0", "0b0", "0e0", "\uff10"}),
        ("-7", {"-07", "7", "-7.0", " -7", "-0x7"}),
        ("2.5", {"2.50", "02.5", "+2.5", " 2.5"}),
        ("None", {"NONE", "none", " None", "NoneNone"}),
        ("", {" ", "\t"}),
        (0, {"0", 1, -1}),
        (True, {False, "null"}),
    ],
)
def test_other_values_beside_one(value: Any, wanted: set[Any]) -> None:
    found = others(value, Random(1))
    assert wanted <= set(found), found
    assert repr(value) not in map(repr, found)
    assert len(found) <= 12
