"""Learned probes: kept once, read back, left out when unreadable, removed by a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleet.errors import UsageError
from fleet.personas.learned import Learned, LearnedProbes
from fleet.personas.model import Probe, Step


def learned(fingerprint: str, persona: str = "qa-x", tool: str = "qa_fetch") -> Learned:
    step = Step(tool=tool, args={"url": "{site}/"})
    probe = Probe(id=f"x-{fingerprint}", severity="low", steps=(step,), expect="true", finding="it is wrong")
    return Learned(
        fingerprint=fingerprint, persona=persona, oracle="o", title="t", run="r", at="now", probe=probe
    )


def test_a_probe_is_kept_once_and_asked_by_its_persona_with_its_tools(tmp_path: Path) -> None:
    book = LearnedProbes(tmp_path / "learned" / "p")
    assert book.all() == ()
    for one in (learned("aa"), learned("ab", tool="qa_call"), learned("ba", persona="qa-y")):
        book.keep(one)
    book.keep(learned("aa").model_copy(update={"title": "another"}))
    assert [(one.fingerprint, one.title) for one in book.all()] == [("aa", "t"), ("ab", "t"), ("ba", "t")]
    assert [one.id for one in book.of("qa-x", ["qa_fetch"], 9)] == ["x-aa"]
    assert [one.id for one in book.of("qa-x", ["qa_fetch", "qa_call"], 1)] == ["x-aa"]
    assert book.of("qa-x", ["qa_fetch"], -3) == ()


def test_a_file_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    book = LearnedProbes(tmp_path)
    book.keep(learned("aa"))
    (tmp_path / "bb.json").write_text("{")
    (tmp_path / "cc.json").symlink_to(tmp_path / "aa.json")
    (tmp_path / "dd.json").write_text((tmp_path / "aa.json").read_text().replace('"oracle"', '"orakel"'))
    assert [one.fingerprint for one in book.all()] == ["aa"]


def test_a_person_removes_one_by_its_first_digits(tmp_path: Path) -> None:
    book = LearnedProbes(tmp_path)
    book.keep(learned("aa"))
    book.keep(learned("ab"))
    for name in ("a", "", "zz"):
        with pytest.raises(UsageError):
            book.forget(name)
    assert book.forget("ab").fingerprint == "ab"
    assert [one.fingerprint for one in book.all()] == ["aa"]
