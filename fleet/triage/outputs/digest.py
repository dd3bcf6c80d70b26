"""The daily digest: which items are new, fixed, regressed and still open since a moment. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass

from fleet.clock import minute
from fleet.text import clean, markdown, markdown_code
from fleet.triage.items.life import OPEN
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import LogPosition, WorklistHeader, sentence
from fleet.triage.outputs.json_file import dump

SHOWN = 50
"""Titles of one group in Markdown."""
FIXED = frozenset({"fixed", "verified-fixed"})
GROUPS = ("new", "regressed", "fixed", "still")
"""Groups of our own items, in the order in which they are shown."""
STRANGERS = "strangers"


@dataclass(frozen=True, slots=True)
class DigestLine:
    """One item of a digest; `at` is when it came to its group (ISO)."""

    fingerprint: str
    severity: str
    surface: str
    title: str
    at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DailyDigest:
    """Since `since` (ISO) as of the log's position; each item is in at most one group.

    `regressed` came back after it was fixed, `fixed` were said to be, `new` were first seen; `still` are the
    other open ones. `strangers` are new ones that only strangers report: a flood of them hides nothing of
    ours. What was dismissed or snoozed is in none.
    """

    since: str
    as_of: LogPosition
    new: tuple[DigestLine, ...] = ()
    fixed: tuple[DigestLine, ...] = ()
    regressed: tuple[DigestLine, ...] = ()
    still: tuple[DigestLine, ...] = ()
    strangers: tuple[DigestLine, ...] = ()


def is_new(item: WorklistItem, since: str) -> bool:
    """Whether it is open and was first seen, or came back, at `since` (ISO) or later."""
    return item.state in OPEN and (item.first_seen >= since or regressed(item, since))


def regressed(item: WorklistItem, since: str) -> bool:
    """Whether it came back at `since` (ISO) or later."""
    back = item.regression or item.state == "regression"  # the latter also of what only this machine saw
    return item.state in OPEN and back and (item.since or item.first_seen) >= since


def daily_digest(
    items: Iterable[WorklistItem], header: WorklistHeader, since: str, left_out: Collection[str] = ()
) -> DailyDigest:
    """The digest of all items, open and closed, in the order given; groups that are `left_out` are empty."""
    groups: dict[str, list[DigestLine]] = {name: [] for name in (*GROUPS, STRANGERS)}
    for item in items:
        if (name := _group(item, since)) is not None and name not in left_out:
            at = item.since if name in ("fixed", "regressed") and item.since else item.first_seen
            one = DigestLine(item.fingerprint, item.severity, item.surface, item.title, at)
            groups[name].append(one)
    made = {name: tuple(lines) for name, lines in groups.items()}
    return DailyDigest(since=since, as_of=header.as_of, **made)


def _group(item: WorklistItem, since: str) -> str | None:
    if item.state in FIXED:
        return "fixed" if item.since >= since else None
    if item.state not in OPEN:
        return None
    if regressed(item, since):
        return "regressed"
    if item.first_seen >= since:
        return "new" if item.trusted else STRANGERS
    return "still"


def digest_json(digest: DailyDigest) -> bytes:
    """The digest as one JSON document."""
    return dump(asdict(digest))


def digest_markdown(digest: DailyDigest, *, terminal: bool = False) -> bytes:
    """The digest for people: counts in the first lines, then the titles of each group; without any mark of
    Markdown for a terminal."""
    said, code = (clean, clean) if terminal else (markdown, markdown_code)
    head = "" if terminal else "#"
    groups = {name: getattr(digest, name) for name in GROUPS}
    counts = ", ".join(f"{len(lines)} {name}" for name, lines in groups.items())
    if digest.strangers:
        groups |= {"new from strangers": digest.strangers}
        counts += f", {len(digest.strangers)} new from strangers"
    since = f"{head} Since {minute(digest.since)} UTC: {counts}".lstrip()
    text = [since, "", f"{sentence(digest.as_of)}."]
    for name, lines in groups.items():
        if not lines:
            continue
        text += ["", f"{head * 2} {name.capitalize()}: {len(lines)}".lstrip(), ""]
        text += [
            f"- {said(one.severity)}, {said(one.surface)}: {said(one.title)} ({code(one.fingerprint)})"
            for one in lines[:SHOWN]
        ]
        text += [f"- {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
    return ("\n".join(text) + "\n").encode()
