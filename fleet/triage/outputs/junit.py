"""The worklist as JUnit XML: an open item is a failed test, a closed one a passed test.

What only strangers say is skipped: anyone can write to the log, and a failed test decides a build.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from fleet.text import clean, line
from fleet.triage.items.life import OPEN
from fleet.triage.items.worklist import WorklistItem
from fleet.triage.outputs.document import WorklistHeader, as_of, opened, remedy_of


def to_junit(items: Sequence[WorklistItem], header: WorklistHeader) -> bytes:
    """UTF-8; `clean` leaves no character that XML 1.0 forbids."""
    listed = opened(items)
    failed = sum(item.trusted for item in listed)
    counts = {"tests": str(len(items)), "failures": str(failed), "errors": "0"}
    skipped = str(len(listed) - failed)
    root = ElementTree.Element("testsuites", {"name": "worklist"} | counts)
    name = line(header.platform) or "worklist"
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": name, "skipped": skipped, "time": "0"} | counts
    )
    if header.as_of.at:
        suite.set("timestamp", header.as_of.at.rstrip("Z"))
    properties = ElementTree.SubElement(suite, "properties")
    ElementTree.SubElement(properties, "property", name="as-of", value=as_of(header.as_of))
    for item in items:
        _case(suite, item)
    ElementTree.indent(root, " ")
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="utf-8"?>\n{text}\n'.encode()


def _case(suite: ElementTree.Element, item: WorklistItem) -> None:
    name = line(f"{item.fingerprint} {item.title}", 300)
    case = ElementTree.SubElement(suite, "testcase", classname=line(item.surface), name=name, time="0")
    if item.state not in OPEN:
        return
    if not item.trusted:
        ElementTree.SubElement(case, "skipped", message="reported by a stranger, not proven")
        return
    failure = ElementTree.SubElement(case, "failure", type=line(item.severity), message=line(item.title, 300))
    lines = [item.why, f"{item.state} since {item.since}" if item.since else item.state, item.stuck]
    digest = f"sha256:{item.evidence}" if item.evidence else ""
    said = {"remedy": remedy_of(item), "evidence": digest, "repro": item.repro}
    lines += [f"{name}: {text}" for name, text in said.items() if text]
    failure.text = "\n".join(clean(text) for text in lines if text)
