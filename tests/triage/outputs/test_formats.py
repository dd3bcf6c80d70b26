"""Every format holds every text as text: nothing is a link, a tag, a formula, a placeholder or an escape."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import string
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import jsonschema
import pytest
import sarif_pydantic
from markdown_it import MarkdownIt

from fleet.errors import ConfigError
from fleet.files import ROOT
from fleet.findings.kinds import kinds
from fleet.findings.repro import ReproCall, write_repro
from fleet.store.rows import FindingRow
from fleet.triage.items.unproven import UnprovenCandidate
from fleet.triage.items.worklist import ItemLink, WorklistItem
from fleet.triage.outputs import sarif
from fleet.triage.outputs.csv_file import COLUMNS, to_csv
from fleet.triage.outputs.digest import daily_digest, digest_markdown
from fleet.triage.outputs.document import AuditRate, ListedOutage, LogPosition, WorklistHeader, document
from fleet.triage.outputs.html_page import to_html
from fleet.triage.outputs.item_page import ItemPage, Picture, item_page
from fleet.triage.outputs.json_file import dump, read_document, schema, to_json
from fleet.triage.outputs.junit import to_junit
from fleet.triage.outputs.markdown import to_markdown
from fleet.triage.outputs.repro_shell import ShellPlace
from fleet.triage.outputs.sarif import FINGERPRINT, to_sarif
from tests.triage.outputs import code_scanning
from tests.triage.outputs.code_scanning import refusals

HERE = Path(__file__).parent
NOW = "2026-11-21T22:51:10Z"
TEXTS = (
    "![x](http://evil.test/?q=1) [y](javascript:alert(1)) <http://evil.test> http://evil.test www.evil.test",
    "<script>alert(1)</script><img src=x onerror=alert(1)><!-- --> &lt;b&gt; </style></title>",
    "`code` ``x`` ```\n# heading\n| a | b |\n|---|---|",
    "=cmd|' /C calc'!A0 {{7*7}} {0} %s \"quoted\", and; 'single'",
    "\t=1+1",
    "\r@SUM(A1)",
    "+1 -1 ~x~ *x* _x_ **x**",
    "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil.test\x07click\x1b]8;;\x07 \u202egnp.exe\x00\ufffe",
    "]]> </failure> <![CDATA[ \ud800",
    "",
)
STRANGER = "0x" + "11" * 20


def item(number: int, text: str, **more: object) -> WorklistItem:
    """An item in which every text is this one."""
    made = WorklistItem(
        rank=number,
        fingerprint=f"{number:012x}",
        severity="high",
        surface=text,
        title=text,
        count=1,
        confirmed=False,
        repro="",
        evidence="",
        score=1.5,
        why=text,
        first_seen=NOW,
        last_seen=NOW,
        senders=(STRANGER,),
        trusted=False,
        proof="untrusted",
        state="new",
        reason=text,
        stuck=text,
        source=text,
        links=(ItemLink("duplicate", "0" * 12, text, "similarity", suggested=True),),
    )
    return replace(made, **more)  # type: ignore[arg-type]


OWN = {"trusted": True, "proof": "confirmed", "state": "confirmed", "confirmed": True, "source": "qa-ux"}
ITEMS = (
    *(item(number, text) for number, text in enumerate(TEXTS, 1)),
    item(20, "GET {site}/a b: 500", repro='qa_fetch(url="{site}/a b?q=<x>[y]%zz")', surface="ux", **OWN),
    item(21, "agents", repro='qa_fetch(url="http://api.test/v1")', surface="security", **OWN),
    item(22, "compile panics", repro='qa_compile(source="enum E{}")', surface="compiler", **OWN),
    item(0, "was wrong", **OWN | {"state": "dismissed", "reason": "by [design](http://evil.test)"}),
    item(0, "is gone", **OWN | {"state": "verified-fixed", "surface": "ux"}),
)
HEADER = WorklistHeader(
    platform="devnet",
    as_of=LogPosition(1, 5, NOW),
    strangers_left=2,
    audit=AuditRate(4, 1),
    unproven=tuple(
        UnprovenCandidate(
            fingerprint="ab" * 6,
            severity="high",
            surface=text,
            title=text,
            persona=text,
            run=text,
            repro="",
            why=text,
            at=NOW,
            runs=1,
        )
        for text in TEXTS
    ),
    outages=tuple(
        ListedOutage(platform=text, fingerprint="cd" * 6, severity="high", since=NOW, title=text)
        for text in TEXTS
    ),
)


AT = ShellPlace(site="http://site.test", proxy="http://proxy.test", state="/state")
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SHOWN = (
    (
        "Script injection: GET docs/?q=x: 200, runs as script",
        "critical",
        {"url": "{site}/docs?q=" + "x" * 80},
    ),
    (
        "Foreign origin is allowed: GET /api from the origin http://localhost.evil.test",
        "high",
        {"url": "{site}/api"},
    ),
    (
        "Caller identity can be forged: a call of claude",
        "medium",
        {"target": "claude", "message": "hi " * 90},
    ),
)


def paged() -> tuple[list[WorklistItem], dict[str, ItemPage]]:
    """Items of three kinds with all that a page has, and one that is closed."""
    items, pages = [], {}
    for number, (title, severity, args) in enumerate(SHOWN, 1):
        tool = "qa_fetch" if "url" in args else "qa_call"
        repro = write_repro([ReproCall(tool, args)])
        state = {
            "severity": severity,
            "surface": "security",
            "repro": repro,
            "evidence": "e" * 64,
            "links": (),
            "reason": "",
        }
        items.append(item(number, title, **OWN | state))
        result = {
            "status": 200,
            "headers": {"vary": "origin"},
            "text": "<p>" + "y" * 300,
            "caller": "0x" + "5" * 40,
        }
        probe = {"expect": 'result.status >= 400 && result.caller != "x"', "finding": "", "kind": ""}
        row = FindingRow(
            run_id="r1",
            fingerprint=items[-1].fingerprint,
            title=title,
            evidence="e" * 64,
            confirmed=3,
            tries=3,
            data={"probe": probe, "seen": title, "fields": ["status", "caller"]},
        )
        steps = [{"tool": tool, "args": args, "result": result | {"caller": "none"}}]
        steps.append({"tool": tool, "args": args, "result": result})
        picture = Picture(name="the page as a browser showed it", type="image/png", data=PIXEL)
        bundle = {"steps": steps, "load": "load 1.0 on 2 cores"}
        pages[items[-1].fingerprint] = item_page(
            title, repro, AT, row=row, bundle=bundle, pictures=(picture,)
        )
    closed = item(0, "was wrong", **OWN | {"state": "dismissed", "surface": "ux", "links": ()})
    return [*items, closed], pages


@pytest.mark.parametrize("written", [to_markdown, to_html, to_junit], ids=lambda one: one.__name__)
def test_no_control_character_is_in_a_file_for_people(written: object) -> None:
    text = written(ITEMS, HEADER).decode()  # type: ignore[operator]
    assert [char for char in text if not (char.isprintable() or char == "\n")] == []
    assert "gnp.exe" in text.replace("\\.", ".")  # in Markdown the dot is escaped: it would be a link


def test_markdown_renders_nothing_live() -> None:
    tokens = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(
        to_markdown(ITEMS, HEADER).decode()
    )
    inner = [one for token in tokens for one in (token, *(token.children or ()))]
    kinds = {token.type for token in inner}
    assert not kinds & {"link_open", "image", "html_inline", "html_block", "em_open", "strong_open", "s_open"}
    assert not kinds & {"fence", "code_block", "blockquote_open", "ordered_list_open"}
    headings = [token.tag for token in inner if token.type == "heading_open"]
    assert headings == ["h1", "h2", *["h2"] * sum(one.rank > 0 for one in ITEMS)]
    rows = sum(token.type == "tr_open" for token in inner)
    assert rows == 1 + sum(one.rank > 0 for one in ITEMS)
    assert sum(token.type == "td_open" for token in inner) == 7 * (rows - 1)
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", to_markdown(ITEMS, HEADER).decode())  # of code spans
    assert "evil" in outside
    assert re.search(r"(?<!\\)://evil", outside) is None


def test_markdown_is_legible_unrendered() -> None:
    title = "GET {site}/llms.txt: 500, {proxy}/api has_entry [1] is (not) ~5 $3 a.b"
    text = to_markdown([item(1, title, **OWN | {"surface": "ux"})], HEADER).decode()
    assert "GET `{site}/llms.txt`: 500, {proxy}/api has_entry `[1]` is (not) `~5 $3 a.b`" in text
    assert "\\" not in "".join(line for line in text.splitlines() if "GET" in line)
    printed = digest_markdown(daily_digest([item(1, title, **OWN)], HEADER, "")).decode()
    assert "{site}/llms.txt" in printed
    assert "\\" not in printed


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_the_page_has_only_its_own_tags_and_a_strict_policy() -> None:
    text = to_html(ITEMS, HEADER).decode()
    page = _Tags()
    page.feed(text)
    shown = "main p h1 h2 h3 ul li bdi code pre article span table thead tbody tr th td details summary"
    assert page.tags == set(f"html head meta title style script body {shown}".split())
    keys = {f"data-{one}" for one in ("rank", "severity", "grave", "surface", "many", "age", "state")}
    own = {"lang", "charset", "http-equiv", "content", "name", "scope", "class"}
    assert page.attributes == own | keys
    script = (ROOT / "fleet/triage/outputs/page.js").read_text("utf-8")
    assert text.count("<script>") == 1
    assert f"<script>{script}</script>" in text
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    kept = re.sub(r"'sha256-[A-Za-z0-9+/=]{44}'", "HASH", policy[1])
    own_files = "style-src HASH; script-src HASH; img-src data:"
    assert kept == f"default-src 'none'; {own_files}; base-uri 'none'; form-action 'none'"
    assert "&lt;script&gt;alert(1)" in text


def test_a_page_of_nothing_says_so() -> None:
    text = to_html((), WorklistHeader()).decode()
    assert "Nothing to do." in text
    assert "As of an empty log: 0 open, 0 proven, 0 closed." in text


def test_no_cell_is_a_formula() -> None:
    rows = list(csv.reader(StringIO(to_csv(ITEMS).decode())))
    assert rows[0] == list(COLUMNS)
    assert len(rows) == 1 + len(ITEMS)
    texts = [cell for row in rows[1:] for name, cell in zip(COLUMNS, row, strict=True) if name != "score"]
    assert [cell for cell in texts if cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    assert [row[4] for row in rows[4:8]] == [
        "'" + TEXTS[3],
        "' =1+1",
        "' @SUM(A1)",
        "'" + TEXTS[6],
    ]


def test_junit_reads_back_with_its_counts() -> None:
    root = ElementTree.fromstring(to_junit(ITEMS, HEADER))
    suite = root[0]
    cases = suite.findall("testcase")
    failed = [case for case in cases if case.find("failure") is not None]
    skipped = [case for case in cases if case.find("skipped") is not None]
    assert (len(cases), len(failed), len(skipped)) == (len(ITEMS), 3, len(TEXTS))
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["15", "3", "0", "10"]
    assert [case.get("name") for case in cases if case not in (*failed, *skipped)] == [
        "000000000000 was wrong",
        "000000000000 is gone",
    ]
    assert all(case.get("classname") is not None and case.get("name") for case in cases)


def test_sarif_is_valid_by_the_official_schema() -> None:
    official = json.loads((HERE / "sarif-2.1.0.json").read_text("utf-8"))
    check = jsonschema.validators.validator_for(official)
    check.check_schema(official)
    validator = check(official, format_checker=check.FORMAT_CHECKER)
    shown, pages = paged()
    for items in (ITEMS, shown, ()):
        made = json.loads(to_sarif(items, HEADER, pages))
        assert [error.message for error in validator.iter_errors(made)] == []


def test_sarif_is_read_by_the_types_of_others() -> None:
    run = sarif_pydantic.Sarif.model_validate_json(to_sarif(ITEMS, HEADER)).runs[0]
    assert [one.partial_fingerprints for one in run.results or ()] == [
        {FINGERPRINT: one.fingerprint} for one in ITEMS
    ]


MULTITOOL = os.environ.get("SARIF_MULTITOOL", "")


@pytest.mark.skipif(not MULTITOOL, reason="SARIF_MULTITOOL is not set: path of Microsoft's Sarif.Multitool")
def test_sarif_passes_microsofts_validator(tmp_path: Path) -> None:
    path = tmp_path / "worklist.sarif"
    items, pages = paged()
    path.write_bytes(to_sarif((*items, *ITEMS), HEADER, pages))
    done = subprocess.run(
        [MULTITOOL, "validate", str(path), "--rule-kind", "Sarif;Ghas"],  # the second are GitHub's own
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert [line for line in done.stdout.splitlines() if ": error " in line] == []
    assert "Analysis completed successfully." in done.stdout


def test_sarif_has_what_its_readers_need() -> None:
    run = json.loads(to_sarif(ITEMS, HEADER))["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == [
        "stranger",
        "ux/qa-ux",
        "security/qa-ux",
        "compiler/qa-ux",
        "was-wrong/qa-ux",
    ]
    for one in run["results"]:
        assert one["message"]["text"]
        assert "markdown" not in one["message"]
        assert rules[one["ruleIndex"]] == one["ruleId"]
        assert one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.search(r"(?<!\\)\[[^\]]*\]\(", one["message"]["text"]) is None
    places = [one["locations"][0]["physicalLocation"]["artifactLocation"] for one in run["results"][10:13]]
    assert places == [
        {"uri": "a%20b?q=%3Cx%3E%5By%5D%25zz", "uriBaseId": "site"},
        {"uri": "api.test/v1"},
        {"uri": "worklist.json"},
    ]
    assert [one.get("suppressions") for one in run["results"]][-2][0]["justification"] == (
        "by \\[design\\](http://evil.test)"
    )


SEVERITIES = ("critical", "high", "medium", "low", "info", "unknown")


def levels(**more: object) -> list[str]:
    made = to_sarif([item(1, "x", severity=one, **more) for one in SEVERITIES], HEADER)
    return [one["level"] for one in json.loads(made)["runs"][0]["results"]]


def test_sarif_levels_follow_the_severity() -> None:
    assert levels(**OWN) == ["error", "error", "warning", "note", "note", "note"]


def test_no_stranger_fails_a_check() -> None:
    assert levels() == ["note"] * len(SEVERITIES)
    for severity in SEVERITIES:
        (suite,) = ElementTree.fromstring(to_junit([item(1, "x", severity=severity)], HEADER))
        assert [suite.get(name) for name in ("failures", "errors", "skipped")] == ["0", "0", "1"]
        assert suite.find(".//failure") is None


PLACES = {
    "http://api.test/v1": "api.test/v1",
    "https://user:pass@api.test:8443/v1/?a=b:c/d": "api.test%3A8443/v1/?a=b:c/d",
    "HTTP://API.test": "API.test",
    "http://127.0.0.1:8080": "127.0.0.1%3A8080",
    "http://[::1]:8080/x": "%5B%3A%3A1%5D%3A8080/x",
    "http://[fe80::1%25eth0]/": "%5Bfe80%3A%3A1%25eth0%5D/",
    "http://[::1/x": "%5B%3A%3A1/x",
    "ftp://files.test/a": "files.test/a",
    "http://../../etc": "etc",
    "http:///x": "worklist.json",
    "javascript:alert(1)": "worklist.json",
    "{site}/a:b/c:d": "a%3Ab/c%3Ad",
    "{site}/javascript:alert(1)": "javascript%3Aalert(1)",
    "{site}:8080/x": "%3A8080/x",
    "{site}//evil.test/x": "evil.test/x",
    "{site}/http://evil.test/x": "http%3A/evil.test/x",
    "{site}/../../.git/./config": ".git/config",
    "{site}/a#b\\c": "a%23b%5Cc",
    "{site}?q=[1]": ".?q=%5B1%5D",
    "{site}/": ".",
    "{proxy}/v1": "v1",
    "{face:qa}/x": "worklist.json",
}


def placed(url: str) -> WorklistItem:
    return item(1, "x", repro=write_repro([ReproCall("qa_fetch", {"url": url})]), **OWN)


@pytest.mark.parametrize(("url", "uri"), PLACES.items())
def test_code_scanning_takes_every_place(url: str, uri: str) -> None:
    made = to_sarif([placed(url)], HEADER)
    result = json.loads(made)["runs"][0]["results"][0]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri
    assert refusals(made) == []


def test_code_scanning_takes_every_text() -> None:
    items, pages = paged()
    assert refusals(to_sarif((*items, *ITEMS), HEADER, pages)) == []
    assert refusals(to_sarif((), HEADER)) == []


def test_the_list_for_code_scanning_ends_where_it_takes_no_more_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert code_scanning.MOST["results"] == sarif.RESULTS
    monkeypatch.setattr(sarif, "RESULTS", 250)
    items = [item(number, "x", **OWN) for number in range(1, 253)]
    run = json.loads(to_sarif(items, HEADER))["runs"][0]
    assert (len(run["results"]), run["properties"]["leftOut"]) == (250, 2)
    assert run["results"][-1]["partialFingerprints"] == {FINGERPRINT: items[249].fingerprint}


def test_the_list_for_code_scanning_ends_where_it_takes_no_more_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert code_scanning.BYTES == sarif.BYTES
    monkeypatch.setattr(sarif, "BYTES", 200_000)
    drawn, letters = Random(1), string.ascii_letters + string.digits
    texts = ("".join(drawn.choices(letters, k=2_300)) for _ in range(140))
    items = [
        item(number, text[:300], **OWN | {"why": text[300:1_300], "repro": text[1_300:]})
        for number, text in enumerate(texts, 1)
    ]
    made = to_sarif(items, HEADER)
    run = json.loads(made)["runs"][0]
    assert len(gzip.compress(made)) <= 200_000
    assert 0 < run["properties"]["leftOut"] == len(items) - len(run["results"]) < len(items) // 2


def test_the_published_schema_is_the_one_of_the_code() -> None:
    published = (ROOT / "docs" / "reference" / "worklist.schema.json").read_bytes()
    assert published == dump(schema())


def test_the_json_file_fits_its_schema_and_reads_back() -> None:
    header = replace(HEADER, unproven=HEADER.unproven[:1], outages=HEADER.outages[:1])
    text = to_json(ITEMS[-5:], header)
    jsonschema.Draft202012Validator(schema()).validate(json.loads(text))
    assert read_document(text.decode()) == document(ITEMS[-5:], header)
    assert [one.title for one in read_document(text.decode()).closed] == ["was wrong", "is gone"]
    bad = json.loads(text)
    bad["items"][0]["state"] = "lost"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema()).validate(bad)


@pytest.mark.parametrize("text", ['{"schema": 1, "items": []}', "[]", "", '{"schema": 2, "items": [{}]}'])
def test_a_list_of_another_schema_is_not_read(text: str) -> None:
    with pytest.raises(ConfigError, match=r"worklist\.json: "):
        read_document(text)


def test_a_kind_is_a_rule_with_what_a_reader_needs() -> None:
    """GitHub's own fields: security-severity, tags of CWE, help in Markdown, a page."""
    titled = replace(ITEMS[10], title="Open redirect: GET /go redirects to evil.test", trusted=True)
    other = replace(ITEMS[10], title="Page is not accessible: GET /: breaks label", trusted=True)
    run = json.loads(to_sarif([titled, other], HEADER))["runs"][0]
    redirect, page = run["tool"]["driver"]["rules"]
    assert (redirect["id"], redirect["name"]) == ("open-redirect", "OpenRedirect")
    assert redirect["properties"]["tags"] == ["web", "security", "external/cwe/cwe-601"]
    assert redirect["properties"]["security-severity"] == "5.5"
    assert redirect["helpUri"] == "https://cwe.mitre.org/data/definitions/601.html"
    assert "**How it is usually fixed.** Accept only paths" in redirect["help"]["markdown"]
    assert page["id"] == "accessibility"
    assert "security-severity" not in page["properties"]
    assert [one["ruleId"] for one in run["results"]] == ["open-redirect", "accessibility"]
    stranger = replace(titled, trusted=False)
    assert json.loads(to_sarif([stranger], HEADER))["runs"][0]["results"][0]["ruleId"] == "stranger"


def test_sarif_says_what_the_page_says() -> None:
    items, pages = paged()
    run = json.loads(to_sarif(items, HEADER, pages))["runs"][0]
    for item_, result in zip(items[:3], run["results"], strict=False):
        page, shown = pages[item_.fingerprint], result["properties"]["page"]
        assert f"Expected: {page.expected} Observed: " in result["message"]["text"]
        assert f"fleet items show {item_.fingerprint} --script | bash" in result["message"]["text"]
        assert shown["script"] == page.script
        assert shown["fields"][0] == {
            "name": "status",
            "expected": "at least 400",
            "observed": "200",
            "compared": "200",
        }
        assert "pictures" not in shown
        assert result["properties"]["evidence"] == f"sha256:{'e' * 64}"
    for rule in run["tool"]["driver"]["rules"]:
        assert re.fullmatch(r"[A-Z][A-Za-z0-9]+", rule["name"])
        assert rule["name"].lower() != rule["id"].replace("-", "") or rule["name"] != rule["id"].capitalize()
        assert rule["fullDescription"]["text"]
        assert rule["help"]["markdown"]


def test_sarif_is_at_the_line_of_the_source_that_an_observation_names() -> None:
    title = "Compiler crashes: thread 'main' panicked at crates/slice_str.rs:51:9: index out of bounds"
    for trusted, place in ((True, ("crates/slice_str.rs", 51)), (False, ("worklist.json", 1))):
        made = to_sarif([item(1, title, **OWN | {"trusted": trusted})], HEADER)
        physical = json.loads(made)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
        assert (physical["artifactLocation"]["uri"], physical["region"]["startLine"]) == place
        assert refusals(made) == []


def test_sarif_leaves_pages_out_before_items(monkeypatch: pytest.MonkeyPatch) -> None:
    items, pages = paged()
    whole = len(gzip.compress(to_sarif(items, HEADER, pages), 6, mtime=0))
    monkeypatch.setattr(sarif, "BYTES", whole - 100)
    run = json.loads(to_sarif(items, HEADER, pages))["runs"][0]
    assert (len(run["results"]), "leftOut" in run["properties"]) == (len(items), False)
    assert not any("page" in one["properties"] for one in run["results"])


def test_every_format_has_evidence_severity_and_remedy_of_an_item() -> None:
    one = item(1, "SQL injection: GET {site}/a", **OWN | {"state": "confirmed", "evidence": "ab" * 32})
    one = replace(one, trusted=True, severity="critical")
    fix, sha = kinds()["sql-injection"].fix, "ab" * 32
    header = WorklistHeader(platform="p")
    [row] = csv.DictReader(StringIO(to_csv([one]).decode()))
    assert (row["fingerprint"], row["severity"], row["evidence"], row["remedy"]) == (
        one.fingerprint,
        "critical",
        sha,
        fix,
    )
    failure = ElementTree.fromstring(to_junit([one], header)).find(".//failure")
    assert failure is not None
    assert failure.get("type") == "critical"
    assert {f"remedy: {fix}", f"evidence: sha256:{sha}"} <= set((failure.text or "").splitlines())
    [run] = json.loads(to_sarif([one], header))["runs"]
    [result], [rule] = run["results"], run["tool"]["driver"]["rules"]
    assert (result["level"], result["properties"]["evidence"]) == ("error", f"sha256:{sha}")
    assert fix in rule["help"]["text"]
    assert "external/cwe/cwe-89" in rule["properties"]["tags"]
    stranger = replace(one, trusted=False)
    [row] = csv.DictReader(StringIO(to_csv([stranger]).decode()))
    assert row["remedy"] == ""
