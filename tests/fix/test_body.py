"""The texts of a proposal: golden files, and nothing live of what strangers wrote."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from fleet.config.propose import ServiceSection
from fleet.errors import FixError
from fleet.findings.repro import ReproCall, parse_repro
from fleet.fix.model import GateReport
from fleet.fix.publish.body import (
    FOLD,
    MOST,
    TITLE,
    UNFOLD,
    closing_comment,
    commit_message,
    is_marked,
    marker,
    proposal_body,
    proposal_title,
)
from tests.fix.published_task import FINGERPRINT, patch, report, task
from tests.fix.tasks import repository
from tests.triage.hostile import ESCAPES, MARKUP

GOLDEN = Path(__file__).parent / "golden"
GITHUB = {
    "mention": "ask @octocat, @acme/team and \u200b@\u200bspaced",
    "reference": "fixes #12, closes acme/widget#3, resolves GH-7, fix: #1",
    "address": "fixes https://github.com/acme/widget/issues/12 and acme/widget/pull/9",
    "checks": "[skip ci] [ci skip] [no ci] [skip actions] [actions skip] ***NO_CI***",
    "robots": "/approve\n/lgtm\nbors r+\n@dependabot merge\nskip-checks: true\nSigned-off-by: a <a@b>",
    "marker": "qa-fleet-item: ffffffffffff\nqa-fleet-item: ffffffffffff",
    "fences": "```\n````\n~~~~\n</details>\n```suggestion\nx\n```",
}
HOSTILE = {**ESCAPES, **MARKUP, **GITHUB}
LIVE = re.compile(
    r"@[\w-]|#\d|\bgh-\d|/(?:issues|pulls?)/\d|\[(?:skip|no|ci|actions)\b|\*\*\*no_ci|[\u202a-\u202e\x1b]",
    re.I,
)
HEADINGS = ["What is wrong", "How to see it", "What this changes", "What was checked", "How to silence it"]


@pytest.mark.parametrize(("name", "text"), [("fix", None), ("test-only", b"")])
def test_the_texts_are_as_in_the_golden_file(name: str, text: bytes | None) -> None:
    told = report(patch() if text is None else patch(text), code=1, stderr="thread 'main' panicked")
    said = "\n".join(
        (proposal_title(task(), told), commit_message(task(), told), proposal_body(task(), told))
    )
    assert said == (GOLDEN / f"proposal-{name}.md").read_text()


def hostile_texts(text: str) -> tuple[str, str, str, str]:
    """Title, body, commit message and comment, all of whose foreign texts are this one."""
    calls = (ReproCall("qa_compile", {"source": text.encode("utf-8", "replace").decode()}),)
    of = task(calls=calls, title=text, severity=text, surface=text, last_seen=text, evidence=text)
    told = report(None, text, seen=text, more={"deep": [text]})
    return (
        proposal_title(of, told),
        proposal_body(of, told),
        commit_message(of, told),
        closing_comment(of, text),
    )


def live_in(title: str, body: str, message: str, comment: str) -> list[str]:
    """What a reader, GitHub or a robot would act on, in words."""
    found = [
        f"live: {match[0]!r}" for text in (title, body, message, comment) for match in LIVE.finditer(text)
    ]
    found += ["long"] * (len(title) > TITLE or len(body) > MOST or "\n" in title)
    plain = body.replace(f"\n{FOLD}\n", "", 1).replace(f"\n{UNFOLD}\n", "", 1)
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": True}).parse(plain + "\n" + comment)
    inner = [one for token in tokens for one in (token, *(token.children or ()))]
    wrong = {
        "link_open",
        "image",
        "html_inline",
        "html_block",
        "em_open",
        "s_open",
        "code_block",
        "blockquote_open",
    }
    found += sorted(wrong & {token.type for token in inner})
    headings = [tokens[at + 1].content for at, one in enumerate(tokens) if one.type == "heading_open"]
    found += [f"headings: {headings}"] * (headings != HEADINGS)
    fences = sum(token.type == "fence" for token in tokens)
    found += [f"fences: {fences}"] * (fences > 1)
    cells = sum(token.type == "td_open" for token in tokens)
    found += [f"cells: {cells}"] * (cells != 4 * 11)
    marks = [
        one for text in (body, message, comment) for one in text.splitlines() if "qa-fleet-item" in one[:13]
    ]
    return found + [f"marks: {marks}"] * (marks != [f"qa-fleet-item: {FINGERPRINT}"] * 3)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_of_a_stranger_is_live(name: str) -> None:
    assert live_in(*hostile_texts(HOSTILE[name])) == []


@settings(max_examples=60)
@given(
    st.lists(st.one_of(st.sampled_from(sorted(HOSTILE.values())), st.text(max_size=40)), max_size=6).map(
        "".join
    )
)
def test_nothing_of_any_text_is_live(text: str) -> None:
    assert live_in(*hostile_texts(text)) == []


@pytest.mark.parametrize("char", ["`", "|", "\\", "\u4e00", "@a", "#1", '"', "\x00"])
def test_a_body_keeps_to_the_limit_of_github(char: str) -> None:
    calls = tuple(ReproCall("qa_compile", {"source": f"{number}{char}" * 900}) for number in range(4))
    told = report(None, char * 70_000, seen=char * 70_000)
    told = GateReport(told.steps * 9, told.patch, 9)
    assert len(proposal_body(task(calls=calls, title=char * 70_000), told)) < MOST


@pytest.mark.parametrize("name", HOSTILE)
def test_a_repro_that_is_shown_means_the_same(name: str) -> None:
    calls = (ReproCall("qa_compile", {"source": HOSTILE[name] + "```"}),)
    (shown,) = re.findall(r"```text\n(.*)\n```", proposal_body(task(calls=calls), report()))
    assert parse_repro(shown) == calls


@pytest.mark.parametrize(
    ("count", "said"),
    [(1, "The repro has 18021 characters; the regression"), (17, "The repro cannot be shown;")],
)
def test_a_repro_too_long_to_show_is_named(count: int, said: str) -> None:
    source = "".join(random.Random(7).choices("0123456789", k=18_000))
    body = proposal_body(task(calls=(ReproCall("qa_compile", {"source": source}),) * count), report())
    assert (f"\n{said}" in body, source[:100] in body) == (True, False)


def test_a_draft_says_what_was_answered_and_what_was_expected() -> None:
    told = report(None, answered="500 oops @octocat", expected="a page is answered without an error")
    body = proposal_body(task(), told)
    said = "answers `500 oops @ octocat`. What was expected: `a page is answered without an error`."
    assert f"`the compiler panics on an empty enum`. A build of the base {said}\n" in body
    assert body.index(FOLD) < body.index("| step |") < body.index(UNFOLD)


@pytest.mark.parametrize(
    ("title", "clean"),
    [
        ("GET {site}/list?per=0: 500", "GET /list?per=0: 500"),
        ("{face:docs} reflects a script", "docs reflects a script"),
        ("POST {proxy}/v1/x:y fails [fast]", "POST /v1/x:y fails (fast)"),
    ],
)
def test_a_title_has_no_placeholders(title: str, clean: str) -> None:
    assert proposal_title(task(title=title), report()) == f"qa-fleet: {clean}"
    call = ReproCall("qa_fetch", {"url": "{site}/list?per=0"})
    body = proposal_body(task(title=title, calls=(call,)), report(None, answered="500"))
    assert f"`{clean}`. To `GET /list?per=0`, a build of" in body.replace("[fast]", "(fast)")


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ({"url": "{site}/list?per=0"}, "'http://127.0.0.1:8080/list?per=0'"),
        (
            {"url": "{site}/a", "method": "POST", "headers": {"x-a": "b c"}, "body": "it's"},
            "-X POST -H 'x-a: b c' --data-raw 'it'\"'\"'s' http://127.0.0.1:8080/a",
        ),
        ({"url": "{site}/ask@octocat"}, ""),
        ({"url": "{proxy}/a"}, ""),
    ],
)
def test_a_page_has_its_command_line(args: dict[str, Any], line: str) -> None:
    served = repository().model_copy(update={"service": ServiceSection(command=("serve", "{port}"))})
    body = proposal_body(task(on=served, calls=(ReproCall("qa_fetch", args),)), report())
    shown = f"```sh\ncurl -isS --globoff --path-as-is {line}\n```"
    assert (shown in body) if line else ("curl" not in body)


def test_a_marker_counts_as_a_whole_line_only() -> None:
    own = marker(task())
    assert is_marked(f"x\r\n  {own}\r\ny", task())
    assert not is_marked(f"x {own}", task())
    assert not is_marked(own + "0", task())


def test_a_report_that_held_has_no_body() -> None:
    with pytest.raises(FixError, match="the fix gate held"):
        proposal_body(task(), GateReport(report().steps, None))
