"""`worklist.md`: its age, a table for the eye, then one section per open item with its why and its repro.

Everything in an item was cleaned when it was read; the escaping of Markdown is added here, at each value.
"""

from __future__ import annotations

from collections.abc import Sequence

from fleet.clock import minutes
from fleet.text import markdown, markdown_code
from fleet.triage.items.unproven import SEEN, UnprovenCandidate
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader, audited, opened, proven, sentence, standing

SHOWN = 200
"""Items in the Markdown file; the JSON file has all of them."""


def to_markdown(items: Sequence[WorklistItem], header: WorklistHeader) -> bytes:
    """UTF-8; the first line says what the list is as of."""
    listed = opened(items)
    first = f"{sentence(header.as_of)}: {len(listed)} open, {proven(listed)} proven, "
    lines = [f"{first}{len(items) - len(listed)} closed.", "", "# Worklist", ""]
    lines += _beside(header)
    if not listed:
        return "\n".join(
            [*lines, "Nothing is proven." if header.unproven or header.proving else "Nothing to do.", ""]
        ).encode()
    lines += ["| # | severity | surface | finding | count | state | score |", "|--:|---|---|---|--:|---|--:|"]
    lines += [_row(item) for item in listed[:SHOWN]]
    for item in listed[:SHOWN]:
        lines += ["", *_section(item)]
    if len(listed) > SHOWN:
        lines += ["", f"{len(listed) - SHOWN} more in `worklist.json`."]
    return ("\n".join(lines) + "\n").encode()


def _beside(header: WorklistHeader) -> list[str]:
    """What is not in the ranked list: outages, grave findings not proven, strangers' surplus, the audit."""
    lines = [
        f"- outage since {minutes(markdown(one.since))}: {markdown(one.platform)}, {markdown(one.title)}"
        + ("" if one.posted else " (not on the log yet)")
        for one in header.outages
    ]
    if header.strangers_left:
        lines.append(f"- {header.strangers_left} entries of strangers beyond their share are not listed.")
    if header.audit.drawn:
        lines.append(f"- Audit: {audited(header.audit)}.")
    lines += [""] if lines else []
    for heading, ones in (("Seen, being proven", header.proving), ("Not proven yet", header.unproven)):
        if ones:
            lines += [f"## {heading}: {len(ones)}", "", *map(_candidate, ones[:SHOWN]), ""]
    return lines


def _candidate(one: UnprovenCandidate) -> str:
    why = "" if one.why == SEEN else f": {markdown(one.why)}"
    return (
        f"- {markdown(one.severity)}, {markdown(one.surface)}: {markdown(one.title)} "
        f"({markdown_code(one.fingerprint)}, run {markdown(one.run)} of {markdown(one.persona)}{why})"
    )


def _row(item: WorklistItem) -> str:
    texts = (item.severity, item.surface, item.title)
    severity, surface, title = (markdown(text) for text in texts)
    cells = (str(item.rank), severity, surface, title, str(item.count), standing(item), f"{item.score:g}")
    return f"| {' | '.join(cells)} |"


def _section(item: WorklistItem) -> list[str]:
    senders = ", ".join(markdown_code(sender) for sender in item.senders)
    lines = [
        f"## {item.rank}. {markdown(item.title)}",
        "",
        f"- why: {minutes(markdown(item.why))}",
        f"- fingerprint: {markdown_code(item.fingerprint)}",
        f"- seen: {minutes(markdown(item.first_seen))} to {minutes(markdown(item.last_seen))}, by {senders}",
        f"- state: {standing(item)}" + (f" since {minutes(markdown(item.since))}" if item.since else ""),
    ]
    if item.stuck:
        lines.append(f"- now: {minutes(markdown(item.stuck))}")
    if item.stale:
        lines.append("- stale: nothing has looked at it for long")
    lines += [
        f"- {one.kind}{' ?' if one.suggested else ''} {markdown_code(one.other)}: {markdown(one.why)}"
        for one in item.links
    ]
    if one := item.proposal:
        where = " ".join(filter(None, (one.proposal, one.ref, one.why)))
        lines.append(f"- proposal: {markdown(one.state)} {markdown_code(where)}")
    if item.repro:
        lines.append(f"- repro: {markdown_code(item.repro)}")
    if item.evidence:
        lines.append(f"- evidence: {markdown_code('sha256:' + item.evidence)}")
    return lines
