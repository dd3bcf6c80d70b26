"""Notices of proposals: an open draft, and what became of it; never what was there before."""

from __future__ import annotations

from fleet.service.notify.news import of_proposals
from fleet.service.notify.state import NoticeState
from fleet.store.rows import ProposalRow, ProposalState

NOW = "2026-11-23T07:00:00Z"


def row(state: ProposalState, ident: str = "r1") -> ProposalRow:
    return ProposalRow(
        proposal_id=ident,
        platform="p",
        item="0123456789ab",
        repository="sample",
        branch="b",
        state=state,
        ref="https://example.org/pull/1",
        why="<!channel>" if state == "closed" else "",
    )


def texts(notices: NoticeState) -> list[str]:
    return [one.text for one in notices.waiting]


def test_what_is_there_at_the_first_look_is_no_news() -> None:
    notices = of_proposals(NoticeState(), [row("open")], NOW)
    assert (texts(notices), notices.proposals) == ([], {"r1": "open"})
    assert texts(of_proposals(notices, [row("open"), row("closed", "r0")], NOW)) == []


def test_a_draft_and_its_end_are_said_once_and_inert() -> None:
    notices = of_proposals(NoticeState(), [], NOW)
    for state in ("begun", "checked", "pushing", "opening", "open", "open", "closed", "closed"):
        notices = of_proposals(notices, [row(state)], NOW)
    assert texts(notices) == [
        "a fix is proposed: https:/ /example.org/pull/1 (0123456789ab)",
        "a proposed fix was closed: https:/ /example.org/pull/1: ‹!channel› (0123456789ab)",
    ]
    assert {one.event for one in notices.waiting} == {"proposal"}


def test_what_never_opened_is_not_said() -> None:
    notices = of_proposals(NoticeState(proposals={}), [row("held"), row("withdrawn", "r2")], NOW)
    assert texts(notices) == []
