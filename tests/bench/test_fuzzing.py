"""Compilers with generated defects: a seed always gives the same; each shows in its witness, alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from random import Random

import pytest

from bench.fuzzing.build import COMPILER, PATCHES, built
from bench.fuzzing.campaign import CampaignOutcome, ReportedDefect, repro_inputs
from bench.fuzzing.faults import (
    FaultPlace,
    PlantedFault,
    candidates,
    classes,
    drawn,
    filled,
    repeated,
    single_places,
)
from bench.fuzzing.generate import generated
from bench.fuzzing.reference import KINDS, ReferenceStand, reachable
from bench.fuzzing.report import markdown, recall
from bench.fuzzing.score import scored
from fleet.findings.repro import ReproCall, write_repro
from tests.devnet.corpus import CASES

EACH = 2
SAMPLE = b"fn frame(t: i32) -> i32 { t + 1 }"


def at_place(number: int, place: FaultPlace) -> PlantedFault:
    """A panic at this place, whatever it is."""
    stage = place.sees if place.sees in ("error", "module") else "typed"
    do = "raise SystemExit(101)" if stage == "module" else "raise KeyError(1)"
    return PlantedFault(f"f{number}", "panic", stage, "fold_slot", do, place)


PLACES = [at_place(i, filled(row, Random(i))) for i, row in enumerate(single_places())]
DRAWN = [
    *(one for klass in classes() for one in islice((c for c in candidates(5) if c.klass == klass), EACH)),
    *(one for klass in ("panic",) for one in islice((c for c in candidates(6) if c.klass == klass), 12)),
]


@pytest.fixture(scope="module")
def everywhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReferenceStand]:
    """A copy with a panic at every single place."""
    with ReferenceStand(built(tmp_path_factory.mktemp("places"), PLACES)) as stand:
        yield stand


def test_a_seed_always_gives_the_same_defects_and_another_seed_others() -> None:
    assert drawn(1, 12) == drawn(1, 12)
    assert len({str(drawn(seed, 12)) for seed in range(20)}) == 20


def test_as_many_defects_as_classes_are_one_of_each() -> None:
    assert all({one.klass for one in drawn(seed, 12)} == set(classes()) for seed in range(10))
    assert set(classes()) == set(KINDS)


def test_places_vary() -> None:
    seen = {one.place.id for seed in range(60) for one in drawn(seed, 12)}
    assert len(seen) > 400


def test_each_single_place_has_a_witness_that_fails_with_it_alone(everywhere: ReferenceStand) -> None:
    shown = {one.place.id: everywhere.shows(one.witness, one.part, [one.id]) for one in PLACES}
    assert shown == {one.place.id: "panic" for one in PLACES}


def test_each_witness_gets_the_original_answer_with_every_defect_off(everywhere: ReferenceStand) -> None:
    ends = {one.place.id: everywhere.once(one.witness, one.part).kind for one in PLACES}
    assert {place for place, kind in ends.items() if kind not in ("accepted", "clean_error")} == set()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("klass", classes())
def test_a_defect_of_each_class_fails_as_its_class_does(klass: str, tmp_path: Path) -> None:
    faults = [one for one in DRAWN if one.klass == klass][:EACH]
    with ReferenceStand(built(tmp_path, faults), hang_s=1) as stand:
        silent = ["after-return"] if klass == "wrong-code" else []  # what stands behind a return never runs
        assert [one.place.id for one in faults if not reachable(stand, one)] == silent


def original(source: bytes, *words: str, at: Path = COMPILER) -> tuple[int, bytes, bytes]:
    argv = [sys.executable, "-I", "-B", str(at), *words]
    done = subprocess.run(argv, input=source, capture_output=True, check=False)
    return done.returncode, done.stdout, done.stderr


def test_a_clean_twin_answers_as_the_original_does(everywhere: ReferenceStand) -> None:
    sources = [*(case.source for case in CASES[::24]), *(one.witness for one in PLACES[::40])]
    for source in sources:
        status, module, said = original(source)
        twin = everywhere.once(source, "compiler")
        assert (twin.output, twin.said) == (module, said.decode("utf-8", "replace").strip()), source
        assert twin.kind == ("clean_error" if status else "accepted")


def test_a_copy_runs_as_the_platform_starts_it(tmp_path: Path) -> None:
    fault = next(one for one in DRAWN if one.klass == "panic")
    copy = built(tmp_path, [fault])
    assert original(fault.witness, at=copy)[0] == 0
    assert original(fault.witness, "--faults", fault.id, at=copy)[0] == 101


def test_a_patch_that_no_longer_fits_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"emit\.py: 'not there' is there 0 times"):
        built(tmp_path, [], [("emit.py", "not there", "")])


def test_a_place_that_ordinary_programs_have_is_not_drawn(tmp_path: Path) -> None:
    plain = {one.place.id for one in generated(3, 5, tmp_path / "a", [SAMPLE]).faults}
    hit = next(one for one in generated(3, 5, tmp_path / "b", [SAMPLE]).faults if one.stage == "typed")
    others = {one.place.id for one in generated(3, 5, tmp_path / "c", [hit.witness]).faults}
    assert hit.place.id in plain - others


def report(klass: str, source: str, *, loader: bool = False, confirmed: bool = True) -> ReportedDefect:
    repro = write_repro([ReproCall("qa_compile", {"module_hex" if loader else "source": source})])
    part, inputs = repro_inputs(repro)
    return ReportedDefect(
        klass=klass,
        title="it fails",
        repro=repro,
        size=len(source),
        confirmed=confirmed,
        part=part,
        inputs=tuple(inputs),
    )


def test_a_report_is_the_defect_that_its_input_shows_alone(tmp_path: Path) -> None:
    first, second = [one for one in DRAWN if one.klass == "panic"][:2]
    outcome = CampaignOutcome()
    outcome.defects = [
        report("panic", first.witness.decode()),
        report("panic", f"{first.witness.decode()} "),
        report("panic", SAMPLE.decode()),
        report("panic", second.witness.decode(), confirmed=False),
    ]
    with ReferenceStand(built(tmp_path, [first, second])) as stand:
        score = scored(1, [first, second], outcome, stand)
    assert score.found == {first.id}
    assert score.missed == [second]
    assert score.false == [outcome.defects[2]]
    assert (score.twice, len(score.flaky), recall([score])) == (1, 1, 0.5)
    assert "Found 1 of 2 (50 %), false 1, reported twice 1" in markdown([score], [], about())


def test_what_the_clean_compiler_itself_shows_is_its_own_defect(tmp_path: Path) -> None:
    own = [("infer.py", "        self.loops.append(None)\n", "        raise KeyError('loop')\n")]
    outcome = CampaignOutcome()
    outcome.defects = [report("panic", "fn frame() { while false {} }")]
    fault = next(one for one in DRAWN if one.klass == "panic")
    with ReferenceStand(built(tmp_path, [fault], [*PATCHES, *own])) as stand:
        score = scored(1, [fault], outcome, stand)
    assert (score.own, score.false, score.found) == (outcome.defects, [], frozenset())


def about() -> dict[str, object]:
    return {"command": "c", "commit": "d", "date": "e", "versions": []}


def test_a_loader_report_names_bytes() -> None:
    assert report("crash", "0061736d", loader=True).inputs == (b"\0asm",)
    assert report("crash", "0061736d", loader=True).part == "loader"
    assert repro_inputs("nonsense") == ("compiler", [])


def test_text_is_repeated_where_a_witness_says_so() -> None:
    assert repeated("a<<b |3>>c<<| 1|2>>") == "ab b b c| 1| 1"


@pytest.mark.parametrize(
    ("source", "counts"),
    [("fn frame(t: i32) -> i32 { return t; let b = 1; b }", False), ("fn frame(t: i32) -> i32 { t }", True)],
)
def test_wrong_code_that_never_runs_is_not_countable(source: str, counts: bool, tmp_path: Path) -> None:
    place = FaultPlace("any", "node", "isinstance(node, n.Block)", source)
    do = "code += ['i32.const 1', 'i32.add']"
    fault = PlantedFault("f0", "wrong-code", "code", "fold_slot", do, place)
    with ReferenceStand(built(tmp_path, [fault])) as stand:
        assert stand.shows(fault.witness, "compiler", ["f0"]) == "wrong-code"
        assert reachable(stand, fault) == counts
