"""Which decisions stand, from the journal, from the log and from both, and what they say."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fleet.clock import iso
from fleet.findings.recurrence import Recurrence
from fleet.store.rows import DecisionRow
from fleet.triage.items.decisions import decision_of, fold, known, named, record_of
from fleet.triage.items.life import OPEN, life
from tests.triage.life_table import report

A, B, C = "aaaaaaaaaaaa", "bbbbbbbbbbbb", "cccccccccccc"


def at(minute: int) -> str:
    return iso(datetime(2026, 11, 23, 7, tzinfo=UTC) + timedelta(minutes=minute))


def made(kind: Any, minute: int, item: str = A, **more: Any) -> DecisionRow:
    return named(DecisionRow(item=item, kind=kind, reason="why", who="alice", at=at(minute), **more))


def states(*decisions: DecisionRow, names: Sequence[str] = (A,)) -> list[str]:
    return [one.kind for one in fold(decisions).states_of(names)]


def test_the_latest_decision_is_last_in_any_order() -> None:
    found = [made("fixed", 1), made("dismiss", 2), made("reopen", 3)]
    random.Random(1).shuffle(found)
    assert states(*found) == ["fixed", "dismiss", "reopen"]


def test_what_was_undone_has_never_been_and_an_undo_can_be_undone() -> None:
    first, second = made("dismiss", 1), made("snooze", 2, until=at(60))
    undo = made("undo", 3, undoes=second.name)
    again = made("undo", 4, undoes=undo.name)
    third = made("undo", 5, undoes=again.name)
    assert states(first, second, undo) == ["dismiss"]
    assert states(first, second, undo, again) == ["dismiss", "snooze"]
    assert states(first, second, undo, again, third) == ["dismiss"]
    assert [one.kind for one in fold([undo, second, first]).all] == ["dismiss", "undo"]
    assert states(first, made("undo", 2, undoes="0" * 12)) == ["dismiss"]


def test_an_undo_counts_although_its_clock_was_behind() -> None:
    first = made("dismiss", 10)
    undo = made("undo", 5, undoes=first.name)
    assert states(first, undo, made("undo", 1, undoes=undo.name)) == ["dismiss"]


def test_journal_and_log_are_one_and_the_log_says_where() -> None:
    only_here, both, only_there = made("fixed", 1), made("dismiss", 2), made("reopen", 3)
    records = [record_of(replace(both, reason="masked")).placed(0, 7), record_of(only_there).placed(0, 8)]
    found = known([only_here, replace(both, platform="p")], [*records, records[0].placed(0, 9)])
    assert [(one.name, one.entry) for one in found] == [
        (only_here.name, -1),
        (both.name, 7),
        (only_there.name, 8),
    ]
    assert (found[1].reason, found[1].platform) == ("masked", "p")
    assert [decision_of(one).name for one in records] == [both.name, only_there.name]


def test_the_same_end_from_the_log_alone() -> None:
    all_ = [made("dismiss", 1), made("severity", 2, severity="low"), made("merge", 3, item=B, other=A)]
    all_.append(made("undo", 4, undoes=all_[0].name))
    records = [record_of(one).placed(0, n) for n, one in enumerate(reversed(all_))]
    there, here = fold([], records), fold(all_)
    assert [replace(one, entry=-1) for one in there.all] == list(here.all)
    assert list(there.merges) == list(here.merges) == [B]


def test_severity_merge_split_and_links_are_the_latest_of_each() -> None:
    low, high = made("severity", 1, severity="low"), made("severity", 2, severity="high")
    into_b, into_c = made("merge", 3, other=B), made("merge", 4, other=C)
    linked, apart = made("link", 5, other=B, link="same-cause"), made("unlink", 6, item=B, other=A)
    found = fold([low, high, into_b, into_c, linked])
    assert found.severity_of([A]) == high
    assert found.severity_of([B]) is None
    assert (found.merges, found.splits) == ({A: into_c}, {})
    assert (found.links, found.unlinked) == ((linked,), frozenset())
    split = made("split", 7)
    after = fold([low, high, into_b, into_c, linked, apart, split])
    assert (after.merges, after.splits) == ({}, {A: split})
    assert (after.links, after.unlinked) == ((), frozenset({frozenset({A, B})}))
    undone = fold([low, high, into_b, into_c, linked, apart, split, made("undo", 8, undoes=split.name)])
    assert undone.merges == {A: into_c}


def test_what_was_decided_before_a_merge_is_not_about_the_item_that_took_it() -> None:
    before, merge = made("dismiss", 1), made("merge", 2, other=B)
    assert states(before, merge, names=(A, B)) == []
    assert states(before, merge, made("fixed", 3), names=(A, B)) == ["fixed"]
    assert states(before, merge, names=(A,)) == ["dismiss"]
    low = made("severity", 1, severity="low")
    assert fold([low, merge]).severity_of([A, B]) is None


@given(st.randoms(use_true_random=False))
def test_any_order_in_gives_the_same_out(random_: random.Random) -> None:
    base = [made("dismiss", 1), made("fixed", 1), made("severity", 1, severity="low"), made("reopen", 2)]
    base += [made("undo", 2, undoes=base[0].name), made("merge", 2, other=B), made("split", 2)]
    mixed = base[:]
    random_.shuffle(mixed)
    cut = random_.randrange(len(mixed))
    records = [record_of(one).placed(0, n) for n, one in enumerate(mixed[cut:])]
    assert [one.name for one in fold(mixed[:cut], records).all] == [one.name for one in fold(base).all]


class Person(RuleBasedStateMachine):
    """A person decides and undoes while runs look; a list of what stands is the model."""

    def __init__(self) -> None:
        super().__init__()
        self.minute = 0
        self.all: list[DecisionRow] = []
        self.standing: list[str] = []
        """Names of the state decisions that stand, by the model."""
        self.undone: dict[str, tuple[int, str]] = {}
        self.figures = Recurrence().shown(at(0), "r0")
        self.looks: list[tuple[int, str]] = []

    def tick(self) -> int:
        self.minute += 1
        return self.minute

    @rule(kind=st.sampled_from(("fixed", "dismiss", "reopen")))
    def decides(self, kind: Any) -> None:
        self.all.append(made(kind, self.tick()))
        self.standing.append(self.all[-1].name)

    @rule(minutes=st.integers(1, 5))
    def snoozes(self, minutes: int) -> None:
        minute = self.tick()
        self.all.append(made("snooze", minute, until=at(minute + minutes)))
        self.standing.append(self.all[-1].name)

    @precondition(lambda self: self.standing)
    @rule(data=st.data())
    def undoes(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(self.standing))
        self.all.append(made("undo", self.tick(), undoes=name))
        self.standing.remove(name)
        self.undone[self.all[-1].name] = (len(self.all), name)

    @precondition(lambda self: self.undone)
    @rule(data=st.data())
    def undoes_an_undo(self, data: st.DataObject) -> None:
        undo = data.draw(st.sampled_from(sorted(self.undone)))
        self.all.append(made("undo", self.tick(), undoes=undo))
        back = self.undone.pop(undo)[1]
        order = {one.name: n for n, one in enumerate(self.all)}
        self.standing = sorted([*self.standing, back], key=order.__getitem__)

    @rule(what=st.sampled_from(("shown", "clean", "unreached")))
    def looks_again(self, what: str) -> None:
        minute = self.tick()
        run = f"r{minute}"
        if what == "unreached":
            self.figures = self.figures.unreached(at(minute))
        else:
            self.figures = getattr(self.figures, what)(at(minute), run)
            self.looks.append((minute, what))

    @invariant()
    def the_latest_standing_decision_is_in_force(self) -> None:
        found = life(
            [report(0, minute=0)],
            proof="confirmed",
            figures=self.figures,
            records=(),
            decisions=fold(self.all).states_of([A]),
            now=datetime.fromisoformat(at(self.minute)),
        )
        last = next((one for one in self.all if self.standing and one.name == self.standing[-1]), None)
        after = [what for minute, what in self.looks if last and at(minute) > last.at]
        if last is None:
            assert found.state in OPEN | {"verified-fixed"} - {"regression"}
        elif last.kind in ("dismiss", "snooze") and (not last.until or last.until > at(self.minute)):
            assert found.state == {"dismiss": "dismissed", "snooze": "snoozed"}[last.kind]
        elif last.kind in ("dismiss", "snooze"):
            assert found.state not in ("dismissed", "snoozed")
        elif after:
            again = last.kind == "fixed" or "clean" in after  # it was fixed, and is seen once more
            back = "regression" if again else "confirmed"
            lost = set() if again else {"unreachable"}
            assert found.state in ({"verified-fixed"} if after[-1] == "clean" else {back} | lost)
        elif last.kind == "fixed":
            assert found.state in ("fixed", "verified-fixed")
        else:
            assert found.state in ("confirmed", "unreachable")


TestPerson = Person.TestCase
TestPerson.settings = settings(max_examples=60, stateful_step_count=25)
