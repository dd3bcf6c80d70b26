"""The texts of a proposal: title, body, commit message, and the comment that closes it. Pure.

Texts of strangers stand in code spans only, one line each and never at the start of a line: there GitHub
makes no link, image, mention or reference of them, and a robot finds no command. A backslash would not do:
GitHub looks for `@name` and `#1` after Markdown was rendered. With "squash and merge" a body becomes a commit
message, where nothing is code, so that what closes issues or skips the checks is broken up as well.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from fleet.errors import FixError
from fleet.findings.repro import ReproError, write_repro
from fleet.fix.build_calls import PORT
from fleet.fix.model import CheckedPatch, FixTask, GateReport, GateStep, StepResult
from fleet.text import counted, line, markdown_code

MOST = 65_536
"""GitHub's limit of a body, in characters."""
TITLE = 200
"""Characters of a title; GitHub takes 256."""
SHOWN = 400
"""Characters of any one text of others in a body."""
REPRO = 16_384
"""Characters of a repro that is shown whole; a longer one is in the regression test."""
STEPS = 30
"""Steps of the gate that are shown: the last ones."""
FILES = 10
"""Changed files that are named; the request itself shows all."""
FOLD, UNFOLD = "<details><summary>Every step of the gate</summary>", "</details>"
"""Around what few read; the only HTML of a body."""
MARK, _ANSWER = "qa-fleet-item: ", "qa-fleet-answer: "

_LIVE = re.compile(
    r"@(?=[\w-])|#(?=\d)|\bgh-(?=\d)|\b(?:issues|pulls?|discussions)/(?=\d)|\[(?=(?:skip|no|ci|actions)\b)"
    r"|\*\*\*(?=no_ci)|`{3,}",
    re.IGNORECASE,
)
"""Mentions, references to issues, what makes GitHub skip the checks of a commit, and ends of a fence."""

_STEPS = {
    GateStep.REPRODUCE: "the defect shows on a build of the base",
    GateStep.TEST_FAILS: "the regression test fails on the base, for the item's reason",
    GateStep.LIMITS: "the patch keeps to its paths and sizes",
    GateStep.TEST_PASSES: "the regression test passes with the patch",
    GateStep.TEST_FAILS_AGAIN: "it fails again with the patch reverted",
    GateStep.OWN_TESTS: "the repository's own tests pass with the patch",
    GateStep.VARIANTS: "the repro and its neighbours are clean, a control answers",
}


def marker(task: FixTask) -> str:
    """The line by which the fleet knows a proposal as its own."""
    return MARK + task.item.fingerprint


def is_marked(text: str, task: FixTask) -> bool:
    """Whether a text has the marker of this item, as a line of its own."""
    return marker(task) in (one.strip() for one in text.splitlines())


def proposal_title(task: FixTask, report: GateReport) -> str:
    """One plain line; not begun with a word like "fix", which before a number would close an issue."""
    kind = "" if _passed(report).fixes else "failing test for "
    title = _broken(line(_bare(task.item.title), TITLE)).replace("://", ": //")
    title = title.translate(str.maketrans("[]`<>", "()'()"))
    return line(f"qa-fleet: {kind}{title or 'an item without a title'}", TITLE)


def commit_message(task: FixTask, report: GateReport) -> str:
    """Subject, what it is, and the marker as the trailer."""
    what = (
        "Fix and regression test, proposed by the QA fleet; no person has read it yet."
        if _passed(report).fixes
        else "Regression test only: it fails until the defect is fixed. Written by the QA fleet."
    )
    return f"{proposal_title(task, report)}\n\n{what}\n\n{marker(task)}\n"


def proposal_body(task: FixTask, report: GateReport) -> str:
    """Markdown of at most `MOST` characters; see the module."""
    item, patch = task.item, _passed(report)
    changed = (
        f"{counted(len(patch.files), 'file')}, {counted(patch.added, 'line')} added, {patch.removed} removed"
    )
    lines = [
        "A machine wrote this draft: the QA fleet's fix agent. It needs a person to read, judge and merge "
        "it; the fleet never merges, and has no code that could.",
        "",
        f"## What is wrong\n\n{_cause(task, report.steps)}",
        "",
        f"- Severity: {said(item.severity)}, surface: {said(item.surface)}",
        f"- Item: {said(item.fingerprint)}, seen {counted(item.count, 'time')}, last {said(item.last_seen)}",
        _source(task),
        f"- Evidence (SHA-256): {said(f'sha256:{item.evidence}') if item.evidence else 'none'}",
        "",
        f"## How to see it\n\n{_repro(task)}",
        *_curl(task),
        "",
        "## What this changes",
        "",
        f"- {changed}, against {said(patch.base)}"
        if patch.fixes
        else "- No fix: only a regression test, which fails until the defect is fixed.",
        *(f"  - {said(path, SHOWN // 2)}" for path in patch.files[:FILES]),
        f"- Regression test: {said(patch.test.path)}",
        "",
        f"## What was checked\n\nIn jails, in this order; rounds: {report.rounds}.",
        "",
        FOLD,
        "",
        *_gate(report.steps),
        "",
        UNFOLD,
        "",
        _silence(task),
        "",
        marker(task),
    ]
    return "\n".join(lines) + "\n"


def closing_comment(task: FixTask, why: str) -> str:
    """The comment with which the fleet closes its own draft."""
    return f"The QA fleet closes its own draft: {said(why)}\n\n{marker(task)}\n"


def answers(text: str, task: FixTask, comment: int) -> bool:
    """Whether a text is our answer to that comment."""
    return _answer_mark(task, comment) in (one.strip() for one in text.splitlines())


def answering_comment(task: FixTask, comment: int, steps: Sequence[StepResult]) -> str:
    """The answer to a comment of a person: what the gate saw, and that a machine wrote it."""
    lines = [
        f"A person who runs the QA fleet asked it to answer comment {comment}. A machine wrote this: what "
        "the fix gate saw in its jails, in this order.",
        "",
        *_gate(steps),
        "",
        _answer_mark(task, comment),
    ]
    return "\n".join(lines) + "\n"


def _answer_mark(task: FixTask, comment: int) -> str:
    return f"{_ANSWER}{task.item.fingerprint} {comment}"


def said(text: str, limit: int = SHOWN) -> str:
    """A text of others as a code span of one line, with nothing in it that GitHub acts on."""
    return markdown_code(_broken(line(text, limit)).replace("`", "'"), 2 * limit)


def _passed(report: GateReport) -> CheckedPatch:
    if report.patch is None:
        raise FixError("the fix gate held: there is nothing to propose")
    return report.patch


def _broken(text: str) -> str:
    return _LIVE.sub(lambda match: match[0] + " ", text)


def _cause(task: FixTask, steps: Sequence[StepResult]) -> str:
    """What is wrong in prose: what a build of the base has answered to what, and what was expected."""
    seen = next((one.evidence for one in steps if one.step is GateStep.REPRODUCE), {})
    call = task.calls[-1]
    asked = f"{call.args.get('method', 'GET')} {call.args.get('url', '')}" if call.tool == "qa_fetch" else ""
    text = f"{said(_bare(task.item.title))}."
    if answered := seen.get("answered"):
        to = f"To {said(_bare(asked))}, a" if asked else "A"
        text += f" {to} build of the base answers {said(str(answered))}."
    if expected := seen.get("expected"):
        text += f" What was expected: {said(str(expected))}."
    return text


def _bare(text: str) -> str:
    """Without the placeholders of a profile, which say nothing outside of the fleet."""
    return re.sub(r"\{(?:site|proxy)\}(?=/)|\{face:([^{}]*)\}", r"\1", text)


def _curl(task: FixTask) -> list[str]:
    """The last call as a command line, where it is a page's and holds nothing that GitHub acts on."""
    call, service = task.calls[-1], task.repository.service
    url = str(call.args.get("url", ""))
    if call.tool != "qa_fetch" or service is None or not url.startswith("{site}/"):
        return []
    words = ["curl", "-isS", "--globoff", "--path-as-is"]
    if (method := str(call.args.get("method", "GET"))) != "GET":
        words += ["-X", method]
    for name, value in dict(call.args.get("headers", {})).items():
        words += ["-H", f"{name}: {value}"]
    if body := call.args.get("body"):
        words += ["--data-raw", str(body)]
    text = shlex.join([*words, f"http://127.0.0.1:{PORT}{url.removeprefix('{site}')}"])
    if _LIVE.search(text) or not text.isprintable() or len(text) > 2 * SHOWN or call.args.get("fields"):
        return []
    return ["", f"With the service on port {PORT}:", "", f"```sh\n{text}\n```"]


def _source(task: FixTask) -> str:
    if task.item.entry < 0 or not task.sender:
        return "- Source: found by the fleet; on no log."
    return (
        f"- Source: entry {task.item.entry} of the feedback log (epoch {task.item.epoch}), "
        f"by {said(task.sender)} at {said(task.posted)}"
    )


def _repro(task: FixTask) -> str:
    """The calls in a fence; what is live in them is written as JSON escapes, which mean the same."""
    try:
        text = write_repro(task.calls)
    except ReproError:
        return "The repro cannot be shown; the regression test holds it."
    text = _LIVE.sub(lambda match: "".join(map(_escaped, match[0])), text)
    if len(text) > REPRO:
        return f"The repro has {len(text)} characters; the regression test holds it."
    return f"```text\n{text}\n```"


def _escaped(char: str) -> str:
    return char if char.isalnum() else f"\\u{ord(char):04x}"


def _gate(steps: Sequence[StepResult]) -> list[str]:
    rows = [
        f"| {one.step.value} | {_STEPS[one.step]} | {'passed' if one.passed else '**failed**'} "
        f"| {_seen(one)} |"
        for one in steps[-STEPS:]
    ]
    left = len(steps) - len(rows)
    return [
        *([f"{left} earlier steps are not shown.", ""] if left > 0 else []),
        "| step | it shows that | verdict | seen |",
        "|---|---|---|---|",
        *rows,
    ]


def _seen(step: StepResult) -> str:
    evidence = json.dumps(dict(step.evidence), default=str, ensure_ascii=False) if step.evidence else ""
    return " ".join(said(text, SHOWN // 2) for text in (step.words, evidence) if text)


def _silence(task: FixTask) -> str:
    item = task.item.fingerprint
    return (
        "## How to silence it\n\n"
        "- Close this draft: the fleet opens no other one for the same change.\n"
        f"- Where the fleet runs: `fleet items dismiss {item}` or `fleet items snooze {item}`, "
        f"`fleet propose withdraw` for this draft.\n"
        "- For good: remove the fleet's token, or set its dial below `propose`."
    )
