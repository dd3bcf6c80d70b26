"""The explorer of programs: rounds, then suspects; it stops when nothing is new, and a run knows of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fleet.app.persona_sets import load
from fleet.config import Platform
from fleet.config.compiler import CompilerSection
from fleet.drivers.explore.driver import explorer
from fleet.drivers.explore.notebook import Notebook
from fleet.drivers.explore.port import ExplorerContext
from fleet.drivers.explore.program import explorer as program
from fleet.drivers.explore.program.explorer import DRY, ROUNDS, TOOLS, Programs, planned
from fleet.drivers.explore.table import chosen
from fleet.events.model import CheckFailed
from fleet.files import ROOT
from fleet.fuzzing.inputs import SearchStart
from fleet.fuzzing.suspects import LATER
from fleet.runs.fuzz_start import read_start
from fleet.runs.proof.minimise import FEW
from tests.doubles.drivers import MemoryDesk
from tests.fuzzing.campaign_samples import answered, defect
from tests.runs.table import PLATFORM as PAPER
from tests.runs.table import RUN, persona, seated

pytestmark = pytest.mark.anyio
COMPILER = CompilerSection(command=("/bin/cc",), loader=("/bin/ld",), sample="fn f() {}")
PLATFORM = Platform.model_validate(
    {
        "name": "p",
        "chain": {"rpc": "http://127.0.0.1:1", "id": 1, "diamond": "0x" + "11" * 20},
        "compiler": COMPILER.model_dump(),
    }
)
GROUND = ExplorerContext(platform=PLATFORM, tools=frozenset(TOOLS), acts=False)
PANIC = {"ok": False, "outcome": "panic", "exit_code": 101, "error": "index out of bounds at a.rs:7:1"}


class Scripted:
    """Answers rounds from a list, then with nothing new; every single call panics."""

    def __init__(self, *rounds: dict[str, Any]) -> None:
        self.rounds, self.asked = list(rounds), list[tuple[str, Mapping[str, Any]]]()

    def __call__(self, tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        self.asked.append((tool, args))
        if tool == "qa_compile":
            return PANIC
        return self.rounds.pop(0) if self.rounds else answered()

    @property
    def parts(self) -> list[str]:
        return [str(args["part"]) for tool, args in self.asked if tool == "qa_fuzz"]


def test_it_is_in_the_table_and_needs_its_tools() -> None:
    assert list(chosen(["programs"], frozenset(TOOLS))) == ["programs"]
    assert not chosen(["programs"], frozenset({"qa_compile"}))


@pytest.mark.parametrize(
    ("seconds", "parts", "expected"),
    [(0, 2, (10, 20.0)), (360, 2, (10, 20.0)), (60, 2, (4, 11.2)), (6, 2, (1, 4.0)), (2, 1, (0, 4.0))],
)
def test_a_short_run_has_fewer_and_shorter_rounds(
    seconds: float, parts: int, expected: tuple[int, float]
) -> None:
    assert planned(seconds, parts) == expected


async def test_rounds_alternate_and_suspects_are_looked_at_before_the_next(tmp_path: Path) -> None:
    scripted = Scripted(answered(defect(source="enum E{}"), corpus=("a",)), answered(defect("crash", "00")))
    desk = MemoryDesk(answers=scripted)
    await explorer({"programs": Programs}, GROUND, Notebook(tmp_path), "s")(desk)
    shown = [(tool, dict(args)) for tool, args in scripted.asked if tool == "qa_compile"]
    assert shown == [("qa_compile", {"source": "enum E{}"}), ("qa_compile", {"module_hex": "00"})]
    assert [tool for tool, _ in scripted.asked][:4] == ["qa_fuzz", "qa_compile", "qa_fuzz", "qa_compile"]
    assert scripted.parts == ["compiler", "loader"] * ((DRY * 2 + 1) // 2) + ["compiler"]
    state = Notebook(tmp_path).read("programs")
    known = {(one["signature"], one["shown"]) for one in state["suspects"]}
    assert known == {("panic a.rs:1", 1), ("crash", 1)}


async def test_a_later_run_goes_on_with_the_corpus_and_what_is_known(tmp_path: Path) -> None:
    for number in (1, 2):
        scripted = Scripted(answered(defect(), corpus=("fn a() {}",)))
        await explorer({"programs": Programs}, GROUND, Notebook(tmp_path), "s")(MemoryDesk(answers=scripted))
        first = scripted.asked[0][1]
        assert first["known"] == ([] if number == 1 else ["panic a.rs:1"])
        assert first["corpus"] == ([] if number == 1 else ["fn a() {}"])


async def test_a_part_that_cannot_be_searched_is_not_asked_again(tmp_path: Path) -> None:
    broken = {"ok": False, "error": "cannot start", "error_class": "cannot_start"}
    scripted = Scripted(broken)
    await explorer({"programs": Programs}, GROUND, Notebook(tmp_path), "s")(MemoryDesk(answers=scripted))
    assert scripted.parts == ["compiler"] + ["loader"] * DRY


BUSY = {"ok": False, "outcome": "unknown", "error_class": "busy", "error": "could not tell"}
HANG = {"ok": False, "outcome": "hang", "cpu_ms": 5000.0, "control_cpu_ms": 90.0}


async def looked(
    folder: Path, busy: int, answer: Mapping[str, Any], *, rounds: int = 4
) -> tuple[list[str], Mapping[str, Any]]:
    """The calls of a run whose first looks say nothing, and what it keeps of its suspect."""
    left = busy

    def answers(tool: str, args: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal left
        if tool == "qa_fuzz":
            return scripted(tool, args)
        scripted.asked.append((tool, args))
        left -= 1
        return BUSY if left >= 0 else answer

    more = (answered(corpus=(f"a{n}",), behaviours=1) for n in range(rounds))
    scripted = Scripted(answered(defect()), *more)
    await explorer({"programs": Programs}, GROUND, Notebook(folder), "s")(MemoryDesk(answers=answers))
    (suspect,) = Notebook(folder).read("programs")["suspects"]
    return [tool for tool, _ in scripted.asked], suspect


@pytest.mark.parametrize("busy", [1, 2, LATER])
@pytest.mark.parametrize("answer", [PANIC, HANG])
async def test_a_suspect_that_could_not_be_told_is_asked_again_after_the_next_round(
    tmp_path: Path, busy: int, answer: Mapping[str, Any]
) -> None:
    asked, suspect = await looked(tmp_path, busy, answer)
    assert asked[: 2 * busy + 3] == ["qa_fuzz", "qa_compile"] * (busy + 1) + ["qa_fuzz"]
    assert (asked.count("qa_compile"), suspect["looks"], suspect["shown"]) == (busy + 1, 1, 1)


async def test_what_the_last_round_claims_is_asked_again_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "ROUNDS", 1)
    asked, suspect = await looked(tmp_path, LATER, HANG)
    assert (asked, suspect["shown"]) == (["qa_fuzz", *["qa_compile"] * (LATER + 1)], 1)


async def test_calls_that_could_not_look_leave_a_suspect_for_a_later_run(tmp_path: Path) -> None:
    asked, suspect = await looked(tmp_path, 1_000, HANG)
    assert (asked.count("qa_compile"), suspect["looks"], suspect["shown"]) == (1 + LATER, 0, 0)
    asked, suspect = await looked(tmp_path, 0, HANG)
    assert (asked[0], suspect["looks"], suspect["shown"]) == ("qa_compile", 1, 1)


async def test_it_starts_from_the_profile_s_corpus_and_grammar(tmp_path: Path) -> None:
    """The first round runs the guest's own programs; a later one is sent what it can execute."""
    start = SearchStart(("fn own() {}",), "a table")
    scripted = Scripted(*(answered(corpus=(f"fn f{n}() {{}}", f"{n:02x}")) for n in range(4)))
    desk = MemoryDesk(answers=scripted)
    await explorer({"programs": Programs}, replace(GROUND, start=start), Notebook(tmp_path), "s")(desk)
    rounds = [args for tool, args in scripted.asked if tool == "qa_fuzz" and args["part"] == "compiler"]
    assert {args["grammar"] for args in rounds} == {"a table"}
    assert "fn own() {}" in rounds[1]["corpus"]


@pytest.mark.parametrize("broken", [False, True])
async def test_a_run_reads_them_and_searches_without_what_cannot_be_read(
    tmp_path: Path, broken: bool
) -> None:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a").write_text("fn own() {}")
    (tmp_path / "sums.lark").write_text("start: (" if broken else 'start: "a"')
    section = COMPILER.model_copy(update={"loader": (), "corpus": "corpus", "grammar": "sums.lark"})
    scripted = Scripted(answered(corpus=("fn f() {}",)))

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        return dict(scripted(tool, args))

    one = persona(tools=TOOLS)
    one = replace(one, persona=one.persona.model_copy(update={"explore": ("programs",)}))
    platform = PAPER.model_copy(update={"compiler": section})
    async with seated(tmp_path, one, answer=answer, platform=platform) as table:
        start = partial(read_start, section, tmp_path / "paper.toml")
        table.drive.world = replace(table.world, search_start=start)
        await table.drive()
        failed = [one.reason for one in table.events if isinstance(one, CheckFailed)]
    first, second = [args for tool, args in scripted.asked if tool == "qa_fuzz"][:2]
    assert bool(first["grammar"]) is not broken
    assert ("fn own() {}" in second["corpus"]) is not broken
    assert [reason for reason in failed if "grammar" in reason] == (failed if broken else [])
    assert bool(failed) is broken


async def test_without_a_compiler_it_asks_nothing() -> None:
    bare = PLATFORM.model_copy(update={"compiler": CompilerSection()})
    one = Programs(ExplorerContext(platform=bare, tools=frozenset(TOOLS), acts=False), Random(1), {})
    assert one.ask(100) == ()


@pytest.mark.parametrize(("rounds", "discovered"), [(ROUNDS, 1), (1, 0)])
async def test_a_run_with_new_behaviour_is_recorded_and_its_suspects_are_proven(
    tmp_path: Path, rounds: int, discovered: int
) -> None:
    news = [answered(corpus=(f"fn f{n}() {{}}", f"{n:02x}")) for n in range(rounds)]
    news[0]["defects"] = [defect(source="enum E{} // " + "x" * 60)]
    scripted = Scripted(*news)

    async def answer(tool: str, args: dict[str, Any]) -> dict[str, Any]:
        short = tool == "qa_compile" and "enum E{} // " not in args.get("source", "")
        return {"ok": True, "outcome": "accepted", "valid": True} if short else dict(scripted(tool, args))

    one = persona(tools=TOOLS)
    one = replace(one, persona=one.persona.model_copy(update={"explore": ("programs",)}))
    platform = PAPER.model_copy(update={"compiler": COMPILER.model_copy(update={"loader": ()})})
    async with seated(tmp_path, one, answer=answer, platform=platform) as table:
        await table.drive()
        assert (await table.world.journal.run(RUN)).discovered == discovered
        (row,) = await table.world.journal.findings(RUN)
        assert (row.state, row.confirmed, row.tries) == ("confirmed", 3, 3)
        calls = [tool for tool, _ in table.jail.calls]
    assert calls.count("qa_compile") <= 1 + FEW + 3


def test_the_persona_has_the_time_and_the_calls_for_it() -> None:
    one = load(ROOT / "personas" / "qa-fuzz.md").persona
    assert one.explore == ("programs",)
    assert one.budget is not None
    assert (one.budget.wall, one.budget.calls >= 300) == ("10m", True)
    assert planned(600 * 0.6 - 60, 2)[0] >= 8
