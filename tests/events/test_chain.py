"""The chain of a record: whatever is changed, dropped, moved or cut is found, and a kill is told from it."""

from __future__ import annotations

import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fleet.clock import SystemClock
from fleet.events import chain
from fleet.events.chain import GENESIS, ChainHead, Place, behind, head_path, read_head, verify
from fleet.events.daemon_events import DaemonStopped, Feed
from fleet.events.model import Footer, Header, ToolRequested, ToolResponded
from fleet.events.record import RecordFile
from fleet.events.recorded import Recording, UnknownRecord
from fleet.events.trajectory import TrajectoryFile
from fleet.runs.call.decision_file import NAME, OLDER, Decision, DecisionFile

HEADER = Header(
    persona="qa-a",
    persona_sha256="0" * 64,
    driver="playbook",
    platform="p",
    chain_id=1,
    rung="observe",
    jail="x/y",
    budget={},
    trigger="test",
)


def trajectory(folder: Path) -> Path:
    path = folder / "trajectory.jsonl"
    file = TrajectoryFile(path, sync=False)
    file.write(HEADER)
    for number in range(6):
        file.write(ToolRequested(call=number, tool="qa_fetch", args={"url": f"http://h/{number}"}))
        result = {"status": 200, "wei": 10**30, "text": 'é"}\n'}
        file.write(ToolResponded(call=number, tool="qa_fetch", is_error=False, result=result, seconds=0.1))
    file.write(Footer(outcome="done"))
    file.close()
    return path


def decisions(folder: Path) -> Path:
    for number in range(5):
        one = Decision(f"title {number}", "this or that", "this", "because", "that")
        DecisionFile(folder, SystemClock()).record(one, run="r", turn=number)
    return folder / NAME


def feed(folder: Path) -> Path:
    events = Feed(folder / "events.jsonl", clock=SystemClock())
    for number in range(10):
        events.publish(DaemonStopped(reason=str(number)))
    events.close()
    return folder / "events.jsonl"


def egress(folder: Path) -> Path:
    file = RecordFile(folder / "egress.jsonl", sync=False)
    for number in range(10):
        file.append([b'{"n":%d,"host":"h"}' % number])
    file.close()
    return folder / "egress.jsonl"


KINDS: dict[str, Callable[[Path], Path]] = {
    "trajectory": trajectory,
    "decisions": decisions,
    "events": feed,
    "egress": egress,
}


def change(lines: list[bytes], chance: random.Random) -> None:
    at = chance.choice([number for number, line in enumerate(lines) if line])
    place = chance.randrange(len(lines[at]))
    byte = (lines[at][place] + chance.randrange(1, 256)) % 256
    lines[at] = lines[at][:place] + bytes([byte]) + lines[at][place + 1 :]


def drop(lines: list[bytes], chance: random.Random) -> None:
    del lines[chance.randrange(len(lines))]


def swap(lines: list[bytes], chance: random.Random) -> None:
    one, other = chance.sample(range(len(lines)), 2)
    if lines[one] == lines[other]:
        one, other = 0, 1
    lines[one], lines[other] = lines[other], lines[one]


def cut(lines: list[bytes], chance: random.Random) -> None:
    """The last lines, or a line's end."""
    if chance.random() < 0.5:
        del lines[chance.randrange(1, len(lines)) :]
        return
    at = chance.choice([number for number, line in enumerate(lines) if line])
    lines[at] = lines[at][: chance.randrange(len(lines[at]))]


@pytest.mark.parametrize("tamper", [change, drop, swap, cut])
@pytest.mark.parametrize("kind", KINDS)
def test_every_tampering_is_found(
    tmp_path: Path, kind: str, tamper: Callable[[list[bytes], random.Random], None]
) -> None:
    path = KINDS[kind](tmp_path)
    whole = path.read_bytes()
    said = verify(path)
    assert (said.fault, said.note, said.lines) == ("", "", whole.count(b"\n"))
    for seed in range(200):
        lines = whole.split(b"\n")[:-1]
        tamper(lines, random.Random(seed))
        path.write_bytes(b"".join(line + b"\n" for line in lines))
        assert verify(path).fault, (seed, lines)
    path.write_bytes(whole)
    assert verify(path).fault == ""


@pytest.mark.parametrize("kind", KINDS)
def test_a_kill_in_the_middle_of_a_line_is_told_and_the_chain_goes_on(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path)
    whole, lines = path.read_bytes(), verify(path).lines
    path.write_bytes(whole + b'{"type":"torn')
    said = verify(path)
    assert (said.fault, said.lines, f"line {lines + 1} is torn" in said.note) == ("", lines, True)
    if kind == "trajectory":
        TrajectoryFile(path).close()  # cut off
        assert verify(path) == verify(path)._replace(fault="", note="", lines=lines)
    elif kind != "egress":
        KINDS[kind](tmp_path)
        after = verify(path)
        assert (after.fault, after.note, after.lines > lines) == ("", "", True)
        path.write_bytes(path.read_bytes().replace(b'"torn', b'"born'))
        assert verify(path).fault


@pytest.mark.parametrize("kind", ["decisions", "events"])
def test_what_was_cut_stays_visible_when_the_record_goes_on(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: whole.rindex(b"\n", 0, len(whole) // 2) + 1])
    assert "missing at its end" in verify(path).fault
    for _ in range(2):
        KINDS[kind](tmp_path)
        assert "does not follow" in verify(path).fault


def test_a_kill_between_the_line_and_its_head_is_told_and_mended(tmp_path: Path) -> None:
    path = egress(tmp_path)
    before = head_path(path).read_bytes()
    file = RecordFile(path)
    file.append([b'{"n":10}', b'{"n":11}'])
    file.close()
    head_path(path).write_bytes(before)
    assert "behind the head" in verify(path).note
    RecordFile(path).append([b'{"n":12}'])
    assert (verify(path).fault, verify(path).note, verify(path).lines) == ("", "", 13)


def test_without_its_head_nothing_vouches_for_the_last_lines(tmp_path: Path) -> None:
    path = egress(tmp_path)
    end = verify(path).end
    head_path(path).unlink()
    assert "egress.head is missing" in verify(path).fault
    assert verify(path, sealed=end).fault == ""  # the journal does
    assert "lines are missing" in verify(path, sealed=end._replace(lines=11)).fault
    assert "not the one" in verify(path, sealed=end._replace(head=GENESIS)).fault


def test_a_file_and_its_head_made_anew_do_not_fit_the_journal(tmp_path: Path) -> None:
    end = verify(egress(tmp_path)).end
    (tmp_path / "egress.jsonl").unlink()
    head_path(tmp_path / "egress.jsonl").unlink()
    file = RecordFile(tmp_path / "egress.jsonl", sync=False)
    for number in range(10):
        file.append([b'{"n":%d,"host":"other"}' % number])
    file.close()
    assert verify(tmp_path / "egress.jsonl").fault == ""
    assert "not the one" in verify(tmp_path / "egress.jsonl", sealed=end).fault


@pytest.mark.parametrize("kind", ["events", "decisions"])
def test_the_chain_goes_on_over_a_rotation(tmp_path: Path, kind: str) -> None:
    path = tmp_path / ("events.jsonl" if kind == "events" else NAME)
    older = tmp_path / ("events.1.jsonl" if kind == "events" else OLDER)
    for number in range(41):
        if kind == "events":
            events = Feed(path, clock=SystemClock(), largest=1_500)
            events.publish(DaemonStopped(reason=str(number)))
            events.close()
        else:
            one = Decision(f"title {number}", "this or that", "this", "because", "that")
            assert DecisionFile(tmp_path, SystemClock(), largest=1_500).record(one, run="r", turn=0)
        assert verify(path, rotated=older).fault == "", number
    assert older.exists()
    text = older.read_bytes()
    for bad in (text[: text.rindex(b"\n", 0, -1) + 1], text[text.index(b"\n") + 1 :], b"x" + text):
        older.write_bytes(bad)
        assert older.name in verify(path, rotated=older).fault
    older.unlink()  # pruned: what is left still holds
    assert verify(path, rotated=older).fault == ""
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    assert verify(path, rotated=older).fault


def test_lines_of_an_older_version_are_read_and_what_follows_vouches_for_them(tmp_path: Path) -> None:
    path = trajectory(tmp_path)
    new = [line.rpartition(b',"seq"')[0] + b"}\n" for line in path.read_bytes().splitlines()]
    path.write_bytes(b"".join(new[:-1]))
    head_path(path).unlink()
    assert verify(path).chained == 0
    records = list(Recording(path))
    assert not [one for one in records if isinstance(one, UnknownRecord)]
    file = TrajectoryFile(path)
    file.write(Footer(outcome="done"))
    file.close()
    assert [*records, *list(Recording(path))[-1:]] == list(Recording(path))
    assert (verify(path).fault, verify(path).chained) == ("", 1)
    path.write_bytes(path.read_bytes().replace(b"http://h/3", b"http://h/4"))
    assert verify(path).fault


def renumbered(path: Path) -> None:
    """The file without its third line, and its chain and head made anew, as who can write both could."""
    place, new = Place(), list[bytes]()
    for line in [one for at, one in enumerate(path.read_bytes().splitlines()) if at != 2]:
        new.append(re.sub(rb'"prev":"[0-9a-f]{64}"', b'"prev":"%s"' % place.head.encode(), line))
        place = behind(place, new[-1])
    path.write_bytes(b"".join(line + b"\n" for line in new))
    head = ChainHead(end=place, size=path.stat().st_size)
    head_path(path).write_text(json.dumps(head._asdict()))


@pytest.mark.parametrize("kind", ["trajectory", "events", "egress"])
def test_a_gap_in_the_numbers_is_found_also_where_the_hashes_fit(tmp_path: Path, kind: str) -> None:
    path = KINDS[kind](tmp_path)
    said = [int(re.findall(rb'"seq":([0-9]+),"prev"', line)[0]) for line in path.read_bytes().splitlines()]
    assert said == list(range(1, len(said) + 1))
    renumbered(path)
    assert verify(path).fault.startswith("line 3 has another number than its place")


def test_a_decision_that_is_missing_is_found_also_where_the_hashes_fit(tmp_path: Path) -> None:
    path, place, new = decisions(tmp_path), Place(), list[bytes]()
    third = path.read_bytes().split(b"## D3 - ")[1].partition(b"## D4 - ")[0]
    for line in path.read_bytes().replace(b"## D3 - " + third, b"").splitlines():
        new.append(re.sub(rb"^(Prev: +)[0-9a-f]{64}$", rb"\g<1>" + place.head.encode(), line))
        place = behind(place, new[-1])
    path.write_bytes(b"".join(line + b"\n" for line in new))
    head_path(path).write_text(json.dumps(ChainHead(end=place, size=path.stat().st_size)._asdict()))
    assert "has another number than its place" in verify(path).fault


def test_a_long_line_is_chained_in_constant_memory(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    file = RecordFile(path, sync=False)
    for text in (b"x" * (1 << 20), b"y" * ((3 << 20) - 7), b""):
        file.append([b'{"t":"%s"}' % text])
    file.close()
    assert (verify(path).fault, verify(path).chained) == ("", 3)
    with path.open("r+b") as handle:
        handle.seek(2 << 20)
        handle.write(b"z")
    assert verify(path).fault


def test_the_chain_is_what_the_docs_say(tmp_path: Path) -> None:
    path, place = egress(tmp_path), Place()
    for line in path.read_bytes().splitlines():
        assert line.endswith(b',"prev":"%s"}' % place.head.encode())
        place = behind(place, line)
    head = read_head(path)
    assert head is not None
    assert (head.end, head.size, os.stat(head_path(path)).st_size) == (place, path.stat().st_size, 512)


def test_a_file_that_is_put_aside_while_it_is_looked_at_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, older = tmp_path / "a.jsonl", tmp_path / "a.1.jsonl"
    file, verified = RecordFile(path, sync=False), chain._verified
    file.append([b'{"a":1}', b'{"a":2}'])
    file.rotate()
    file.append([b'{"a":3}', b'{"a":4}'])

    def meanwhile(one: Path, *places: Any) -> chain.ChainVerdict:
        monkeypatch.undo()
        found = verified(one, *places)
        file.rotate()
        file.append([b'{"a":5}'])
        return found

    monkeypatch.setattr(chain, "_verified", meanwhile)
    said = verify(path, rotated=older)
    assert (said.fault, said.end.lines) == ("", 5)
    older.write_bytes(older.read_bytes().replace(b"3", b"9", 1))
    assert verify(path, rotated=older).fault.startswith("a.1.jsonl: line 2 does not follow")
