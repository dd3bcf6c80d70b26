"""The same calls again: under new names, on another platform, and where the answers differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.drivers.compare import CallComparison, Difference, compare, differences
from fleet.drivers.replay import RecordedCall, RecordedCalls, Replay, cannot, recorded, unbound
from fleet.drivers.session import RunOver
from fleet.drivers.template import Bindings
from fleet.errors import UsageError
from fleet.events.trajectory import TrajectoryFile
from tests.doubles.drivers import MemoryDesk
from tests.events.samples import FOOTER, HEADER, answers, asks, denied

pytestmark = pytest.mark.anyio
TARGETS = {"site": "http://old:1/site", "proxy": "http://old:2", "face": "http://old:3/f/{name}/"}
HEAD = HEADER.model_copy(update={"run": "oldrun", "targets": TARGETS})
NEW = HEAD.model_copy(update={"run": "newrun", "targets": {"site": "http://new/site"}})


def call(
    number: int, tool: str = "qa_fetch", result: Mapping[str, Any] | None = None, **args: Any
) -> RecordedCall:
    return RecordedCall(number=number, tool=tool, args=args, result=result)


def test_the_calls_of_a_trajectory(tmp_path: Path) -> None:
    sink = TrajectoryFile(tmp_path / "t")
    for event in (HEAD, asks(1, a=1), asks(2), answers(2, ok=True), denied(3), answers(9), FOOTER):
        sink.write(event)
    was = recorded(tmp_path / "t")
    assert was.header == HEAD
    assert was.calls == (
        RecordedCall(number=1, call_id="c1", tool="qa_fetch", args={"a": 1}),
        RecordedCall(number=2, call_id="c2", tool="qa_fetch", args={}, result={"ok": True}),
    )


def test_a_file_without_a_header_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not the trajectory"):
        recorded(tmp_path / "missing")


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (call(1), ""),
        (call(1, "qa_gone"), "no longer exists"),
        (call(1, "qa_report", text="x"), "not repeated"),
        (call(1, url="[redacted:api-key]"), "incomplete"),
        (call(1, source="fn…[cut 9 characters]"), "incomplete"),
    ],
)
def test_what_is_not_asked_again(one: RecordedCall, why: str) -> None:
    assert why in cannot(one)
    assert bool(cannot(one)) is bool(why)


@pytest.mark.parametrize(
    ("was", "bound"),
    [
        ("qa-oldrun-3", "qa-{run}-3"),
        ("http://old:3/f/qa-oldrun-3/", "{face:qa-{run}-3}"),
        ("http://old:3/f/standing/", "{face:standing}"),
        ("http://old:1/site/llms.txt", "{site}/llms.txt"),
        ("http://old:2/v1", "{proxy}/v1"),
        ("http://elsewhere/", "http://elsewhere/"),
        ("fn main() {}", "fn main() {}"),
    ],
)
def test_what_belonged_to_the_old_run_becomes_a_placeholder(was: str, bound: str) -> None:
    assert unbound({"a": [was]}, HEAD) == {"a": [bound]}


@given(st.sampled_from(["{site}/a", "{proxy}", "{face:home}", "qa-{run}-7", "{face:qa-{run}-1}", "plain"]))
def test_a_desk_binds_what_was_unbound(text: str) -> None:
    old = Bindings(run="oldrun", name="", site=TARGETS["site"], proxy=TARGETS["proxy"], face=TARGETS["face"])
    assert unbound(old.resolve(text), HEAD) == text


async def test_every_call_is_a_turn_at_the_desk_under_its_number() -> None:
    desk = MemoryDesk()
    was = RecordedCalls(
        HEAD, (call(1, url="http://old:1/site/"), call(2, "qa_report", text="x"), call(5, url="u"))
    )
    with pytest.raises(RunOver, match=r"done: 2 of 3 calls of run oldrun asked again"):
        await Replay(was)(desk)
    assert desk.asked == [
        ("replay-1", "qa_fetch", {"url": "{site}/"}),
        ("replay-5", "qa_fetch", {"url": "u"}),
    ]
    assert len(desk.turns) == 2


async def test_an_act_that_a_probe_and_its_proofs_asked_for_is_asked_once() -> None:
    create, fetch = call(1, "qa_create", name="qa-oldrun-1"), call(5, url="u")
    was = RecordedCalls(
        HEAD, (create, *(replace(create, number=at) for at in (2, 3, 4)), fetch, replace(fetch, number=6))
    )
    desk = MemoryDesk()
    with pytest.raises(RunOver, match="3 of 6 calls"):
        await Replay(was)(desk)
    assert [call_id for call_id, *_ in desk.asked] == ["replay-1", "replay-5", "replay-6"]
    rows = compare(was, again(replace(create, result={}), replace(fetch, result={})))
    assert [row.reason for row in rows[1:4]] == ["the same act as call 1"] * 3
    assert {row.state for row in rows[1:4]} == {"not asked"}


def test_a_difference_names_its_probe() -> None:
    was = RecordedCalls(HEAD, (replace(call(1, result={"status": 200}, url="u"), probe="up"),))
    (row,) = compare(was, again(call(1, result={"status": 500}, url="u")))
    assert (row.state, row.probe) == ("different", "up")


async def test_a_fence_ends_a_replay_as_it_ends_everything() -> None:
    with pytest.raises(RunOver, match="stopped"):
        await Replay(RecordedCalls(HEAD, (call(1, url="u"),)))(MemoryDesk(stop="by hand"))


def again(*calls: RecordedCall) -> RecordedCalls:
    return RecordedCalls(NEW, tuple(replace(one, call_id=f"replay-{one.number}") for one in calls))


def test_what_differs_and_what_only_looks_so() -> None:
    then = {
        "ok": True,
        "latency_ms": 1.0,
        "p50_ms": 1.0,
        "name": "qa-oldrun-1",
        "text": "see http://old:1/site/a",
        "sha256": "aa",
        "bytes": 3,
        "status": 200,
        "error": f"by 0x{'a' * 40}",
    }
    now = then | {
        "latency_ms": 9.0,
        "p50_ms": 9.0,
        "name": "qa-newrun-1",
        "text": "see http://new/site/a",
        "sha256": "bb",
        "bytes": 4,
        "error": f"by 0x{'b' * 40}",
    }
    was = RecordedCalls(HEAD, (call(1, result=then), call(2, result=then), call(3, result=then)))
    new = again(call(1, result=now), call(2, result=now | {"status": 500, "ok": False}))
    assert compare(was, new) == (
        CallComparison(1, "qa_fetch", "same"),
        CallComparison(
            2, "qa_fetch", "different", "", (Difference("/ok", True, False), Difference("/status", 200, 500))
        ),
        CallComparison(3, "qa_fetch", "refused", "refused, repeated or not reached in the new run"),
    )


@pytest.mark.parametrize(("tool", "state"), [("qa_create", "same"), ("qa_fetch", "different")])
def test_what_is_volatile_is_said_by_the_tool_that_answers(tool: str, state: str) -> None:
    was = RecordedCalls(HEAD, (call(1, tool, {"tx": "0xaa", "latency_ms": 1.0}),))
    (row,) = compare(was, again(call(1, tool, {"tx": "0xbb", "latency_ms": 9.0})))
    assert row.state == state


def test_a_hash_without_its_text_is_compared() -> None:
    assert list(differences({"sha256": "a"}, {"sha256": "b"})) == [Difference("/sha256", "a", "b")]


@pytest.mark.parametrize(("view", "state"), [("nextId", "same"), ("isTaken", "different")])
def test_a_view_that_counts_may_have_gone_on(view: str, state: str) -> None:
    was = RecordedCalls(HEAD, (call(1, "qa_chain", {"value": 3}, function=view),))
    (row,) = compare(was, again(call(1, "qa_chain", {"value": 4}, function=view)))
    assert row.state == state


def test_calls_without_an_answer_or_a_chance() -> None:
    was = RecordedCalls(HEAD, (call(1), call(2, "qa_report"), call(3, result={})))
    states = [row.state for row in compare(was, again(call(1, result={}), call(3)))]
    assert states == ["no answer", "not asked", "no answer"]


_json = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(_json, _json)
def test_no_difference_means_equal_but_for_hashes(one: Any, other: Any) -> None:
    assert list(differences(one, one)) == []
    assert bool(list(differences(one, other))) == bool(list(differences(other, one)))
