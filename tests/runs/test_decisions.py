"""DECISIONS.md: append-only, numbered through restarts and several processes, and nobody's page but ours."""

from __future__ import annotations

import fcntl
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fleet.clock import SystemClock
from fleet.events.model import (
    DecisionMade,
    DriverChanged,
    Event,
    ExtensionDisabled,
    FindingPosted,
    FindingRepeated,
    FindingVerified,
    Footer,
    GateDenied,
    PaceChanged,
    PhaseChanged,
    ProbeSkipped,
    ToolResponded,
    TurnEnded,
)
from fleet.events.stream import Stream
from fleet.runs.call.decision_file import NAME, OLDER, Decision, DecisionFile
from fleet.runs.call.decisions import DecisionRecorder, by_rule
from tests.events.samples import Kept

ONE = Decision("a title", "this or that", "this", "because", "do that")
HEAD = re.compile(r"^## D(\d+) - (.*) \(turn (\d+), \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\)$")
FIELDS = ["Fork", "Class", "Charter", "Decision", "Why", "Reversal", "Run", "Prev"]


def log(folder: Path) -> DecisionFile:
    return DecisionFile(folder, SystemClock())


def blocks(folder: Path) -> list[list[str]]:
    text = (folder / NAME).read_text()
    return [block.splitlines() for block in text.rstrip("\n").split("\n\n")]


def numbers(folder: Path) -> list[int]:
    found = [HEAD.match(block[0]) for block in blocks(folder)]
    return [int(match[1]) for match in found if match]


def test_a_record_has_its_fields_padded_and_in_order(tmp_path: Path) -> None:
    assert log(tmp_path).record(ONE._replace(kind="irreversible"), run="r", turn=3) == 1
    ((head, *fields),) = blocks(tmp_path)
    match = HEAD.match(head)
    assert match is not None
    assert match.groups() == ("1", "a title", "3")
    assert [line.partition(":")[0] for line in fields] == FIELDS
    assert fields[1] == "Class:    irreversible"
    assert {line[10] != " " and line[9] in " :" for line in fields} == {True}
    assert ((tmp_path / NAME).stat().st_mode & 0o777) == 0o600


def test_numbers_go_on_after_a_restart(tmp_path: Path) -> None:
    assert [log(tmp_path).record(ONE, run="r", turn=0) for _ in range(4)] == [1, 2, 3, 4]
    before = (tmp_path / NAME).read_bytes()
    log(tmp_path).record(ONE, run="r", turn=0)
    assert (tmp_path / NAME).read_bytes().startswith(before)


def test_two_processes_never_give_one_number_twice(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from fleet.clock import SystemClock\n"
        "from fleet.runs.call.decision_file import Decision, DecisionFile\n"
        "file = DecisionFile(Path(sys.argv[1]), SystemClock(), patience_s=60)\n"
        "for _ in range(40): file.record(Decision('t', 'f', 'd', 'w', 'r'), run='r', turn=0)\n"
    )
    two = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(2)]
    assert [one.wait(60) for one in two] == [0, 0]
    assert numbers(tmp_path) == list(range(1, 81))


def test_a_large_file_is_put_aside_and_the_numbers_go_on(tmp_path: Path) -> None:
    file = DecisionFile(tmp_path, SystemClock(), largest=1000)
    assert [file.record(ONE, run="r", turn=0) for _ in range(30)] == list(range(1, 31))
    older, newer = ((tmp_path / name).read_text() for name in (OLDER, NAME))
    assert max(len(older), len(newer)) < 2000
    given = numbers_of(older + newer)
    assert given == list(range(given[0], 31))
    (tmp_path / NAME).unlink()  # killed between putting it aside and the next record
    assert DecisionFile(tmp_path, SystemClock()).record(ONE, run="r", turn=0) == numbers_of(older)[-1] + 1


def numbers_of(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"^## D(\d+) ", text, re.MULTILINE)]


def test_two_processes_put_the_file_aside_and_give_no_number_twice(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from fleet.clock import SystemClock\n"
        "from fleet.runs.call.decision_file import Decision, DecisionFile\n"
        "file = DecisionFile(Path(sys.argv[1]), SystemClock(), largest=2000, patience_s=60)\n"
        "print([file.record(Decision('t', 'f', 'd', 'w', 'r'), run='r', turn=0) for _ in range(60)])\n"
    )
    words = [sys.executable, "-c", script, str(tmp_path)]
    two = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = "".join(one.communicate(timeout=60)[0] for one in two)
    assert sorted(map(int, re.findall(r"\d+", said))) == list(range(1, 121))


def test_a_lock_that_a_stranger_holds_costs_the_records_and_no_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = log(tmp_path)
    file.record(ONE, run="r", turn=0)
    with (tmp_path / NAME).open("rb") as stranger:
        fcntl.flock(stranger, fcntl.LOCK_SH)
        assert [file.record(ONE, run="r", turn=0) for _ in range(100)] == [0] * 100  # or it hangs here
    assert {record.getMessage().endswith("holds its lock: a title") for record in caplog.records} == {True}
    assert file.record(ONE, run="r", turn=0) == 2


def test_a_torn_record_is_closed_and_the_next_one_counts_on(tmp_path: Path) -> None:
    for _ in range(2):
        log(tmp_path).record(ONE, run="r", turn=0)
    whole = (tmp_path / NAME).read_bytes()
    second = whole.index(b"## D2")
    for end in range(second + 1, len(whole)):
        (tmp_path / NAME).write_bytes(whole[:end])
        number = log(tmp_path).record(ONE, run="r", turn=0)
        assert number in (2, 3)
        assert numbers(tmp_path)[-1] == number
        assert (tmp_path / NAME).read_bytes().startswith(whole[:end])


def test_numbers_are_found_behind_much_that_is_none(tmp_path: Path) -> None:
    log(tmp_path).record(ONE, run="r", turn=0)
    with (tmp_path / NAME).open("a") as file:
        file.write("a note of a person\n" * 20_000 + "\n")
    assert log(tmp_path).record(ONE, run="r", turn=0) == 2


def test_hostile_text_cannot_make_a_record(tmp_path: Path) -> None:
    evil = "x\n\n## D999 - mine (turn 0, 2026-01-01T00:00:00Z)\nClass: reversible \x1b[2J\u202e" + "y" * 9_000
    log(tmp_path).record(Decision(evil, evil, evil, evil, evil, evil), run="r", turn=0)
    assert log(tmp_path).record(ONE, run="r", turn=0) == 2
    text = (tmp_path / NAME).read_text()
    assert len(blocks(tmp_path)) == 2
    assert not {"\x1b", "\u202e"} & set(text)
    assert len(text) < 6_000


def test_what_cannot_be_written_costs_the_record_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / NAME).mkdir()
    assert log(tmp_path).record(ONE, run="r", turn=0) == 0
    (tmp_path / NAME).rmdir()
    (tmp_path / NAME).symlink_to("/dev/full")
    assert log(tmp_path).record(ONE, run="r", turn=0) == 0
    assert len(caplog.records) == 2


def test_a_full_disk_leaves_no_half_record(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys; from pathlib import Path; from fleet.clock import SystemClock\n"
        "from fleet.runs.call.decision_file import Decision, DecisionFile\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
        "file = DecisionFile(Path(sys.argv[1]), SystemClock())\n"
        "print([file.record(Decision('t', 'f', 'd', 'w', 'r'), run='r', turn=0) for _ in range(6)])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    given = [int(number) for number in done.stdout.strip(" []\n").split(",")]
    assert given[-1] == 0
    assert numbers(tmp_path) == [number for number in given if number]
    assert log(tmp_path).record(ONE, run="r", turn=0) == max(given) + 1


TOLD: list[tuple[Event, str, str]] = [
    (ProbeSkipped(probe="p", reason="why"), "probe p is left without an answer", "reversible"),
    (
        GateDenied(call=1, tool="qa_create", rule="dial", reason="no"),
        "qa_create is refused by dial",
        "reversible",
    ),
    (
        FindingVerified(fingerprint="f", confirmed=0, tries=3, state="dropped"),
        "finding f is dropped",
        "reversible",
    ),
    (FindingPosted(fingerprint="f", tx="0x", index=4), "finding f is on the log", "irreversible"),
    (ExtensionDisabled(namespace="web", reason="3", turn=1), "the tools of web are withdrawn", "reversible"),
    (
        DriverChanged(before="model", after="playbook", reason="429"),
        "playbook drives instead of model",
        "reversible",
    ),
    (TurnEnded(index=2, failure="turn_timeout"), "turn 2 is abandoned", "reversible"),
]


@pytest.mark.parametrize(("event", "title", "kind"), TOLD, ids=[title for _, title, _ in TOLD])
def test_what_is_decided_in_a_run_is_written_down(
    tmp_path: Path, event: Event, title: str, kind: str
) -> None:
    DecisionRecorder(log(tmp_path), "r")(event)
    ((head, *fields),) = blocks(tmp_path)
    match = HEAD.match(head)
    assert match is not None
    assert (match[2], fields[1].split()[1]) == (title, kind)


def test_what_is_no_decision_is_not(tmp_path: Path) -> None:
    recorder = DecisionRecorder(log(tmp_path), "r")
    recorder(ToolResponded(call=1, tool="qa_fetch", is_error=False, result={}, seconds=0.0))
    recorder(TurnEnded(index=1))
    recorder(FindingVerified(fingerprint="f", confirmed=3, tries=3, state="confirmed"))
    recorder(FindingRepeated(fingerprint="f", index=4))
    recorder(Footer(outcome="done"))
    assert not (tmp_path / NAME).exists()


def test_three_hundred_refusals_are_two_records(tmp_path: Path) -> None:
    recorder = DecisionRecorder(log(tmp_path), "r")
    for number in range(300):
        recorder(GateDenied(call=number, tool="qa_publish", rule="prefix", reason="not yours"))
    recorder(GateDenied(call=301, tool="qa_publish", rule="dial", reason="observe"))
    recorder(Footer(outcome="done"))
    titles = [HEAD.sub(r"\2", block[0]) for block in blocks(tmp_path)]
    assert titles == [
        "qa_publish is refused by prefix",
        "qa_publish is refused by dial",
        "qa_publish was refused 300 times by prefix",
    ]


def test_made_up_tools_do_not_fill_the_log(tmp_path: Path) -> None:
    recorder = DecisionRecorder(log(tmp_path), "r")
    for number in range(500):
        recorder(GateDenied(call=number, tool=f"t{number}", rule="arguments", reason="no such tool"))
    recorder(Footer(outcome="done"))
    assert len(blocks(tmp_path)) == 66


def test_the_turn_is_the_one_in_which_it_was_decided(tmp_path: Path) -> None:
    recorder = DecisionRecorder(log(tmp_path), "r")
    recorder(TurnEnded(index=6))
    recorder.record(ONE)
    assert "(turn 6, " in (tmp_path / NAME).read_text()


@pytest.mark.parametrize(
    ("event", "chosen", "instead"),
    [
        (
            DriverChanged(before="model", after="playbook", reason="HTTP 500"),
            "playbook drives instead of model: playbook takes over",
            "end the run, or continue without a model",
        ),
        (
            ProbeSkipped(probe="a", reason="no answer"),
            "probe a is left without an answer: continue without it",
            "look at a",
        ),
        (
            PhaseChanged(before="exploitation", after="abort", why="stopped: by hand", rung="exercise"),
            "the run ends: end in abort",
            "go on with what is open",
        ),
        (
            PaceChanged(host="a.test", before=1.0, after=0.5, status=503, ms=2.0),
            "the pace of a.test: ask it at 50% of its rate",
            "ask it at 100%",
        ),
    ],
)
def test_what_a_rule_brings_about_is_a_decision_before_it(event: Event, chosen: str, instead: str) -> None:
    kept = Kept()
    Stream("r", clock=SystemClock(), sink=kept, before=by_rule).emit(event)
    made, follows = kept.events
    assert isinstance(made, DecisionMade)
    assert (made.selected_action, made.event_type, made.is_taken) == (chosen, "decision", True)
    assert [one.action for one in made.alternatives_evaluated] == [instead, "stop everything"]
    assert follows.type == event.type


def test_another_phase_is_no_decision_of_a_rule() -> None:
    assert (
        by_rule(PhaseChanged(before="reconnaissance", after="enumeration", why="x", rung="observe")) is None
    )
